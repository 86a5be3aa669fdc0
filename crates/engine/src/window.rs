//! Pages that leave a recorder's window, or are touched there (`SEMANTICS.md` §5): what was left out of them comes down
//! to their order.
//!
//! While a page is among the `w` last used, all its accesses are hits of a fully associative first level of at least `w`
//! entries. Only when it leaves does it matter where it stands among the others: behind all that stay in the window,
//! before all that left earlier. In an array of sets it matters when another page comes into its set; the recorder says
//! before that which pages were used since, in order.

use lookaside_trace::{Block, Event, Kind};

use crate::batch::{Batch, MOST_KEYS};
use crate::engine::{held_under, physical, Engine, Run, KERNEL};
use crate::os::{is_global, translated};
use crate::parts::Parts;
use crate::places::SCATTERED;
use crate::plan::{Plan, BASE_SHIFT, CLASSES, HUGE};
use crate::slots::kind_and_class;
use crate::tlb::{TlbInstance, Wanted};
use crate::walker::serve;
use crate::PagePolicy;

/// Entries of the first level that pages in windows use; kept where entries may be of several pages.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// Whose the pages are.
    of: (u32, u32),
    are_watched: bool,
    /// By array.
    arrays: Vec<Used>,
}

/// Most pages remembered: what recorders' windows for loads, stores and fetches have room for.
const MOST_PAGES: usize = 192;

/// Bits of recorded addresses.
const RECORDED_BITS: u32 = 48;

/// Entries of an array, and how many pages in windows each is of.
#[derive(Debug, Default)]
struct Used {
    numbers: Vec<u64>,
    pages: Vec<u32>,
    all_pages: usize,
    /// Of these pages, the locked ones, which use no entry.
    locked: usize,
}

/// An entry of the first level.
#[derive(Clone, Copy, Debug)]
struct Entry {
    array: usize,
    /// Of the page among all sizes and both halves; none: it is locked.
    number: Option<u64>,
}

/// A page by its address.
struct Page {
    /// Index of its space.
    owner: usize,
    va: u64,
}

impl Page {
    fn new(plan: &Plan, space: usize, addr: u64) -> Self {
        let owner = if is_global(plan.format, addr) { KERNEL } else { space };
        Self { owner, va: translated(plan.format, addr) }
    }
}

/// A page that leaves a window or is touched there, before an item of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) item: u16,
    addr: u64,
    /// Pages that stay when it leaves; none if it is touched.
    others: Option<u8>,
    pub(crate) kind: usize,
    /// Lines, and the page's physical address.
    pub(crate) lines: u64,
    pub(crate) page: u64,
    /// The first level's array in which its entry moves; none if it need not.
    pub(crate) slot: Option<usize>,
    pub(crate) wanted: Wanted,
    /// It goes back behind so many others; none if it is touched.
    depth: Option<usize>,
}

/// Is it about pages in windows?
pub(crate) fn is_of_windows(event: &Event) -> bool {
    matches!(event, Event::Leave { .. } | Event::Touch { .. })
}

/// Most items of a batch in which pages leave windows, and most lines of these: with what the items' walks may read
/// they find room among a batch's requests.
const MOST_ITEMS: usize = 128;
const MOST_LINES: u32 = (MOST_KEYS - MOST_ITEMS * (crate::places::MOST + 1)) as u32;

impl Engine {
    /// A block begins. Where pages leave windows each access brings one in.
    pub(crate) fn watch_windows(&mut self, block: &Block) {
        // In a format of shorter addresses two pages of a program may be one.
        let entries_are_pages = self.setup.os.pages == PagePolicy::Base
            && self.setup.locks.is_empty()
            && self.plan.format.address_bits() >= RECORDED_BITS;
        let leaves = || block.events.iter().any(|(_, event)| matches!(event, Event::Leave { .. }));
        // In a short part of a block all pages may be those that stay.
        self.windows.are_watched = !entries_are_pages && (block.len() <= MOST_PAGES || leaves());
        let of = (block.process, block.thread);
        if self.windows.are_watched && self.windows.of != of {
            self.windows.of = of;
            self.windows.arrays.clear();
        }
    }

