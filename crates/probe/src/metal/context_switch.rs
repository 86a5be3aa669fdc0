//! A process or thread on the same CPU to switch to and back.

use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

use rustix::io::{retry_on_intr, Errno};

use crate::metal::MetalError;

/// The other side, waiting.
#[derive(Debug)]
pub(crate) struct SwitchPartner {
    ask: OwnedFd,
    answer: OwnedFd,
    who: SwitchTarget,
}

#[derive(Debug)]
enum SwitchTarget {
    Process(libc::pid_t),
    Thread(Option<JoinHandle<()>>),
}

/// What a peer is asked.
const RUN: u8 = 1;
const END: u8 = 0;

impl SwitchPartner {
    /// A process of its own address space. It inherits the CPU.
    pub(crate) fn process() -> Result<Self, MetalError> {
        let ((read_ask, ask), (answer, write_answer)) = (pipe()?, pipe()?);
        // No handler of this program may run in the child: they share file descriptors.
        // SAFETY: plain sets of our own.
        let pid = unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let pid = libc::fork();
            if pid == 0 {
                // The child: from here on only system calls, since another thread may have held any lock.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::close(std::os::fd::AsRawFd::as_raw_fd(&ask));
                serve(&read_ask, &write_answer);
                libc::_exit(0);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            pid
        };
        if pid < 0 {
            return Err(cannot("start a process", &std::io::Error::last_os_error()));
        }
        Ok(Self { ask, answer, who: SwitchTarget::Process(pid) })
    }

    /// A thread of this process. It inherits the CPU.
    pub(crate) fn thread() -> Result<Self, MetalError> {
        let ((read_ask, ask), (answer, write_answer)) = (pipe()?, pipe()?);
        let serve = move || serve(&read_ask, &write_answer);
        let thread = std::thread::Builder::new().name("lookaside-peer".into()).spawn(serve);
        let thread = thread.map_err(|e| cannot("start a thread", &e))?;
        Ok(Self { ask, answer, who: SwitchTarget::Thread(Some(thread)) })
    }

    /// Lets the other side run, and comes back: two context switches and four system calls. False if it is gone.
    #[inline]
    pub(crate) fn switch(&self) -> bool {
        send(&self.ask, RUN) && receive(&self.answer).is_some()
    }
}

impl Drop for SwitchPartner {
    fn drop(&mut self) {
        send(&self.ask, END);
        match &mut self.who {
            // SAFETY: our own child; nobody else waits for it.
            SwitchTarget::Process(pid) => unsafe {
                while libc::waitpid(*pid, std::ptr::null_mut(), 0) < 0
                    && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
                {}
            },
            SwitchTarget::Thread(thread) => {
                if let Some(thread) = thread.take() {
                    let _ = thread.join(); // it only reads and writes: nothing in it panics
                }
            }
        }
    }
}

/// The other side's life.
fn serve(ask: &OwnedFd, answer: &OwnedFd) {
    while receive(ask) == Some(RUN) {
        if !send(answer, RUN) {
            break;
        }
    }
}

fn send(to: &OwnedFd, word: u8) -> bool {
    retry_on_intr(|| rustix::io::write(to.as_fd(), &[word])) == Ok(1)
}

fn receive(from: &OwnedFd) -> Option<u8> {
    let mut word = [END];
    (retry_on_intr(|| rustix::io::read(from.as_fd(), &mut word)) == Ok(1)).then_some(word[0])
}

fn pipe() -> Result<(OwnedFd, OwnedFd), MetalError> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e: Errno| cannot("make a pipe", &e.into()))
}

fn cannot(what: &str, reason: &std::io::Error) -> MetalError {
    MetalError::Cannot(format!("cannot {what}: {reason}"))
}
