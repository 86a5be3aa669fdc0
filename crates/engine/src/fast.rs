//! The short path of accesses: the rules of `engine.rs` for a process's own pages where none is locked, with what does
//! not change from access to access worked out before (`slots.rs`, `places.rs`).

use std::ops::Range;

use lookaside_trace::{Block, Kind};

use crate::assoc::prefetch;
use crate::counts::SIDE_OF;
use crate::engine::{physical, Access, Engine, Run};
use crate::lru::Access as Filled;
use crate::pages::NONE;
use crate::places::SCATTERED;
use crate::plan::{WalkPlan, BASE, BASE_SHIFT, CLASSES, HUGE, KINDS};
use crate::rows::RowCost;
use crate::slots::{Way, WayArray};
use crate::tally::Tally;
use crate::tlb::Wanted;
use crate::trace_hook::Blind;
use crate::walker::{serve, walk, walk_in_place, Walk, WalkFor};

/// Bits of an address above those within a base page.
const BASE_MASK: u64 = !((1 << BASE_SHIFT) - 1);

/// Accesses that are alike: of one kind, to one page (and line, where data caches are asked).
struct Alike {
    addr: u64,
    kind: usize,
    /// Recorded accesses.
    count: u64,
    /// Left-out repeats of all of them.
    repeats: u64,
}

/// What the accesses of a group of kinds came to last: while it is the first array's last touched entry, another access
/// to the page is a hit that changes nothing.
#[derive(Clone, Copy)]
struct Last {
    /// Base page number; all ones = none.
    page: u64,
    kind: usize,
    class: usize,
    row: u32,
    /// Physical address of the base page.
    frame: u64,
}

const NOTHING: Last = Last { page: u64::MAX, kind: 0, class: 0, row: NONE, frame: 0 };

/// Accesses ahead whose page's row is fetched, and whose row's number is: some hundred nanoseconds of work.
const AHEAD: usize = 8;
const FAR_AHEAD: usize = 16;

impl Engine {
    /// A run's accesses; those off the short path by all the rules.
    pub(crate) fn accesses_fast<const ROWS: bool>(&mut self, block: &Block, range: Range<usize>, run: &Run) {
        let plan = &*run.plan;
        let slots = &*run.slots;
        let addrs = &block.addr[..range.end];
        let kinds = &block.kind[..range.end];
        self.places.begin(run.space, run.hw);
        let mut last = [NOTHING; KINDS];
        let mut tallies: [[Tally; CLASSES]; KINDS] = Default::default();
        let mut user_end = if self.marks_every_access { 0 } else { plan.user_end };
        let mut next = range.start;
        while next < addrs.len() {
            let first = next;
            let (addr, kind_number) = (addrs[first], kinds[first]);
            let kind = kind_number as usize;
            let alike_shift = plan.alike_shift[kind];
            next += 1;
            while next < addrs.len() && (addrs[next] ^ addr) >> alike_shift == 0 && kinds[next] == kind_number {
                next += 1;
            }
            let count = (next - first) as u64;
            let repeats = if block.repeat.is_empty() { 0 } else { repeats_of(block, first..next) };

            let front = plan.front_of[kind];
            let known = &last[front];
            if known.page == addr >> BASE_SHIFT && plan.same_first[kind] >> known.kind & 1 == 1 {
                let Last { class, row, frame, .. } = *known;
                tallies[kind][class].ends[0] += count;
                if ROWS {
                    self.rows.pages[row as usize].accesses += count + repeats;
                }
                if plan.has_data_caches {
                    self.data_accesses(run, kind, frame | addr & !BASE_MASK, count);
                }
                if repeats > 0 {
                    let array = plan.routes[kind][class].first().first();
                    self.count_repeats(kind, class, repeats, array.map(|&array| (array, false)));
                }
                continue;
            }

            if ROWS {
                self.fetch_rows(run, addrs, next);
            }
            let mut way = None;
            let mut at = 0;
            if addr < user_end {
                let is_known;
                (at, is_known) = self.places.find(addr >> plan.chunk_shift);
                if !is_known {
                    self.learn(run, at, addr);
                }
                let place = self.places.at(at);
                way = slots.ways[kind][usize::from(place.class)].as_ref().filter(|_| !place.has_locks);
            }
            let Some(way) = way else {
                self.by_all_rules::<ROWS>(run, block, first..next);
                if self.marks_every_access {
                    user_end = 0;
                }
                last = [NOTHING; KINDS];
                continue;
            };
            let place = self.places.at(at);
            let class = usize::from(place.class);
            let tally = &mut tallies[kind][class];
            let alike = Alike { addr, kind, count, repeats };
            last[front] = NOTHING;
            if let Some(array) = &way.first {
                let set = array.index.set_of(addr >> array.naming.set_shift);
                let tag = array.naming.tag(place.tags[array.name], addr);
                let filled = self.parts.tlbs[array.slot].access_or_fill_page(set, tag);
                let row = if ROWS { self.row(run, at, addr, class) } else { NONE };
                let frame = if plan.has_data_caches { self.frame(run, at, addr, class) } else { 0 };
                last[front] = Last { page: addr >> BASE_SHIFT, kind, class, row, frame };
                if filled == Filled::Hit {
                    tally.ends[0] += count;
                    if repeats > 0 {
                        self.count_repeats(kind, class, repeats, Some((array.array, false)));
                    }
                    if plan.has_data_caches {
                        self.data_accesses(run, kind, frame | addr & !BASE_MASK, count);
                    }
                    if ROWS {
                        self.rows.pages[row as usize].accesses += count + repeats;
                    }
                    continue;
                }
                tally.evictions[0] += u64::from(filled == Filled::Evicted);
                if way.is_plain && !ROWS && !plan.has_data_caches {
                    self.missed_in_totals(run, &alike, at, way, tally);
                    continue;
                }
            }
            let ip = if ROWS { block.ip.get(first).copied().unwrap_or(0) } else { 0 };
            self.alike::<ROWS>(run, &alike, ip, at, way, tally);
        }
        self.add_tallies(run, &tallies);
    }

