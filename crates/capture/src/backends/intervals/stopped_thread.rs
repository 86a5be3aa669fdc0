//! Stops a running thread where a copy of its process can be made, and lets it go on.

use std::io;
use std::time::{Duration, Instant};

use libc::{pid_t, user_regs_struct};

use super::injection::Lent;
use super::recorded_calls::{call_of, RecordedCall, RecordedCalls};
use super::snapshot_process::{CopiedRegion, SnapshotProcess};
use super::tracee::{Stop, Tracee};

/// A thread in user code may come to a system call within this time. An interval that begins behind one is not cut
/// short by it.
const TO_NEXT_CALL: Duration = Duration::from_millis(2);
/// System calls are recorded for as long at most, and so many.
const RECORD_CALLS: Duration = Duration::from_millis(10);
const MOST_CALLS: usize = 10_000;
/// A thread that waits in a system call is given up after this.
const PATIENCE: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_micros(100);
/// The code segment of 64-bit programs (arch/x86/include/asm/segment.h).
const CODE_64: u64 = 0x33;
/// What the kernel says of a system call that is to be begun again (include/linux/errno.h).
const BROKEN_OFF: i64 = -(libc::EINTR as i64);
const BEGIN_AGAIN: std::ops::RangeInclusive<i64> = -516..=-512;

/// Why no copy was made of a process.
#[derive(Debug)]
pub(super) enum NoCopy {
    /// The thread waits, or is gone: another time.
    NotNow,
    /// It never will be; why.
    Never(String),
    /// The thread can't be stopped now: the kernel holds it. It is to be let go when it has stopped.
    Held(Box<StoppedThread>),
    /// The kernel refused.
    System(io::Error),
}

impl From<io::Error> for NoCopy {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            // It is gone, or about to be.
            Some(libc::ESRCH) => Self::NotNow,
            _ => Self::System(error),
        }
    }
}

/// A thread of ours to hold, which is stopped in no system call.
#[derive(Debug)]
pub(super) struct StoppedThread {
    tracee: Tracee,
    registers: user_regs_struct,
    since: Instant,
    lets_go: bool,
    is_our_child: bool,
}

impl StoppedThread {
    /// Stops a thread between system calls. `is_our_child`: it is the first one of a process that we started; others
    /// wait for its end.
    ///
    /// # Errors
    /// It waits, is gone, or may not be stopped.
    pub(super) fn stop(thread: pid_t, is_our_child: bool) -> Result<Self, NoCopy> {
        let tracee = Tracee::seize(thread)?;
        // From here on it is let go whatever happens.
        let mut stopped =
            Self { tracee, registers: user_regs_struct_of_zeros(), since: Instant::now(), lets_go: true, is_our_child };
        stopped.find_place()?;
        if stopped.registers.cs != CODE_64 {
            return Err(NoCopy::Never("it runs 32-bit code".into()));
        }
        if stopped.registers.gs_base != 0 {
            return Err(NoCopy::Never("it uses the gs register, which the recorder needs".into()));
        }
        Ok(stopped)
    }

    /// A copy of its process; and for how long the thread stood still. `before`: a copy that has ended, and of which the
    /// process shall take note. `call`: address of an instruction that makes a system call.
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn copy(
        mut self,
        before: &mut Option<pid_t>,
        (call, regions, base): (u64, &[CopiedRegion], u64),
    ) -> Result<(SnapshotProcess, Self, Duration), NoCopy> {
        let made = Lent::take(&self.tracee, call).and_then(|lent| {
            if let Some(ended) = before.take() {
                let _ = lent.call(libc::SYS_wait4, wait_for(ended));
            }
            let copied = lent.copy();
            lent.give_back()?;
            copied
        });
        let copy = match made {
            Ok(copy) => copy as pid_t,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Err(self.killed()),
            Err(error) => return Err(error.into()),
        };
        let registers = self.registers;
        let since = self.since;
        let stood = since.elapsed();
        let process = SnapshotProcess::prepare(copy, (registers, call), regions, base);
        *before = Some(copy);
        Ok((process?, self, stood))
    }

