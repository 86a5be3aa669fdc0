//! Pages of recorded runs found again in plain ones: each mapped page holds the same object.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;

use lookaside_capture::plain_run::{Aslr, PlainRun, StopPoint};
use lookaside_capture::{start, ChildEnd, RecordRequest, RecordTarget, RecorderBackend};
use lookaside_techniques::lock::layout::{RecordedLayout, RegionLayout, Runner};
use lookaside_techniques::lock::regions::{Confidence, MatchedPage, Reason, RegionMatching, Unmapped};
use lookaside_trace::{Block, FilterWindow, Granularity};

/// Kind and number of a tag, as in `tagged.c`.
type Tag = (u32, u32);

const DATA: u32 = 0;
const BSS: u32 = 1;
const HEAP: u32 = 2;
const MAPS: u32 = 3;
const STACK: u32 = 4;
const ODD: u32 = 5;
const BLOCKS: u32 = 6;
const GONE: u32 = 7;

/// Address of each tag, and the listing behind them.
fn tags(file: &Path) -> (BTreeMap<Tag, u64>, String) {
    let text = std::fs::read_to_string(file).unwrap();
    let (tags, listing) = text.split_once("maps\n").unwrap_or((&text, ""));
    let tag = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        ((words[0].parse().unwrap(), words[1].parse().unwrap()), u64::from_str_radix(words[2], 16).unwrap())
    };
    (tags.lines().map(tag).collect(), listing.to_owned())
}

/// What `tagged.c` writes.
fn bytes_of((kind, number): Tag) -> Vec<u8> {
    let check = !(kind.wrapping_mul(65599).wrapping_add(number));
    [0x7461_676c, kind, number, check].into_iter().flat_map(u32::to_le_bytes).collect()
}

struct Program {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
    fn new(compiler: &str, flags: &[&str]) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tagged");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/tagged.c");
        let built = Command::new(compiler).args(flags).arg("-o").arg(&path).arg(&source).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Program { folder, path }
    }

    fn command(&self, file: &str, more: &[&str]) -> Vec<OsString> {
        let mut command = vec![self.path.clone().into(), self.file(file).into()];
        command.extend(more.iter().map(OsString::from));
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Records a run: where everything lay at its end, and its tags.
    fn record(&self, backend: RecorderBackend, more: &[&str]) -> (RegionLayout, BTreeMap<Tag, u64>) {
        let request = RecordRequest {
            target: RecordTarget::Command(self.command("profiled", more)),
            backend: Some(backend),
            granularity: Granularity::Page,
            filter_log2_classes: 0,
            filter_window: FilterWindow::default(),
            filter_stores_apart: false,
            filter_unified: false,
            fetches: true,
            waits: false,
            sample_hz: 0,
            intervals: None,
        };
        let mut recording = start(&request).unwrap_or_else(|error| panic!("{error}"));
        let runner = if backend == RecorderBackend::Qemu { Runner::Qemu } else { Runner::Valgrind };
        let mut recorded = RecordedLayout::new(runner, recording.source.info().granularity);
        let mut block = Block::default();
        while recording.source.next_block(&mut block).unwrap() {
            recorded.observe(&block);
        }
        assert_eq!(recording.control.wait().unwrap(), ChildEnd::Code(3));
        (recorded.layout(), tags(&self.file("profiled")).0)
    }

    /// Maps the tags of a profiled run into a plain one, and looks whether they are there: what was found, by tag.
    fn check(
        &self,
        profiled: &RegionLayout,
        wanted: &BTreeMap<Tag, u64>,
        placement: Aslr,
        environment: Option<&str>,
        more: &[&str],
    ) -> BTreeMap<Tag, Result<(MatchedPage, bool), Unmapped>> {
        let mut command = self.command("native00", more);
        if let Some(setting) = environment {
            command.splice(0..0, ["/usr/bin/env".into(), setting.into()]);
        }
        let (sender, found) = channel();
        let (profiled, wanted) = (profiled.clone(), wanted.clone());
        let run = PlainRun::start(&command, placement, move |stopped| {
            if stopped.point == StopPoint::Exit {
                let native = RegionLayout::new(stopped.regions.to_vec(), Runner::Native, stopped.entry_stack);
                let mapping = RegionMatching::new(&profiled, &native);
                let found = wanted.iter().map(|(tag, address)| {
                    let look = |mapped: MatchedPage| {
                        let mut bytes = [0; 16];
                        let holds = stopped.read(mapped.address, &mut bytes) == 16 && bytes[..] == bytes_of(*tag);
                        (mapped, holds)
                    };
                    (*tag, mapping.map_page(*address).map(look))
                });
                sender.send(found.collect()).unwrap();
            }
        })
        .unwrap_or_else(|error| panic!("{error}"));
        let maps = run.wait().unwrap();
        assert_eq!((maps.end, &maps.notes[..]), (ChildEnd::Code(3), &[][..]));
        assert!(!maps.loaded.is_empty());
        let mut found: BTreeMap<Tag, Result<(MatchedPage, bool), Unmapped>> = found.try_iter().last().unwrap();
        // What is gone can't be read; where it was, the program said.
        let there = tags(&self.file("native00")).0;
        for (tag, result) in found.iter_mut().filter(|(tag, _)| tag.0 == GONE) {
            if let Ok((mapped, holds)) = result {
                *holds = mapped.address == there[tag];
            }
        }
        found
    }
}

