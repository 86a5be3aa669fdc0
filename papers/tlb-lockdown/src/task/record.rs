//! A program recorded once: its accesses, packed, and what stays the same from run to run.

use std::collections::BTreeMap;

use lookaside_engine::{Detail, Engine, ModelClock, Setup};
use lookaside_trace::{Block, Event, Kind, Source, TraceError};

use lookaside_techniques::lock::histogram::{LockPage, PageCounts};
use lookaside_techniques::plan::PlanError;

/// Bytes of a line: those of the Cortex-A9's caches.
pub(super) const LINE_BYTES: u64 = 32;
/// The kernel's vectors on ARM, a line of them: whoever fetches from it enters the kernel.
const VECTORS: u64 = 0xffff_0000;
/// Pages of 4 KiB in 32 bits of addresses.
const PAGES: usize = 1 << 20;

/// A program's accesses in its own time: cycles of the model's clock with the program alone, without those of
/// translation.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskRecording {
    /// Line and kind of each recorded access.
    pub(super) rows: Vec<u32>,
    /// Rows whose line missed the first-level data cache.
    pub(super) lines: Vec<u32>,
    /// Rows that touch a page for the first time.
    pub(super) first_touches: Vec<u32>,
    /// Rows that are system calls: fetches from the kernel's vectors.
    pub(super) system_calls: Vec<u32>,
    /// Rows before which the kernel invalidates TLB entries for the program: what it maps, unmaps and protects over
    /// what was mapped, its end, and first stores to pages that were read before (copies on write).
    pub(super) maintenance: Vec<u32>,
    /// Rows so far, and cycles then, ascending; from (0, 0) on.
    clock: Vec<(u32, f64)>,
    /// Data accesses by page, left-out repeats included.
    pub counts: Vec<PageCounts>,
}

impl TaskRecording {
    /// Cycles of the whole program.
    pub(crate) fn cycles(&self) -> f64 {
        self.clock.last().map_or(0.0, |last| last.1)
    }

    /// Cycles at a row.
    pub(super) fn at(&self, row: u32) -> f64 {
        let after = self.clock.partition_point(|point| point.0 <= row).clamp(1, self.clock.len().max(2) - 1);
        let (Some(&(row_0, at_0)), Some(&(row_1, at_1))) = (self.clock.get(after - 1), self.clock.get(after)) else {
            return 0.0;
        };
        let part = if row_1 > row_0 { f64::from(row - row_0) / f64::from(row_1 - row_0) } else { 1.0 };
        at_0 + part * (at_1 - at_0)
    }

    /// The first row at or after some cycles.
    pub(crate) fn row_at(&self, cycles: f64) -> u32 {
        let after = self.clock.partition_point(|point| point.1 < cycles);
        let Some(&(row_1, at_1)) = self.clock.get(after) else { return self.rows.len() as u32 };
        let Some(&(row_0, at_0)) = after.checked_sub(1).and_then(|before| self.clock.get(before)) else { return 0 };
        let part = if at_1 > at_0 { (cycles - at_0) / (at_1 - at_0) } else { 1.0 };
        row_0 + (part * f64::from(row_1 - row_0)).ceil() as u32
    }

    /// Cycles at which the kernel invalidates TLB entries for the program.
    pub(crate) fn maintenance_cycles(&self) -> impl Iterator<Item = f64> + '_ {
        self.maintenance.iter().map(|row| self.at(*row))
    }

    /// Rows before which the kernel invalidates TLB entries for the program.
    pub(crate) fn maintenance(&self) -> &[u32] {
        &self.maintenance
    }

    /// Rows that touch a page for the first time.
    pub(crate) fn first_touches(&self) -> &[u32] {
        &self.first_touches
    }

    /// Rows that are system calls: fetches from the kernel's vectors.
    pub(crate) fn system_calls(&self) -> &[u32] {
        &self.system_calls
    }

    /// Lines of 32 bytes that missed the first-level data cache, in order: cycles, kind, address.
    pub(crate) fn missed_lines(&self) -> impl Iterator<Item = (f64, Kind, u64)> + '_ {
        self.lines.iter().map(|row| {
            let (kind, addr) = unpacked(self.rows[*row as usize]);
            (self.at(*row), kind, addr)
        })
    }
}

/// An access in 29 bits.
fn packed(kind: Kind, addr: u64) -> u32 {
    (addr / LINE_BYTES) as u32 * 4 + kind as u32
}

/// Its kind, and where its line begins.
pub(super) fn unpacked(row: u32) -> (Kind, u64) {
    let kind = match row % 4 {
        0 => Kind::Load,
        1 => Kind::Store,
        _ => Kind::Fetch,
    };
    (kind, u64::from(row / 4) * LINE_BYTES)
}

