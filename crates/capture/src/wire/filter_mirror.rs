//! The recorder's filter, mirrored, so that each count of left-out accesses finds the access that it belongs to.

use std::collections::HashMap;

use lookaside_trace::{Block, Event, Granularity, Kind, TraceInfo};

use super::filter_slot::{BlockUnderConstruction, FilterSlot, NO_SLOT};
use super::record::{WireRecord, ADDR, MAX_LOG2_CLASSES, PAGE_LOG2, TABLES};
use super::window;

/// Slots of all threads together, 24 bytes each; and processes whose totals are remembered.
const MOST_SLOTS: usize = 1 << 20;
const MOST_PROCESSES: usize = 1 << 20;
/// Ended threads that are not yet forgotten.
const MOST_ENDED: usize = 1 << 10;

#[derive(Default)]
struct ProcessTotals {
    /// Totals of the images before the last exec.
    before_exec: [u64; 4],
    /// Totals of this image.
    image: [u64; 4],
}

/// Filters of all processes.
pub(super) struct FilterMirror {
    filtered: bool,
    /// Accesses are repeats where they agree above this bit.
    unit_log2: u32,
    log2_classes: u32,
    /// Table of loads, stores, fetches.
    table: [usize; TABLES],
    /// Repeats were left out within windows of the pages used last.
    windowed: bool,
    current: BlockUnderConstruction,
    /// By process and thread: one's repeats may come after another's accesses.
    slots: HashMap<(u32, u32), Vec<FilterSlot>>,
    /// Threads that have ended, whose last counts may still come.
    ended: Vec<(u32, u32)>,
    /// A process that has ended may go on: it said so before it executed another program, or tried to.
    may_go_on: bool,
    totals: HashMap<u32, ProcessTotals>,
}

impl FilterMirror {
    pub(super) fn new(info: &TraceInfo, unified: bool) -> FilterMirror {
        let line = info.granularity == Granularity::Line;
        FilterMirror {
            filtered: info.granularity != Granularity::Byte,
            unit_log2: if line { 6 } else { PAGE_LOG2 },
            log2_classes: info.filter_log2_classes.min(MAX_LOG2_CLASSES),
            table: match (unified, info.filter_stores_apart) {
                (true, _) => [0, 0, 0],
                (false, true) => [0, 1, 2],
                (false, false) => [0, 0, 2],
            },
            windowed: info.filter_window > 0,
            current: BlockUnderConstruction { number: 0, addr_mask: if line { ADDR & !63 } else { ADDR } },
            slots: HashMap::new(),
            ended: Vec::new(),
            may_go_on: info.recorder == "compiled",
            totals: HashMap::new(),
        }
    }

    pub(super) fn new_block(&mut self) {
        self.current.number += 1;
    }

    pub(super) fn ended(&mut self, process: u32) {
        self.slots.retain(|(its, _), _| *its != process);
        if !self.may_go_on {
            self.totals.remove(&process);
        }
    }

    /// Adds the totals of the images before an exec to those of the present one.
    pub(super) fn event(&mut self, process: u32, event: &mut Event) {
        if self.totals.len() >= MOST_PROCESSES {
            self.totals.clear();
        }
        match event {
            Event::Fork { child, .. } => {
                self.totals.remove(child);
            }
            Event::ThreadStart { thread } => self.ended.retain(|ended| *ended != (process, *thread)),
            Event::ThreadExit { thread } => {
                self.ended.push((process, *thread));
                if self.ended.len() > MOST_ENDED {
                    self.ended.drain(..MOST_ENDED).for_each(|ended| drop(self.slots.remove(&ended)));
                }
            }
            Event::Exec { .. } => {
                let process = self.totals.entry(process).or_default();
                for (sum, n) in process.before_exec.iter_mut().zip(std::mem::take(&mut process.image)) {
                    *sum = sum.wrapping_add(n);
                }
            }
            Event::Totals { loads, stores, fetches, instructions } => {
                let process = self.totals.entry(process).or_default();
                process.image = [*loads, *stores, *fetches, *instructions];
                for (n, before) in [loads, stores, fetches, instructions].into_iter().zip(process.before_exec) {
                    *n = n.wrapping_add(before);
                }
            }
            _ => {}
        }
    }

    /// Appends a frame of records; says what was wrong with it.
    pub(super) fn accesses(&mut self, thread: (u32, u32), payload: &[u8], block: &mut Block) -> Option<String> {
        if self.windowed {
            return window::append(payload, &self.table, self.current, block);
        }
        let mut slots = Vec::new();
        if self.filtered {
            if self.slots.len() >= MOST_SLOTS / (TABLES << self.log2_classes) {
                self.slots.clear(); // nobody runs so many threads at once: the numbers are made up
            }
            slots = std::mem::take(self.slots.entry(thread).or_default());
            slots.resize(TABLES << self.log2_classes, NO_SLOT);
        }
        let mut fault = None;
        let mut rest = payload;
        while !rest.is_empty() {
            let run = rest.chunks_exact(16).take_while(|bytes| WireRecord::parse(bytes).is_access()).count();
            let (accesses, others) = rest.split_at(run * 16);
            self.run(accesses, &mut slots, block);
            rest = others;
            if !rest.is_empty() {
                fault = self.count(WireRecord::parse(rest), &mut slots, block).or(fault);
                rest = &rest[16..];
            }
        }
        if self.filtered {
            self.slots.insert(thread, slots);
        }
        fault
    }