    /// An access was made: its page may have come into a window.
    #[inline]
    pub(crate) fn enter_window(&mut self, run: &Run, addr: u64, kind: Kind) {
        if self.windows.are_watched {
            let page = Page::new(&run.plan, run.space, addr);
            let class = self.spaces[page.owner].class_at(page.va, &self.setup.os.pages, run.plan.leaf_shift[HUGE]);
            if let Some(entry) = first_entry(run, &page, class, kind as usize) {
                self.windows.enter(entry);
            }
        }
    }

    /// Pages leave windows, or are touched there.
    pub(crate) fn leave_all(&mut self, leaves: &[(u32, Event)], run: &Run) {
        if leaves.is_empty() {
            return;
        }
        self.places.begin(run.space, run.hw);
        for mut left in leaves.iter().filter_map(|(_, event)| Left::new(event, 0)) {
            self.place(&mut left, run);
            if run.plan.has_data_caches {
                self.serve_lines(run, left.kind, left.page, left.lines);
            }
            left.take_place(&mut self.parts);
        }
    }

    /// A batch begins: pages leave before its first item, and those are noted that leave before others. The leaves that
    /// are left.
    pub(crate) fn begin_batch<'a>(
        &mut self,
        batch: &mut Batch,
        groups: usize,
        leaves: &'a [(u32, Event)],
        run: &Run,
    ) -> &'a [(u32, Event)] {
        batch.leaves.clear();
        batch.limit = batch.most;
        if leaves.is_empty() || batch.first_group == groups {
            return leaves;
        }
        batch.limit = batch.most.min(batch.reach).min(MOST_ITEMS);
        let row_of = |batch: &Batch, item: usize| batch.first_of(item) as u32;
        let first = row_of(batch, 0);
        let (now, leaves) = leaves.split_at(leaves.partition_point(|leave| leave.0 <= first));
        self.leave_all(now, run);
        let (mut item, mut lines) = (1, 0);
        for (row, event) in leaves {
            let end = batch.limit.min(groups - batch.first_group);
            while item < end && row_of(batch, item) < *row {
                item += 1;
            }
            let Some(left) = Left::new(event, item as u16).filter(|_| item < end) else { break };
            lines += left.lines.count_ones();
            if lines > MOST_LINES {
                batch.limit = item;
                break;
            }
            batch.leaves.push(left);
        }
        leaves
    }

    /// Works out what the pages do that leave while a batch runs.
    pub(crate) fn place_leaves(&mut self, batch: &mut Batch, run: &Run) {
        let len = batch.len;
        batch.leaves.truncate(batch.leaves.partition_point(|left| usize::from(left.item) < len));
        if !self.windows.are_watched {
            for left in &mut batch.leaves {
                self.place(left, run);
            }
            return;
        }
        let mut entered = 0;
        for at in 0..=batch.leaves.len() {
            let until = batch.leaves.get(at).map_or(len, |left| left.item.into());
            for item in entered..until {
                let (kind, class) = kind_and_class(usize::from(batch.route[item]));
                let page = Page { owner: run.space, va: batch.addr[item] };
                if let Some(entry) = first_entry(run, &page, class, kind) {
                    self.windows.enter(entry);
                }
            }
            entered = until;
            if let Some(left) = batch.leaves.get_mut(at) {
                self.place(left, run);
            }
        }
    }

    /// Finds the page's frame, and its entry in the first level with the place that it goes back to.
    fn place(&mut self, left: &mut Left, run: &Run) {
        let plan = &*run.plan;
        let page = Page::new(plan, run.space, left.addr);
        let (at, is_known) = self.places.find(page.va >> plan.chunk_shift);
        let known = self.places.at(at);
        let known = (is_known && page.owner == run.space && usize::from(known.code) < CLASSES).then_some(*known);
        let class = match known {
            Some(place) => place.code.into(),
            None => self.spaces[page.owner].class_at(page.va, &self.setup.os.pages, plan.leaf_shift[HUGE]),
        };
        if plan.has_data_caches && left.lines != 0 {
            let va = page.va >> BASE_SHIFT << BASE_SHIFT;
            left.page = match known.filter(|place| place.frame != SCATTERED) {
                Some(place) => place.frame + (va & ((1 << plan.chunk_shift) - 1)),
                None => physical(plan, &self.spaces[page.owner], va, class),
            };
        }
        let Some(entry) = first_entry(run, &page, class, left.kind) else { return };
        let tlb = &plan.tlbs[entry.array];
        let has_sets = tlb.shape.sets > 1;
        left.depth = match left.others {
            Some(others) => match self.windows.leave(entry, others.into()) {
                Some(depth) if !has_sets => Some(depth),
                _ => return,
            },
            None if has_sets && tlb.coalesce_shift == 0 && entry.number.is_some() => None,
            None => return,
        };
        let shift = plan.routes[left.kind][class].levels[0].shift;
        let naming = tlb.naming(plan, shift);
        left.wanted = match known.filter(|_| !naming.is_beyond_chunks(plan)) {
            Some(place) => Wanted {
                set: tlb.index.set_of(page.va >> naming.set_shift),
                tag: naming.tag(place.tags[usize::from(tlb.hw_tag)], page.va),
                bit: naming.bit(page.va),
            },
            None => {
                let holder = tlb.holder(plan, held_under(tlb, page.owner == KERNEL, run.id), run.hw);
                tlb.wanted(plan, &mut self.parts.tags, holder, page.va, shift)
            }
        };
        left.slot = Some(run.slots.tlbs[entry.array]);
        // What no stage asks is not changed by a batch's items.
        if !run.slots.tlb.asks[entry.array] {
            left.take_place(&mut self.parts);
            left.slot = None;
        }
    }

    /// Accesses to lines of a page, whose translation is known.
    pub(crate) fn serve_lines(&mut self, run: &Run, kind: usize, page: u64, lines: u64) {
        let route = &run.slots.data_route[kind];
        let mut rest = if route.is_empty() { 0 } else { lines };
        while rest != 0 {
            let position = serve(&mut self.parts.caches, route, kind, page | u64::from(rest.trailing_zeros()) << 6);
            self.counts.data_served[kind][position] += 1;
            rest &= rest - 1;
        }
    }
}

