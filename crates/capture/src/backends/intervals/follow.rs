//! Follows a snapshot: lets its translated code run, translates what comes next, and takes what was logged.

use std::io;

use iced_x86::Register;
use libc::user_regs_struct;

use super::area::{AREA_BYTES, CODE, CURSOR, FILE_BYTES, KEYS, LOG, LOG_BYTES, MIRROR, TARGET};
use super::block_plan::{BlockPlan, Exit};
use super::harmless::{changes_maps, harmless, Harmless};
use super::recorded_calls::{call_of, RecordedCalls};
use super::snapshot_process::SnapshotProcess;
use super::tracee::Stop;
use super::translator::Translator;
use crate::backends::read_memory;

/// Why an interval ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntervalEnd {
    /// It has as many instructions as were wanted.
    Complete,
    /// A system call that the program alone can make: its number.
    SystemCall(i64),
    /// It went another way than its original: other threads or signals have changed what that did.
    Elsewhere,
    /// An instruction that can't be followed.
    Instruction,
    /// A fault or a signal, by its number: also where it writes to memory that it shares, or to code.
    Signal(i32),
    /// It went to where no code can be read.
    NoCode,
    /// Somebody else wants no more.
    Stopped,
}

/// What is told while a snapshot is followed.
pub(super) trait FollowLog {
    /// Blocks that are new; their numbers follow on each other's.
    fn plans(&mut self, plans: Vec<BlockPlan>);
    /// What blocks logged: whole blocks, each its number and its words. `false`: no more is wanted.
    fn words(&mut self, words: Vec<u64>) -> bool;
    /// The snapshot's memory map may have changed.
    fn maps(&mut self);
    /// A block was executed, of so many instructions.
    fn executed(&mut self, number: usize, instructions: u32);
}

/// Follows a snapshot for so many instructions at most; gives how many it was, and why it ended.
///
/// # Errors
/// The kernel refused something; what was told is right all the same.
pub(super) fn follow(
    process: &SnapshotProcess,
    translator: &mut Translator,
    most: u64,
    log: &mut dyn FollowLog,
) -> io::Result<(u64, IntervalEnd)> {
    let mut follower =
        CopyFollower { process, translator, log, left: most, is_stopped: false, calls: process.calls.clone() };
    let ended = follower.run();
    // What was logged before counts, whatever happened.
    let drained = follower.drain();
    let (left, is_stopped) = (follower.left, follower.is_stopped);
    let end = match (ended?, is_stopped) {
        (_, true) => IntervalEnd::Stopped,
        _ if left == 0 => IntervalEnd::Complete,
        (end, false) => end,
    };
    drained?;
    Ok((most - left, end))
}

struct CopyFollower<'a> {
    process: &'a SnapshotProcess,
    translator: &'a mut Translator,
    log: &'a mut dyn FollowLog,
    /// Instructions.
    left: u64,
    is_stopped: bool,
    calls: RecordedCalls,
}