    /// Appends records that are accesses.
    fn run(&self, records: &[u8], slots: &mut [FilterSlot], block: &mut Block) {
        let first = block.len();
        self.columns(records, block);
        if !self.filtered {
            return;
        }
        let slots = &mut slots[..TABLES << self.log2_classes];
        for (row, record) in (first..).zip(records.chunks_exact(16).map(WireRecord::parse)) {
            let addr = record.w0 & ADDR;
            let index = self.slot(self.table[record.code()], addr);
            let count = record.w1 >> 48;
            // Without asking whether there is a count: the CPU can't predict that branch, but does the one on the
            // block.
            slots[index].credit(count, row, self.current, block);
            slots[index] = FilterSlot { addr, row: row as u32, kind: record.kind(), block: self.current.number };
        }
    }

    /// Appends records that are accesses, a column at a time.
    fn columns(&self, records: &[u8], block: &mut Block) {
        let parsed = || records.chunks_exact(16).map(WireRecord::parse);
        let addr_mask = self.current.addr_mask;
        block.addr.extend(parsed().map(|record| record.w0 & addr_mask));
        block.kind.extend(parsed().map(WireRecord::kind));
        block.size.extend(parsed().map(|record| (record.w0 >> 56) as u8));
        block.ip.extend(parsed().map(|record| record.w1 & ADDR));
        if self.filtered {
            block.repeat.resize(block.addr.len(), 0);
        }
    }

    /// A record that is no access.
    fn count(&self, record: WireRecord, slots: &mut [FilterSlot], block: &mut Block) -> Option<String> {
        if !record.is_canonical() {
            return None;
        }
        let (addr, count) = (record.w0 & ADDR, record.w1);
        if count == 0 {
            return None;
        }
        let row = block.len();
        if !self.filtered {
            block.events.push((row as u32, Event::Repeats { addr, kind: Kind::Load, count }));
            return None;
        }
        // The size field says the table; where it doesn't fit (another recorder), any table that has the page.
        let named = (record.w0 >> 56) as usize;
        let holder = std::iter::once(named)
            .chain(0..TABLES)
            .filter(|&table| table < TABLES)
            .map(|table| slots[self.slot(table, addr)])
            .find(|slot| slot.block != 0 && slot.addr >> self.unit_log2 == addr >> self.unit_log2);
        match holder {
            Some(slot) => {
                slot.credit(count, row, self.current, block);
                None
            }
            None => {
                let kind = if named == self.table[Kind::Fetch as usize] { Kind::Fetch } else { Kind::Load };
                block.events.push((row as u32, Event::Repeats { addr, kind, count }));
                Some("a count of accesses left out on a page that was not recorded".into())
            }
        }
    }

    fn slot(&self, table: usize, addr: u64) -> usize {
        let class = (addr >> PAGE_LOG2) as usize & ((1 << self.log2_classes) - 1);
        (table << self.log2_classes) + class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_threads_and_processes_take_bounded_memory() {
        let info = TraceInfo { granularity: Granularity::Page, filter_log2_classes: 12, ..TraceInfo::default() };
        let mut mirror = FilterMirror::new(&info, false);
        let record = [0x5000u64, 0].map(u64::to_le_bytes).concat();
        let mut most = 0;
        for thread in 0..500 {
            let mut block = Block::default();
            assert_eq!(mirror.accesses((thread, thread), &record, &mut block), None);
            most = most.max(mirror.slots.values().map(Vec::len).sum());
        }
        assert!(most <= MOST_SLOTS, "{most}");
        mirror.totals.extend((0..MOST_PROCESSES as u32).map(|process| (process, ProcessTotals::default())));
        mirror.event(1 << 30, &mut Event::Totals { loads: 1, stores: 1, fetches: 0, instructions: 0 });
        assert_eq!(mirror.totals.len(), 1);
    }

    #[test]
    fn a_thread_that_ended_or_whose_process_did_is_forgotten() {
        let info = TraceInfo { granularity: Granularity::Page, ..TraceInfo::default() };
        let mut mirror = FilterMirror::new(&info, false);
        let record = [0x5000u64, 0].map(u64::to_le_bytes).concat();
        for thread in [(1, 1), (1, 2), (2, 2)] {
            assert_eq!(mirror.accesses(thread, &record, &mut Block::default()), None);
        }
        // Not at once: what was left out of its pages is told later.
        for thread in std::iter::once(2).chain(10..10 + MOST_ENDED as u32) {
            assert_eq!(mirror.slots.len(), 3);
            mirror.event(1, &mut Event::ThreadExit { thread });
        }
        assert_eq!(mirror.slots.len(), 2);
        mirror.ended(1);
        assert_eq!(mirror.slots.keys().collect::<Vec<_>>(), [&(2, 2)]);
    }
}
