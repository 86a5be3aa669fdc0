//! The QEMU backend on programs built here: counts known by hand, the filter against a naive one, events, ends.

mod libc_programs;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use lookaside_capture::{start, CaptureError, ChildEnd, RecordRequest, RecordTarget, RecorderBackend};
use lookaside_trace::{Block, Event, FilterWindow, Granularity, Kind};

/// Everything that a recording gave.
#[derive(Debug, Default)]
struct Seen {
    /// Process, thread, and its accesses and events in order, repeats as they came.
    blocks: Vec<Block>,
    /// As recorded, repeats included: loads, stores, fetches.
    counts: [u64; 3],
    /// Last `Totals` of each process: loads, stores, fetches, instructions.
    totals: BTreeMap<u32, [u64; 4]>,
    damage: usize,
    end: Option<ChildEnd>,
}

impl Seen {
    fn events(&self) -> impl Iterator<Item = &Event> {
        self.blocks.iter().flat_map(|block| block.events.iter().map(|(_, event)| event))
    }

    /// Repeats count as the kind of the access that they repeat: only sums over a filter table are the program's.
    fn data_and_fetches(&self) -> [u64; 2] {
        [self.counts[0] + self.counts[1], self.counts[2]]
    }

    /// Loads and stores, and fetches, of all processes as they say themselves.
    fn said(&self) -> [u64; 2] {
        self.totals.values().fold([0, 0], |sum, t| [sum[0] + t[0] + t[1], sum[1] + t[2]])
    }

    /// Of the only process.
    fn total(&self) -> [u64; 4] {
        assert_eq!(self.totals.len(), 1);
        *self.totals.values().next().unwrap()
    }
}

fn request(program: &Path, argument: &str) -> RecordRequest {
    // Recorded programs have our standard input: none, so that no test depends on where it was started.
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let null = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: two descriptors that are open; nothing in a test reads standard input.
        assert_eq!(unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), 0) }, 0);
    });
    let command: Vec<OsString> = vec![program.into(), argument.into()];
    RecordRequest {
        target: RecordTarget::Command(command),
        backend: Some(RecorderBackend::Qemu),
        granularity: Granularity::Page,
        filter_log2_classes: 4,
        filter_window: FilterWindow::default(),
        filter_stores_apart: false,
        filter_unified: false,
        fetches: true,
        waits: false,
        sample_hz: 0,
        intervals: None,
    }
}

fn record(request: &RecordRequest) -> Seen {
    let mut recording = start(request).unwrap_or_else(|error| panic!("{error}"));
    let (mut seen, mut block) = (Seen::default(), Block::default());
    while recording.source.next_block(&mut block).unwrap() {
        for (i, kind) in block.kind.iter().enumerate() {
            let repeats = block.repeat.get(i).map_or(0, |&n| u64::from(n));
            seen.counts[*kind as usize] += 1 + repeats;
        }
        for (_, event) in &block.events {
            if let Event::Repeats { kind, count, .. } = *event {
                seen.counts[kind as usize] += count;
            }
            if let Event::Totals { loads, stores, fetches, instructions } = *event {
                seen.totals.insert(block.process, [loads, stores, fetches, instructions]);
            }
        }
        seen.blocks.push(std::mem::take(&mut block));
    }
    seen.damage = recording.source.damage().len();
    seen.end = Some(recording.control.wait().unwrap());
    seen
}

/// Whether QEMU for `isa` and a compiler are here. If QEMU isn't, checks that the error says what installs it.
fn ready(isa: &str, compiler: &str) -> bool {
    let has = |name: &str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(name).is_file())
    };
    if !has(&format!("qemu-{isa}")) {
        eprintln!("NOT TESTED: qemu-{isa} is not installed (apt-get install qemu-user); checking its error line only");
        if isa == std::env::consts::ARCH {
            let error = start(&request(Path::new("/bin/sh"), "")).err().expect("no QEMU, no recording").to_string();
            assert!(error.contains("apt-get install qemu-user") && !error.contains('\n'), "{error}");
        }
        return false;
    }
    if !has(compiler) {
        eprintln!("NOT TESTED: {compiler} is not installed");
        return false;
    }
    true
}