impl CopyFollower<'_> {
    fn run(&mut self) -> io::Result<IntervalEnd> {
        let mut registers = self.process.registers;
        let base = self.translator.base();
        registers.gs_base = base;
        registers.orig_rax = u64::MAX;
        let Some(place) = self.translated(registers.rip)? else { return Ok(IntervalEnd::NoCode) };
        self.write_all()?;
        registers.rip = self.translator.address(place);
        let tracee = &self.process.tracee;
        tracee.set_registers(&registers)?;
        loop {
            tracee.go_on(0)?;
            let stop = tracee.wait(true)?;
            let end = match stop {
                Some(Stop::Signal(libc::SIGTRAP)) => self.trapped()?,
                Some(Stop::Signal(libc::SIGSEGV)) => self.faulted()?,
                Some(Stop::Signal(signal)) => Some(IntervalEnd::Signal(signal)),
                // Those of its beginning, and others' wishes that it stop.
                Some(Stop::Event(_) | Stop::Group | Stop::Call) => None,
                Some(Stop::Ended) | None => Some(IntervalEnd::Signal(libc::SIGKILL)),
            };
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }

    /// It came to what is not translated yet, or can't be.
    fn trapped(&mut self) -> io::Result<Option<IntervalEnd>> {
        let tracee = &self.process.tracee;
        let mut registers = tracee.registers()?;
        let exit = self.translator.place(registers.rip.wrapping_sub(1)).and_then(|place| self.translator.exit(place));
        let (next, site) = match exit {
            None => return Ok(Some(IntervalEnd::Signal(libc::SIGTRAP))),
            Some(Exit::Refused) => return Ok(Some(IntervalEnd::Instruction)),
            Some(Exit::SystemCall { next }) => match self.system_call(registers, next)? {
                Ok(after) => {
                    registers = after;
                    (next, None)
                }
                Err(end) => return Ok(Some(end)),
            },
            Some(Exit::Indirect) => (self.process.word(TARGET)?, None),
            Some(Exit::To { ip, site }) => (ip, Some(site)),
        };
        if self.left == 0 || self.is_stopped {
            return Ok(Some(IntervalEnd::Complete));
        }
        let was_full = self.translator.is_full();
        let Some(place) = self.translated(next)? else { return Ok(Some(IntervalEnd::NoCode)) };
        match (exit, site) {
            // The site is gone with all else.
            _ if was_full => {}
            (Some(Exit::Indirect), _) => self.translator.know_target(next, place),
            (_, Some(site)) => self.translator.link(site, place),
            _ => {}
        }
        self.write_changes()?;
        registers.rip = self.translator.address(place);
        tracee.set_registers(&registers)?;
        Ok(None)
    }

    /// A system call: what its original did is done to it, or it makes a harmless call by itself.
    fn system_call(
        &mut self,
        registers: user_regs_struct,
        next: u64,
    ) -> io::Result<Result<user_regs_struct, IntervalEnd>> {
        let number = registers.rax as i64;
        let (_, args) = call_of(&registers);
        let recorded = self.calls.pop_front();
        if recorded.as_ref().is_some_and(|call| !call.is(number, &args)) {
            return Ok(Err(IntervalEnd::Elsewhere));
        }
        let by_itself = harmless(&registers, self.process, self.translator);
        let after = match (by_itself, &recorded) {
            (Some(Harmless::Maps), _) => {
                self.drain()?;
                let after = self.call(registers, next)?;
                self.log.maps();
                // Its heap and mappings have to be where its original's are.
                if recorded.is_some_and(|call| call.result() != after.rax) {
                    return Ok(Err(IntervalEnd::Elsewhere));
                }
                after
            }
            (Some(Harmless::Nothing), _) if changes_maps(number) => self.call(registers, next)?,
            (_, Some(call)) if !changes_maps(number) => {
                // It may not write where its original did.
                if call.write_into(self.process.tracee.0 as u32).is_err() {
                    return Ok(Err(IntervalEnd::Signal(libc::SIGSEGV)));
                }
                user_regs_struct { rax: call.result(), rcx: next, r11: registers.eflags, ..registers }
            }
            (Some(Harmless::Nothing), None) => self.call(registers, next)?,
            _ => return Ok(Err(IntervalEnd::SystemCall(number))),
        };
        Ok(Ok(after))
    }

    /// It makes a harmless call.
    fn call(&self, mut registers: user_regs_struct, next: u64) -> io::Result<user_regs_struct> {
        let tracee = &self.process.tracee;
        registers.rip = self.process.call;
        tracee.set_registers(&registers)?;
        loop {
            tracee.step()?;
            match tracee.wait(true)? {
                Some(Stop::Signal(libc::SIGTRAP)) => break,
                Some(Stop::Ended) | None => return Err(io::Error::from_raw_os_error(libc::ESRCH)),
                Some(_) => {}
            }
        }
        let mut after = tracee.registers()?;
        // What the processor leaves there.
        after.rcx = next;
        after.orig_rax = u64::MAX;
        Ok(after)
    }

    /// The log is full, or it faulted by itself.
    fn faulted(&mut self) -> io::Result<Option<IntervalEnd>> {
        let tracee = &self.process.tracee;
        let base = self.translator.base();
        let behind = base + u64::from(MIRROR + LOG_BYTES)..base + u64::from(AREA_BYTES);
        let mut registers = tracee.registers()?;
        let full = tracee.fault_address().is_some_and(|address| behind.contains(&address));
        let cursor = self.translator.place(registers.rip).and_then(|place| self.translator.cursor(place));
        let (true, Some(cursor)) = (full, cursor) else { return Ok(Some(IntervalEnd::Signal(libc::SIGSEGV))) };
        self.drain()?;
        if self.left == 0 || self.is_stopped {
            return Ok(Some(IntervalEnd::Complete));
        }
        set_register(&mut registers, cursor, base + u64::from(LOG));
        tracee.set_registers(&registers)?;
        Ok(None)
    }

    /// Where the translation of an address is.
    fn translated(&mut self, ip: u64) -> io::Result<Option<u32>> {
        if self.translator.is_full() {
            self.drain()?;
            self.translator.forget();
            let nothing = vec![0; (CODE - KEYS) as usize];
            self.process.write(KEYS, &nothing)?;
        }
        let pid = self.process.tracee.0 as u32;
        let place = self.translator.translate(ip, &mut |addr, into| read_memory(pid, addr, into));
        let plans = self.translator.take_plans();
        if !plans.is_empty() {
            self.log.plans(plans);
        }
        Ok(place)
    }

    /// Everything into the area, which has nothing yet.
    fn write_all(&mut self) -> io::Result<()> {
        self.translator.take_changes();
        self.process.write(CODE, self.translator.code())?;
        let mut table = vec![0; (CODE - KEYS) as usize];
        let mut is_empty = true;
        for (offset, word) in self.translator.table_words() {
            let at = (offset - KEYS) as usize;
            table[at..at + 8].copy_from_slice(&word.to_le_bytes());
            is_empty = false;
        }
        if !is_empty {
            self.process.write(KEYS, &table)?;
        }
        self.begin_log()
    }

    fn write_changes(&mut self) -> io::Result<()> {
        let (code, words) = self.translator.take_changes();
        for (offset, bytes) in code {
            self.process.write(offset, &bytes)?;
        }
        words.into_iter().try_for_each(|(offset, word)| self.process.write(offset, &word.to_le_bytes()))
    }

    fn begin_log(&self) -> io::Result<()> {
        self.process.write(CURSOR, &(self.translator.base() + u64::from(LOG)).to_le_bytes())
    }

    /// Takes what was logged.
    fn drain(&mut self) -> io::Result<()> {
        let cursor = self.process.word(CURSOR)?.wrapping_sub(self.translator.base() + u64::from(LOG));
        if cursor == 0 || self.left == 0 || self.is_stopped || cursor > u64::from(FILE_BYTES - LOG) {
            return Ok(());
        }
        let mut bytes = vec![0; cursor as usize];
        self.process.read(LOG, &mut bytes)?;
        self.begin_log()?;
        let mut words: Vec<u64> =
            bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect();
        let mut at = 0;
        while at < words.len() && self.left > 0 {
            let Some((instructions, more)) = self.translator.size(words[at]) else { break };
            self.log.executed(words[at] as usize, instructions);
            self.left = self.left.saturating_sub(u64::from(instructions));
            at += 1 + more as usize;
        }
        words.truncate(at);
        self.is_stopped = !self.log.words(words);
        Ok(())
    }
}

fn set_register(registers: &mut user_regs_struct, register: Register, value: u64) {
    let place = match register {
        Register::RAX => &mut registers.rax,
        Register::RCX => &mut registers.rcx,
        Register::RDX => &mut registers.rdx,
        Register::RBX => &mut registers.rbx,
        Register::RBP => &mut registers.rbp,
        Register::RSI => &mut registers.rsi,
        Register::RDI => &mut registers.rdi,
        Register::R8 => &mut registers.r8,
        Register::R9 => &mut registers.r9,
        Register::R10 => &mut registers.r10,
        Register::R11 => &mut registers.r11,
        Register::R12 => &mut registers.r12,
        Register::R13 => &mut registers.r13,
        Register::R14 => &mut registers.r14,
        Register::R15 => &mut registers.r15,
        _ => return,
    };
    *place = value;
}
