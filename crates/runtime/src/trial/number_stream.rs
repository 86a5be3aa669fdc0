//! Numbers that something outside tells while a trial lasts: the output of a command, or lines added to a file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::error::TrialError;
use super::metric::{NumberSource, ReadNumber};

/// Pause before a command is run again, so that one that ends at once does not load the machine.
const AGAIN: Duration = Duration::from_millis(100);
/// So often a file is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Longest line that is looked at, in bytes.
const LINE_BYTES: usize = 64 << 10;

/// A thread that takes in numbers.
pub(super) struct NumberStream {
    shared: Arc<StreamState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct StreamState {
    ended: AtomicBool,
    numbers: Mutex<Vec<(Instant, f64)>>,
    child: Mutex<Option<Child>>,
    /// Why the last run of the command gave nothing.
    problem: Mutex<Option<String>>,
}

impl NumberStream {
    /// Begins.
    ///
    /// # Errors
    /// The file can't be read, or no thread can be started.
    pub(super) fn start(source: &NumberSource, read: &ReadNumber) -> Result<Self, TrialError> {
        let shared = Arc::new(StreamState::default());
        let (mine, read) = (Arc::clone(&shared), Arc::clone(read));
        let follow: Box<dyn FnOnce() + Send> = match source.clone() {
            NumberSource::Command(command) => Box::new(move || run_again_and_again(&command, &mine, &read)),
            NumberSource::Log(path) => {
                let bad = |e| TrialError::Bad(format!("--metric log:{}: {e}", path.display()));
                let mut file = File::open(&path).map_err(bad)?;
                if file.metadata().map_err(bad)?.is_dir() {
                    return Err(TrialError::Bad(format!("--metric log:{}: is a folder", path.display())));
                }
                file.seek(SeekFrom::End(0)).map_err(bad)?;
                Box::new(move || follow_file(&path, file, &mine, &read))
            }
        };
        let thread = std::thread::Builder::new().name("metric".into()).spawn(follow);
        let thread = thread.map_err(|e| TrialError::Bad(format!("--metric: no thread: {e}")))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Numbers that came since a time, and before now.
    pub(super) fn since(&self, from: Instant) -> Vec<f64> {
        let mut numbers = lock(&self.shared.numbers);
        let first = numbers.partition_point(|(at, _)| *at < from);
        // What came before is wanted by nobody any more.
        numbers.drain(..first);
        numbers.drain(..).map(|(_, number)| number).collect()
    }

    /// Why there are none, as far as it is known.
    pub(super) fn problem(&self) -> Option<String> {
        lock(&self.shared.problem).clone()
    }
}

impl Drop for NumberStream {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        if let Some(child) = &mut *lock(&self.shared.child) {
            stop(child);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl StreamState {
    fn ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    fn take_in(&self, line: &[u8], read: &ReadNumber) -> bool {
        let number = read(&String::from_utf8_lossy(line)).filter(|number| number.is_finite());
        lock(&self.numbers).extend(number.map(|number| (Instant::now(), number)));
        number.is_some()
    }

    fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.ended() && Instant::now() < end {
            std::thread::sleep(LOOK.min(time));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a command and all that it started.
fn stop(child: &mut Child) {
    if let Ok(group) = libc::pid_t::try_from(child.id()) {
        // SAFETY: no memory is involved; it has not been waited for, so that the number is its own group's.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

fn run_again_and_again(command: &str, shared: &StreamState, read: &ReadNumber) {
    while !shared.ended() {
        *lock(&shared.problem) = run_once(command, shared, read);
        shared.wait(AGAIN);
    }
}

/// Runs the command; why it gave nothing.
fn run_once(command: &str, shared: &StreamState, read: &ReadNumber) -> Option<String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    // SAFETY: a system call that takes numbers only.
    unsafe {
        // It ends with this thread, whatever ends that.
        shell.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    };
    let mut child = match shell.spawn() {
        Ok(child) => child,
        Err(e) => return Some(format!("sh: {e}")),
    };
    let output = child.stdout.take();
    *lock(&shared.child) = Some(child);
    if shared.ended() {
        // It was asked to end before the command was there to be stopped.
        lock(&shared.child).as_mut().map(stop);
    }
    let mut found = 0u32;
    let mut lines = BufReader::new(output?);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut lines).take(LINE_BYTES as u64).read_until(b'\n', &mut line) {
            Ok(1..) => found += u32::from(shared.take_in(&line, read)),
            _ => break,
        }
    }
    // Whoever holds the pipe no more may go on: it is waited for without holding the lock.
    let status = loop {
        if let Some(status) = lock(&shared.child).as_mut().map(Child::try_wait) {
            match status {
                Ok(None) => {}
                Ok(Some(status)) => break status,
                Err(e) => return Some(e.to_string()),
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    *lock(&shared.child) = None;
    match (found, status.success()) {
        (0, true) => Some("it printed no number on standard output".into()),
        (0, false) => Some(format!("it printed no number on standard output; {status}")),
        _ => None,
    }
}

fn follow_file(path: &Path, file: File, shared: &StreamState, read: &ReadNumber) {
    let (mut file, mut line) = (file, Vec::new());
    while !shared.ended() {
        let mut more = Vec::new();
        // Of a file that grows without end no more than this is taken at a time.
        match (&mut file).take(16 << 20).read_to_end(&mut more) {
            Ok(_) => {}
            Err(e) => *lock(&shared.problem) = Some(e.to_string()),
        }
        for byte in &more {
            match byte {
                b'\n' => {
                    shared.take_in(&line, read);
                    line.clear();
                }
                _ if line.len() < LINE_BYTES => line.push(*byte),
                _ => {}
            }
        }
        if more.is_empty() {
            // Another file may have its name by now, or it was emptied.
            if let (Ok(now), Ok(held)) = (std::fs::metadata(path), file.metadata()) {
                let is_other = (now.dev(), now.ino()) != (held.dev(), held.ino());
                match (is_other, file.stream_position()) {
                    (true, _) => file = File::open(path).unwrap_or(file),
                    (false, Ok(at)) if at > held.len() => drop(file.seek(SeekFrom::Start(0))),
                    _ => {}
                }
            }
            shared.wait(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read() -> ReadNumber {
        Arc::new(|line| line.split_whitespace().find_map(|word| word.parse().ok()))
    }

    /// Waits for so many.
    fn wait_for(stream: &NumberStream, count: usize) -> Vec<f64> {
        let (began, mut found) = (Instant::now(), Vec::new());
        while found.len() < count && began.elapsed() < Duration::from_secs(20) {
            found.extend(stream.since(began));
            std::thread::sleep(Duration::from_millis(5));
        }
        found
    }

    #[test]
    fn a_command_that_ends_is_run_again() {
        let source = NumberSource::Command("echo took 1.5 ms; echo none; echo 2".into());
        let stream = NumberStream::start(&source, &read()).expect("it runs");
        let found = wait_for(&stream, 5);
        assert_eq!(found[..4], [1.5, 2.0, 1.5, 2.0]);
        assert_eq!(stream.since(Instant::now()), [] as [f64; 0]);
    }

    #[test]
    fn a_command_that_never_ends_is_stopped_with_all_that_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {}; echo 7; wait", file.display());
        let stream = NumberStream::start(&NumberSource::Command(command), &read()).expect("it runs");
        assert_eq!(wait_for(&stream, 1), [7.0]);
        drop(stream);
        let pid: u32 = std::fs::read_to_string(file).expect("written").trim().parse().expect("a number");
        let began = Instant::now();
        let runs = || lookaside_host::Process::of(pid).stat().is_ok_and(|stat| !stat.has_ended());
        while runs() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!runs());
    }

    #[test]
    fn why_a_command_gives_nothing_is_kept() {
        for (command, why) in [("true", "it printed no number on standard output"), ("exit 3", "exit status: 3")] {
            let stream = NumberStream::start(&NumberSource::Command(command.into()), &read()).expect("it runs");
            let began = Instant::now();
            while stream.problem().is_none() && began.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let problem = stream.problem().expect("nothing was printed");
            assert!(problem.contains(why), "{problem}");
        }
    }

    #[test]
    fn a_file_is_read_from_its_end_on_through_emptying_and_renaming() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "1\n2\n").expect("written");
        let stream = NumberStream::start(&NumberSource::Log(path.clone()), &read()).expect("a file");
        let append = |text: &str| {
            let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("a file");
            file.write_all(text.as_bytes()).expect("written");
        };
        append("3\n4");
        assert_eq!(wait_for(&stream, 1), [3.0]);
        append("5\n");
        assert_eq!(wait_for(&stream, 1), [45.0]);
        std::fs::write(&path, "6\n").expect("emptied and written");
        assert_eq!(wait_for(&stream, 1), [6.0]);
        std::fs::rename(&path, folder.path().join("old")).expect("renamed");
        std::fs::write(&path, "7\n").expect("a new one");
        assert_eq!(wait_for(&stream, 1), [7.0]);
        let gone = NumberStream::start(&NumberSource::Log(folder.path().join("none")), &read());
        assert!(gone.err().expect("no file").to_string().contains("none: No such file"));
    }
}
