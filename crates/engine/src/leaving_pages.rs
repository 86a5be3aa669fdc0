//! Pages that leave a recorder's window, or are touched there (`SEMANTICS.md` §5): what was left out of them comes down
//! to their order.
//!
//! While a page is among the `w` last used, all its accesses are hits of a fully associative first level of at least
//! `w` entries. Only when it leaves does it matter where it stands among the others: behind all that stay in the
//! window, before all that left earlier. In an array of sets it matters when another page comes into its set; the
//! recorder says before that which pages were used since, in order.

use lookaside_trace::{Block, WindowEvent};

use crate::batch::Batch;
use crate::chunks::SCATTERED;
use crate::classes::{BASE_SHIFT, HUGE};
use crate::context::{AccessContext, KERNEL};
use crate::data_cache::serve;
use crate::engine::Engine;
use crate::routing::kind_and_class;
use crate::space::physical;
use crate::stages::MAX_KEYS;
use crate::window::{first_entry, LeavingPage, WindowPage};
use crate::PagePolicy;

/// Bits of recorded addresses.
const RECORDED_BITS: u32 = 48;

impl Engine {
    /// A block begins. Where pages leave windows each access brings one in.
    pub(crate) fn watch_windows(&mut self, block: &Block) {
        // In a format of shorter addresses two pages of a program may be one.
        let entries_are_pages = self.setup.os.pages == PagePolicy::Base
            && self.setup.locks.is_empty()
            && self.plan.format.address_bits() >= RECORDED_BITS;
        let are_watched = !entries_are_pages && block.is_windowed();
        self.windows.watch(are_watched, (block.process, block.thread));
    }

    /// Pages leave windows, or are touched there.
    pub(crate) fn apply_leaves(&mut self, leaves: &[WindowEvent], context: &AccessContext) {
        if leaves.is_empty() {
            return;
        }
        self.chunks.begin(context.space, context.hw);
        for event in leaves {
            let mut left = LeavingPage::new(event, 0);
            self.locate(&mut left, context);
            if context.plan.has_data_caches {
                self.serve_lines(context, left.kind, left.page, left.lines);
            }
            left.move_entry(&mut self.hardware);
        }
    }

    /// A batch begins: pages leave before its first item, and those are noted that leave before others. The leaves that
    /// are left.
    pub(crate) fn begin_batch<'a>(
        &mut self,
        batch: &mut Batch,
        groups: usize,
        leaves: &'a [WindowEvent],
        context: &AccessContext,
    ) -> &'a [WindowEvent] {
        batch.leaves.clear();
        batch.limit = batch.most_now;
        if leaves.is_empty() || batch.first_group == groups {
            return leaves;
        }
        // With what the items' walks may read the lines of pages that leave find room among the batch's requests.
        let most_items = (context.plan.most_items / 2).max(1);
        let most_lines = (MAX_KEYS - most_items * context.plan.most_requests) as u32;
        batch.limit = batch.most_now.min(batch.reach).min(most_items);
        let row_of = |batch: &Batch, item: usize| batch.first_of(item) as u32;
        let first = row_of(batch, 0);
        let (now, leaves) = leaves.split_at(leaves.partition_point(|leave| leave.at <= first));
        self.apply_leaves(now, context);
        let (mut item, mut lines) = (1, 0);
        for event in leaves {
            let end = batch.limit.min(groups - batch.first_group);
            while item < end && row_of(batch, item) < event.at {
                item += 1;
            }
            if item >= end {
                break;
            }
            let left = LeavingPage::new(event, item as u16);
            lines += left.lines.count_ones();
            if lines > most_lines {
                batch.limit = item;
                break;
            }
            batch.leaves.push(left);
        }
        leaves
    }

    /// Works out what the pages do that leave while a batch runs.
    pub(crate) fn locate_leaving_pages(&mut self, batch: &mut Batch, context: &AccessContext) {
        let len = batch.len;
        batch.leaves.truncate(batch.leaves.partition_point(|left| usize::from(left.item) < len));
        if !self.windows.are_watched {
            for left in &mut batch.leaves {
                self.locate(left, context);
            }
            return;
        }
        let mut entered = 0;
        for at in 0..=batch.leaves.len() {
            let until = batch.leaves.get(at).map_or(len, |left| left.item.into());
            for item in entered..until {
                let (kind, class) = kind_and_class(usize::from(batch.route[item]));
                let owner = self.chunks.at(batch.at[item] as usize).owner as usize;
                let page = WindowPage { owner, va: batch.addr[item] };
                if let Some(entry) = first_entry(context, &page, class, kind) {
                    self.windows.enter(entry);
                }
            }
            entered = until;
            if let Some(left) = batch.leaves.get_mut(at) {
                self.locate(left, context);
            }
        }
    }

    /// Finds the page's frame, and its entry in the first level with the position that it moves to.
    fn locate(&mut self, left: &mut LeavingPage, context: &AccessContext) {
        let plan = &*context.plan;
        let page = WindowPage::new(plan, context.space, left.addr);
        let slot = self.chunks.finder().find(plan.chunk_numbers.of(left.addr));
        let slot = slot.filter(|slot| self.chunks.at(slot.at() as usize).owner as usize == page.owner);
        let known = slot.map(|slot| *self.chunks.at(slot.at() as usize));
        if let Some(passed) = self.passed.as_mut().filter(|_| slot.is_none()) {
            passed.add_sized(left.addr);
        }
        let class = match slot {
            Some(slot) => slot.class(),
            None => self.spaces[page.owner].class_at(page.va, &self.setup.os.pages, plan.leaf_shift[HUGE]),
        };
        if plan.has_data_caches && left.lines != 0 {
            let va = page.va >> BASE_SHIFT << BASE_SHIFT;
            left.page = match known.filter(|chunk| chunk.frame != SCATTERED) {
                Some(chunk) => chunk.frame + (va & ((1 << plan.chunk_shift) - 1)),
                None => physical(plan, &self.spaces[page.owner], va, class),
            };
        }
        let Some(entry) = first_entry(context, &page, class, left.kind) else { return };
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
        left.key = match known.filter(|_| !tlb.layouts[class].is_beyond_chunks) {
            Some(chunk) => tlb.key(chunk.tags[tlb.tag_name()], page.va, class),
            None => {
                let held_by = (page.owner == KERNEL, context.id, context.hw);
                tlb.key_held_by(plan, &mut self.hardware.tags, held_by, page.va, class)
            }
        };
        left.slot = Some(context.routing.tlbs[entry.array]);
    }

    /// Accesses to lines of a page, whose translation is known.
    pub(crate) fn serve_lines(&mut self, context: &AccessContext, kind: usize, page: u64, lines: u64) {
        let route = &context.routing.data_route[kind];
        let mut rest = if route.is_empty() { 0 } else { lines };
        while rest != 0 {
            let position = serve(&mut self.hardware.caches, route, kind, page | u64::from(rest.trailing_zeros()) << 6);
            self.counts.data_served[kind][position] += 1;
            rest &= rest - 1;
        }
    }
}
