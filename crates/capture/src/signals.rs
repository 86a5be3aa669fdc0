//! Signals sent to Lookaside while it records, passed on to the program.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::CaptureError;

/// Those that ask a program to end or to do something; not the ones about its own faults, its children and its stops.
const FORWARDED: [i32; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH];

/// Process that gets them; 0 = none.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// Times that the user has asked for the end.
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

/// While it lives, signals sent to this process go on to the program, and don't end this process, so that what was recorded
/// until then can still be told. One at a time in a process.
pub struct ForwardedSignals {
    before: Vec<(i32, libc::sigaction)>,
}

impl ForwardedSignals {
    /// Passes signals on to the process `pid`. Ctrl-C at a terminal reaches the program by itself; a second one, for a program that
    /// doesn't mind, is SIGTERM, a third SIGKILL.
    ///
    /// # Errors
    /// Where the system refuses a handler.
    pub fn to(pid: u32) -> Result<ForwardedSignals, CaptureError> {
        INTERRUPTS.store(0, Ordering::SeqCst);
        PROGRAM.store(pid as i32, Ordering::SeqCst);
        let mut forwarded = ForwardedSignals { before: vec![] };
        for signal in FORWARDED {
            let before = install(signal)
                .map_err(|source| CaptureError::Io { what: format!("a handler for signal {signal}"), source })?;
            forwarded.before.push((signal, before));
        }
        Ok(forwarded)
    }

    /// How often the user has asked for the end (SIGINT, SIGTERM, SIGHUP, SIGQUIT).
    pub fn interrupts() -> u32 {
        INTERRUPTS.load(Ordering::SeqCst)
    }
}

impl Drop for ForwardedSignals {
    fn drop(&mut self) {
        PROGRAM.store(0, Ordering::SeqCst);
        for (signal, before) in &self.before {
            // SAFETY: `before` is what sigaction gave for this signal.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

fn install(signal: i32) -> io::Result<libc::sigaction> {
    // SAFETY: all zero is a sigaction without handler, flags and mask, filled in below; `forward` calls only what a handler may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = forward;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        // What the user told us to ignore (nohup) the program ignores too: leave it.
        if libc::sigaction(signal, std::ptr::null(), &mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        if before.sa_sigaction != libc::SIG_IGN && libc::sigaction(signal, &action, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(before)
    }
}

extern "C" fn forward(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let program = PROGRAM.load(Ordering::SeqCst);
    if program <= 0 {
        return;
    }
    let asks_for_end = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM].contains(&signal);
    let times = if asks_for_end { INTERRUPTS.fetch_add(1, Ordering::SeqCst) } else { 0 };
    // SAFETY: with SA_SIGINFO the kernel gives a valid `info`.
    let from_terminal = unsafe { (*info).si_code } == libc::SI_KERNEL;
    let passed_on = match times {
        // The terminal's signals go to all in its foreground, the program too.
        0 if from_terminal => return,
        0 => signal,
        1 => libc::SIGTERM,
        _ => libc::SIGKILL,
    };
    // SAFETY: kill is async-signal-safe; `program` was started by us.
    unsafe { libc::kill(program, passed_on) };
}
