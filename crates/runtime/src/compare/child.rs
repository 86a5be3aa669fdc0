//! One run of the program: started, waited for, its output looked through, its use of the machine taken.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use super::energy::Meter;
use super::error::CompareError;
use super::plan::Metric;
use super::preloaded_baker::PreloadedBaker;
use super::variant::Variant;
use crate::hugepages::{remote_collapse, CODE_VARIABLE, CODE_WEIGHTS_VARIABLE};

/// A line of output is looked through up to here.
const LINE_BYTES: usize = 1 << 16;
/// How often energy counters are looked at while a program runs, so that none goes round unseen.
const LOOK: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// How a run went.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) wall: Duration,
    pub(super) user: Duration,
    pub(super) sys: Duration,
    pub(super) max_resident_bytes: u64,
    /// What the output said last; of a [`Metric::Output`].
    pub(super) said: Result<Option<f64>, String>,
}

/// A program that runs.
pub(super) struct ChildProgram {
    child: std::process::Child,
    pid: Pid,
    began: Instant,
}

impl ChildProgram {
    /// Starts the program as this variant.
    pub(super) fn start(
        command: &[OsString],
        variant: &Variant,
        inside: Option<&PreloadedBaker>,
        captured: Option<std::io::PipeWriter>,
    ) -> Result<Self, CompareError> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(CompareError::Bad("no program is named".into()));
        };
        let mut start = Command::new(program);
        start.args(arguments).stdin(Stdio::null());
        match captured {
            Some(pipe) => {
                let again = pipe.try_clone().map_err(|e| CompareError::Bad(format!("a pipe: {e}")))?;
                start.stdout(pipe).stderr(again);
            }
            None => {
                start.stdout(Stdio::null()).stderr(Stdio::null());
            }
        }
        for ours in ["LOOKASIDE_BAKE", remote_collapse::VARIABLE, CODE_VARIABLE, CODE_WEIGHTS_VARIABLE] {
            start.env_remove(ours);
        }
        start.envs(variant.environment(inside));
        if let Some(thp) = variant.thp() {
            // SAFETY: a system call between fork and exec; what it sets outlives the exec and goes to children.
            unsafe {
                start.pre_exec(move || thp.switch());
            }
        }
        let began = Instant::now();
        let child = start.spawn().map_err(|e| {
            let code = match e.kind() {
                std::io::ErrorKind::NotFound => 127,
                _ => 126,
            };
            CompareError::Start { program: program.to_string_lossy().into_owned(), why: e.to_string(), code }
        })?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| CompareError::Bad("the program's number is none".into()))?;
        Ok(Self { child, pid, began })
    }

    /// Its number.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end; calls `ended` while its number is still its own.
    pub(super) fn wait(
        self,
        ended: &dyn Fn(),
        output: Option<std::io::PipeReader>,
        metric: &Metric,
        mut meter: Option<&mut Meter>,
    ) -> Result<Ended, CompareError> {
        let fail = |what: &str, e: rustix::io::Errno| CompareError::Bad(format!("{what}: {e}"));
        let process = pidfd_open(self.pid, PidfdFlags::empty()).map_err(|e| fail("waiting for the program", e))?;
        let mut lines = output.map(|pipe| OutputReader { pipe: Some(pipe), line: Vec::new(), said: Ok(None), metric });
        let at_end = loop {
            let mut watched = vec![PollFd::new(&process, PollFlags::IN)];
            let pipe = lines.as_ref().and_then(|lines| lines.pipe.as_ref());
            if let Some(pipe) = pipe {
                watched.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN));
            }
            match poll(&mut watched, Some(&LOOK)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(fail("waiting for the program", e)),
            }
            let at = Instant::now();
            let readable = watched.get(1).is_some_and(|pipe| !pipe.revents().is_empty());
            if !watched[0].revents().is_empty() {
                break at;
            }
            if let (true, Some(lines)) = (readable, &mut lines) {
                lines.read();
            }
            // What goes wrong is found again, and told, when the run is over.
            if let Some(meter) = &mut meter {
                let _ = meter.look();
            }
        };
        ended();
        let (status, usage) = reap(self.pid)?;
        let time = |t: libc::timeval| Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64);
        Ok(Ended {
            status,
            wall: at_end - self.began,
            user: time(usage.ru_utime),
            sys: time(usage.ru_stime),
            max_resident_bytes: usage.ru_maxrss as u64 * 1024, // in KiB (getrusage(2))
            said: lines.map_or(Ok(None), OutputReader::finish),
        })
    }
}