impl Left {
    /// Moves the entry to its place in the order of use.
    pub(crate) fn take_place(&self, parts: &mut Parts) {
        if let Some(slot) = self.slot {
            self.take_place_in(&mut parts.tlbs[slot]);
        }
    }

    /// The same, the array being given.
    #[inline]
    pub(crate) fn take_place_in(&self, tlb: &mut TlbInstance) {
        match self.depth {
            Some(depth) => tlb.set_back(&self.wanted, depth),
            None => {
                tlb.access(&self.wanted);
            }
        }
    }

    /// The page that an event says leaves, or is touched.
    fn new(event: &Event, item: u16) -> Option<Self> {
        let (addr, kind, others, lines) = match *event {
            Event::Leave { addr, kind, others, lines } => (addr, kind as usize, Some(others), lines),
            Event::Touch { addr, kind } => (addr, kind as usize, None, 0),
            _ => return None,
        };
        let wanted = Wanted { set: 0, tag: 0, bit: 0 };
        Some(Self { item, addr, others, kind, lines, page: 0, slot: None, wanted, depth: None })
    }
}

/// Where a page's entry in the first level is, if that is one array.
fn first_entry(run: &Run, page: &Page, class: usize, kind: usize) -> Option<Entry> {
    let plan = &*run.plan;
    let level = plan.routes[kind][class].levels.first()?;
    let [array] = level.arrays[..] else { return None };
    let (tlb, is_global) = (&plan.tlbs[array], page.owner == KERNEL);
    let is_locked = tlb.is_locked(run.process, is_global, page.va, level.shift);
    let number = tlb.entry_number(page.va, level.shift) << 1 | u64::from(is_global);
    Some(Entry { array, number: (!is_locked).then_some(number) })
}

impl Windows {
    /// A page comes in.
    fn enter(&mut self, entry: Entry) {
        let used = self.of_array(entry.array);
        if used.all_pages == MOST_PAGES {
            *used = Used::default(); // these are no windows
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
    fn leave(&mut self, entry: Entry, others: usize) -> Option<usize> {
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
            *used = Used::default();
            return entry.number.map(|_| others);
        }
        if entry.number.is_none() || is_used {
            return None;
        }
        // Pages that came where nobody watched: each has an entry of its own.
        Some(others - used.all_pages + used.numbers.len())
    }

    fn of_array(&mut self, array: usize) -> &mut Used {
        if self.arrays.len() <= array {
            self.arrays.resize_with(array + 1, Used::default);
        }
        &mut self.arrays[array]
    }
}

impl Used {
    fn find(&self, number: u64) -> Option<usize> {
        self.numbers.iter().position(|&other| other == number)
    }
}
