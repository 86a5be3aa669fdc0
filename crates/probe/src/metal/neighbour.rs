//! A thread on another CPU that walks through many pages, stays on one, or reads memory as fast as it can.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use lookaside_host::{bind_to, CpuTopology, Mapping};

use crate::metal::{MetalError, NeighbourWalk, OtherCpu};

/// Loads between two looks at what is to be done.
const BATCH: usize = 256;
/// Bytes of a line, and lines of a small page.
const LINE: usize = 64;
/// See [`LINE`].
const LINES: usize = 4096 / LINE;

/// The thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct NeighbourThread {
    cpu: usize,
    most_pages: usize,
    all_lines: bool,
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

    /// All lines of a page.
    fn load_lines(&self, page: usize) {
        for line in 0..LINES {
            // SAFETY: as above.
            unsafe { self.base.wrapping_add((page << 12) + line * LINE).read_volatile() };
        }
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
    /// A thread on this CPU that can walk through so many pages, reading a line of each, or all lines.
    pub(crate) fn new(cpu: usize, most_pages: usize, all_lines: bool) -> Result<Self, MetalError> {
        let shared = Arc::new(NeighbourControl {
            end: AtomicBool::new(false),
            target: Mutex::new(NeighbourTarget::Own(1)),
            loads: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            ready: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("lookaside-neighbour".into());
        let thread = thread.spawn(move || live(cpu, most_pages, all_lines, &of_thread));
        let thread = thread.map_err(|e| MetalError::Cannot(format!("cannot start a thread: {e}")))?;
        let neighbour = Self { cpu, most_pages, all_lines, shared, thread: Some(thread) };
        while !neighbour.shared.ready.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        if neighbour.shared.failed.load(Ordering::Acquire) {
            return Err(MetalError::Cannot(format!("a thread cannot be put on CPU {cpu}, or gets no memory")));
        }
        Ok(neighbour)
    }

    /// Whether it is one for such a walk.
    pub(crate) fn serves(&self, walk: &NeighbourWalk) -> bool {
        (self.cpu, self.all_lines) == (walk.cpu, walk.all_lines) && walk.most_pages <= self.most_pages
    }

    /// From now on walks through so many of its pages.
    pub(crate) fn walk(&self, pages: usize) {
        self.shared.aim(NeighbourTarget::Own(pages.max(1)));
    }

    /// From now on walks through these pages of somebody else's.
    ///
    /// # Safety
    /// They are mapped and readable until the thread is told of others and has looked, or is dropped: only the latter
    /// can be waited for.
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

fn live(cpu: usize, most_pages: usize, all_lines: bool, shared: &NeighbourControl) {
    let region = NeighbourPages::new(most_pages, all_lines);
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
        for _ in 0..if all_lines { BATCH / LINES } else { BATCH } {
            page = if page < row.pages { page } else { 0 };
            if all_lines {
                row.load_lines(page);
            } else {
                row.load(page);
            }
            page += 1;
        }
        shared.loads.fetch_add(BATCH as u64, Ordering::Relaxed);
    }
}

/// Pages of its own, each with a frame.
struct NeighbourPages {
    row: NeighbourRow,
    /// Unmapped when nobody walks the row any more.
    _mapping: Mapping,
}

impl NeighbourPages {
    /// So many small ones, or as many bytes in huge ones where there are some.
    fn new(pages: usize, huge: bool) -> Option<Self> {
        let pages = pages.max(1);
        let mapping = Mapping::new(pages << 12).ok()?;
        // A kernel without huge pages refuses, and gives small ones.
        let _ = mapping.advise_huge(huge);
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
