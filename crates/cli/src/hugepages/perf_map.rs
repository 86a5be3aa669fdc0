//! Maps for profilers of code that was copied to huge pages, which is no file's any more: `/tmp/perf-PID.map`, where
//! perf and others look for the names of such code.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use lookaside_capture::Symbols;
use lookaside_host::Process;
use lookaside_runtime::hugepages::ProcessCode;
use lookaside_trace::{parse_maps, MemoryMap};

use crate::preload::code_report::read_lines;

/// How often it is looked whether there are processes that have none yet. One that ends before gets none.
const LOOK: Duration = Duration::from_millis(500);
/// Where profilers look.
const FOLDER: &str = "/tmp";

/// A map that was written, or why not, in a line.
pub type Written = Result<(PathBuf, usize), String>;

/// Writes maps beside a program.
pub struct PerfMaps {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Written>>,
}

impl PerfMaps {
    /// Begins to look at the report that processes write.
    pub fn start(report: PathBuf) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let beside = std::thread::Builder::new().name("perf maps".into());
        Ok(Self { stop, thread: beside.spawn(move || write_all(&report, &stopped))? })
    }

    /// Ends it; gives what was written.
    pub fn end(self) -> Vec<Written> {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

fn write_all(report: &Path, stopped: &Receiver<()>) -> Vec<Written> {
    let (mut written, mut seen) = (Vec::new(), 0);
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
        let processes = read_lines(&std::fs::read_to_string(report).unwrap_or_default());
        let new = processes.get(seen..).unwrap_or_default();
        seen = processes.len();
        written.extend(new.iter().filter_map(|process| write(Path::new(FOLDER), process)));
    }
    written
}

/// Writes the map of a process; `None` where it has no copied code, or has ended.
fn write(folder: &Path, process: &ProcessCode) -> Option<Written> {
    let maps = Process::of(process.pid).maps_text().ok().filter(|text| !text.is_empty())?;
    if process.moved.is_empty() {
        return None;
    }
    let path = folder.join(format!("perf-{}.map", process.pid));
    let lines = lines(process, &maps);
    let written = create(&path).and_then(|file| {
        let mut file = BufWriter::new(file);
        lines.iter().try_for_each(|line| file.write_all(line.as_bytes()))?;
        file.flush()
    });
    Some(match written {
        Ok(()) => Ok((path, lines.len())),
        Err(e) => Err(format!("{}: {e}", path.display())),
    })
}

/// A new file that only its owner reads; never one that is there, nor what a link names.
fn create(path: &Path) -> std::io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
}

/// The functions of the copies: address, bytes, name. Where a file names none, a copy has one line, the program's.
fn lines(process: &ProcessCode, maps: &str) -> Vec<String> {
    let mut symbols = Symbols::new();
    for event in MemoryMap::default().reconcile(parse_maps(maps)) {
        symbols.observe(process.pid, &event);
    }
    let mut lines = Vec::new();
    for &(start, bytes) in &process.moved {
        let end = start.saturating_add(bytes);
        let functions = symbols.functions_between(process.pid, start, end);
        if functions.is_empty() {
            lines.push(format!("{start:x} {bytes:x} {}\n", one_line(&process.program)));
        }
        for (at, bytes, name) in functions {
            lines.push(format!("{at:x} {:x} {}\n", bytes.min(end - at), one_line(&name)));
        }
    }
    lines
}

fn one_line(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_a_new_file_of_its_owners_and_no_link_is_followed() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().expect("a folder");
        let own = ProcessCode {
            pid: std::process::id(),
            moved: vec![(1 << 21, 1 << 21)],
            program: "x\ny".into(),
            ..Default::default()
        };
        let (path, lines) = write(folder.path(), &own).expect("it runs").expect("a file");
        assert_eq!((lines, std::fs::read_to_string(&path).expect("text").as_str()), (1, "200000 200000 x?y\n"));
        assert_eq!(std::fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
        assert!(write(folder.path(), &own).expect("it runs").is_err(), "it is there");
        std::fs::remove_file(&path).expect("a file");
        let target = folder.path().join("target");
        std::os::unix::fs::symlink(&target, &path).expect("a link");
        assert!(write(folder.path(), &own).expect("it runs").is_err() && !target.exists());
        let none = ProcessCode { moved: Vec::new(), ..own.clone() };
        assert!(write(folder.path(), &none).is_none());
        // Above the largest number that Linux gives (2^22).
        assert!(write(folder.path(), &ProcessCode { pid: 5_000_000, ..own }).is_none());
    }
}
