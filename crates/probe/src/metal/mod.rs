//! The machine to measure, behind one trait: what the inference needs of it is the time of dependent loads from chosen
//! pages.

#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod area;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod area_chains;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod clock;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod context_switch;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod cycle_timing;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod emulator;
#[cfg(test)]
pub(crate) mod fake;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod frame_aliases;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod host;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod hugetlb_pool;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod idle_core;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod neighbour;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod page_faults;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod page_reservation;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod perf;
pub(crate) mod single_shot;
#[cfg(not(all(unix, any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod unsupported;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod walk_counter;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod word_sequence;

#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use host::HostMachine;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use page_reservation::huge_bytes_at;
pub use single_shot::{Act, PairedTicks, PrefetchHint, Shot, TimedRound, MOST_ACTS};
#[cfg(not(all(unix, any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub use unsupported::HostMachine;

use std::time::Duration;

use lookaside_machine::PageSize;
use serde::Serialize;

use crate::pmu::events::PmuEvent;

/// How a chain reads the address of its next page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChainAccess {
    /// It loads it.
    #[default]
    Load,
    /// It adds nothing to it atomically: a load and a store at once.
    Update,
}

/// A circular chain of accesses, each of which begins when the one before it is done.
#[derive(Clone, Copy, Debug)]
pub struct PageChain<'a> {
    /// Size of the pages.
    pub size: PageSize,
    /// How.
    pub touch: ChainAccess,
    /// Virtual page numbers (relative to a base that is aligned to all bits that may be chosen) in order. A page may
    /// be there more than once; each time it is another word of it.
    pub pages: &'a [u64],
}

/// Whether accesses of a sequence wait for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AccessOrder {
    /// The address of each needs what the one before it read: none begins before that is there, and latencies add up.
    #[default]
    Dependent,
    /// No address needs another access: as many are under way as the core manages.
    Independent,
}

/// A circular sequence of accesses to chosen words, a word as often as it likes. (The order is read from a list of
/// 4 bytes an access, in parallel: its lines take room in the caches and a TLB entry, but no time of their own.)
#[derive(Clone, Copy, Debug)]
pub struct WordSequence<'a> {
    /// Size of the pages.
    pub size: PageSize,
    /// Numbers of 8-byte words from an aligned base, in order.
    pub words: &'a [u32],
    /// Whether accesses wait for each other.
    pub order: AccessOrder,
    /// Each word read is written back. Dependent ones only.
    pub update: bool,
    /// Words that are read before each sample, independently; of none the sequence itself is gone through, at least
    /// once.
    pub before: &'a [u32],
}

impl<'a> WordSequence<'a> {
    /// Reads that wait for each other, after at least one round of the same.
    pub fn dependent(size: PageSize, words: &'a [u32]) -> Self {
        Self { size, words, order: AccessOrder::Dependent, update: false, before: &[] }
    }
}

/// First touches of pages, timed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimedFaults {
    /// Ticks of all of them.
    pub ticks: f64,
    /// How many there were.
    pub faults: u64,
    /// Faults of the same pages' other parts: 0 where each was given whole.
    pub more_faults: u64,
}

/// Memory that [`LineChain`] go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryArea {
    /// So many bytes with frames of their own.
    Own {
        /// Size of the area.
        bytes: u64,
        /// In huge pages, if the system has some; else in small ones.
        huge: bool,
    },
    /// So many bytes in huge pages: refused where the system has none. So neighbouring small pages have neighbouring
    /// frames (in a virtual machine: as the guest sees them).
    Contiguous {
        /// Size of the area.
        bytes: u64,
        /// Mapped by small pages: the huge ones' mappings were split.
        split: bool,
    },
    /// Pages of 1 GiB that are all one frame: what lies at one place of each is the same word, and is to be read in one
    /// of them only.
    Gigantic,
    /// Addresses whose 4 KiB pages are all one and the same frame: data are always hot, only translations differ.
    Shared,
    /// The same, over far more addresses, for few pages far apart: each may take a page of each level of the tables.
    Sparse,
}

/// Offsets in [`MemoryArea::Sparse`] are multiples of so many bytes.
pub const SPARSE_STEP: u64 = 1 << SPARSE_SHIFT;
/// log2 of [`SPARSE_STEP`]: 8 small pages, whose leaf entries fill a line of 64 bytes.
const SPARSE_SHIFT: u32 = 15;

/// A circular chain of loads at chosen offsets of an area, each of whose addresses waits for the load before it.
#[derive(Clone, Copy, Debug)]
pub struct LineChain<'a> {
    /// Where.
    pub area: MemoryArea,
    /// Offsets in order, each once: multiples of 8; in [`MemoryArea::Shared`] of 64, in [`MemoryArea::Sparse`] of
    /// [`SPARSE_STEP`].
    pub offsets: &'a [u64],
    /// Steps before the first sample.
    pub warm: u64,
    /// Steps of a sample; the next goes on where it ended.
    pub timed: u64,
}

