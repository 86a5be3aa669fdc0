//! What every program promises; the results against naive ones are in each one's own file.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use lookaside_trace::{Block, Event, Kind, MapSource, Source};
use lookaside_workloads::{Pages, WorkloadStream, PAGE_BYTES};

use super::*;

static NEVER: AtomicBool = AtomicBool::new(false);

fn native(name: &str, spec: &ProgramSpec) -> (u64, u64) {
    let mut program = program(name, spec).expect("memory");
    assert!(program.run(&NEVER));
    (program.checksum(), program.operations())
}

/// What a stream had.
#[derive(Debug, Default)]
struct StreamContents {
    data_accesses: u64,
    data_pages: BTreeSet<u64>,
    code_pages: BTreeSet<u64>,
    instructions: u64,
    result: (u64, u64),
}

fn seen(name: &str, spec: &ProgramSpec) -> StreamContents {
    let mut stream = WorkloadStream::new(program(name, spec).expect("memory"));
    assert!(stream.info().has_fetches);
    let arrays: Vec<_> = stream.workload().regions().iter().map(|r| r.stream_start..r.stream_start + r.bytes).collect();
    let (mut block, mut seen, mut maps) = (Block::default(), StreamContents::default(), Vec::new());
    while stream.next_block(&mut block).expect("a block") {
        maps.extend(block.events.drain(..).map(|(_, event)| match event {
            Event::Map { addr, len, prot, .. } => (addr..addr + len, prot),
            other => panic!("{other:?}"),
        }));
        assert_eq!((block.addr.len(), block.kind.len()), (block.repeat.len(), block.repeat.len()));
        for ((&kind, &addr), &repeat) in block.kind.iter().zip(&block.addr).zip(&block.repeat) {
            let needed = [1, 2, 4][kind as usize];
            assert!(
                maps.iter().any(|(map, prot)| map.contains(&addr) && prot & needed > 0),
                "{name}: {kind:?} {addr:#x}"
            );
            if kind == Kind::Fetch {
                seen.code_pages.insert(addr / PAGE_BYTES);
                seen.instructions += 1 + u64::from(repeat);
            } else {
                assert_eq!(repeat, 0);
                // But for constants in the code.
                let in_code = maps.iter().any(|(map, prot)| map.contains(&addr) && prot & 4 > 0);
                let named = arrays.iter().any(|array| array.contains(&addr));
                assert!(named || in_code && kind == Kind::Load, "{name}: {addr:#x} has no name");
                seen.data_pages.insert(addr / PAGE_BYTES);
                seen.data_accesses += 1;
            }
        }
    }
    seen.result = (stream.workload().checksum(), stream.workload().operations());
    seen
}

#[test]
fn native_and_stream_are_the_same_run() {
    for kind in PROGRAMS {
        let spec = ProgramSpec { seed: 3, ..ProgramSpec::new(ProgramInput::Small, 2) };
        assert_eq!(seen(kind.name, &spec).result, native(kind.name, &spec), "{}", kind.name);
    }
}

#[test]
fn seeds_rounds_and_inputs_change_the_result() {
    for kind in PROGRAMS {
        let spec = |seed, rounds| ProgramSpec { seed, ..ProgramSpec::new(ProgramInput::Small, rounds) };
        let base = native(kind.name, &spec(1, 1));
        assert_eq!(base, native(kind.name, &spec(1, 1)), "{}", kind.name);
        assert_eq!(base, native(kind.name, &ProgramSpec { pages: Pages::Thp, ..spec(1, 1) }), "{}", kind.name);
        assert_ne!(base.0, native(kind.name, &spec(2, 1)).0, "{}", kind.name);
        let two = native(kind.name, &spec(1, 2));
        assert!(two.0 != base.0 && two.1 == 2 * base.1, "{}: {base:?}, two rounds {two:?}", kind.name);
        let large = native(kind.name, &ProgramSpec::new(ProgramInput::Large, 1));
        assert!(large.1 > 4 * base.1, "{}: {base:?}, large {large:?}", kind.name);
    }
}

#[test]
fn a_stopped_run_goes_on_where_it_was() {
    for kind in PROGRAMS {
        let spec = ProgramSpec::new(ProgramInput::Small, 1);
        let mut stopped = program(kind.name, &spec).expect("memory");
        assert!(!stopped.run(&AtomicBool::new(true)), "{}", kind.name);
        for _ in 0..1000 {
            stopped.fill(&mut Block::default());
        }
        assert!(stopped.run(&NEVER), "{}", kind.name);
        assert_eq!((stopped.checksum(), stopped.operations()), native(kind.name, &spec), "{}", kind.name);
    }
}

