//! What the lockdown paper's tasks and their background stand for: the recorded samples are whole and what they are
//! said to be, and the programs take the paper's cycles on the model.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use lookaside_engine::{run_source, Detail, Outcome, RunEnd, Setup};
use lookaside_harness::{Sample, BACKGROUND};
use lookaside_tlb_lockdown::programs::{program, ProgramInput, ProgramSpec};
use lookaside_trace::{Block, Event, Kind, Source};
use lookaside_workloads::WorkloadStream;

/// What is in a sample.
#[derive(Debug, Default)]
struct SampleContents {
    command: String,
    accesses: u64,
    instructions: u64,
    data_pages: BTreeSet<u64>,
    code_pages: BTreeSet<u64>,
    libraries: BTreeSet<String>,
}

fn found(sample: &Sample) -> SampleContents {
    let mut source = sample.open().expect("a sample");
    let command = source.info().command.first().cloned().unwrap_or_default();
    let mut found = SampleContents { command, ..SampleContents::default() };
    let (mut block, mut maps) = (Block::default(), Vec::new());
    while source.next_block(&mut block).expect("a block") {
        assert_eq!((block.process, block.thread), (1, 1));
        for (_, event) in &block.events {
            match event {
                Event::Map { addr, len, source, .. } => {
                    maps.push(*addr..addr + len.next_multiple_of(4096));
                    if let lookaside_trace::MapSource::File { path, .. } = source {
                        found.libraries.insert(path.clone());
                    }
                }
                Event::Brk { start, end } => maps.push(*start..*end),
                _ => {}
            }
        }
        for (i, (&kind, &addr)) in block.kind.iter().zip(&block.addr).enumerate() {
            assert!(maps.iter().any(|map| map.contains(&addr)), "{}: {addr:#x}", sample.name);
            let times = 1 + u64::from(block.repeat.get(i).copied().unwrap_or(0));
            found.accesses += times;
            if kind == Kind::Fetch {
                found.instructions += times;
                found.code_pages.insert(addr >> 12);
            } else {
                found.data_pages.insert(addr >> 12);
            }
        }
    }
    assert!(source.damage().is_empty(), "{}: {:?}", sample.name, source.damage());
    assert_eq!(maps.iter().filter(|map| map.end > 1 << 32).count(), 0);
    found
}

#[test]
fn the_background_is_three_real_arm_programs() {
    let pages = [("cjpeg", 100..=160, 20..=100), ("djpeg", 100..=160, 20..=100), ("troff", 80..=120, 5..=60)];
    for (sample, (name, data_pages, code_pages)) in BACKGROUND.iter().zip(pages) {
        let found = found(sample);
        assert_eq!((sample.name, found.command), (name, format!("root/usr/bin/{name}")));
        assert!((3_000_000..7_000_000).contains(&found.accesses), "{name}: {} accesses", found.accesses);
        assert!(found.instructions * 2 > found.accesses, "{name}: {} instructions", found.instructions);
        assert!(data_pages.contains(&found.data_pages.len()), "{name}: {} data pages", found.data_pages.len());
        assert!(code_pages.contains(&found.code_pages.len()), "{name}: {} code pages", found.code_pages.len());
        // Paths are the programs' own, not those of the folder that they were recorded in.
        let of_system = |path: &String| ["/lib/", "/usr/", "/etc/"].iter().any(|folder| path.starts_with(folder));
        assert!(found.libraries.iter().all(of_system), "{:?}", found.libraries);
        assert!(found.libraries.contains("/lib/arm-linux-gnueabihf/libc.so.6"), "{:?}", found.libraries);
    }
}

/// On the board's description.
fn on_the_model(source: &mut dyn Source) -> Outcome {
    let machine = lookaside_machine::preset("cortex-a9").expect("a preset");
    let setup = Setup { detail: Detail::Totals, ..Setup::new(machine) };
    let ran = run_source(setup, source, |_| ControlFlow::Continue(())).expect("a good setup");
    assert!(matches!(ran.end, RunEnd::Complete), "{:?}", ran.end);
    ran.outcomes.into_iter().next().expect("an outcome")
}

/// Section V.2: 15, 37 and 33 million cycles.
#[test]
fn programs_take_about_the_papers_cycles() {
    for (name, million_cycles) in [("basicmath", 15.0), ("qsort", 37.0), ("susan", 33.0)] {
        let program = program(name, &ProgramSpec::new(ProgramInput::Paper, 1)).expect("memory");
        let outcome = on_the_model(&mut WorkloadStream::new(program));
        let found = outcome.modelled_cycles() / 1e6;
        assert!((0.8..1.25).contains(&(found / million_cycles)), "{name}: {found} million");
    }
}

/// The background presses on the main TLB: each of the three evicts from it.
#[test]
fn the_background_goes_through_the_model() {
    for sample in &BACKGROUND {
        let outcome = on_the_model(&mut sample.open().expect("a sample"));
        let cycles = outcome.modelled_cycles() / 1e6;
        assert!((4.0..7.0).contains(&cycles), "{}: {cycles} million", sample.name);
        let main = outcome.tlbs.iter().find(|tlb| tlb.name == "main").expect("a main TLB");
        assert!(main.evictions > 10, "{}: {main:?}", sample.name);
    }
}