/// A machine to measure: the real one ([`HostMachine`]), or one that a test makes up.
///
/// Everything is inferred from one kind of experiment: walk a circular chain of pages, and time its rounds.
/// Data-cache misses are kept out as far as can be: each page is read at another line, and has a frame of its own.
///
/// [`crate::EvidenceRecorder`] stands between and writes down what is asked: it has to hand every method on.
pub trait Metal {
    /// Bits of a page number that may be chosen; 0 = pages of this size cannot be had.
    fn page_bits(&self, size: PageSize) -> u32;

    /// Why there are no pages of this size, and what to do about it; `None` = there are some.
    fn lacks(&self, size: PageSize) -> Option<String> {
        (self.page_bits(size) == 0).then(|| format!("no {size} pages can be had"))
    }

    /// Most pages of this size that one chain may have.
    fn max_pages(&self, size: PageSize) -> usize;

    /// Walks the chain until it has settled, then times `rounds` whole rounds, `samples` times: ticks a round.
    ///
    /// # Errors
    /// Pages cannot be had.
    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError>;

    /// Does what the shot says, `samples` times: ticks of its timed loads. What the shots before left is there still.
    /// The ticks have the timer's grain (26 on Zen) and hold its own cost; the grain averages out over samples.
    ///
    /// # Errors
    /// Pages cannot be had, or this machine cannot do such an act.
    fn shot(&mut self, _shot: &Shot<'_>, _samples: usize) -> Result<Vec<f64>, MetalError> {
        Err(MetalError::Cannot("single shots are not supported here".into()))
    }

    /// Does what the shot says, `samples` times, and its control each time: ticks of each window of so many timed loads
    /// (at least 1; the last may have fewer). Their addresses come from a list, one foreign page for 256 of them.
    ///
    /// # Errors
    /// As for [`Metal::shot`].
    fn windows(&mut self, _shot: &Shot<'_>, _loads: usize, _samples: usize) -> Result<Vec<PairedTicks>, MetalError> {
        Err(MetalError::Cannot("single shots are not supported here".into()))
    }

    /// An address in a page, which has a frame from now on until pages are given back for lack of room.
    ///
    /// # Errors
    /// Pages cannot be had.
    fn address(&mut self, _size: PageSize, _page: u64) -> Result<u64, MetalError> {
        Err(MetalError::Cannot("pages have no addresses here".into()))
    }

    /// Times loads from the caller's own addresses: for each round, and its control, the ticks of each timed load by
    /// itself. Each round runs `act` twice. Lists of
    /// addresses take one foreign page for 256 of them; nothing is written but there.
    ///
    /// # Errors
    /// This machine cannot do it.
    ///
    /// # Safety
    /// All addresses lie in pages that can be read, before and after `act`; the whole page, since other lines of it are
    /// read too.
    unsafe fn rounds(&mut self, _round: &mut TimedRound<'_>, _rounds: usize) -> Result<Vec<PairedTicks>, MetalError> {
        Err(MetalError::Cannot("loads from addresses cannot be timed here".into()))
    }

    /// Walks the chain until it is warm, then counts an event while `rounds` whole rounds are walked.
    ///
    /// # Errors
    /// Pages cannot be had, or the event cannot be counted.
    fn count(&mut self, _chain: &PageChain<'_>, _rounds: u32, _event: &PmuEvent) -> Result<u64, MetalError> {
        Err(MetalError::Cannot("no hardware counters here".into()))
    }

    /// Whether [`Metal::walks`] counts here; asked first, it may take some milliseconds, and longer in a process with
    /// much memory.
    fn counts_walks(&mut self) -> bool {
        false
    }

    /// Walks the chain until it has settled, then so many samples of `steps` steps each, one after the other: pages in
    /// each that the tables were walked for. A page that comes twice in one, and is lost between, counts once.
    ///
    /// # Errors
    /// Pages cannot be had, or walks not counted.
    fn walks(&mut self, _chain: &PageChain<'_>, _steps: usize, _samples: usize) -> Result<Vec<f64>, MetalError> {
        Err(MetalError::Cannot("walks are not counted here".into()))
    }

    /// Page faults of this thread so far; `None` = not counted here.
    fn page_faults(&mut self) -> Option<u64> {
        None
    }

    /// Other CPUs that a thread could be put on.
    fn cpus(&mut self) -> Vec<OtherCpu> {
        Vec::new()
    }

    /// From now on a thread on this CPU walks through small pages, again and again; `None` = there is no such thread
    /// any more.
    ///
    /// # Errors
    /// It cannot be put there.
    fn neighbour(&mut self, _walk: Option<NeighbourWalk>) -> Result<(), MetalError> {
        Err(MetalError::Cannot("threads on other CPUs are not supported here".into()))
    }