    /// Lets it go on, and records the system calls that it makes for a while; then it is stopped again.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn record_calls(&mut self, pid: u32) -> Result<RecordedCalls, NoCopy> {
        let mut calls = RecordedCalls::new();
        let until = Instant::now() + RECORD_CALLS;
        let mut begun = None;
        let (mut asked, mut is_known) = (false, true);
        self.tracee.go_to_call(0)?;
        loop {
            let Some(stop) = self.tracee.wait(false)? else {
                let now = Instant::now();
                if !asked && now > until {
                    self.tracee.interrupt()?;
                    asked = true;
                }
                if now > until + PATIENCE {
                    return Err(self.held());
                }
                // The program waits for us at each call.
                match asked {
                    true => std::thread::sleep(LOOK),
                    false => std::hint::spin_loop(),
                }
                continue;
            };
            match stop {
                Stop::Ended => return Err(self.ended()),
                Stop::Group => self.tracee.listen()?,
                // What its handler does is not known to a copy.
                Stop::Signal(signal) => {
                    is_known = false;
                    self.tracee.go_to_call(signal)?;
                }
                Stop::Call => {
                    let registers = self.tracee.registers()?;
                    let result = registers.rax;
                    match begun.take() {
                        None => begun = Some(call_of(&registers)),
                        Some(_) if asked && result as i64 == BROKEN_OFF => {
                            self.registers = registers;
                            self.begin_again()?;
                        }
                        Some(_) if BEGIN_AGAIN.contains(&(result as i64)) => {}
                        Some(call) if is_known => match RecordedCall::new(pid, call, result) {
                            Some(call) => calls.push_back(call),
                            None => is_known = false,
                        },
                        Some(_) => {}
                    }
                    // No more is of use: it runs on at its own speed.
                    let is_late = Instant::now() > until;
                    if begun.is_none() && (is_late || !is_known || calls.len() >= MOST_CALLS) {
                        return Ok(calls);
                    }
                    self.tracee.go_to_call(0)?;
                }
                Stop::Event(_) => {
                    self.begin_again_if_broken_off()?;
                    return Ok(calls);
                }
            }
        }
    }

    /// Has the process take note of the end of a copy.
    pub(super) fn take_note_of(&self, ended: pid_t, call: u64) -> io::Result<()> {
        let lent = Lent::take(&self.tracee, call)?;
        let _ = lent.call(libc::SYS_wait4, wait_for(ended));
        lent.give_back()
    }

    fn find_place(&mut self) -> Result<(), NoCopy> {
        self.tracee.interrupt()?;
        let until = Instant::now() + PATIENCE;
        // Of a thread that was in user code: when it is stopped there.
        let mut in_code_until: Option<Instant> = None;
        let mut in_call = false;
        // It has not heard our last request to stop yet.
        let mut asked = true;
        loop {
            let late = Instant::now() > until;
            let Some(stop) = self.tracee.wait(false)? else {
                if Instant::now() > until + PATIENCE {
                    return Err(self.held());
                }
                if late || in_code_until.is_some_and(|until| Instant::now() > until) && !in_call {
                    self.tracee.interrupt()?;
                    (in_code_until, asked) = (None, true);
                }
                std::thread::sleep(LOOK);
                continue;
            };
            match stop {
                Stop::Ended => return Err(self.ended()),
                Stop::Group => self.tracee.listen()?,
                Stop::Signal(signal) => self.tracee.go_to_call(signal)?,
                Stop::Call => {
                    in_call = !in_call;
                    self.registers = self.tracee.registers()?;
                    let result = self.registers.rax as i64;
                    if !in_call && asked && result == BROKEN_OFF {
                        self.begin_again()?;
                    } else if !in_call && !BEGIN_AGAIN.contains(&result) {
                        self.since = Instant::now();
                        return Ok(());
                    }
                    self.tracee.go_to_call(0)?;
                }
                Stop::Event(_) => {
                    (in_call, asked) = (false, false);
                    let was_in_call = self.begin_again_if_broken_off()?;
                    if late {
                        return Err(NoCopy::NotNow);
                    }
                    match in_code_until {
                        // The second time, it is in user code still.
                        None if !was_in_call
                            && self.since.elapsed() > TO_NEXT_CALL
                            && !self.tracee.is_in_restartable_sequence(self.registers.rip) =>
                        {
                            self.since = Instant::now();
                            return Ok(());
                        }
                        _ => {
                            in_code_until = (!was_in_call).then(|| Instant::now() + TO_NEXT_CALL);
                            self.tracee.go_to_call(0)?;
                        }
                    }
                }
            }
        }
    }

    /// It may have been killed while it was stopped.
    fn killed(&mut self) -> NoCopy {
        match self.tracee.wait(false) {
            Ok(Some(Stop::Ended)) => self.ended(),
            _ => NoCopy::NotNow,
        }
    }

    /// It does not stop.
    fn held(&mut self) -> NoCopy {
        self.lets_go = false;
        let Self { tracee, registers, since, is_our_child, .. } = self;
        let (tracee, registers, since, is_our_child) = (Tracee(tracee.0), *registers, *since, *is_our_child);
        NoCopy::Held(Box::new(Self { tracee, registers, since, lets_go: false, is_our_child }))
    }

    /// Whether a thread that did not stop when it was asked to is still held by the kernel. If not, it is let go.
    pub(super) fn is_held(&mut self) -> bool {
        let signal = match self.tracee.wait(false) {
            Ok(None) => return true,
            Err(_) => return false,
            Ok(Some(Stop::Ended)) => {
                self.ended();
                return false;
            }
            Ok(Some(Stop::Signal(signal))) => signal,
            Ok(Some(Stop::Call)) => 0,
            Ok(Some(Stop::Event(_) | Stop::Group)) => {
                // Nothing more can be done where this fails: the thread is gone.
                let _ = self.begin_again_if_broken_off();
                0
            }
        };
        self.tracee.detach(signal);
        false
    }

    /// It is gone. Without our taking note of that its process could not end.
    fn ended(&mut self) -> NoCopy {
        self.lets_go = false;
        if !self.is_our_child {
            self.tracee.reap();
        }
        NoCopy::NotNow
    }

    /// Looks at a thread that our request has stopped; whether that was within a call.
    fn begin_again_if_broken_off(&mut self) -> io::Result<bool> {
        self.registers = self.tracee.registers()?;
        let in_call = (self.registers.orig_rax as i64) >= 0;
        if in_call && self.registers.rax as i64 == BROKEN_OFF {
            self.begin_again()?;
        }
        Ok(in_call)
    }

    /// A call that our stop has broken off with `EINTR`, though no signal came, is made again: some are not by the
    /// kernel itself (signal(7), epoll_wait and others).
    fn begin_again(&mut self) -> io::Result<()> {
        self.registers.rip = self.registers.rip.wrapping_sub(2);
        self.registers.rax = self.registers.orig_rax;
        self.registers.orig_rax = u64::MAX;
        self.tracee.set_registers(&self.registers)
    }
}

impl Drop for StoppedThread {
    fn drop(&mut self) {
        if self.lets_go {
            self.tracee.detach(0);
        }
    }
}

fn wait_for(process: pid_t) -> [u64; 6] {
    [process as u64, 0, (libc::WNOHANG | libc::__WALL) as u64, 0, 0, 0]
}

fn user_regs_struct_of_zeros() -> user_regs_struct {
    // SAFETY: it is made of numbers.
    unsafe { std::mem::zeroed() }
}