/// Of the runs like the paper's: instructions and data accesses in thousands, data and code pages. That these take the
/// paper's cycles on the model, `tests/samples.rs` says.
#[test]
fn they_touch_what_such_programs_touch() {
    let expected = [
        ("basicmath", 12_000..=13_000, 1_400..=1_600, 68..=75, 14..=18),
        ("qsort", 17_000..=18_500, 5_300..=5_800, 530..=560, 14..=18),
        ("susan", 12_500..=14_000, 11_500..=12_500, 210..=225, 8..=10),
    ];
    for (name, instructions, data_accesses, data_pages, code_pages) in expected {
        let seen = seen(name, &ProgramSpec::new(ProgramInput::Paper, 1));
        let found = (seen.instructions, seen.data_pages.len(), seen.data_accesses, seen.code_pages.len());
        assert!(instructions.contains(&(seen.instructions / 1000)), "{name}: {found:?}");
        assert!(data_pages.contains(&seen.data_pages.len()), "{name}: {found:?}");
        assert!(data_accesses.contains(&(seen.data_accesses / 1000)), "{name}: {found:?}");
        assert!(code_pages.contains(&seen.code_pages.len()), "{name}: {found:?}");
    }
}

/// Code, data, heap, large mappings, libraries and stack, from below, apart from each other; each array within one.
#[test]
fn arrays_lie_where_an_arm_program_has_them() {
    for kind in PROGRAMS {
        for input in [ProgramInput::Small, ProgramInput::Large] {
            let program = program(kind.name, &ProgramSpec::new(input, 1)).expect("memory");
            let maps: Vec<_> = program
                .mappings()
                .into_iter()
                .map(|event| match event {
                    Event::Map { addr, len, prot, source, .. } => (addr, len, prot, source),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert!(maps.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{maps:?}");
            assert!(maps.iter().all(|map| map.0 % PAGE_BYTES == 0 && map.1 % PAGE_BYTES == 0 && map.1 > 0));
            // But for the kernel's page of vectors, which ends them.
            assert!(maps[..maps.len() - 1].iter().all(|map| map.0 + map.1 <= 3 << 30));
            let mut taken = BTreeSet::new();
            for region in program.regions() {
                let map = maps.iter().find(|map| (map.0..map.0 + map.1).contains(&region.stream_start));
                let (addr, len, _, source) = map.expect("a mapping");
                assert!(region.stream_start + region.bytes <= addr + len, "{region:?}");
                let fits = match region.section {
                    lookaside_workloads::ArraySection::Data => matches!(source, MapSource::File { .. }),
                    lookaside_workloads::ArraySection::Mapping => *source == MapSource::Anonymous,
                    lookaside_workloads::ArraySection::Heap => *source == MapSource::Heap,
                    lookaside_workloads::ArraySection::Stack => *source == MapSource::Stack,
                };
                assert!(fits, "{region:?} in {source:?}");
                // A chunk's size is ahead of it.
                let has_size = matches!(
                    region.section,
                    lookaside_workloads::ArraySection::Heap | lookaside_workloads::ArraySection::Mapping
                );
                assert!(!has_size || region.stream_start >= addr + 8, "{region:?}");
                taken.insert((region.stream_start, region.stream_start + region.bytes));
            }
            let taken: Vec<(u64, u64)> = taken.into_iter().collect();
            assert!(taken.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{}: {taken:x?}", kind.name);
            assert_eq!(taken.len(), program.regions().len());
        }
    }
}

/// Known results: the input, the order of work and the checksum stay as they are.
#[test]
fn known_checksums() {
    let found: Vec<(&str, u64)> = PROGRAMS
        .iter()
        .map(|kind| (kind.name, native(kind.name, &ProgramSpec::new(ProgramInput::Small, 1)).0))
        .collect();
    assert_eq!(found, KNOWN);
}

const KNOWN: [(&str, u64); 4] = [
    ("basicmath", 17_821_408_016_567_645_225),
    ("qsort", 14_567_812_115_787_255_239),
    ("susan", 10_042_333_664_082_566_804),
    ("susan-smooth", 17_837_743_329_757_567_090),
];

#[test]
fn what_cannot_be_is_named() {
    let error = |name, spec| program(name, &spec).err().expect("an error").to_string();
    let unknown = error("quicksort", ProgramSpec::new(ProgramInput::Small, 1));
    assert!(unknown.starts_with("\"quicksort\": no such workload; there are basicmath, qsort, susan"), "{unknown}");
    assert!(error("qsort", ProgramSpec::new(ProgramInput::Small, 0)).contains("0 rounds"));
}