    /// Loads that the thread on the other CPU has done since it was put there.
    fn neighbour_loads(&mut self) -> u64 {
        0
    }

    /// Core cycles in one tick of the timer.
    fn cycles_per_tick(&self) -> f64;

    /// The CPU measured, where there is one.
    fn cpu(&self) -> Option<usize> {
        None
    }

    /// What limits what can be found here, for people: little memory, a timer that promises nothing.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Who only pretends to be this machine; then no time here says anything about a TLB.
    fn emulator(&self) -> Option<String> {
        None
    }

    /// Waits; one that is made up need not.
    fn rest(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    /// Says what the next measurements are for; whoever keeps evidence writes it down.
    fn note(&mut self, _text: &str) {}

    /// Goes through what comes before the sequence, then times `rounds` whole rounds, `samples` times: ticks a round.
    /// First touch is not in the time. Where frames lie: [`Metal::frame_run_pages`].
    ///
    /// # Errors
    /// Pages cannot be had, or the machine does not do this.
    fn replay(&mut self, _: &WordSequence<'_>, _rounds: u32, _samples: usize) -> Result<Vec<f64>, MetalError> {
        Err(MetalError::Unsupported("no sequences of words".into()))
    }

    /// Bytes of memory that sequences of all page sizes may have together; 0 = there are no sequences.
    fn sequence_bytes(&self) -> u64 {
        0
    }

    /// Sizes of the pages that anonymous memory is given at its first touch, if it asks for them; smallest first.
    fn fault_sizes(&self) -> Vec<PageSize> {
        Vec::new()
    }

    /// Gives memory back and times the first touches of so many bytes of it, in pages of this size.
    ///
    /// # Errors
    /// Memory cannot be had, or the machine does not do this.
    fn time_faults(&mut self, _: PageSize, _bytes: u64) -> Result<TimedFaults, MetalError> {
        Err(MetalError::Unsupported("no first touches".into()))
    }

    /// Neighbouring pages of a sequence that have neighbouring frames, in aligned runs of so many; 1 = none have,
    /// frames lie at random. In a virtual machine: as the guest sees them.
    ///
    /// # Errors
    /// Pages of this size cannot be had.
    fn frame_run_pages(&mut self, _: PageSize) -> Result<u64, MetalError> {
        Ok(1)
    }

    /// Core cycles in one tick as they are now, measured anew: clocks change.
    fn cycles_per_tick_now(&mut self) -> f64 {
        self.cycles_per_tick()
    }

    /// Ticks of the timer in a second, where that is known.
    fn ticks_per_second(&self) -> Option<f64> {
        None
    }

    /// Bytes that an area of this kind may have; 0 = not to be had.
    fn area_bytes(&mut self, _: MemoryArea) -> u64 {
        0
    }

    /// Whether a hypervisor says that this is a virtual machine; `None` = nobody says.
    fn is_guest(&self) -> Option<bool> {
        None
    }

    /// Times such a chain: core cycles a step, so many samples.
    ///
    /// # Errors
    /// Memory cannot be had, or this machine has no such areas.
    fn steps(&mut self, _: &LineChain<'_>, _samples: usize) -> Result<Vec<f64>, MetalError> {
        Err(MetalError::Cannot("it has no areas for chains of lines".into()))
    }
}

/// Another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OtherCpu {
    /// Its number.
    pub number: usize,
    /// Whether the system says that it is a thread of the core that is measured; `None` = it says nothing.
    pub sibling: Option<bool>,
}

/// What a thread on another CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourWalk {
    /// The CPU's number.
    pub cpu: usize,
    /// Small pages that it walks through: 1 = it disturbs nobody's TLB.
    pub pages: usize,
    /// The first of them, if they are those that chains and shots have (numbered as in [`PageChain`], in this address
    /// space); `None` = pages of its own.
    pub first: Option<u64>,
    /// The most of its own that will be asked for while it lives.
    pub most_pages: usize,
    /// It reads each line of each page, in ascending order, and its own pages are huge ones where the system has some:
    /// it takes what it can of the memory's bandwidth. Else it reads a line of each page.
    pub all_lines: bool,
}

/// Why a machine cannot be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetalError {
    /// Not here at all.
    #[error("this machine cannot be probed: {0}")]
    Unsupported(String),
    /// The system refuses memory.
    #[error("no memory for {pages} pages of {size}: {reason}")]
    Memory {
        /// Pages wanted.
        pages: usize,
        /// Their size.
        size: PageSize,
        /// The system's words.
        reason: String,
    },
    /// One kind of measurement is not possible here; others may be.
    #[error("{0}")]
    Cannot(String),
    /// The system refuses to bind the thread to a CPU, or says nothing about it.
    #[error("cannot stay on one CPU: {0}")]
    Affinity(String),
}

impl MetalError {
    /// The system's refusal to bind the thread.
    #[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn affinity(error: rustix::io::Errno) -> Self {
        Self::Affinity(error.to_string())
    }
}
