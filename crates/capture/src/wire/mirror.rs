//! The recorder's filter, mirrored, so that each count of left-out accesses finds the access that it belongs to.

use std::collections::HashMap;

use lookaside_trace::{Block, Event, Granularity, Kind, TraceInfo};

use super::MAX_LOG2_CLASSES;

pub(super) const ADDR: u64 = (1 << 48) - 1;
pub(super) const PAGE_LOG2: u32 = 12;
/// Tables of the filter: loads, stores, fetches.
const TABLES: usize = 3;

/// Two words of a record: bits 0–47 of `w0` the address, 48–49 the kind (3 = a count), 50–55 zero, 56–63 the size; bits 0–47 of
/// `w1` the instruction, 48–63 the count of accesses left out on the slot's previous page.
#[derive(Clone, Copy)]
pub(super) struct Record {
    pub(super) w0: u64,
    pub(super) w1: u64,
}

impl Record {
    /// From 16 bytes (fewer read as zero, which the caller never gives).
    #[inline]
    pub(super) fn parse(bytes: &[u8]) -> Record {
        let both = bytes.first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes));
        Record { w0: both as u64, w1: (both >> 64) as u64 }
    }

    /// Neither a count nor an address that no page table translates (a program on its way into a fault).
    pub(super) fn is_access(self) -> bool {
        self.code() != 3 && self.is_canonical()
    }

    pub(super) fn is_canonical(self) -> bool {
        (self.w0 >> 50) & 0x3f == 0
    }

    pub(super) fn code(self) -> usize {
        (self.w0 >> 48) as usize & 3
    }

    pub(super) fn kind(self) -> Kind {
        [Kind::Load, Kind::Store, Kind::Fetch, Kind::Fetch][self.code()]
    }
}

/// One slot: the page that was recorded last, by what kind of access, and its row if it is in the block of number `block`.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) addr: u64,
    pub(super) row: u32,
    pub(super) kind: Kind,
    pub(super) block: u64,
}

/// Blocks count from 1.
const NO_SLOT: Slot = Slot { addr: 0, row: 0, kind: Kind::Load, block: 0 };

#[derive(Default)]
struct Process {
    slots: Vec<Slot>,
    /// Totals of the images before the last exec.
    before_exec: [u64; 4],
    /// Totals of this image.
    image: [u64; 4],
}

/// Filters of all processes.
pub(super) struct Mirror {
    filtered: bool,
    addr_mask: u64,
    /// Accesses are repeats where they agree above this bit.
    unit_log2: u32,
    log2_classes: u32,
    /// Table of loads, stores, fetches.
    pub(super) table: [usize; TABLES],
    /// Repeats were left out within windows of the pages used last.
    windowed: bool,
    /// Number of the block under construction, from 1.
    pub(super) block: u64,
    processes: HashMap<u32, Process>,
}

impl Mirror {
    pub(super) fn new(info: &TraceInfo, unified: bool) -> Mirror {
        let line = info.granularity == Granularity::Line;
        Mirror {
            filtered: info.granularity != Granularity::Byte,
            addr_mask: if line { ADDR & !63 } else { ADDR },
            unit_log2: if line { 6 } else { PAGE_LOG2 },
            log2_classes: info.filter_log2_classes.min(MAX_LOG2_CLASSES),
            table: match (unified, info.filter_stores_apart) {
                (true, _) => [0, 0, 0],
                (false, true) => [0, 1, 2],
                (false, false) => [0, 0, 2],
            },
            windowed: info.filter_window > 0,
            block: 0,
            processes: HashMap::new(),
        }
    }

    pub(super) fn new_block(&mut self) {
        self.block += 1;
    }