/// Runs a program of one thread alone, and notes what it does.
///
/// # Errors
/// The setup can't be run, the source can't be read, or an address has more than 32 bits.
pub(crate) fn record(setup: &Setup, source: &mut dyn Source) -> Result<TaskRecording, PlanError> {
    let mut engine = Engine::new(Setup { detail: Detail::Totals, ..setup.clone() })?;
    let first_caches: Vec<usize> =
        (0..).zip(&setup.machine.caches).filter(|(_, cache)| cache.level == 1).map(|(i, _)| i).collect();
    let mut seen = PagesSoFar::default();
    let (mut recording, mut block) =
        (TaskRecording { clock: vec![(0, 0.0)], ..TaskRecording::default() }, Block::default());
    let unreadable = |error: TraceError| PlanError::Impossible(error.to_string());
    while source.next_block(&mut block).map_err(unreadable)? {
        if let Some(addr) = block.addr.iter().find(|addr| **addr >> 32 != 0) {
            return Err(PlanError::Impossible(format!("address {addr:#x} has more than 32 bits")));
        }
        let begin = recording.rows.len() as u32;
        seen.go_through(&block, begin, &mut recording);
        let mut row = begin;
        engine.run_traced(&block, &mut |result| {
            if result.data_server.is_none_or(|server| !first_caches.contains(&server)) {
                recording.lines.push(row);
            }
            row += 1;
        });
        let ModelClock { accesses, other_cycles, .. } = engine.clock();
        recording.clock.push((row, accesses as f64 + other_cycles));
    }
    recording.counts = seen.counts.into_values().collect();
    Ok(recording)
}

/// What is known of a program's pages so far.
struct PagesSoFar {
    /// Touched; stored to.
    pages: Vec<(bool, bool)>,
    mapped: Vec<(u64, u64)>,
    counts: BTreeMap<u64, PageCounts>,
}

impl Default for PagesSoFar {
    fn default() -> Self {
        Self { pages: vec![(false, false); PAGES], mapped: Vec::new(), counts: BTreeMap::new() }
    }
}

impl PagesSoFar {
    fn go_through(&mut self, block: &Block, begin: u32, recording: &mut TaskRecording) {
        let mut events = block.events.iter().peekable();
        for (i, (&kind, &addr)) in block.kind.iter().zip(&block.addr).enumerate() {
            let row = begin + i as u32;
            while let Some((_, event)) = events.next_if(|(position, _)| *position as usize <= i) {
                self.happen(event, row, recording);
            }
            recording.rows.push(packed(kind, addr));
            if kind == Kind::Fetch && addr / LINE_BYTES == VECTORS / LINE_BYTES {
                // The page is the kernel's, and never missing.
                recording.system_calls.push(row);
                continue;
            }
            let page = &mut self.pages[(addr >> 12) as usize];
            if !page.0 {
                page.0 = true;
                recording.first_touches.push(row);
            } else if kind == Kind::Store && !page.1 {
                recording.maintenance.push(row);
            }
            page.1 |= kind == Kind::Store;
            if kind != Kind::Fetch {
                let times = 1 + u64::from(block.repeat.get(i).copied().unwrap_or(0));
                self.count(addr, times);
            }
        }
        for (_, event) in events {
            self.happen(event, begin + block.len() as u32, recording);
        }
    }

    fn count(&mut self, addr: u64, times: u64) {
        let page = LockPage::of(1, addr, 12);
        let none = PageCounts { page, data_accesses: 0, fetch_accesses: 0, data_misses: 0, fetch_misses: 0 };
        self.counts.entry(page.vpn).or_insert(none).data_accesses += times;
    }

    fn happen(&mut self, event: &Event, row: u32, recording: &mut TaskRecording) {
        match *event {
            Event::Map { addr, len, .. } => {
                let (start, end) = (addr, addr + len);
                if self.mapped.iter().any(|other| other.0 < end && start < other.1) {
                    recording.maintenance.push(row);
                }
                self.mapped.push((start, end));
            }
            Event::Unmap { addr, len } => {
                self.mapped.retain(|other| other.0 < addr || other.1 > addr + len);
                recording.maintenance.push(row);
            }
            Event::Remap { .. } | Event::Protect { .. } | Event::Fork { .. } | Event::Exec { .. } => {
                recording.maintenance.push(row);
            }
            Event::ProcessExit { .. } => recording.maintenance.push(row),
            // MADV_DONTNEED and MADV_FREE.
            Event::Advise { advice: 4 | 8, .. } => recording.maintenance.push(row),
            Event::Repeats { addr, kind, count, .. } if kind != Kind::Fetch => self.count(addr, count),
            _ => {}
        }
    }
}
