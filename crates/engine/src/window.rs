//! Pages in a recorder's window, and the entries of the first level that they use (`SEMANTICS.md` §5).

use lookaside_trace::{WindowEvent, WINDOW_PAGES};

use crate::context::{AccessContext, KERNEL};
use crate::hardware::Hardware;
use crate::os::{is_global, translated};
use crate::plan::EnginePlan;
use crate::tlb::{TlbInstance, TlbKey};

/// Entries of the first level that pages in windows use; kept where entries may be of several pages.
#[derive(Debug, Default)]
pub(crate) struct RecorderWindows {
    /// Whose the pages are.
    of: (u32, u32),
    pub(crate) are_watched: bool,
    /// By array.
    arrays: Vec<WindowEntries>,
}

/// Entries of an array, and how many pages in windows each is of.
#[derive(Debug, Default)]
struct WindowEntries {
    numbers: Vec<u64>,
    pages: Vec<u32>,
    all_pages: usize,
    /// Of these pages, the locked ones, which use no entry.
    locked: usize,
}

/// An entry of the first level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstLevelEntry {
    pub(crate) array: usize,
    /// Of the page among all sizes and both halves; none: it is locked.
    pub(crate) number: Option<u64>,
}

/// A page by its address.
pub(crate) struct WindowPage {
    /// Index of its space.
    pub(crate) owner: usize,
    pub(crate) va: u64,
}

impl WindowPage {
    pub(crate) fn new(plan: &EnginePlan, space: usize, addr: u64) -> Self {
        let owner = if is_global(plan.format, addr) { KERNEL } else { space };
        Self { owner, va: translated(plan.format, addr) }
    }
}

/// A page that leaves a window or is touched there, before an item of a batch.
#[derive(Clone, Debug)]
pub(crate) struct LeavingPage {
    pub(crate) item: u16,
    pub(crate) addr: u64,
    /// Pages that stay when it leaves; none if it is touched.
    pub(crate) others: Option<u8>,
    pub(crate) kind: usize,
    /// Lines, and the page's physical address.
    pub(crate) lines: u64,
    pub(crate) page: u64,
    /// The first level's array in which its entry moves; none if it need not.
    pub(crate) slot: Option<usize>,
    pub(crate) key: TlbKey,
    /// It goes back behind so many others; none if it is touched.
    pub(crate) depth: Option<usize>,
}

impl LeavingPage {
    /// Moves the entry to its place in the order of use.
    pub(crate) fn move_entry(&self, hardware: &mut Hardware) {
        if let Some(slot) = self.slot {
            self.move_entry_in(&mut hardware.tlbs[slot]);
        }
    }

    /// The same, the array being given.
    #[inline]
    pub(crate) fn move_entry_in(&self, tlb: &mut TlbInstance) {
        match self.depth {
            Some(depth) => tlb.set_back(&self.key, depth),
            None => {
                tlb.access(&self.key);
            }
        }
    }

    /// The page that an event says leaves, or is touched.
    pub(crate) fn new(event: &WindowEvent, item: u16) -> Self {
        let (addr, kind, others, lines) = (event.addr, event.kind as usize, event.others(), event.lines);
        let key = TlbKey { set: 0, tag: 0, bit: 0 };
        Self { item, addr, others, kind, lines, page: 0, slot: None, key, depth: None }
    }
}

/// Where a page's entry in the first level is, if that is one array.
pub(crate) fn first_entry(
    context: &AccessContext,
    page: &WindowPage,
    class: usize,
    kind: usize,
) -> Option<FirstLevelEntry> {
    let plan = &*context.plan;
    let level = plan.routes[kind][class].levels.first()?;
    let [array] = level.arrays[..] else { return None };
    let (tlb, is_global) = (&plan.tlbs[array], page.owner == KERNEL);
    let is_locked = tlb.is_locked(context.process, is_global, page.va, class);
    let number = tlb.layouts[class].entry_number(page.va) << 1 | u64::from(is_global);
    Some(FirstLevelEntry { array, number: (!is_locked).then_some(number) })
}

impl RecorderWindows {
    /// Watches the windows of this process and thread from now on, or none.
    pub(crate) fn watch(&mut self, are_watched: bool, of: (u32, u32)) {
        self.are_watched = are_watched;
        if are_watched && self.of != of {
            self.of = of;
            self.arrays.clear();
        }
    }

    /// A page comes in.
    pub(crate) fn enter(&mut self, entry: FirstLevelEntry) {
        let used = self.of_array(entry.array);
        if used.all_pages == WINDOW_PAGES {
            *used = WindowEntries::default(); // these are no windows
        }
        used.all_pages += 1;
        match entry.number.map(|number| (number, used.find(number))) {
            None => used.locked += 1,
            Some((_, Some(at))) => used.pages[at] += 1,
            Some((number, None)) => {
                used.numbers.push(number);
                used.pages.push(1);
            }
        }
    }

    /// A page leaves: how many entries of the array the pages that stay have; none if one of them has the page's too.
    pub(crate) fn leave(&mut self, entry: FirstLevelEntry, others: usize) -> Option<usize> {
        if !self.are_watched {
            return entry.number.map(|_| others);
        }
        let used = self.of_array(entry.array);
        let at = entry.number.and_then(|number| used.find(number));
        match at {
            Some(at) => used.pages[at] -= 1,
            None => used.locked -= usize::from(entry.number.is_none() && used.locked > 0),
        }
        used.all_pages = used.pages.iter().map(|&n| n as usize).sum::<usize>() + used.locked;
        let is_used = at.is_some_and(|at| used.pages[at] > 0);
        if let Some(at) = at.filter(|_| !is_used) {
            used.numbers.swap_remove(at);
            used.pages.swap_remove(at);
        }
        if used.all_pages > others {
            // Some came from a part of the trace whose end is missing.
            *used = WindowEntries::default();
            return entry.number.map(|_| others);
        }
        if entry.number.is_none() || is_used {
            return None;
        }
        // Pages that came where nobody watched: each has an entry of its own.
        Some(others - used.all_pages + used.numbers.len())
    }

    fn of_array(&mut self, array: usize) -> &mut WindowEntries {
        if self.arrays.len() <= array {
            self.arrays.resize_with(array + 1, WindowEntries::default);
        }
        &mut self.arrays[array]
    }
}

impl WindowEntries {
    fn find(&self, number: u64) -> Option<usize> {
        self.numbers.iter().position(|&other| other == number)
    }
}