    /// [`Self::alike`] where translation alone is counted, in totals, and every level is one array of pages.
    #[inline(always)]
    fn missed_in_totals(&mut self, run: &Run, alike: &Alike, at: usize, way: &Way, tally: &mut Tally) {
        let Alike { addr: va, kind, count, repeats } = *alike;
        let place = self.places.at(at);
        let class = usize::from(place.class);
        let mut end = way.levels.len();
        for (level, arrays) in way.levels.iter().enumerate().skip(1) {
            let array = &arrays[0];
            let set = array.index.set_of(va >> array.naming.set_shift);
            let tag = array.naming.tag(place.tags[array.name], va);
            match self.parts.tlbs[array.slot].access_or_fill_page(set, tag) {
                Filled::Hit => {
                    end = level;
                    break;
                }
                filled => tally.evictions[level] += u64::from(filled == Filled::Evicted),
            }
        }
        tally.ends[end] += 1;
        tally.ends[0] += count - 1;
        if end == way.levels.len() {
            self.touch(run, at, va, class);
            if run.plan.walks != WalkPlan::CountOnly {
                self.walk(run, at, va, kind, class);
            }
        }
        if repeats > 0 {
            self.count_repeats(kind, class, repeats, Some((way.levels[0][0].array, false)));
        }
    }

