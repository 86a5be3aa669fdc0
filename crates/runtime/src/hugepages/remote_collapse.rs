//! Windows made huge from within their program, where there is no right to do it from outside: a thread that the
//! preloaded library has in the program takes orders by one pipe and answers by another. Both are among the thread's
//! own files, which the program does not share, and are found through `/proc`, where the kernel says who may; a forked
//! child and a program after exec have another thread, and other pipes.
//!
//! An order is the first byte of a window, a number of eight bytes; with [`SPLIT`] added the window is to be small pages
//! again.

use std::ffi::CStr;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lookaside_host::{HeldFile, Process};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{flock, FlockOperation, OFlags};

use super::error::HugePageError;

/// Variable that has the preloaded library start the thread …
pub const VARIABLE: &str = "LOOKASIDE_HUGEPAGES";
/// … and what it is set to.
pub const VALUE: &str = "orders";
/// Name of the thread.
pub const COLLAPSER: &CStr = c"huge-pages";
/// Both ends of the pipe that orders come by, in the thread's table of files; the first is read from.
pub const ORDERS: [i32; 2] = [0, 1];
/// The same of the pipe that answers go by.
pub const ANSWERS: [i32; 2] = [2, 3];

/// Added to an order: the window's huge page is to be split. (The first byte of a window is a multiple of 2 MiB.)
pub const SPLIT: u64 = 1;

/// A process that has just begun may not have the thread yet, which waits for 20 ms before it opens its pipes.
const TRIES: u32 = 6;
const TRY: Duration = Duration::from_millis(10);
/// A thread that has not answered by then does not run: a call takes some ms, a hundred on a busy machine.
const ANSWERED: Duration = Duration::from_secs(10);

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollapseAnswer {
    /// The order.
    pub start: u64,
    /// The system's error number; 0 = the call succeeded.
    pub errno: i32,
    /// How long the call took; 0 = it was not made.
    pub nanos: u64,
}

/// An answer as it is written.
pub type CollapseAnswerBytes = [[u8; 8]; 3];

impl CollapseAnswer {
    /// As it is written.
    pub fn to_bytes(self) -> CollapseAnswerBytes {
        [self.start, u64::from(self.errno.unsigned_abs()), self.nanos].map(u64::to_ne_bytes)
    }

    /// As it is read. Whatever was written is an answer.
    pub fn from_bytes(bytes: CollapseAnswerBytes) -> Self {
        let [start, errno, nanos] = bytes.map(u64::from_ne_bytes);
        Self { start, errno: i32::try_from(errno).unwrap_or(libc::EIO), nanos }
    }
}

/// The pipes to and from the thread in a process.
#[derive(Debug)]
pub(super) struct RemoteCollapser {
    orders: File,
    answers: File,
}

