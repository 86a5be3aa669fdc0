//! Single shots: some acts (loads, stores, prefetches, switches), then the time of a few dependent loads.

#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod asm;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod runner;

use lookaside_machine::PageSize;
use serde::Serialize;

/// Acts, and then a dependent chain of few loads that is timed. Pages are numbered as in [`crate::PageChain`].
#[derive(Clone, Copy, Debug)]
pub struct Shot<'a> {
    /// Size of the pages.
    pub size: PageSize,
    /// What is done before, in this order; at most [`MOST_ACTS`] acts.
    pub before: &'a [Act<'a>],
    /// Pages of the timed loads, in this order.
    pub timed: &'a [u64],
}

/// A sample of a shot whose timed loads are timed by windows, and its control right after it, since clocks change: the
/// same, but that the pages of each window are touched at another line right before it. Translations that miss
/// otherwise hit then; all else is as it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairedTicks {
    /// Ticks of each window.
    pub shot: Vec<f64>,
    /// Ticks of each window in the control.
    pub control: Vec<f64>,
}

/// Rounds of loads around something that the caller does.
pub struct TimedRound<'a> {
    /// Addresses loaded first, in order.
    pub prime: &'a [u64],
    /// Done next.
    pub act: &'a mut dyn FnMut(),
    /// Addresses whose loads are timed, one by one, in order.
    pub timed: &'a [u64],
}

/// Most acts of a shot.
pub const MOST_ACTS: usize = 16;

/// One act of a shot. No list of pages is empty.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act<'a> {
    /// Loads from each page, one after the other, at the line that a timed load of the page reads (another word of it).
    Load(&'a [u64]),
    /// The same at another line of each page: the translation is used, the timed line is left alone. As the last act
    /// it makes a control that differs from the shot without it in nothing but translations.
    Refill(&'a [u64]),
    /// Stores to each page, at the line that a timed load reads. Addresses come from a list: one or two foreign pages.
    Store(&'a [u64]),
    /// A prefetch instruction for each page, at the line that a timed load reads; the page is not touched otherwise.
    /// It may still be under way at the next act: wait. Addresses come from a list, as for stores.
    Prefetch(PrefetchHint, &'a [u64]),
    /// A system call that does next to nothing (`getppid`).
    SystemCall,
    /// To another process on the same CPU and back: two context switches, and two system calls on each side.
    SwitchProcess,
    /// To another thread of this process on the same CPU and back.
    SwitchThread,
    /// Waits for so many ticks of the timer.
    Wait(u64),
}

/// Prefetch instructions of x86-64; on AArch64 `prfm` with what comes nearest (`pldl1keep`, `pldl2keep`, `pldl3keep`,
/// `pldl1strm`, `pstl1keep`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PrefetchHint {
    /// `prefetcht0`: into all levels.
    T0,
    /// `prefetcht1`: from the second level on.
    T1,
    /// `prefetcht2`: from the third level on.
    T2,
    /// `prefetchnta`: non-temporal.
    Nta,
    /// `prefetchw`: with the intent to write.
    W,
}

impl PrefetchHint {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::T0, Self::T1, Self::T2, Self::Nta, Self::W];
}

impl PrefetchHint {
    /// Its word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::T0 => "t0",
            Self::T1 => "t1",
            Self::T2 => "t2",
            Self::Nta => "nta",
            Self::W => "w",
        }
    }
}
