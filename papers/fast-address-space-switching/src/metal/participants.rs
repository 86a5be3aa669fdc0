//! Participants: processes or threads of a ring, on one CPU, waiting. They end with it.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::error::Early;
use super::ring::{LapTimes, PipeRing, RingJob};

/// How often it is looked after whether to stop, and whether all are there.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// A token that is so long under way is lost.
const PATIENCE: Duration = Duration::from_secs(60);
/// Stack of a thread: it calls little.
const STACK: usize = 128 << 10;

/// What participants of a pool are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParticipantKind {
    Processes,
    Threads,
}

/// Participants, waiting.
#[derive(Debug)]
pub(super) struct Participants {
    ring: Arc<PipeRing>,
    members: Members,
}

#[derive(Debug)]
enum Members {
    Processes(Vec<libc::pid_t>),
    Threads(Vec<JoinHandle<()>>),
}

impl Participants {
    /// So many, on this CPU. The calling thread has to outlive processes: they end with it.
    pub(super) fn new(kind: ParticipantKind, count: usize, cpu: usize) -> Result<Self, String> {
        let ring = PipeRing::new(count).map_err(|error| format!("pipes for {count} participants: {error}"))?;
        let members = match kind {
            ParticipantKind::Processes => Members::Processes(Vec::new()),
            ParticipantKind::Threads => Members::Threads(Vec::new()),
        };
        // Those that are started are ended with it, should the next one fail.
        let mut pool = Self { ring: Arc::new(ring), members };
        for me in 0..count {
            let started = match &mut pool.members {
                Members::Processes(pids) => process(&pool.ring, me, cpu).map(|pid| pids.push(pid)),
                Members::Threads(threads) => thread(&pool.ring, me, cpu).map(|thread| threads.push(thread)),
            };
            let one = match kind {
                ParticipantKind::Processes => "process",
                ParticipantKind::Threads => "thread",
            };
            started.map_err(|error| format!("{one} {} of {count} cannot be started: {error}", me + 1))?;
        }
        Ok(pool)
    }

    /// Measures.
    pub(super) fn measure(&mut self, job: &RingJob, stop: &dyn Fn() -> bool) -> Result<LapTimes, Early> {
        let failed = |what: String| Early::Failed(what);
        if !self.ring.start(job) {
            return Err(failed("the ring cannot be started: its pipe is closed".into()));
        }
        let began = Instant::now();
        loop {
            let mut watched = [PollFd::from_borrowed_fd(self.ring.finished().as_fd(), PollFlags::IN)];
            match poll(&mut watched, Some(&LOOK)) {
                Ok(1) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(failed(format!("waiting for the ring: {error}"))),
            }
            if stop() {
                return Err(Early::Interrupted);
            }
            if let Some(gone) = self.gone() {
                return Err(failed(gone));
            }
            if began.elapsed() > PATIENCE {
                return Err(failed(format!("the token is under way for over {} s", PATIENCE.as_secs())));
            }
        }
        self.ring.take().ok_or_else(|| failed("the ring ended by itself".into()))
    }

    /// A participant that is there no more.
    fn gone(&mut self) -> Option<String> {
        let (at, how) = match &mut self.members {
            Members::Processes(pids) => {
                let ended = |pid: &libc::pid_t| {
                    let mut status = 0;
                    // SAFETY: our own child; the status is ours to be written.
                    (unsafe { libc::waitpid(*pid, &mut status, libc::WNOHANG) } == *pid).then_some(status)
                };
                let (at, status) = pids.iter().enumerate().find_map(|(at, pid)| Some((at, ended(pid)?)))?;
                // Its number may now be another's.
                pids.swap_remove(at);
                let status: std::process::ExitStatus = std::os::unix::process::ExitStatusExt::from_raw(status);
                (at, format!("process ended ({status})"))
            }
            Members::Threads(threads) => {
                (threads.iter().position(JoinHandle::is_finished)?, "thread ended: the CPU cannot be had".to_string())
            }
        };
        Some(format!("participant {} of {}: its {how}", at + 1, self.ring.len()))
    }
}

impl Drop for Participants {
    fn drop(&mut self) {
        match &mut self.members {
            Members::Processes(pids) => {
                for pid in pids.iter() {
                    // SAFETY: our own child, not waited for yet: the number is its own.
                    unsafe { libc::kill(*pid, libc::SIGKILL) };
                }
                for pid in pids.drain(..) {
                    // SAFETY: our own child; nobody else waits for it.
                    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0
                        && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
                    {
                    }
                }
            }
            Members::Threads(threads) => {
                self.ring.end();
                for thread in threads.drain(..) {
                    let _ = thread.join(); // it reads, writes and loads: nothing in it panics
                }
            }
        }
    }
}

/// A process of its own address space; it dies with the calling thread.
fn process(ring: &PipeRing, me: usize, cpu: usize) -> Result<libc::pid_t, std::io::Error> {
    // No handler of this program may run in the child: they share file descriptors. SAFETY: plain sets of our own, a
    // fork, and in the child system calls only, since another thread may have held any lock.
    let pid = unsafe {
        let parent = libc::getpid();
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let pid = libc::fork();
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The parent may have ended before that.
            if libc::getppid() == parent && lookaside_host::bind_to(&[cpu]).is_ok() {
                ring.serve(me);
            }
            libc::_exit(0);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        pid
    };
    match pid {
        ..0 => Err(std::io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

/// A thread of this process.
fn thread(ring: &Arc<PipeRing>, me: usize, cpu: usize) -> Result<JoinHandle<()>, std::io::Error> {
    let ring = Arc::clone(ring);
    let serve = move || {
        if lookaside_host::bind_to(&[cpu]).is_ok() {
            ring.serve(me);
        }
    };
    std::thread::Builder::new().name("lookaside-ring".into()).stack_size(STACK).spawn(serve)
}

#[cfg(test)]
mod tests;
