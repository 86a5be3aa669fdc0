//! Puts a block of a trace through the model: its accesses in batches (`access.rs`), its events between them.

use std::ops::Range;
use std::sync::Arc;

use lookaside_machine::SwitchAction;
use lookaside_trace::{Block, WindowEvent};

use crate::classes::HUGE;
use crate::context::{AccessContext, KERNEL};
use crate::passed_rows::PassedStretch;
use crate::routing::Routing;
use crate::tags::KERNEL_ID;
use crate::trace_hook::SeenPart;
use crate::{AccessResult, Detail, Engine};

/// Accesses after which the engine checks whether tags run out.
const ACCESSES_PER_TAG_CHECK: usize = 4096;

impl Engine {
    /// Runs a block.
    pub fn run(&mut self, block: &Block) {
        self.run_with(block, SeenPart::Nothing, &mut |_| {});
    }

    /// Runs a block and shows what each recorded access did.
    pub fn run_traced(&mut self, block: &Block, see: &mut impl FnMut(AccessResult)) {
        self.run_with(block, SeenPart::All, see);
    }

    pub(crate) fn run_with(&mut self, block: &Block, seen: SeenPart, see: &mut dyn FnMut(AccessResult)) {
        let (space, thread) = self.space_and_thread(block.process, block.thread);
        let len = block.addr.len().min(block.kind.len());
        self.watch_windows(block);
        self.swap_warm_up();
        let mut from = 0;
        let mut events = &block.events[..];
        let mut window_events = &block.window_events[..];
        if let Some(passed) = &mut self.passed {
            passed.clear();
        }
        loop {
            let to = events.first().map_or(len, |(position, _)| (*position as usize).clamp(from, len));
            let is_last = events.is_empty();
            let leaves;
            (leaves, window_events) =
                window_events.split_at(window_events.partition_point(|event| is_last || event.at as usize <= to));
            let is_any = from < to || !leaves.is_empty();
            if let Some(passed) = &mut self.passed {
                passed.stretches.push(is_any);
            }
            if is_any {
                self.accesses(block, from..to, leaves, (space, thread), (seen, see));
            }
            from = to;
            let Some(((_, event), rest)) = events.split_first() else { break };
            self.apply_event(event, space, thread);
            events = rest;
        }
        self.swap_warm_up();
    }

    /// Runs what another model's first level had not of a block.
    pub(crate) fn run_passed(&mut self, block: &Block, stretches: &[PassedStretch]) {
        let (space, thread) = self.space_and_thread(block.process, block.thread);
        self.swap_warm_up();
        let ends = block.events.iter().map(|(position, event)| (*position as usize, Some(event)));
        let mut from = 0;
        for ((to, event), PassedStretch { is_any, sized }) in ends.chain([(block.len(), None)]).zip(stretches) {
            sized.iter().for_each(|&addr| self.decide_size(space, addr));
            if *is_any && from == to {
                let context = self.begin(space, thread);
                self.contexts[thread] = Some(context);
            } else if *is_any {
                self.accesses(block, from..to, &[], (space, thread), (SeenPart::Nothing, &mut |_| {}));
            }
            from = to;
            if let Some(event) = event {
                self.apply_event(event, space, thread);
            }
        }
        self.swap_warm_up();
    }

    /// Decides the size of a process's page, if it is not decided.
    fn decide_size(&mut self, space: usize, addr: u64) {
        let owner = if self.plan.is_global(addr) { KERNEL } else { space };
        let va = addr & self.plan.address_mask;
        self.spaces[owner].class_at(va, &self.setup.os.pages, self.plan.leaf_shift[HUGE]);
    }

    /// Accesses, with the pages that leave a window in between.
    fn accesses(
        &mut self,
        block: &Block,
        range: Range<usize>,
        mut leaves: &[WindowEvent],
        (space, thread): (usize, usize),
        (seen, see): (SeenPart, &mut dyn FnMut(AccessResult)),
    ) {
        let context = self.begin(space, thread);
        for start in range.clone().step_by(ACCESSES_PER_TAG_CHECK) {
            let part = start..range.end.min(start + ACCESSES_PER_TAG_CHECK);
            let within;
            (within, leaves) = leaves.split_at(leaves.partition_point(|leave| (leave.at as usize) < part.end));
            self.make_room_for_tags(part.len() + within.len());
            match self.setup.detail {
                Detail::Totals => self.make_accesses::<false>(block, part, within, &context, seen),
                Detail::Rows => self.make_accesses::<true>(block, part, within, &context, seen),
            }
            if let Some(batch) = self.batch.as_mut().filter(|_| seen != SeenPart::Nothing) {
                batch.seen.results.drain(..).for_each(&mut *see);
            }
        }
        if !leaves.is_empty() {
            self.make_room_for_tags(leaves.len());
            self.apply_leaves(leaves, &context);
        }
        self.contexts[thread] = Some(context);
    }

    /// A run of accesses begins: maybe a context switch.
    fn begin(&mut self, space: usize, thread: usize) -> AccessContext {
        let hw = self.threads[thread].hw;
        let process = self.spaces[space].process;
        let known = self.contexts[thread].take().filter(|known| known.hw == hw);
        let routing = || (Arc::clone(&self.plan), self.hardware.routing(&self.plan, hw));
        let (plan, routing) = known.map_or_else(routing, |known| (known.plan, known.routing));
        let last = self.last_process[hw].replace(process);
        if last != Some(process) {
            self.switch(last.is_some(), process, hw, &routing);
        }
        AccessContext { space, process, id: self.space_id(space), hw, thread, plan, routing }
    }

    /// Flushes what a context switch does. The first process of a hardware thread only takes a slot.
    fn switch(&mut self, from_another: bool, process: u32, hw: usize, routing: &Routing) {
        let (plan, counts) = (&self.plan, &mut self.counts);
        if from_another {
            counts.context_switches += 1;
            let action = self.setup.machine.context_switch.action;
            if action != SwitchAction::Nothing {
                let caches_too = action == SwitchAction::FlushTlbAndCaches;
                self.hardware.flush(plan, routing, |id| id != KERNEL_ID, caches_too, &mut counts.invalidated);
            }
        }
        let replaced = self.asid_slots.as_mut().and_then(|slots| slots[hw].enter(process));
        if let Some(id) = replaced.and_then(|process| self.ids.of(*self.space_of.get(&process)?)) {
            self.hardware.flush(plan, routing, |held| held == id, false, &mut counts.invalidated);
        }
    }
}