    pub(super) fn ended(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    /// Adds the totals of the images before an exec to those of the present one.
    pub(super) fn event(&mut self, process: u32, event: &mut Event) {
        match event {
            Event::Exec { .. } => {
                let process = self.processes.entry(process).or_default();
                for (sum, n) in process.before_exec.iter_mut().zip(std::mem::take(&mut process.image)) {
                    *sum = sum.wrapping_add(n);
                }
            }
            Event::Totals { loads, stores, fetches, instructions } => {
                let process = self.processes.entry(process).or_default();
                process.image = [*loads, *stores, *fetches, *instructions];
                for (n, before) in [loads, stores, fetches, instructions].into_iter().zip(process.before_exec) {
                    *n = n.wrapping_add(before);
                }
            }
            _ => {}
        }
    }

    /// Appends a frame of records; says what was wrong with it.
    pub(super) fn accesses(&mut self, process: u32, payload: &[u8], block: &mut Block) -> Option<String> {
        if self.windowed {
            return self.windowed(payload, block);
        }
        let mut slots = Vec::new();
        if self.filtered {
            let process = self.processes.entry(process).or_default();
            slots = std::mem::take(&mut process.slots);
            slots.resize(TABLES << self.log2_classes, NO_SLOT);
        }
        let mut fault = None;
        let mut rest = payload;
        while !rest.is_empty() {
            let run = rest.chunks_exact(16).take_while(|bytes| Record::parse(bytes).is_access()).count();
            let (accesses, others) = rest.split_at(run * 16);
            self.run(accesses, &mut slots, block);
            rest = others;
            if !rest.is_empty() {
                fault = self.count(Record::parse(rest), &mut slots, block).or(fault);
                rest = &rest[16..];
            }
        }
        if self.filtered {
            self.processes.entry(process).or_default().slots = slots;
        }
        fault
    }

    /// Appends records that are accesses.
    fn run(&self, records: &[u8], slots: &mut [Slot], block: &mut Block) {
        let first = block.len();
        self.columns(records, block);
        if !self.filtered {
            return;
        }
        let slots = &mut slots[..TABLES << self.log2_classes];
        for (row, record) in (first..).zip(records.chunks_exact(16).map(Record::parse)) {
            let addr = record.w0 & ADDR;
            let index = self.slot(self.table[record.code()], addr);
            let count = record.w1 >> 48;
            // Without asking whether there is a count: that branch can't be foretold, the one on the block can.
            self.credit(slots[index], count, row, block);
            slots[index] = Slot { addr, row: row as u32, kind: record.kind(), block: self.block };
        }
    }

    /// Appends records that are accesses, a column at a time.
    fn columns(&self, records: &[u8], block: &mut Block) {
        let parsed = || records.chunks_exact(16).map(Record::parse);
        let addr_mask = self.addr_mask;
        block.addr.extend(parsed().map(|record| record.w0 & addr_mask));
        block.kind.extend(parsed().map(Record::kind));
        block.size.extend(parsed().map(|record| (record.w0 >> 56) as u8));
        block.ip.extend(parsed().map(|record| record.w1 & ADDR));
        if self.filtered {
            block.repeat.resize(block.addr.len(), 0);
        }
    }

    /// A record that is no access.
    fn count(&self, record: Record, slots: &mut [Slot], block: &mut Block) -> Option<String> {
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
                self.credit(slot, count, row, block);
                None
            }
            None => {
                let kind = if named == self.table[Kind::Fetch as usize] { Kind::Fetch } else { Kind::Load };
                block.events.push((row as u32, Event::Repeats { addr, kind, count }));
                Some("a count of accesses left out on a page that was not recorded".into())
            }
        }
    }

    /// Credits `count` accesses that were left out to the slot's row, or as an event before `row`.
    #[inline]
    pub(super) fn credit(&self, slot: Slot, count: u64, row: usize, block: &mut Block) {
        if slot.block == self.block {
            if let Some(repeat) = block.repeat.get_mut(slot.row as usize) {
                if let Some(sum) = u32::try_from(count).ok().and_then(|count| repeat.checked_add(count)) {
                    *repeat = sum;
                    return;
                }
            }
        }
        if count != 0 {
            let (addr, kind) = (slot.addr & self.addr_mask, slot.kind);
            block.events.push((row as u32, Event::Repeats { addr, kind, count }));
        }
    }

    fn slot(&self, table: usize, addr: u64) -> usize {
        let class = (addr >> PAGE_LOG2) as usize & ((1 << self.log2_classes) - 1);
        (table << self.log2_classes) + class
    }
}
