//! ptrace on one thread that we attached to: each request that snapshots need, once.

use std::io;
use std::mem::offset_of;

use crate::backends::read_memory;
use libc::{c_int, c_long, c_uint, c_void, pid_t, user_regs_struct};

/// Not in libc.
const PTRACE_GETSIGMASK: c_uint = 0x420a;
const PTRACE_SETSIGMASK: c_uint = 0x420b;
const PTRACE_GET_RSEQ_CONFIGURATION: c_uint = 0x420f;
/// Bytes to members of struct rseq and struct rseq_cs (include/uapi/linux/rseq.h).
const RSEQ_SEQUENCE: u64 = 8;
const SEQUENCE_START: u64 = 8;
const SEQUENCE_LENGTH: u64 = 16;
/// The signal of a stop at a system call.
pub(super) const CALL_STOP: c_int = libc::SIGTRAP | 0x80;

/// Why a thread stopped, or that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// By a signal that is about to be delivered; for a trap, by this too.
    Signal(c_int),
    /// At the begin or end of a system call.
    Call,
    /// With an event of ptrace's own.
    Event(c_int),
    /// The whole process stopped (`SIGSTOP` and its kin).
    Group,
    /// It is gone.
    Ended,
}

/// A thread that we are attached to.
#[derive(Debug)]
pub(super) struct Tracee(pub(super) pid_t);

impl Tracee {
    /// Attaches to a thread, which runs on.
    ///
    /// # Errors
    /// The kernel refuses, or it is gone.
    pub(super) fn seize(thread: pid_t) -> io::Result<Self> {
        Self::seize_with(thread, libc::PTRACE_O_TRACESYSGOOD)
    }

    /// As [`Self::seize`], with these options.
    pub(super) fn seize_with(thread: pid_t, options: c_int) -> io::Result<Self> {
        let tracee = Self(thread);
        tracee.request(libc::PTRACE_SEIZE, 0, c_long::from(options))?;
        Ok(tracee)
    }

    /// Asks it to stop; [`Self::wait`] says when it has.
    pub(super) fn interrupt(&self) -> io::Result<()> {
        self.request(libc::PTRACE_INTERRUPT, 0, 0)
    }

    pub(super) fn set_options(&self, options: c_int) -> io::Result<()> {
        self.request(libc::PTRACE_SETOPTIONS, 0, c_long::from(options))
    }

    /// Lets it go on for good.
    pub(super) fn detach(&self, signal: c_int) {
        let _ = self.request(libc::PTRACE_DETACH, 0, c_long::from(signal));
    }

    pub(super) fn go_on(&self, signal: c_int) -> io::Result<()> {
        self.request(libc::PTRACE_CONT, 0, c_long::from(signal))
    }

    /// To the begin or end of its next system call.
    pub(super) fn go_to_call(&self, signal: c_int) -> io::Result<()> {
        self.request(libc::PTRACE_SYSCALL, 0, c_long::from(signal))
    }

    pub(super) fn step(&self) -> io::Result<()> {
        self.request(libc::PTRACE_SINGLESTEP, 0, 0)
    }

    /// Stays stopped with its process until that goes on.
    pub(super) fn listen(&self) -> io::Result<()> {
        self.request(libc::PTRACE_LISTEN, 0, 0)
    }

    pub(super) fn registers(&self) -> io::Result<user_regs_struct> {
        let mut registers = std::mem::MaybeUninit::<user_regs_struct>::zeroed();
        self.pointer(libc::PTRACE_GETREGS, 0, registers.as_mut_ptr().cast())?;
        // SAFETY: all zeros is a value of it, and the kernel has written one on top.
        Ok(unsafe { registers.assume_init() })
    }

    pub(super) fn set_registers(&self, registers: &user_regs_struct) -> io::Result<()> {
        self.pointer(libc::PTRACE_SETREGS, 0, std::ptr::from_ref(registers).cast_mut().cast())
    }

    /// The signals that it holds back.
    pub(super) fn signal_mask(&self) -> io::Result<u64> {
        let mut mask = 0u64;
        self.pointer(PTRACE_GETSIGMASK, size_of::<u64>(), (&raw mut mask).cast())?;
        Ok(mask)
    }

    pub(super) fn set_signal_mask(&self, mask: u64) -> io::Result<()> {
        self.pointer(PTRACE_SETSIGMASK, size_of::<u64>(), (&raw const mask).cast_mut().cast())
    }

    /// What came with an event: a new process's number.
    pub(super) fn message(&self) -> io::Result<u64> {
        let mut message = 0u64;
        self.pointer(libc::PTRACE_GETEVENTMSG, 0, (&raw mut message).cast())?;
        Ok(message)
    }