/// Takes the status of a process that has ended, with what it and those it waited for used.
fn reap(pid: Pid) -> Result<(ExitStatus, libc::rusage), CompareError> {
    let mut status = 0;
    // SAFETY: all zeros is a `rusage`, which the call fills in.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both are ours to be written.
        let found = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &mut status, 0, &mut usage) };
        if found > 0 {
            return Ok((ExitStatus::from_raw(status), usage));
        }
        let e = std::io::Error::last_os_error();
        if e.kind() != std::io::ErrorKind::Interrupted {
            return Err(CompareError::Bad(format!("waiting for the program: {e}")));
        }
    }
}

/// Looks through the program's output, line by line.
struct OutputReader<'a> {
    pipe: Option<std::io::PipeReader>,
    line: Vec<u8>,
    said: Result<Option<f64>, String>,
    metric: &'a Metric,
}

impl OutputReader<'_> {
    /// Takes what is there; the end of the output closes the pipe.
    fn read(&mut self) {
        let mut bytes = [0; 1 << 16];
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(&mut bytes) {
            Ok(n @ 1..) => self.take(&bytes[..n]),
            Err(e) if matches!(e.kind(), std::io::ErrorKind::Interrupted | std::io::ErrorKind::WouldBlock) => {}
            _ => self.pipe = None,
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.look();
            }
        }
    }

    /// The line is whole.
    fn look(&mut self) {
        let line = std::mem::take(&mut self.line);
        let Metric::Output { read, .. } = self.metric else { return };
        let line = String::from_utf8_lossy(&line);
        match read(line.trim_end_matches(['\n', '\r'])) {
            Ok(None) => {}
            found => self.said = found,
        }
    }

    /// What is left when the program has ended; others that it started may keep the pipe open.
    fn finish(mut self) -> Result<Option<f64>, String> {
        if let Some(pipe) = &self.pipe {
            let _ = rustix::io::ioctl_fionbio(pipe, true);
        }
        let mut bytes = [0; 1 << 16];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut bytes) {
                Ok(n @ 1..) => self.take(&bytes[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                _ => self.pipe = None,
            }
        }
        if !self.line.is_empty() {
            self.look();
        }
        self.said
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::Write;
    use std::rc::Rc;

    use super::*;

    /// A metric that notes the lines that it is shown, and reads those that are numbers.
    fn noting(seen: &Rc<RefCell<Vec<String>>>) -> Metric {
        let seen = Rc::clone(seen);
        let read = Box::new(move |line: &str| {
            seen.borrow_mut().push(line.to_string());
            match line {
                "bad" => Err("no number".to_string()),
                _ => Ok(line.parse().ok()),
            }
        });
        Metric::Output { name: "number".into(), read }
    }

    fn reader(pipe: Option<std::io::PipeReader>, metric: &Metric) -> OutputReader<'_> {
        OutputReader { pipe, line: Vec::new(), said: Ok(None), metric }
    }

    #[test]
    fn lines_are_whole_whatever_pieces_they_come_in_and_the_last_number_counts() {
        let seen = Rc::default();
        let metric = noting(&seen);
        let mut output = reader(None, &metric);
        for piece in [&b"1\ntw"[..], b"o\n", b"", b"3", b"4\r\n\n5", b"6"] {
            output.take(piece);
        }
        assert_eq!(output.said, Ok(Some(34.0)));
        assert_eq!(output.finish(), Ok(Some(56.0)), "without a line feed");
        assert_eq!(*seen.borrow(), ["1", "two", "34", "", "56"]);
        let mut ends_whole = reader(None, &metric);
        ends_whole.take(b"7\nbad\n");
        assert_eq!(ends_whole.finish(), Err("no number".into()));
        assert_eq!(seen.borrow()[5..], ["7", "bad"], "nothing is looked at twice");
    }

    #[test]
    fn a_line_is_looked_through_up_to_64_kib() {
        let seen = Rc::default();
        let metric = noting(&seen);
        let mut output = reader(None, &metric);
        output.take(&[b'x'; 40_000]);
        output.take(&[b'y'; 40_000]);
        output.take(b"z\n8\n");
        assert_eq!(output.finish(), Ok(Some(8.0)));
        let seen = seen.borrow();
        assert_eq!((seen[0].len(), seen[0].rfind('x'), seen[0].find('y')), (65_536, Some(39_999), Some(40_000)));
        assert_eq!(seen[1..], ["8"]);
    }

    #[test]
    fn what_is_in_the_pipe_at_the_end_is_read_and_who_keeps_it_open_is_not_waited_for() {
        let seen = Rc::default();
        let metric = noting(&seen);
        let (pipe, mut writes) = std::io::pipe().expect("a pipe");
        let mut output = reader(Some(pipe), &metric);
        writes.write_all(b"1\n2").expect("a pipe");
        output.read();
        assert_eq!((&output.said, output.pipe.is_some()), (&Ok(Some(1.0)), true));
        writes.write_all(b"3\n4").expect("a pipe");
        assert_eq!(output.finish(), Ok(Some(4.0)));
        assert_eq!(*seen.borrow(), ["1", "23", "4"]);
        let (pipe, writes) = std::io::pipe().expect("a pipe");
        let mut closed = reader(Some(pipe), &metric);
        drop(writes);
        closed.read();
        assert!(closed.pipe.is_none(), "nothing more comes");
        assert_eq!(closed.finish(), Ok(None));
    }

    /// A read that would wait, or is interrupted, leaves the pipe as it is.
    #[test]
    fn a_pipe_with_nothing_in_it_stays_open() {
        let metric = noting(&Rc::default());
        let (pipe, _writes) = std::io::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&pipe, true).expect("a pipe");
        let mut output = reader(Some(pipe), &metric);
        output.read();
        assert!(output.pipe.is_some());
        assert_eq!(output.finish(), Ok(None));
    }

    #[test]
    fn who_is_not_ours_is_not_waited_for() {
        let parent = Pid::from_raw(1).expect("a number");
        let error = reap(parent).map(|_| ()).expect_err("no child of ours").to_string();
        assert!(error.starts_with("waiting for the program: ") && error.contains("os error 10"), "{error}");
    }

    #[test]
    fn a_run_is_told_with_its_status_its_times_and_its_memory() {
        let script = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; exit 3";
        let command = ["sh", "-c", script].map(OsString::from);
        let began = Instant::now();
        let child = ChildProgram::start(&command, &Variant::AsIs, None, None).expect("it starts");
        let pid = child.pid();
        let ended = RefCell::new(None);
        let over = || *ended.borrow_mut() = lookaside_host::Process::of(pid).stat().ok().map(|stat| stat.has_ended());
        let run = child.wait(&over, None, &Metric::Wall, None).expect("it ends");
        assert_eq!((run.status.code(), run.said), (Some(3), Ok(None)));
        assert_eq!(*ended.borrow(), Some(true), "its number was its own");
        let all = began.elapsed();
        assert!(
            Duration::ZERO < run.user && run.user + run.sys <= run.wall + Duration::from_millis(20),
            "{:?}",
            run.wall
        );
        assert!(run.wall <= all && run.max_resident_bytes >= 1 << 18, "{}", run.max_resident_bytes);
        let nothing = ChildProgram::start(&[], &Variant::AsIs, None, None).map(|_| ()).expect_err("no program");
        assert_eq!(nothing, CompareError::Bad("no program is named".into()));
    }
}
