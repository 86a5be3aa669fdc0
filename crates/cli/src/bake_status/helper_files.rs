//! The status files of helpers inside programs, preloaded or started by the program itself: a line in a memory file
//! each, found through `/proc` for `lookaside top`. Any program may have such a file, with anything in it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use lookaside_host::{mount_id, HeldFile, Process};
use lookaside_runtime::bake::freestanding::HELPER;
use lookaside_runtime::bake::{BakeStats, HelperStatus, ProcessReport};
use rustix::fs::{memfd_create, MemfdFlags, OFlags};
use serde::Deserialize;

/// A helper has five files at most, in a table of its own.
const MOST_FILES: usize = 64;
/// A line is at most half as long.
const MOST_BYTES: usize = 2048;
/// A word in a line is at most as long as the longest baker's.
const MOST_TEXT: usize = 128;
/// Numbers up to here are the same in all readers of JSON.
const MOST: u64 = 1 << 53;
/// Reads of a line until two are the same: it is written anew five times a second.
const MOST_READS: usize = 4;

/// The fields that are shown (`crates/runtime/src/bake/status_file.rs` writes them all).
#[derive(Deserialize)]
struct HelperLine {
    bake: String,
    backend: String,
    state: String,
    errno: i32,
    elapsed_nanos: u64,
    busy_nanos: u64,
    cpu_nanos: u64,
    rounds: u64,
    touches: u64,
    after_pause_picos: u64,
    right_after_picos: u64,
    pause_nanos: u64,
    ranges: u64,
    small_bytes: u64,
}

/// Reads them.
pub struct HelperFiles {
    /// What the kernel keeps all memory files in.
    mount: u64,
}

impl HelperFiles {
    /// `None` where the system does not say where its memory files are: then none is read.
    pub fn new() -> Option<Self> {
        let ours = memfd_create(HELPER, MemfdFlags::CLOEXEC).ok()?;
        Some(Self { mount: mount_id(&ours).ok()? })
    }

    /// What the helper in this process writes; `None` where there is none, or the kernel does not let us read it.
    pub fn baked(&self, pid: u32, comm: &str) -> Option<ProcessReport> {
        let process = Process::of(pid);
        let is_helper = |thread: &Process| thread.comm().is_ok_and(|name| name.as_bytes() == HELPER.to_bytes());
        let mut helpers = process.threads().ok()?.into_iter().map(|tid| process.thread(tid)).filter(is_helper);
        let line = helpers.find_map(|thread| {
            let mut files = thread.open_files().ok()?.take(MOST_FILES);
            files.find_map(|number| self.read(&thread.path(&format!("fd/{number}"))))
        })?;
        let nanos = |picos: u64| (picos > 0).then_some(picos as f64 / 1e3);
        Some(ProcessReport {
            pid,
            comm: comm.into(),
            running: true,
            let_go: false,
            mappings: usize::try_from(line.ranges).ok()?,
            small_bytes: line.small_bytes,
            stats: BakeStats {
                rounds: line.rounds,
                touches: line.touches,
                busy_nanos: line.busy_nanos,
                cpu_nanos: line.cpu_nanos,
                elapsed_nanos: line.elapsed_nanos,
                last_errno: line.errno,
                cpu: -1,
                ..BakeStats::default()
            },
            refused: None,
            rank: None,
            within: Some(HelperStatus {
                after_pause_nanos: nanos(line.after_pause_picos),
                right_after_nanos: nanos(line.right_after_picos),
                pause_nanos: line.pause_nanos,
                bake: line.bake,
                backend: line.backend,
                state: line.state,
            }),
        })
    }

    /// The line in another process's file, if it is a memory file of that name.
    fn read(&self, link: &Path) -> Option<HelperLine> {
        let name = std::fs::read_link(link).ok()?;
        if name.to_str()? != format!("/memfd:{} (deleted)", HELPER.to_str().ok()?) {
            return None;
        }
        let file = self.memory_file(link)?;
        let once = || {
            let mut bytes = [0; MOST_BYTES];
            let length = file.read_at(&mut bytes, 0).ok()?;
            Some(bytes.get(..length)?.split(|&byte| byte == b'\n').next()?.to_vec())
        };
        let mut before = once()?;
        for _ in 1..MOST_READS {
            let again = once()?;
            if again == before {
                return parse(&again);
            }
            before = again;
        }
        None
    }

    /// Opens it if it is a memory file, and only then: what has the name of one could be a pipe, or be on a file system
    /// that never answers.
    fn memory_file(&self, link: &Path) -> Option<File> {
        let held = HeldFile::at(link).ok()?;
        match mount_id(&held).ok()? == self.mount {
            true => held.open(OFlags::RDONLY).ok(),
            false => None,
        }
    }
}