/// Builds a program of `tests/programs`.
fn build(folder: &Path, compiler: &str, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let program = folder.join(name.trim_end_matches(".c"));
    let output = Command::new(compiler).args(flags).arg("-o").arg(&program).arg(&source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

const BARE: &[&str] = &["-O1", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-no-pie"];
const STATIC: &[&str] = &["-O1", "-static", "-pthread"];

/// What the loops of `bare.c` make: loads 4096 + 1000 + 100, stores 4096 + 4096 + 1000 + 100 + 64.
const BARE_LOADS: u64 = 5196;
const BARE_STORES: u64 = 9356;

#[test]
fn counts_of_a_bare_program_are_those_counted_by_hand_and_by_lackey() {
    if !cfg!(target_arch = "x86_64") || !ready("x86_64", "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bare = build(folder.path(), "gcc", "bare.c", BARE);
    let page = record(&request(&bare, ""));
    assert_eq!((page.end, page.damage), (Some(ChildEnd::Code(7)), 0));
    assert_eq!(page.data_and_fetches(), page.said());
    let [loads, stores, fetches, instructions] = page.total();
    assert_eq!((loads, fetches), (BARE_LOADS, instructions));
    // What the compiler adds around the assembly is the call to exit: at most its return address.
    assert!((BARE_STORES..=BARE_STORES + 1).contains(&stores), "{stores}");

    let Ok(output) =
        Command::new("valgrind").args(["--tool=lackey", "--trace-mem=yes", "--log-fd=1"]).arg(&bare).output()
    else {
        eprintln!("NOT TESTED against Lackey: valgrind is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = |prefix: &str| text.lines().filter(|line| line.starts_with(prefix)).count() as u64;
    let (loaded, stored, modified, fetched) = (lines(" L "), lines(" S "), lines(" M "), lines("I  "));
    assert!(fetched > 0, "{text:.300}");
    assert_eq!([loads, stores], [loaded + modified, stored + modified]);
    // Each turn of `rep stosb` is an instruction to both.
    assert_eq!(instructions, fetched);
}

/// Rows that the filter as the wire describes it lets through, with the repeats that belong to each.
fn filter(byte: &Seen, request: &RecordRequest) -> Vec<(Kind, u64, u64)> {
    let unit = if request.granularity == Granularity::Line { 6 } else { 12 };
    let table = |kind: Kind| match (kind, request.filter_unified, request.filter_stores_apart) {
        (_, true, _) | (Kind::Load, ..) | (Kind::Store, _, false) => 0,
        (Kind::Store, _, true) => 1,
        (Kind::Fetch, ..) => 2,
    };
    let mut slots: BTreeMap<(u8, u64), (u64, usize)> = BTreeMap::new();
    let mut rows: Vec<(Kind, u64, u64)> = Vec::new();
    for block in &byte.blocks {
        let mut events = block.events.iter().peekable();
        for i in 0..=block.len() {
            while events
                .next_if(|(at, _)| *at as usize == i)
                .is_some_and(|(_, event)| clears(event) || events.peek().is_some())
            {
                slots.clear();
            }
            if i == block.len() {
                break;
            }
            let (kind, addr) = (block.kind[i], block.addr[i]);
            let slot = (table(kind), addr >> 12 & ((1 << request.filter_log2_classes) - 1));
            match slots.get(&slot) {
                Some(&(page, row)) if page == addr >> unit => rows[row].2 += 1,
                _ => {
                    slots.insert(slot, (addr >> unit, rows.len()));
                    rows.push((kind, addr, 0));
                }
            }
        }
    }
    rows
}

fn clears(event: &Event) -> bool {
    !matches!(event, Event::Totals { .. } | Event::Marker { .. })
}

/// The rows of a filtered recording; a count that came as an event goes to the last row of its page before it.
fn rows(seen: &Seen, unit: u32) -> Vec<(Kind, u64, u64)> {
    let mut rows: Vec<(Kind, u64, u64)> = Vec::new();
    for block in &seen.blocks {
        let mut events = block.events.iter().peekable();
        for i in 0..=block.len() {
            while let Some((_, event)) = events.next_if(|(at, _)| *at as usize == i) {
                if let Event::Repeats { addr, count, .. } = event {
                    rows.iter_mut().rev().find(|row| row.1 >> unit == addr >> unit).unwrap().2 += count;
                }
            }
            if i < block.len() {
                rows.push((block.kind[i], block.addr[i], u64::from(block.repeat[i])));
            }
        }
    }
    rows
}

#[test]
fn the_filter_leaves_out_what_a_naive_one_does() {
    if !cfg!(target_arch = "x86_64") || !ready("x86_64", "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bare = build(folder.path(), "gcc", "bare.c", BARE);
    let byte = RecordRequest { granularity: Granularity::Byte, ..request(&bare, "") };
    let everything = record(&byte);
    assert!(everything.blocks.iter().all(|block| block.repeat.is_empty()));
    assert_eq!(everything.counts, everything.total()[..3]);
    assert_eq!(
        record(&byte).blocks.iter().map(|b| b.addr.clone()).collect::<Vec<_>>().concat(),
        everything.blocks.iter().map(|b| b.addr.clone()).collect::<Vec<_>>().concat(),
        "the same again"
    );

    for granularity in [Granularity::Page, Granularity::Line] {
        for (classes, apart, unified) in [(0, false, false), (4, false, false), (4, true, false), (2, false, true)] {
            let filtered = RecordRequest {
                granularity,
                filter_log2_classes: classes,
                filter_window: FilterWindow::default(),
                filter_stores_apart: apart,
                filter_unified: unified,
                ..byte.clone()
            };
            let seen = record(&filtered);
            let line = granularity == Granularity::Line;
            assert_eq!((seen.total(), seen.damage), (everything.total(), 0), "{filtered:?}");
            let (mut ours, mut wanted) = (rows(&seen, if line { 6 } else { 12 }), filter(&everything, &filtered));
            if line {
                wanted.iter_mut().for_each(|row| row.1 &= !63);
            } else if !unified {
                // Fetches go before the data accesses of their block of instructions: each kind is compared by itself.
                ours.sort_by_key(|row| row.0 == Kind::Fetch);
                wanted.sort_by_key(|row| row.0 == Kind::Fetch);
            }
            assert_eq!(ours.len(), wanted.len(), "{filtered:?}");
            assert_eq!(ours, wanted, "{filtered:?}");
        }
    }
}

#[test]
fn native_programs() {
    if !ready(std::env::consts::ARCH, "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    libc_programs::check_map_events("gcc", folder.path());
    let many = folder.path().join("many");
    libc_programs::check_ends(&many);
    libc_programs::check_threads_and_forks(&many);
}

#[test]
fn arm_programs() {
    if !ready("arm", "arm-linux-gnueabihf-gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    libc_programs::check_map_events("arm-linux-gnueabihf-gcc", folder.path());
    let many = folder.path().join("many");
    libc_programs::check_ends(&many);
    libc_programs::check_threads_and_forks(&many);
    libc_programs::check_plain_runs(&many);
    // Without being asked, by what the program is.
    let by_itself = start(&RecordRequest { backend: None, ..request(&many, "") }).unwrap();
    assert_eq!(by_itself.backend, RecorderBackend::Qemu);
    assert!(by_itself.notes[0].contains("qemu-arm"), "{:?}", by_itself.notes);
}

#[test]
fn a_program_that_never_ends_is_stopped() {
    if !ready(std::env::consts::ARCH, "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let many = build(folder.path(), "gcc", "many.c", STATIC);
    let mut recording = start(&RecordRequest { granularity: Granularity::Byte, ..request(&many, "spin") }).unwrap();
    let (mut block, mut blocks) = (Block::default(), 0);
    while recording.source.next_block(&mut block).unwrap() {
        blocks += 1;
        if blocks == 10 {
            recording.control.stop();
        }
    }
    assert!(blocks >= 10);
    assert_eq!(recording.control.wait().unwrap(), ChildEnd::Signal(15));
    assert!(recording.source.damage().is_empty(), "{:?}", recording.source.damage());
}

#[test]
fn what_cannot_be_recorded_is_said_in_one_line() {
    if !ready(std::env::consts::ARCH, "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused = |request: RecordRequest| match start(&request) {
        Err(error @ CaptureError::Backend { .. }) => error.to_string(),
        other => panic!("{:?}", other.map(|r| r.notes)),
    };
    assert!(refused(request(&script, "")).contains("is a script"));
    assert!(
        refused(RecordRequest { target: RecordTarget::Pid(1), ..request(&script, "") }).contains("--backend sample")
    );
    assert!(refused(RecordRequest { filter_log2_classes: 13, ..request(&script, "") }).contains("2^12"));
    assert!(matches!(start(&request(Path::new("/no/such"), "")), Err(CaptureError::Program { code: 127, .. })));
}

#[test]
fn what_a_recording_lacks_is_in_its_notes() {
    let folder = tempfile::tempdir().unwrap();
    let notes = |program: &Path| {
        let mut recording = start(&request(program, "")).unwrap();
        while recording.source.next_block(&mut Block::default()).unwrap() {}
        recording.control.wait().unwrap();
        recording.notes
    };
    let has = |notes: &[String], words: &str| notes.iter().any(|note| note.contains(words));
    if ready(std::env::consts::ARCH, "gcc") {
        let notes = notes(&build(folder.path(), "gcc", "bare.c", BARE));
        assert!(has(&notes, "the kernel's accesses in system calls are not recorded") && has(&notes, "heap"));
        assert!(!has(&notes, "does not know"), "{notes:?}");
        let plain = |path: &Path| !path.to_string_lossy().contains([' ', ':']);
        if lookaside_host::cache_folder().is_some_and(|cache| plain(&cache)) && plain(&std::env::temp_dir()) {
            assert!(!has(&notes, "loses its last accesses"), "{notes:?}");
        }
    }
    // The plugin has no table of this one's calls; what it runs need be no program.
    if ready("mips", "gcc") {
        let program = folder.path().join("mips");
        let mut elf = [0; 52];
        elf[..6].copy_from_slice(b"\x7fELF\x01\x02");
        elf[19] = 8;
        std::fs::write(&program, elf).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let notes = notes(&program);
        assert!(has(&notes, "does not know mips's system calls: mappings and forks are not seen"), "{notes:?}");
    }
}

#[test]
fn records_a_foreign_program_for_another_test() {
    if let Some(program) = std::env::var_os("LOOKASIDE_TEST_FOREIGN") {
        for backend in [None, Some(RecorderBackend::Qemu)] {
            let error = start(&RecordRequest { backend, ..request(Path::new(&program), "") }).err();
            println!("refused: {}", error.expect("there is no QEMU"));
        }
    }
}

#[test]
fn without_qemu_its_installation_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = folder.path().join("foreign");
    let mut elf = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    elf[18..20].copy_from_slice(&if cfg!(target_arch = "aarch64") { [62, 0] } else { [183, 0] });
    std::fs::write(&foreign, elf).unwrap();
    std::fs::set_permissions(&foreign, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "records_a_foreign_program_for_another_test", "--nocapture"])
        .env("LOOKASIDE_TEST_FOREIGN", &foreign)
        .env("PATH", folder.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().filter_map(|line| line.split_once("refused: ")).map(|(_, line)| line).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for line in lines {
        assert!(line.contains(" is not installed: apt-get install qemu-user gcc"), "{line}");
    }
}