    pub(super) fn set_debug_register(&self, number: usize, value: u64) -> io::Result<()> {
        let place = offset_of!(libc::user, u_debugreg) + number * size_of::<u64>();
        self.request(libc::PTRACE_POKEUSER, place, value as c_long)
    }

    /// Where it faulted, and that by a fault of its own rather than a signal that somebody sent.
    pub(super) fn fault_address(&self) -> Option<u64> {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        self.pointer(libc::PTRACE_GETSIGINFO, 0, info.as_mut_ptr().cast()).ok()?;
        // SAFETY: all zeros is a value of it, and the kernel has written one on top.
        let info = unsafe { info.assume_init() };
        // SAFETY: a positive code with this signal is a fault, which has an address (sigaction(2)).
        (info.si_signo == libc::SIGSEGV && info.si_code > 0).then(|| unsafe { info.si_addr() } as u64)
    }

    /// The next stop, or nothing if `block` is not set and there is none yet. An end is left to be seen by others.
    pub(super) fn wait(&self, block: bool) -> io::Result<Option<Stop>> {
        let wait = |options: c_int| {
            let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
            let options = options | libc::__WALL | libc::__WNOTHREAD | if block { 0 } else { libc::WNOHANG };
            loop {
                // SAFETY: `info` is ours to be written.
                let done = unsafe { libc::waitid(libc::P_PID, self.0 as libc::id_t, info.as_mut_ptr(), options) };
                if done == 0 {
                    // SAFETY: all zeros is a value of it, and the kernel has written one on top.
                    return Ok(unsafe { info.assume_init() });
                }
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    _ => return Err(error),
                }
            }
        };
        let seen = wait(libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT)?;
        // SAFETY: what waitid writes has these members; where there is nothing, they are 0.
        let (pid, status) = unsafe { (seen.si_pid(), seen.si_status()) };
        if pid == 0 {
            return Ok(None);
        }
        if matches!(seen.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) {
            return Ok(Some(Stop::Ended));
        }
        wait(libc::WSTOPPED)?;
        let (signal, event) = (status & 0xff, status >> 8);
        Ok(Some(match (signal, event) {
            (libc::SIGTRAP, 0) => Stop::Signal(libc::SIGTRAP),
            (CALL_STOP, 0) => Stop::Call,
            (signal, libc::PTRACE_EVENT_STOP) if signal != libc::SIGTRAP => Stop::Group,
            (signal, 0) => Stop::Signal(signal),
            (_, event) => Stop::Event(event),
        }))
    }

    /// Sends it a signal.
    pub(super) fn send(&self, signal: c_int) {
        // SAFETY: numbers only; the thread is there, since it is stopped by us.
        unsafe { libc::syscall(libc::SYS_tkill, self.0, signal) };
    }

    /// It is within a restartable sequence: instructions that the kernel has begun anew where they are interrupted
    /// (rseq(2)). What it would do then must not be taken from it.
    pub(super) fn is_in_restartable_sequence(&self, ip: u64) -> bool {
        let word = |addr: u64| {
            let mut word = [0; 8];
            (read_memory(self.0 as u32, addr, &mut word) == 8).then(|| u64::from_le_bytes(word))
        };
        let mut configuration = [0u64; 3];
        let bytes = size_of_val(&configuration);
        let told = self.pointer(PTRACE_GET_RSEQ_CONFIGURATION, bytes, configuration.as_mut_ptr().cast());
        let sequence = match told {
            // Before the kernel that tells, there was no C library that registers.
            Err(_) => None,
            Ok(()) if configuration[0] == 0 => None,
            Ok(()) => word(configuration[0] + RSEQ_SEQUENCE),
        };
        let Some(sequence) = sequence.filter(|&sequence| sequence != 0) else { return false };
        let (start, length) = (word(sequence + SEQUENCE_START), word(sequence + SEQUENCE_LENGTH));
        start.zip(length).is_some_and(|(start, length)| ip.wrapping_sub(start) < length)
    }

    /// Takes note of its end, so that nothing of it stays with us.
    pub(super) fn reap(&self) {
        let mut status = 0;
        // SAFETY: `status` is ours to be written.
        unsafe { libc::waitpid(self.0, &mut status, libc::__WALL | libc::__WNOTHREAD) };
    }

    fn request(&self, what: c_uint, addr: usize, data: c_long) -> io::Result<()> {
        self.pointer(what, addr, data as *mut c_void)
    }

    fn pointer(&self, what: c_uint, addr: usize, data: *mut c_void) -> io::Result<()> {
        // SAFETY: callers pass numbers, or memory of ours of the size that the request reads or writes.
        match unsafe { libc::ptrace(what, self.0, addr, data) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}
