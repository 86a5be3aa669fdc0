//! What a block of translated code logs, and what that means.

use lookaside_trace::Kind;

/// A block: instructions that are executed from the first to the last. Each time, it logs its own number and then its
/// words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockPlan {
    pub(super) steps: Vec<LoggedStep>,
    /// Instructions.
    pub(super) instructions: u32,
    /// Words behind its number.
    pub(super) words: u32,
    /// Instructions that read or write memory at many addresses at once, which are not logged.
    pub(super) unseen: u32,
}

/// What happens, in the order in which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoggedStep {
    /// An instruction is fetched.
    Fetch { ip: u64, size: u8 },
    /// Memory is accessed.
    Access { ip: u64, kind: Kind, size: u8, word: u16, from_thread: bool },
    /// An instruction that repeats itself: it loads and stores, or only one of these, as often as the count in one word
    /// is larger than the one in another, at rising addresses.
    Repeated { ip: u64, size: u8, counts: [u16; 2], accesses: [Option<(Kind, u16)>; 2] },
}

/// Why translated code trapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// The program goes on here; the jump whose distance is at `site` goes to its translation.
    To { ip: u64, site: u32 },
    /// The program goes on where [`super::area::TARGET`] says.
    Indirect,
    /// A system call is to be made; the program goes on here.
    SystemCall { next: u64 },
    /// The next instruction can't be followed.
    Refused,
}

/// Times that an instruction repeats itself at most: 4 GiB of single bytes. What a copy has written
/// into its log by a wild pointer does not keep us busy for ever.
const MOST_TIMES: u64 = 1 << 32;

/// An access that was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoggedAccess {
    pub(super) kind: Kind,
    pub(super) addr: u64,
    pub(super) size: u8,
    pub(super) ip: u64,
}

/// Reads the accesses out of what blocks have logged, one after the other.
#[derive(Debug, Default)]
pub(super) struct LogReader {
    words: Vec<u64>,
    /// The block's number.
    at: usize,
    step: usize,
    /// Of a step that repeats itself.
    time: u64,
    part: usize,
    /// Where the thread's own memory begins (`fs`).
    thread_base: u64,
    /// Instructions of the blocks begun, and those of them of many addresses, which are not logged.
    pub(super) instructions: u64,
    pub(super) unseen: u64,
}

impl LogReader {
    /// Reads these next: whole blocks, all of which have plans.
    pub(super) fn read(&mut self, words: Vec<u64>, thread_base: u64) {
        (self.words, self.at, self.step, self.time, self.part) = (words, 0, 0, 0, 0);
        self.thread_base = thread_base;
    }

    /// The next access.
    #[inline]
    pub(super) fn next(&mut self, plans: &[BlockPlan]) -> Option<LoggedAccess> {
        loop {
            let plan = plans.get(usize::try_from(*self.words.get(self.at)?).ok()?)?;
            let words = self.words.get(self.at + 1..self.at + 1 + plan.words as usize)?;
            if self.step == 0 && self.time == 0 && self.part == 0 {
                self.instructions += u64::from(plan.instructions);
                self.unseen += u64::from(plan.unseen);
            }
            let Some(step) = plan.steps.get(self.step) else {
                self.at += 1 + plan.words as usize;
                self.step = 0;
                continue;
            };
            match *step {
                LoggedStep::Fetch { ip, size } => {
                    self.step += 1;
                    return Some(LoggedAccess { kind: Kind::Fetch, addr: ip, size, ip });
                }
                LoggedStep::Access { ip, kind, size, word, from_thread } => {
                    self.step += 1;
                    let base = if from_thread { self.thread_base } else { 0 };
                    let addr = words.get(usize::from(word))?.wrapping_add(base);
                    return Some(LoggedAccess { kind, addr, size, ip });
                }
                LoggedStep::Repeated { ip, size, counts: [before, after], accesses } => {
                    let times = words.get(usize::from(before))?.wrapping_sub(*words.get(usize::from(after))?);
                    let times = times.min(MOST_TIMES);
                    if self.time >= times {
                        (self.step, self.time, self.part) = (self.step + 1, 0, 0);
                        continue;
                    }
                    let access = accesses.get(self.part).copied().flatten();
                    let Some((kind, word)) = access else {
                        (self.time, self.part) = (self.time + 1, 0);
                        continue;
                    };
                    self.part += 1;
                    let more = self.time.wrapping_mul(u64::from(size));
                    let addr = words.get(usize::from(word))?.wrapping_add(more);
                    return Some(LoggedAccess { kind, addr, size, ip });
                }
            }
        }
    }
}
