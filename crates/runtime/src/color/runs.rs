//! The runs of pages of all colours, by address: whose a pointer is.

use super::layout::{ColorRun, MAX_RUNS, RUN_BYTES};

/// Pages of the table at most.
const MAX_PAGES: usize = MAX_RUNS * RUN_BYTES / 4096;

/// A run in the table, in the order of addresses.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RunEntry {
    pub(crate) start: usize,
    /// Bits 0 to 15 the colour, bit 16: taken as a whole; above, its bytes.
    word: u64,
}

const WHOLE: u64 = 1 << 16;
const BYTES_SHIFT: u32 = 17;

const _: () = assert!(std::mem::size_of::<RunEntry>() == RUN_BYTES);

impl RunEntry {
    pub(crate) fn new(run: &ColorRun, page_shift: u32) -> Self {
        let word = run.color as u64 | run.pages << page_shift << BYTES_SHIFT;
        Self { start: (run.vpn << page_shift) as usize, word }
    }

    #[inline]
    pub(crate) fn color(&self) -> usize {
        (self.word & 0xffff) as usize
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        (self.word >> BYTES_SHIFT) as usize
    }

    /// It was taken as it is, with nothing of the heap's in it.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.word & WHOLE != 0
    }

    pub(crate) fn set_whole(&mut self, whole: bool) {
        self.word = self.word & !WHOLE | if whole { WHOLE } else { 0 };
    }
}

/// The table, in pages that need not be neighbours.
#[repr(C)]
pub(crate) struct RunTable {
    runs: usize,
    /// Runs that a page has room for.
    per_page: usize,
    pages: usize,
    tables: [*mut RunEntry; MAX_PAGES],
}

impl RunTable {
    /// Makes a table without runs.
    ///
    /// # Safety
    /// `at` points to writable bytes of its size, of zeros.
    pub(crate) unsafe fn init(at: *mut Self, page_bytes: usize) {
        // SAFETY: the caller's.
        unsafe { (*at).per_page = page_bytes / RUN_BYTES };
    }

    /// Adds a page's runs, as many as there is room for but in the last page; their addresses rise from page to page.
    ///
    /// # Safety
    /// `page` points to writable bytes for them that stay so.
    pub(crate) unsafe fn add(&mut self, page: *mut RunEntry, runs: impl Iterator<Item = RunEntry>) {
        self.tables[self.pages] = page;
        self.pages += 1;
        for (i, run) in runs.enumerate() {
            // SAFETY: the caller's.
            unsafe { page.add(i).write(run) };
            self.runs += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.runs
    }

    /// The run of a number below [`RunTable::len`].
    pub(crate) fn get(&self, i: usize) -> *mut RunEntry {
        debug_assert!(i < self.runs);
        // SAFETY: one of the runs in the table.
        unsafe { self.tables[i / self.per_page].add(i % self.per_page) }
    }

    /// The run that an address lies in: by halves, of the table's pages, then of the runs in one of them.
    #[inline]
    pub(crate) fn of(&self, address: usize) -> Option<*mut RunEntry> {
        let mut tables = self.tables.as_ptr();
        let (mut left, mut runs) = (self.pages, self.runs);
        while left > 1 {
            let half = left / 2;
            // SAFETY: a page of the table that is used; it has a run at least.
            unsafe {
                if (**tables.add(half)).start <= address {
                    tables = tables.add(half);
                    runs -= half * self.per_page;
                }
            }
            left -= half;
        }
        // SAFETY: as above; a heap has a run.
        let mut entry = unsafe { *tables };
        let mut left = runs.min(self.per_page);
        while left > 1 {
            let half = left / 2;
            // SAFETY: one of the page's runs.
            unsafe {
                if (*entry.add(half)).start <= address {
                    entry = entry.add(half);
                }
            }
            left -= half;
        }
        // SAFETY: as above. What lies below the first run wraps round.
        unsafe { (address.wrapping_sub((*entry).start) < (*entry).bytes()).then_some(entry) }
    }
}
