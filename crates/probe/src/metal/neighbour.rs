//! A thread on another CPU that walks through many pages, or stays on one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use lookaside_host::{bind_to, CpuTopology, Mapping};

use crate::metal::{MetalError, OtherCpu};

/// Loads between two looks at what is to be done.
const BATCH: usize = 256;

/// The thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct NeighbourThread {
    cpu: usize,
    shared: Arc<NeighbourControl>,
    thread: Option<JoinHandle<()>>,
}

/// Small pages in a row, all of them readable for as long as a thread may be told to walk through them.
#[derive(Clone, Copy, Debug)]
struct NeighbourRow {
    base: *mut u8,
    pages: usize,
}

// SAFETY: an address and a number. Whoever loads from it relies on what `Row` promises, whatever the thread.
unsafe impl Send for NeighbourRow {}

impl NeighbourRow {
    /// Each page at another line.
    fn at(&self, page: usize) -> *mut u8 {
        self.base.wrapping_add((page << 12) + (page % 64) * 64)
    }

    fn load(&self, page: usize) {
        // SAFETY: callers keep below `pages`, all of them mapped and readable.
        unsafe { self.at(page).read_volatile() };
    }
}

/// What to walk through.
#[derive(Clone, Copy, Debug)]
enum NeighbourTarget {
    /// So many pages of the thread's own.
    Own(usize),
    /// Somebody else's.
    Row(NeighbourRow),
}

#[derive(Debug)]
struct NeighbourControl {
    end: AtomicBool,
    target: Mutex<NeighbourTarget>,
    loads: AtomicU64,
    failed: AtomicBool,
    ready: AtomicBool,
}

impl NeighbourThread {
    /// A thread on this CPU that can walk through so many pages.
    pub(crate) fn new(cpu: usize, most_pages: usize) -> Result<Self, MetalError> {
        let shared = Arc::new(NeighbourControl {
            end: AtomicBool::new(false),
            target: Mutex::new(NeighbourTarget::Own(1)),
            loads: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            ready: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("lookaside-neighbour".into());
        let thread = thread.spawn(move || live(cpu, most_pages, &of_thread));
        let thread = thread.map_err(|e| MetalError::Cannot(format!("cannot start a thread: {e}")))?;
        let neighbour = Self { cpu, shared, thread: Some(thread) };
        while !neighbour.shared.ready.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        if neighbour.shared.failed.load(Ordering::Acquire) {
            return Err(MetalError::Cannot(format!("a thread cannot be put on CPU {cpu}, or gets no memory")));
        }
        Ok(neighbour)
    }

    /// Its CPU.
    pub(crate) fn cpu(&self) -> usize {
        self.cpu
    }

    /// From now on walks through so many of its pages.
    pub(crate) fn walk(&self, pages: usize) {
        self.shared.aim(NeighbourTarget::Own(pages.max(1)));
    }

    /// From now on walks through these pages of somebody else's.
    ///
    /// # Safety
    /// They are mapped and readable until the thread is told of others and has looked, or is dropped: only the latter can be
    /// waited for.
    pub(crate) unsafe fn walk_at(&self, base: u64, pages: usize) {
        self.shared.aim(NeighbourTarget::Row(NeighbourRow { base: base as *mut u8, pages: pages.max(1) }));
    }

    /// Loads that it has done.
    pub(crate) fn loads(&self) -> u64 {
        self.shared.loads.load(Ordering::Relaxed)
    }
}

impl NeighbourControl {
    fn aim(&self, target: NeighbourTarget) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    fn target(&self) -> NeighbourTarget {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NeighbourThread {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // nothing in it panics
        }
    }
}

fn live(cpu: usize, most_pages: usize, shared: &NeighbourControl) {
    let region = NeighbourPages::new(most_pages);
    if bind_to(&[cpu]).is_err() || region.is_none() {
        shared.failed.store(true, Ordering::Release);
    }
    shared.ready.store(true, Ordering::Release);
    let Some(region) = region else { return };
    let mut page = 0;
    while !shared.end.load(Ordering::Relaxed) {
        let row = match shared.target() {
            NeighbourTarget::Own(pages) => NeighbourRow { pages: pages.min(region.row.pages), ..region.row },
            NeighbourTarget::Row(row) => row,
        };
        for _ in 0..BATCH {
            page = if page < row.pages { page } else { 0 };
            row.load(page);
            page += 1;
        }
        shared.loads.fetch_add(BATCH as u64, Ordering::Relaxed);
    }
}

/// Small pages of its own, each with a frame.
struct NeighbourPages {
    row: NeighbourRow,
    /// Unmapped when nobody walks the row any more.
    _mapping: Mapping,
}

impl NeighbourPages {
    fn new(pages: usize) -> Option<Self> {
        let pages = pages.max(1);
        let mapping = Mapping::new(pages << 12).ok()?;
        // A kernel without huge pages refuses: what is wanted.
        let _ = mapping.advise_huge(false);
        let row = NeighbourRow { base: mapping.start().as_ptr(), pages };
        for page in 0..pages {
            // SAFETY: in the mapping.
            unsafe { row.at(page).write_volatile(1) };
        }
        Some(Self { row, _mapping: mapping })
    }
}

/// What sysfs says of a CPU in relation to another: whether they are threads of one core.
pub(crate) fn relation(cpu: usize, to: usize) -> OtherCpu {
    let siblings = CpuTopology::here().siblings(to);
    OtherCpu { number: cpu, sibling: siblings.map(|siblings| siblings.contains(&cpu)) }
}
