//! Programs to record, and recordings as plain lists.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use lookaside_capture::{start, ChildEnd, RecordRequest, RecordTarget, RecorderBackend, Recording};
use lookaside_trace::{Block, Damage, Event, FilterWindow, Granularity, Kind, MapSource, WindowEvent};

/// One access and its repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub thread: u32,
    pub kind: Kind,
    pub addr: u64,
    pub size: u8,
    pub ip: u64,
    pub repeat: u64,
}

/// All of a recording.
pub struct Recorded {
    pub rows: Vec<Row>,
    /// Number of rows before, process, event; without `Repeats`.
    pub events: Vec<(usize, u32, Event)>,
    /// By process; `at` is the number of rows before.
    pub of_windows: Vec<(u32, WindowEvent)>,
    /// Address and count of `Repeats`.
    pub late: Vec<(u64, u64)>,
    pub damage: Vec<Damage>,
    pub end: ChildEnd,
}

impl Recorded {
    pub fn accesses(&self) -> u64 {
        self.rows.iter().map(|row| row.repeat + 1).sum::<u64>() + self.late.iter().map(|late| late.1).sum::<u64>()
    }

    /// What lay at `addr` at some time.
    pub fn mapping_of(&self, addr: u64) -> Option<MapSource> {
        self.events.iter().find_map(|(.., event)| match event {
            Event::Map { addr: first, len, source, .. } if (*first..first + len).contains(&addr) => {
                Some(source.clone())
            }
            Event::Remap { new_addr, new_len, .. } if (*new_addr..new_addr + new_len).contains(&addr) => {
                Some(MapSource::Anonymous)
            }
            Event::Brk { start, end } if (*start..*end).contains(&addr) => Some(MapSource::Heap),
            _ => None,
        })
    }
}

fn compile_with(compiler: &str, flags: &[&str], file: &Path, program: &Path) {
    let output = Command::new(compiler).args(flags).arg("-o").arg(program).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a C program by the name `program`.
pub fn compile(source: &str, flags: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&file, source).unwrap();
    compile_with("gcc", flags, &file, &program);
    (folder, program)
}

/// As [`compile`], C++ in `program.cc`.
pub fn compile_cpp(source: &str, flags: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (folder.path().join("program.cc"), folder.path().join("program"));
    std::fs::write(&file, source).unwrap();
    compile_with("g++", flags, &file, &program);
    (folder, program)
}

pub fn command(program: &Path, arguments: &[&str]) -> Vec<OsString> {
    std::iter::once(program.into()).chain(arguments.iter().map(OsString::from)).collect()
}

/// Everything by pages, under Valgrind.
pub fn request(command: Vec<OsString>) -> RecordRequest {
    no_input();
    RecordRequest {
        target: RecordTarget::Command(command),
        backend: Some(RecorderBackend::Valgrind),
        granularity: Granularity::Page,
        filter_log2_classes: 0,
        filter_window: FilterWindow::default(),
        filter_stores_apart: false,
        filter_unified: false,
        fetches: true,
        waits: false,
        sample_hz: 0,
        intervals: None,
    }
}

/// Recorded programs have our standard input: none, so that no test depends on where it was started.
pub fn no_input() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let null = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: two descriptors that are open; nothing in a test reads standard input.
        assert_eq!(unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), 0) }, 0);
    });
}

pub fn record(request: &RecordRequest) -> Recorded {
    record_until(request, |_| false)
}

/// Records; stops the program once `enough` of the number of rows.
pub fn record_until(request: &RecordRequest, enough: impl Fn(usize) -> bool) -> Recorded {
    collect(start(request).unwrap(), enough)
}

pub fn drain(recording: Recording) -> Recorded {
    collect(recording, |_| false)
}

fn collect(mut recording: Recording, enough: impl Fn(usize) -> bool) -> Recorded {
    let (mut rows, mut events, mut of_windows, mut late) = (vec![], vec![], vec![], vec![]);
    let mut block = Block::default();
    while recording.source.next_block(&mut block).unwrap() {
        let first = rows.len();
        for i in 0..block.len() {
            let repeat = u64::from(block.repeat.get(i).copied().unwrap_or(0));
            let (kind, addr, size, ip) = (block.kind[i], block.addr[i], block.size[i], block.ip[i]);
            rows.push(Row { thread: block.thread, kind, addr, size, ip, repeat });
        }
        let at = |event: &WindowEvent| (first + event.at as usize) as u32;
        let counted = block.window_events.iter().map(|event| WindowEvent { at: at(event), ..*event });
        of_windows.extend(counted.map(|event| (block.process, event)));
        for (at, event) in block.events.drain(..) {
            match event {
                Event::Repeats { addr, count, .. } => late.push((addr, count)),
                event => events.push((first + at as usize, block.process, event)),
            }
        }
        if enough(rows.len()) {
            recording.control.stop();
        }
    }
    let damage = recording.source.damage().to_vec();
    let end = recording.control.wait().unwrap();
    Recorded { rows, events, of_windows, late, damage, end }
}