impl RemoteCollapser {
    /// Finds them; `None` where there is no such thread, or the kernel does not let us.
    pub(super) fn open(pid: u32) -> Result<Option<Self>, HugePageError> {
        for _ in 0..TRIES {
            let Some(found) = Self::find(pid) else {
                std::thread::sleep(TRY);
                continue;
            };
            // Two that take the answers would take each other's.
            flock(&found.orders, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
                HugePageError::Bad(format!(
                    "process {pid}: another lookaside command has huge pages made in it; end that one"
                ))
            })?;
            // What another that was killed did not wait for.
            let _ = (&found.answers).read(&mut vec![0; 1 << 16]);
            return Ok(Some(found));
        }
        Ok(None)
    }

    /// Pipes that nobody is at the other end of.
    #[cfg(test)]
    pub(super) fn to_nobody() -> Self {
        let [orders, answers] = [(); 2].map(|()| std::os::fd::OwnedFd::from(std::io::pipe().expect("a pipe").0).into());
        Self { orders, answers }
    }

    fn find(pid: u32) -> Option<Self> {
        let process = Process::of(pid);
        let is_collapser = |thread: &Process| thread.comm().is_ok_and(|name| name.as_bytes() == COLLAPSER.to_bytes());
        let mut threads = process.threads().ok()?.into_iter().map(|tid| process.thread(tid)).filter(is_collapser);
        threads.find_map(|thread| Self::among(&thread.path("fd")))
    }

    /// The pipes among a thread's files. Of a thread that only has the name, nothing is opened: no program has these
    /// four.
    fn among(files: &Path) -> Option<Self> {
        let [ordered, orders] = ORDERS.map(|number| Pipe::at(files, number));
        let [answers, answered] = ANSWERS.map(|number| Pipe::at(files, number));
        let (ordered, orders, answers, answered) = (ordered?, orders?, answers?, answered?);
        if ordered.name != orders.name || answers.name != answered.name || orders.name == answers.name {
            return None;
        }
        // RemoteCollapser can be read too: an order that nobody takes is taken back.
        Some(Self { orders: orders.open(OFlags::RDWR)?, answers: answers.open(OFlags::RDONLY)? })
    }

    /// Has an order carried out. Gives what the call said there, and how long it took.
    ///
    /// The error number is `ESRCH` where the thread has ended, and `ETIMEDOUT` where it does not answer: it is not
    /// known then whether the window will be huge.
    pub(super) fn make(&self, start: u64) -> (Result<(), i32>, Duration) {
        self.make_within(ANSWERED, start)
    }

    fn make_within(&self, patience: Duration, start: u64) -> (Result<(), i32>, Duration) {
        let began = Instant::now();
        if (&self.orders).write_all(&start.to_ne_bytes()).is_err() {
            return (Err(libc::ETIMEDOUT), Duration::ZERO); // full of orders that nobody takes
        }
        while let Some(left) = patience.checked_sub(began.elapsed()) {
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            // Interrupted or not: what is there is looked for.
            let _ = poll(&mut [PollFd::new(&self.answers, PollFlags::IN)], Some(&left));
            let mut bytes = CollapseAnswerBytes::default();
            match (&self.answers).read(bytes.as_flattened_mut()) {
                Ok(0) => return (Err(libc::ESRCH), Duration::ZERO),
                Ok(_) => {
                    let answer = CollapseAnswer::from_bytes(bytes);
                    if answer.start == start {
                        let took = Duration::from_nanos(answer.nanos).min(began.elapsed());
                        return (if answer.errno == 0 { Ok(()) } else { Err(answer.errno) }, took);
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => return (Err(libc::ESRCH), Duration::ZERO),
            }
        }
        let _ = (&self.orders).read(&mut [0; 8]);
        (Err(libc::ETIMEDOUT), Duration::ZERO)
    }
}

/// A pipe among another thread's files.
struct Pipe {
    held: HeldFile,
    /// The kernel's name of the pipe, the same for both ends.
    name: PathBuf,
}

impl Pipe {
    /// `None` where it is no pipe: what is anything else is looked at, and not opened.
    fn at(files: &Path, number: i32) -> Option<Self> {
        let held = HeldFile::at(&files.join(number.to_string())).ok()?;
        let name = held.name().ok()?;
        name.to_str()?.starts_with("pipe:[").then_some(Self { held, name })
    }

    /// Opens it, without waiting for anything, now or later.
    fn open(&self, flags: OFlags) -> Option<File> {
        self.held.open(flags | OFlags::NONBLOCK).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, FromRawFd};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn answers_are_read_as_they_are_written(start: u64, errno in 0..4096i32, nanos: u64) {
            let answer = CollapseAnswer { start, errno, nanos };
            prop_assert_eq!(CollapseAnswer::from_bytes(answer.to_bytes()), answer);
        }

        #[test]
        fn whatever_was_written_is_an_answer(bytes: CollapseAnswerBytes) {
            let answer = CollapseAnswer::from_bytes(bytes);
            prop_assert!(answer.errno >= 0);
            prop_assert_eq!(answer.start, u64::from_ne_bytes(bytes[0]));
        }
    }

    /// A folder of links as a thread's has, to two pipes that both ends are held of here.
    struct Thread {
        folder: tempfile::TempDir,
        orders: (std::io::PipeReader, std::io::PipeWriter),
        answers: (std::io::PipeReader, std::io::PipeWriter),
    }

    impl Thread {
        fn new() -> Self {
            let pipe = || std::io::pipe().expect("a pipe");
            let thread = Self { folder: tempfile::tempdir().expect("a folder"), orders: pipe(), answers: pipe() };
            thread.link(0, &thread.orders.0);
            thread.link(1, &thread.orders.1);
            thread.link(2, &thread.answers.0);
            thread.link(3, &thread.answers.1);
            thread
        }

        fn link(&self, number: i32, file: &impl AsRawFd) {
            let link = self.folder.path().join(number.to_string());
            let _ = std::fs::remove_file(&link);
            let file = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
            std::os::unix::fs::symlink(file, link).expect("a link");
        }

        fn found(&self) -> Option<RemoteCollapser> {
            RemoteCollapser::among(self.folder.path())
        }
    }

    #[test]
    fn only_a_thread_with_these_four_ends_is_given_orders() {
        let thread = Thread::new();
        assert!(thread.found().is_some());
        // What programs have: one pipe to read from and another to write to, a file, the same pipe all over.
        thread.link(1, &thread.answers.1);
        assert!(thread.found().is_none());
        thread.link(0, &thread.answers.0);
        assert!(thread.found().is_none());
        let file = tempfile::tempfile().expect("a file");
        thread.link(0, &file);
        thread.link(1, &file);
        assert!(thread.found().is_none());
        std::fs::remove_file(thread.folder.path().join("0")).expect("a link");
        assert!(thread.found().is_none());
        // One end alone is another pipe's.
        let (read, written) = (Thread::new(), Thread::new());
        read.link(0, &read.answers.0);
        written.link(3, &written.orders.1);
        assert!(read.found().is_none() && written.found().is_none());
    }

    /// The thread's life in the program: the four ends are its own files, whose numbers the program has for others.
    fn serve(ready: &std::sync::mpsc::Sender<bool>) {
        // SAFETY: this thread's own table of files, from here on.
        if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
            return ready.send(false).expect("somebody waits");
        }
        let [orders, answers] = [(); 2].map(|()| std::io::pipe().expect("a pipe"));
        let ends = [orders.0.as_raw_fd(), orders.1.as_raw_fd(), answers.0.as_raw_fd(), answers.1.as_raw_fd()];
        for (number, end) in (0..).zip(ends) {
            // SAFETY: files of this thread's own.
            assert_eq!(unsafe { libc::dup2(end, number) }, number);
        }
        // What they were called may be another end by now; all end with the thread.
        std::mem::forget((orders, answers));
        // SAFETY: what was just put there.
        let [mut orders, mut answers] = [ORDERS[0], ANSWERS[1]].map(|number| unsafe { File::from_raw_fd(number) });
        ready.send(true).expect("somebody waits");
        let mut order = [0; 8];
        while orders.read_exact(&mut order).is_ok() && order != [0; 8] {
            let start = u64::from_ne_bytes(order);
            let answer = CollapseAnswer { start, errno: if start == 1 << 21 { 0 } else { libc::EBUSY }, nanos: 7 };
            answers.write_all(answer.to_bytes().as_flattened()).expect("a pipe");
        }
    }

    #[test]
    fn a_thread_of_that_name_takes_orders_of_one_command_at_a_time() {
        let (ours, (ready, is_ready)) = (std::process::id(), std::sync::mpsc::channel());
        let name = COLLAPSER.to_str().expect("text").to_string();
        let thread = std::thread::Builder::new().name(name).spawn(move || serve(&ready)).expect("a thread");
        if !is_ready.recv().expect("it says so") {
            return eprintln!("LEFT OUT: no table of files of one's own");
        }
        let found = || RemoteCollapser::open(ours);
        let first = found().expect("nobody else").expect("the thread's pipes");
        assert_eq!(first.make(1 << 21), (Ok(()), Duration::from_nanos(7)));
        let second = found().map(|_| ()).expect_err("another has it").to_string();
        assert!(second.starts_with(&format!("process {ours}: another lookaside command")), "{second}");
        assert_eq!(first.make(2 << 21), (Err(libc::EBUSY), Duration::from_nanos(7)));
        drop(first);
        let next = found().expect("nobody else").expect("the thread's pipes");
        assert_eq!(next.make(0).0, Err(libc::ESRCH), "it ends without an answer");
        thread.join().expect("it ends");
        assert!(found().expect("nobody else").is_none());
    }

    #[test]
    fn an_order_gets_its_own_answer_and_no_other() {
        let mut thread = Thread::new();
        let orders = thread.found().expect("the pipes");
        let answer = |start, errno| CollapseAnswer { start, errno, nanos: u64::MAX };
        for wrong in [answer(7 << 21, 0), answer(1 << 21, libc::ENOMEM)] {
            thread.answers.1.write_all(wrong.to_bytes().as_flattened()).expect("a pipe");
        }
        thread.answers.1.write_all(b"rubbish").expect("a pipe");
        let began = Instant::now();
        let (done, took) = orders.make(1 << 21);
        assert_eq!(done, Err(libc::ENOMEM));
        assert!(took <= began.elapsed(), "it cannot have taken longer than it was waited for");
        let mut order = [0; 8];
        thread.orders.0.read_exact(&mut order).expect("an order");
        assert_eq!(u64::from_ne_bytes(order), 1 << 21);
        // The rubbish was never read; now the other end is closed.
        drop(thread.answers);
        assert_eq!(orders.make(2 << 21).0, Err(libc::ESRCH));
    }

    #[test]
    fn an_order_that_nobody_takes_is_taken_back() {
        let thread = Thread::new();
        let orders = thread.found().expect("the pipes");
        assert_eq!(orders.make_within(TRY, 1 << 21), (Err(libc::ETIMEDOUT), Duration::ZERO));
        let left = (&orders.orders).read(&mut [0; 8]).expect_err("nothing is left");
        assert_eq!(left.kind(), ErrorKind::WouldBlock);
    }
}