fn has_valgrind() -> bool {
    let has = Command::new("valgrind").arg("--version").output().is_ok();
    if !has {
        eprintln!("NOT TESTED: valgrind is not installed");
    }
    has
}

/// Every tag was found where it was said to be.
fn all_hold(found: &BTreeMap<Tag, Result<(MatchedPage, bool), Unmapped>>) {
    for (tag, result) in found {
        let (mapped, holds) = result.as_ref().unwrap_or_else(|error| panic!("{tag:?}: {error}"));
        if mapped.reasons.contains(&Reason::HeapWithoutVdso) {
            assert!((tag.0, mapped.confidence()) == (HEAP, Confidence::Guess));
            continue;
        }
        assert!(*holds, "{tag:?} is not at {:#x}: {:?}", mapped.address, mapped.reasons);
        let confidence = match tag.0 {
            DATA | BSS => Confidence::Exact,
            GONE => Confidence::Guess,
            _ => Confidence::Likely,
        };
        assert_eq!(mapped.confidence(), confidence, "{tag:?}: {:?}", mapped.reasons);
    }
    let kinds: std::collections::BTreeSet<u32> = found.keys().map(|tag| tag.0).collect();
    assert!([DATA, BSS, HEAP, MAPS, STACK, ODD, GONE].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}

#[test]
fn pages_recorded_under_valgrind_hold_the_same_objects_in_a_plain_run() {
    if !has_valgrind() {
        return;
    }
    for flags in [&["-O1"][..], &["-O1", "-static"], &["-O1", "-no-pie"]] {
        let program = Program::new("gcc", flags);
        let (profiled, wanted) = program.record(RecorderBackend::Valgrind, &[]);
        all_hold(&program.check(&profiled, &wanted, Aslr::Off, None, &[]));
        // The environment moves the stack, by no whole number of pages.
        let longer = format!("LONGER={}", "x".repeat(9000));
        let found = program.check(&profiled, &wanted, Aslr::Off, Some(&longer), &[]);
        all_hold(&found);
        let shifted = |reason: &Reason| matches!(reason, Reason::StackShifted { .. });
        assert!(found[&(STACK, 0)].as_ref().unwrap().0.reasons.iter().any(shifted));
        all_hold(&program.check(&profiled, &wanted, Aslr::System, None, &[]));
    }
}

#[test]
fn blocks_past_valgrinds_heap_are_guesses() {
    if !has_valgrind() {
        return;
    }
    let program = Program::new("gcc", &["-O1"]);
    let bytes = (12 << 20).to_string();
    let (profiled, wanted) = program.record(RecorderBackend::Valgrind, &[&bytes]);
    let found = program.check(&profiled, &wanted, Aslr::Off, None, &[&bytes]);
    let (there, _) = tags(&program.file("native00"));
    let (mut sure, mut guessed) = (0, 0);
    for (tag, result) in found.iter().filter(|(tag, _)| tag.0 == BLOCKS) {
        let (mapped, holds) = result.as_ref().unwrap_or_else(|error| panic!("{tag:?}: {error}"));
        if mapped.reasons.contains(&Reason::HeapAfterBrkCap) {
            guessed += 1;
            // Each piece that malloc maps in place of heap loses the rest of the one before: less than a block.
            assert!(mapped.address.abs_diff(there[tag]) < 4096, "{tag:?}: {:#x} {:#x}", mapped.address, there[tag]);
            assert_eq!(mapped.confidence(), Confidence::Guess);
        } else {
            sure += 1;
            assert!(*holds, "{tag:?}: {:?}", mapped.reasons);
        }
    }
    assert!(sure > 100 && guessed > 30, "{sure} {guessed}");
}

#[test]
fn listings_of_valgrind_and_of_a_plain_run_are_enough() {
    if !has_valgrind() {
        return;
    }
    let program = Program::new("gcc", &["-O1"]);
    let run = |name: &str, before: &[&str]| {
        let mut words: Vec<OsString> = before.iter().map(OsString::from).collect();
        words.extend(program.command(name, &["0", "maps"]));
        assert_eq!(Command::new(&words[0]).args(&words[1..]).status().unwrap().code(), Some(3));
        tags(&program.file(name))
    };
    let (wanted, profiled) = run("profiled", &["valgrind", "-q", "--tool=none"]);
    let (there, native) = run("native00", &["setarch", "-R"]);
    let profiled = RegionLayout::from_listing(&profiled, Runner::Valgrind, None);
    let native = RegionLayout::from_listing(&native, Runner::Native, None);
    let mapping = RegionMatching::new(&profiled, &native);
    for (tag, address) in &wanted {
        match mapping.map_page(*address) {
            Ok(mapped) if mapped.address == there[tag] => {}
            // Without the first stack pointers, and where the kernel merges what a program mapped, it may be wrong, and
            // says so.
            Ok(mapped) => assert!(mapped.confidence() == Confidence::Guess, "{tag:?}: {mapped:x?}"),
            Err(error) => assert!(matches!(tag.0, MAPS | ODD | GONE), "{tag:?}: {error}"),
        }
        if matches!(tag.0, DATA | BSS | HEAP) {
            assert_eq!(mapping.map_page(*address).unwrap().address, there[tag], "{tag:?}");
        }
    }
    // The tool's own code is refused.
    let tool = profiled.areas.iter().find(|area| area.region.start == 0x5800_0000).expect("the tool").region.start;
    assert!(matches!(mapping.map_page(tool), Err(Unmapped::Profilers { .. })));
}

fn has_arm() -> bool {
    let missing =
        ["qemu-arm", "arm-linux-gnueabihf-gcc"].map(|name| (name, Command::new(name).arg("--version").output()));
    let missing: Vec<&str> = missing.iter().filter(|(_, found)| found.is_err()).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        eprintln!("NOT TESTED: {} is not installed", missing.join(" and "));
    }
    missing.is_empty()
}

