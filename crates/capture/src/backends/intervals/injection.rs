//! System calls that a stopped thread makes for us.

use std::cell::Cell;
use std::io;

use libc::{c_int, user_regs_struct};

use super::tracee::{Stop, Tracee};

/// What a stopped thread had before it made calls for us.
#[derive(Debug)]
pub(super) struct Lent<'a> {
    tracee: &'a Tracee,
    pub(super) registers: user_regs_struct,
    mask: u64,
    /// Address of an instruction that makes a system call.
    call: u64,
    /// A signal that came all the same: nobody can hold it back.
    came: Cell<c_int>,
}

/// A call's result.
pub(super) type Called = Result<u64, io::Error>;

impl<'a> Lent<'a> {
    /// The thread is stopped, and in no system call. Signals wait from now on.
    pub(super) fn take(tracee: &'a Tracee, call: u64) -> io::Result<Self> {
        let (registers, mask) = (tracee.registers()?, tracee.signal_mask()?);
        tracee.set_signal_mask(u64::MAX)?;
        Ok(Self { tracee, registers, mask, call, came: Cell::new(0) })
    }

    /// Makes a call.
    pub(super) fn call(&self, number: i64, args: [u64; 6]) -> Called {
        self.begin(number, args)?;
        self.finish()
    }

    /// Makes the call that copies the process; gives the copy's number, which is stopped and ours to trace.
    pub(super) fn copy(&self) -> Called {
        // A trace of the copy begins with it. It has no signal at its end: nobody is told of it.
        self.tracee.set_options(libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE)?;
        let copied = self.begin(libc::SYS_clone, [0; 6]).and_then(|()| self.finish());
        self.tracee.set_options(libc::PTRACE_O_TRACESYSGOOD)?;
        copied
    }

    fn begin(&self, number: i64, args: [u64; 6]) -> io::Result<()> {
        let mut registers = self.registers;
        registers.rax = number as u64;
        [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] = args;
        registers.rip = self.call;
        // No system call is to be begun again.
        registers.orig_rax = u64::MAX;
        self.tracee.set_registers(&registers)?;
        self.tracee.step()
    }

    fn finish(&self) -> Called {
        let mut made = None;
        loop {
            match self.tracee.wait(true)? {
                Some(Stop::Event(libc::PTRACE_EVENT_CLONE)) => {
                    made = Some(self.tracee.message()?);
                    self.tracee.step()?;
                }
                Some(Stop::Signal(libc::SIGTRAP)) => break,
                // Stopped by somebody else: the call is made all the same.
                Some(Stop::Group | Stop::Event(_)) => self.tracee.step()?,
                Some(Stop::Ended) | None => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
                Some(Stop::Signal(signal)) => {
                    self.came.set(signal);
                    self.tracee.step()?;
                }
                Some(Stop::Call) => self.tracee.step()?,
            }
        }
        let result = self.tracee.registers()?.rax as i64;
        match result {
            -4095..=-1 => Err(io::Error::from_raw_os_error(-result as c_int)),
            // In another namespace it would have another number.
            _ => Ok(made.unwrap_or(result as u64)),
        }
    }

    /// Everything is as it was.
    pub(super) fn give_back(self) -> io::Result<()> {
        self.tracee.set_registers(&self.registers)?;
        self.tracee.set_signal_mask(self.mask)?;
        if self.came.get() != 0 {
            self.tracee.send(self.came.get());
        }
        Ok(())
    }
}