    /// Accesses that missed the first level, if that is one array of pages; else accesses that no level was asked for.
    #[inline(never)]
    fn alike<const ROWS: bool>(&mut self, run: &Run, alike: &Alike, ip: u64, at: usize, way: &Way, tally: &mut Tally) {
        let plan = &*run.plan;
        let (va, kind) = (alike.addr, alike.kind);
        let place = self.places.at(at);
        let (class, has_objects) = (usize::from(place.class), place.has_objects);
        let mut physical = 0;
        if plan.has_data_caches {
            physical = self.frame(run, at, va, class) | va & !BASE_MASK;
            for &slot in &run.slots.far_route[kind] {
                self.parts.caches[slot].prefetch(physical);
            }
        }
        let row = if ROWS { self.row(run, at, va, class) } else { NONE };
        if way.coalesces {
            self.touch(run, at, va, class);
        }

        let mut end = way.levels.len();
        let mut hit_units = 0;
        // Where the page is in the first level afterwards, if that has several arrays.
        let mut holder = None;
        let asked = usize::from(way.first.is_some());
        for (level, arrays) in way.levels.iter().enumerate().skip(asked) {
            let filled = match &arrays[..] {
                [array] => {
                    hit_units = array.hit_units;
                    self.ask_array(run, at, array, va)
                }
                several => {
                    let (array, hit) = self.ask_arrays(run, at, several, va, (kind, class));
                    hit_units = array.hit_units;
                    tally.hit_units = tally.hit_units.saturating_add(if hit && level > 0 { hit_units } else { 0 });
                    if level == 0 {
                        holder = Some(array.array);
                    }
                    (!hit).then_some(Filled::New)
                }
            };
            match filled {
                None => {
                    end = level;
                    break;
                }
                Some(Filled::New) => {}
                Some(Filled::Evicted) => tally.evictions[level] += 1,
                Some(Filled::Hit) => tally.merges[level] += 1,
            }
        }
        tally.ends[end] += 1;
        let more = alike.count - 1;
        tally.ends[0] += more;
        if let Some(holder) = holder {
            self.counts.tlbs[holder].hits[kind][class] += more;
        }

        let mut cost = RowCost { l1_misses: u64::from(end > 0), ..RowCost::default() };
        if end < way.levels.len() {
            cost.hit_units = hit_units;
        } else {
            cost.walks = 1;
            if !way.coalesces {
                self.touch(run, at, va, class);
            }
            if plan.walks != WalkPlan::CountOnly {
                let walk = self.walk(run, at, va, kind, class);
                cost.walk_references = walk.references;
                cost.walk_references_memory = walk.references_memory;
                cost.walk_units = walk.units;
            }
        }
        if alike.repeats > 0 {
            let holder = holder.unwrap_or(way.levels[0][0].array);
            self.count_repeats(kind, class, alike.repeats, Some((holder, false)));
        }
        if plan.has_data_caches {
            self.data_accesses(run, kind, physical, alike.count);
        }
        if ROWS {
            let page = &mut self.rows.pages[row as usize];
            page.accesses += alike.count + alike.repeats;
            if end > 0 {
                page.cost.add(&cost);
                let ip = if kind == Kind::Fetch as usize { va } else { ip };
                self.rows.charge_ip(run.process, ip, &cost);
                if has_objects {
                    self.rows.charge_object(&self.spaces[run.space], va, &cost);
                }
            }
        }
    }

    /// Asks the one array of a level: `None` if it has the page, else how it was filled.
    #[inline]
    fn ask_array(&mut self, run: &Run, at: usize, array: &WayArray, va: u64) -> Option<Filled> {
        let wanted = self.wanted(at, array, va);
        if array.holds_pages {
            let filled = self.parts.tlbs[array.slot].access_or_fill_page(wanted.set, wanted.tag);
            return Some(filled).filter(|&filled| filled != Filled::Hit);
        }
        if self.parts.tlbs[array.slot].access(&wanted) {
            return None;
        }
        let place = self.places.at(at);
        let mask = if array.coalesces && usize::from(place.class) == BASE {
            let pages = &self.spaces[run.space].pages;
            pages.touched_in_block(place.pages as usize, va, array.naming.block())
        } else {
            wanted.bit
        };
        Some(self.parts.tlbs[array.slot].fill(&wanted, mask, 0))
    }