/// A line, if it is one: words that a terminal takes as such, and numbers that can be.
fn parse(line: &[u8]) -> Option<HelperLine> {
    let line: HelperLine = serde_json::from_slice(line).ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-:,.=".contains(&byte);
    let is_word = |text: &String| text.len() <= MOST_TEXT && text.bytes().all(plain);
    let numbers = [
        line.elapsed_nanos,
        line.busy_nanos,
        line.cpu_nanos,
        line.rounds,
        line.touches,
        line.after_pause_picos,
        line.right_after_picos,
        line.pause_nanos,
        line.ranges,
        line.small_bytes,
    ];
    let can_be = [&line.bake, &line.backend, &line.state].into_iter().all(is_word)
        && numbers.into_iter().all(|number| number <= MOST);
    can_be.then_some(line)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use proptest::prelude::*;
    use rustix::fs::{mknodat, FileType, Mode, CWD};

    use super::*;

    fn text(state: &str, rounds: u64) -> String {
        format!(
            "{{\"pid\":1,\"bake\":\"auto,share=0.5\",\"backend\":\"prefetch:t0\",\"state\":\"{state}\",\"errno\":0,\"elapsed_nanos\":5,\
             \"busy_nanos\":4,\"cpu_nanos\":3,\"rounds\":{rounds},\"touches\":70,\"after_pause_picos\":5500,\"right_after_picos\":0,\
             \"pause_nanos\":0,\"looks\":1,\"longest_look_nanos\":1,\"ranges\":2,\"small_bytes\":8192,\"most_small_bytes\":8192}}"
        )
    }

    #[test]
    fn lines_are_read_and_what_cannot_be_is_none() {
        let line = parse(text("warm", 7).as_bytes()).expect("a line");
        assert_eq!((line.state.as_str(), line.rounds, line.after_pause_picos), ("warm", 7, 5500));
        assert!(parse(text("warm", MOST).as_bytes()).is_some());
        for bad in [
            text("warm", MOST + 1),
            text("\\u001b[2J", 7),
            text("a b", 7),
            text(&"w".repeat(MOST_TEXT + 1), 7),
            text("warm", 7).replace("\"rounds\":7", "\"rounds\":-7"),
            text("warm", 7).replace("\"errno\":0", "\"errno\":4294967296"),
            text("warm", 7).replace("\"touches\":70,", ""),
            "[".repeat(MOST_BYTES),
            String::new(),
            "null".into(),
        ] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_a_file_may_hold_is_more_than_figures(at in 0..300usize, bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut line = text("warm", 7).into_bytes();
            let end = (at + bytes.len()).min(line.len());
            line.splice(at..end, bytes);
            if let Some(line) = parse(&line) {
                prop_assert!(line.state.chars().chain(line.bake.chars()).chain(line.backend.chars()).all(|c| c.is_ascii_graphic()));
            }
        }
    }

    /// A process of its own: other tests of this one have helpers too.
    #[test]
    fn only_memory_files_of_a_helpers_thread_are_read() {
        const ALONE: &str = "LOOKASIDE_TEST_ALONE";
        if std::env::var_os(ALONE).is_some() {
            return alone();
        }
        let name = "bake_status::helper_files::tests::only_memory_files_of_a_helpers_thread_are_read";
        let mut command = std::process::Command::new(std::env::current_exe().expect("a path of this program"));
        let output = command.args(["--exact", name]).env(ALONE, "1").output().expect("it can be started");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    /// The test's process with a thread of that name, and its files.
    fn alone() {
        let helpers = HelperFiles::new().expect("memory files");
        let folder = tempfile::tempdir().expect("a folder");
        let pid = std::process::id();
        let told = || helpers.baked(pid, "test").map(|baked| (baked.stats.rounds, baked.within.expect("told").state));
        let (done, ready) = (std::sync::mpsc::channel::<()>(), std::sync::mpsc::channel::<()>());
        let file = File::from(memfd_create(HELPER, MemfdFlags::CLOEXEC).expect("a memory file"));
        file.write_all_at(text("off-hopeless", 9).as_bytes(), 0).expect("written");
        assert_eq!(told(), None, "no thread of that name");
        let thread = std::thread::Builder::new().name(HELPER.to_string_lossy().into_owned());
        let thread = thread.spawn(move || {
            ready.0.send(()).expect("somebody listens");
            done.1.recv()
        });
        ready.1.recv().expect("it runs");
        assert_eq!(told(), Some((9, "off-hopeless".into())));
        // A shorter line in place of a longer one.
        file.write_all_at(format!("{}\n", text("warm", 5)).as_bytes(), 0).expect("written");
        assert_eq!(told(), Some((5, "warm".into())));
        for hostile in [vec![0u8; 1 << 20], vec![b'['; 1 << 20], Vec::new()] {
            file.set_len(0).expect("cut");
            file.write_all_at(&hostile, 0).expect("written");
            assert_eq!(told(), None);
        }
        // On a disk, or a pipe, which nobody writes to: looked at, not opened.
        let (disk, pipe) = (folder.path().join("disk"), folder.path().join("pipe"));
        std::fs::write(&disk, text("warm", 5)).expect("a file");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        assert!(helpers.memory_file(&disk).is_none() && helpers.memory_file(&pipe).is_none());
        let ours = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert!(helpers.memory_file(Path::new(&ours)).is_some());
        drop((file, done.0));
        let _ = thread.expect("a thread").join();
    }
}