#[test]
fn pages_of_a_static_arm_program_hold_the_same_objects_in_a_plain_run_under_qemu() {
    if !has_arm() {
        return;
    }
    let program = Program::new("arm-linux-gnueabihf-gcc", &["-O1", "-static"]);
    // Without and with a heap that grows in many steps.
    for more in [&[][..], &["3145728"]] {
        let (profiled, wanted) = program.record(RecorderBackend::Qemu, more);
        for placement in [Aslr::Off, Aslr::System] {
            let found = program.check(&profiled, &wanted, placement, None, more);
            all_hold(&found);
            assert_eq!(found.keys().any(|tag| tag.0 == BLOCKS), !more.is_empty());
        }
    }
}

#[test]
fn pages_of_a_static_arm_program_are_found_in_another_listing() {
    if !has_arm() {
        return;
    }
    let program = Program::new("arm-linux-gnueabihf-gcc", &["-O1", "-static"]);
    let (profiled, wanted) = program.record(RecorderBackend::Qemu, &[]);
    let mut plain = Command::new("qemu-arm");
    plain.args(["-s", "4194304"]).env("LONGER", "x".repeat(9000)).arg(&program.path);
    let plain = plain.arg(program.file("native00")).args(["0", "maps"]).status().unwrap();
    assert_eq!(plain.code(), Some(3));
    let (there, listing) = tags(&program.file("native00"));
    let native = RegionLayout::from_listing(&listing, Runner::Qemu, None);
    let mapping = RegionMatching::new(&profiled, &native);
    for (tag, address) in &wanted {
        // A listing does not have what is gone.
        let mapped = match mapping.map_page(*address) {
            Err(Unmapped::NoPartner { .. }) if tag.0 == GONE => continue,
            found => found.unwrap_or_else(|error| panic!("{tag:?}: {error}\n{listing}")),
        };
        if matches!(tag.0, DATA | BSS | HEAP) {
            assert_eq!(mapped.address, there[tag], "{tag:?}: {:?}\n{listing}", mapped.reasons);
        } else if mapped.address != there[tag] {
            assert_eq!(mapped.confidence(), Confidence::Guess, "{tag:?}: {:?}\n{listing}", mapped.reasons);
        }
    }
}