    /// Asks the several arrays of a level, fills one if none has the page, and counts what that did: the array that has
    /// it now, and whether it had it before.
    #[inline]
    fn ask_arrays<'a>(
        &mut self,
        run: &Run,
        at: usize,
        arrays: &'a [WayArray],
        va: u64,
        (kind, class): (usize, usize),
    ) -> (&'a WayArray, bool) {
        for array in arrays {
            let wanted = self.wanted(at, array, va);
            if self.parts.tlbs[array.slot].access(&wanted) {
                self.counts.tlbs[array.array].hits[kind][class] += 1;
                return (array, true);
            }
        }
        let rotation = &mut self.parts.tlbs[arrays[0].slot].rotation;
        let array = &arrays[(*rotation % arrays.len() as u64) as usize];
        *rotation += 1;
        // Asked a second time, which changes nothing.
        let filled = self.ask_array(run, at, array, va);
        let tally = &mut self.counts.tlbs[array.array];
        tally.fills += u64::from(filled != Some(Filled::Hit));
        tally.evictions += u64::from(filled == Some(Filled::Evicted));
        (array, false)
    }

    /// What to look for in an array.
    #[inline(always)]
    fn wanted(&self, at: usize, array: &WayArray, va: u64) -> Wanted {
        Wanted {
            set: array.index.set_of(va >> array.naming.set_shift),
            tag: array.naming.tag(self.places.at(at).tags[array.name], va),
            bit: array.naming.bit(va),
        }
    }

    /// Brings nearer what the accesses a little later will need of their rows, if they are of known chunks.
    #[inline(always)]
    fn fetch_rows(&self, run: &Run, addrs: &[u64], next: usize) {
        let known = |addr: u64| {
            let (at, is_known) = self.places.find(addr >> run.plan.chunk_shift);
            (is_known && addr < run.plan.user_end).then(|| self.places.at(at)).filter(|p| usize::from(p.class) == BASE)
        };
        let pages = &self.spaces[run.space].pages;
        if let Some((place, addr)) = addrs.get(next + FAR_AHEAD).and_then(|&addr| Some((known(addr)?, addr))) {
            pages.prefetch_row_number(place.pages as usize, addr);
        }
        if let Some((place, addr)) = addrs.get(next + AHEAD).and_then(|&addr| Some((known(addr)?, addr))) {
            if let Some(row) = pages.live_row(place.pages as usize, addr) {
                prefetch(&self.rows.pages, row as usize);
            }
        }
    }

    /// Physical address of the base page.
    #[inline(always)]
    fn frame(&self, run: &Run, at: usize, va: u64, class: usize) -> u64 {
        let plan = &*run.plan;
        BASE_MASK
            & match self.places.at(at).frame {
                SCATTERED => physical(plan, &self.spaces[run.space], va, class),
                first => first + (va & ((1 << plan.chunk_shift) - 1)),
            }
    }

    /// The page's row.
    #[inline(always)]
    fn row(&mut self, run: &Run, at: usize, va: u64, class: usize) -> u32 {
        let place = self.places.at(at);
        let known = if class == BASE {
            self.spaces[run.space].pages.live_row(place.pages as usize, va)
        } else {
            (place.huge_row != NONE).then_some(place.huge_row)
        };
        known.unwrap_or_else(|| {
            let shift = run.plan.leaf_shift[class];
            let row = self.rows.page(&mut self.spaces, run.space, va, class, shift) as u32;
            self.places.at_mut(at).huge_row = row;
            row
        })
    }

    /// Sets the page's touched mark.
    #[inline(always)]
    fn touch(&mut self, run: &Run, at: usize, va: u64, class: usize) {
        let place = self.places.at_mut(at);
        let pages = &mut self.spaces[run.space].pages;
        if class == BASE {
            pages.touch_base(place.pages as usize, va);
        } else if !place.huge_is_touched {
            place.huge_is_touched = true;
            pages.touch(va, HUGE);
        }
    }

    /// The walk of an access that missed every level, charged to its thread.
    fn walk(&mut self, run: &Run, at: usize, va: u64, kind: usize, class: usize) -> Walk {
        let plan = &*run.plan;
        let space = self.spaces[run.space].number;
        let of = WalkFor { slots: &run.slots, side: SIDE_OF[kind], space, id: run.id, va, class };
        let (parts, tables, counts) = (&mut self.parts, &mut self.tables, &mut self.counts);
        let walk = if plan.walks_are_short {
            walk_in_place(plan, parts, tables, counts, of, self.places.walk_at(at))
        } else {
            walk(plan, parts, tables, counts, &mut Blind, of)
        };
        self.threads[run.thread].cost.add(&RowCost {
            walk_references: walk.references,
            walk_references_memory: walk.references_memory,
            walk_units: walk.units,
            ..RowCost::default()
        });
        walk
    }

    /// Accesses to one line, after their translation.
    #[inline(always)]
    fn data_accesses(&mut self, run: &Run, kind: usize, physical: u64, count: u64) {
        let route = &run.slots.data_route[kind];
        if !route.is_empty() {
            let position = serve(&mut self.parts.caches, route, physical);
            self.counts.data_served[kind][position] += 1;
            // The first of them has left the line in the first cache.
            self.counts.data_served[kind][0] += count - 1;
        }
    }

    /// Works out a chunk.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, run: &Run, at: usize, va: u64) {
        let space = &mut self.spaces[run.space];
        self.places.learn(at, &self.setup, &mut self.parts, space, run, va);
    }

    /// Accesses off the short path.
    #[cold]
    #[inline(never)]
    fn by_all_rules<const ROWS: bool>(&mut self, run: &Run, block: &Block, range: Range<usize>) {
        for i in range {
            self.access::<ROWS, _>(run, Access::of(block, i), &mut Blind);
        }
    }
}

/// Left-out repeats of some accesses.
fn repeats_of(block: &Block, range: Range<usize>) -> u64 {
    range.map(|i| u64::from(block.repeat.get(i).copied().unwrap_or(0))).sum()
}
