//! The baker: a thread that touches the page-table entries of memory regions again and again, so that walks of the program's
//! own threads find them in a cache (PT-Baker, chapter 4).
//!
//! ```
//! use lookaside_runtime::bake::{Baker, Region, Settings};
//!
//! let data = vec![1u8; 8 << 20];
//! let settings: Settings = "prefetch:t0,stride=8,sleep=100us".parse()?;
//! let baker = Baker::start(&settings, &[Region::of(&data)])?;
//! // ... the program's work ...
//! let stats = baker.stop();
//! assert!(stats.touches >= stats.rounds);
//! # Ok::<(), lookaside_runtime::bake::BakeError>(())
//! ```

mod auto;
mod clock;
mod counters;
mod kernel;
mod module;
mod others;
mod outside;
mod own;
mod pace;
mod perf;
mod place;
mod process;
mod rank;
pub mod raw;
mod settings;
mod shared;
mod small;
mod survey;
mod tell;
mod touch;
mod unmodified;
mod worker;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use counters::State;
pub use outside::{Baked, Outside, Ranked, Wanted, Within};
pub use place::beside;
pub use process::{family, mappings, members, named, Identity, Mapping};
pub use rank::Ranking;
pub use settings::{Backend, Hint, Placement, Settings, AUTO_SHARE};
use shared::Shared;
pub use survey::{Survey, Surveyed};
pub use unmodified::Unmodified;

/// Bytes of a base page; the baker's regions begin and end on one.
pub const PAGE_BYTES: u64 = 4096;

/// Why the baker cannot do what is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BakeError {
    /// A setting that is none, or out of range: which, and what is possible.
    #[error("{0}")]
    Setting(String),
    /// The system lacks something: what, and what to do.
    #[error("{0}")]
    Unsupported(String),
    /// A region is not what a region can be.
    #[error("region {start:#x}, {len} bytes: {why}")]
    Region {
        /// Its first byte.
        start: u64,
        /// Its bytes.
        len: u64,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// Memory to keep warm: the pages that hold any of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Region {
    /// Address of its first byte.
    pub start: u64,
    /// Its bytes.
    pub len: u64,
}

impl Region {
    /// The memory of a slice.
    pub fn of<T>(data: &[T]) -> Self {
        Self { start: data.as_ptr() as u64, len: std::mem::size_of_val(data) as u64 }
    }

    /// First byte of its first page, and the byte after its last page.
    fn pages(&self) -> Result<(u64, u64), BakeError> {
        let bad = |why| BakeError::Region { start: self.start, len: self.len, why };
        if self.len == 0 {
            return Err(bad("has no bytes"));
        }
        let end = self.start.checked_add(self.len).and_then(|end| end.checked_next_multiple_of(PAGE_BYTES));
        match end {
            Some(end) if end <= 1 << 56 => Ok((self.start & !(PAGE_BYTES - 1), end)),
            _ => Err(bad("goes beyond what a program can address")),
        }
    }
}

/// Whose memory is baked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The caller's own.
    Own,
    /// Another process's, by its number; by the kernel only.
    Process(u32),
}

/// What a baker did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Whole rounds through all regions.
    pub rounds: u64,
    /// Touches: of pages by the program's own address (load, prefetch), of page-table entries by the kernel (module, scan, mincore).
    pub touches: u64,
    /// Nanoseconds spent touching.
    pub busy_nanos: u64,
    /// Nanoseconds of CPU that the helper thread used, as the system counts them.
    pub cpu_nanos: u64,
    /// Nanoseconds since the start.
    pub elapsed_nanos: u64,
    /// Kernel calls that failed; the first one's error number is in `last_errno`.
    pub failed_calls: u64,
    /// The last failed call's error number; 0 = none failed.
    pub last_errno: i32,
    /// CPU that the helper stays on; -1 = any.
    pub cpu: i32,
}

impl Stats {
    /// What was done since these earlier statistics; all of it where they are another baker's, which had done more.
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = || {
            Some(Self {
                rounds: self.rounds.checked_sub(earlier.rounds)?,
                touches: self.touches.checked_sub(earlier.touches)?,
                busy_nanos: self.busy_nanos.checked_sub(earlier.busy_nanos)?,
                cpu_nanos: self.cpu_nanos.checked_sub(earlier.cpu_nanos)?,
                elapsed_nanos: self.elapsed_nanos.checked_sub(earlier.elapsed_nanos)?,
                failed_calls: self.failed_calls.checked_sub(earlier.failed_calls)?,
                ..*self
            })
        };
        difference().unwrap_or(*self)
    }
}

/// A running baker. Dropping it stops it.
#[derive(Debug)]
pub struct Baker {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Baker {
    /// Starts a helper thread for the caller's own memory. With [`Settings::auto`] it paces itself, and rests where baking does not pay.
    /// While it runs it tells what it does to `lookaside top`, where the system lets it have a memory file.
    ///
    /// With [`Backend::Load`] the regions must stay mapped and readable until they are taken out or the baker is stopped, and a
    /// page that was never touched gets a frame; all other backends leave memory as it is, mapped or not.
    ///
    /// # Errors
    /// A setting or region that cannot be, a CPU that is not there, a kernel without the call.
    pub fn start(settings: &Settings, regions: &[Region]) -> Result<Self, BakeError> {
        Self::start_for(Target::Own, settings, regions)
    }

    /// The same for any target.
    ///
    /// # Errors
    /// As [`Baker::start`]; a backend that cannot reach another process; a process that is gone or may not be looked at.
    pub fn start_for(target: Target, settings: &Settings, regions: &[Region]) -> Result<Self, BakeError> {
        let shared = Arc::new(Shared::new(target, settings, regions)?);
        let name = match target {
            Target::Own => survey::HELPER_WITHIN.to_string(),
            Target::Process(pid) => survey::helper_name(pid),
        };
        let thread = worker::spawn(Arc::clone(&shared), name)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Other regions in place of those before. When it returns, nothing of those that are no longer there is being touched.
    ///
    /// # Errors
    /// A region that cannot be; then all stays as it was.
    pub fn set_regions(&self, regions: &[Region]) -> Result<(), BakeError> {
        self.shared.set_regions(regions)
    }

    /// One more region.
    ///
    /// # Errors
    /// A region that cannot be.
    pub fn add(&self, region: Region) -> Result<(), BakeError> {
        self.shared.add(region)
    }

    /// Takes out the parts of regions that lie in this one. When it returns, nothing of it is being touched.
    ///
    /// # Errors
    /// A region that cannot be.
    pub fn remove(&self, region: Region) -> Result<(), BakeError> {
        self.shared.remove(region)
    }

    /// Another share of a CPU that it may use at most, from the next chunk on.
    ///
    /// # Errors
    /// Not above 0 and at most 1.
    pub fn set_cpu_share(&self, share: f64) -> Result<(), BakeError> {
        self.shared.set_cpu_share(share)
    }

    /// What it did so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// What it is doing: with `auto` it rests where baking does not pay.
    pub fn state(&self) -> State {
        self.shared.state()
    }

    /// What it tells beside its statistics: how `auto` chose to bake, and what it sensed.
    pub fn within(&self) -> Within {
        self.shared.within()
    }

    /// Stops it; gives what it did. Returns when the helper thread has ended: at once but for a chunk of touches (well below
    /// a millisecond, unless the helper waits for its CPU).
    pub fn stop(mut self) -> Stats {
        self.end();
        self.shared.stats()
    }

    fn end(&mut self) {
        self.shared.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}

impl Drop for Baker {
    fn drop(&mut self) {
        self.end();
    }
}
