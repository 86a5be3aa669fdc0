//! From what intervals logged to blocks of the trace.

use std::collections::{HashMap, VecDeque};

use crossbeam_channel::Receiver;
use lookaside_trace::{Block, Event, Granularity, Kind, Source, TraceError, TraceInfo, BLOCK_ACCESSES};

use super::block_plan::{BlockPlan, LogReader, LoggedAccess};
use super::message::IntervalNews;

/// Loads, stores, fetches of a process.
type KindTotals = [u64; 3];

/// The recording as a source.
pub(super) struct IntervalSource {
    info: TraceInfo,
    /// Loads and stores, or all, go through one filter.
    table: [usize; 3],
    fetches: bool,
    news: Receiver<IntervalNews>,
    plans: HashMap<u32, Vec<BlockPlan>>,
    reader: LogReader,
    process: u32,
    thread: u32,
    thread_base: u64,
    /// Instructions of the interval after which it counts; `None` = it does.
    warm_up: Option<u64>,
    /// To come before the next accesses.
    events: Vec<Event>,
    totals: HashMap<u32, (KindTotals, u64)>,
    /// Blocks of the end.
    last: Option<VecDeque<Block>>,
}

impl IntervalSource {
    pub(super) fn new(info: TraceInfo, (unified, fetches): (bool, bool), news: Receiver<IntervalNews>) -> Self {
        let table = match (unified, info.filter_stores_apart) {
            (true, _) => [0, 0, 0],
            (false, true) => [0, 1, 2],
            (false, false) => [0, 0, 2],
        };
        Self {
            info,
            table,
            fetches,
            news,
            plans: HashMap::new(),
            reader: LogReader::default(),
            process: 0,
            thread: 0,
            thread_base: 0,
            warm_up: None,
            events: Vec::new(),
            totals: HashMap::new(),
            last: None,
        }
    }

    /// Fills the block with what has been logged already.
    fn fill(&mut self, block: &mut Block) {
        let plans = self.plans.get(&self.process).map_or(&[][..], Vec::as_slice);
        let totals = self.totals.entry(self.process).or_default();
        let (unit, mask) = match self.info.granularity {
            Granularity::Byte => (None, u64::MAX),
            Granularity::Line => (Some(6), !63),
            Granularity::Page => (Some(12), u64::MAX),
        };
        // The last unit of each table, and its row here.
        let mut last = [(u64::MAX, 0); 3];
        while block.len() < BLOCK_ACCESSES {
            let Some(LoggedAccess { kind, addr, size, ip }) = self.reader.next(plans) else { break };
            totals.0[kind as usize] += 1;
            if self.warm_up.is_some_and(|warm_up| self.reader.instructions > warm_up) {
                self.warm_up = None;
                block.push_event(Event::Counts);
                // What repeats an access before counts, which that did not.
                last = [(u64::MAX, 0); 3];
            }
            if kind == Kind::Fetch && !self.fetches {
                continue;
            }
            if let Some(unit) = unit {
                let (held, row) = &mut last[self.table[kind as usize]];
                if *held == addr >> unit && block.repeat[*row] < u32::MAX {
                    block.repeat[*row] += 1;
                    continue;
                }
                (*held, *row) = (addr >> unit, block.len());
                block.repeat.push(0);
            }
            block.addr.push(addr & mask);
            block.kind.push(kind);
            block.size.push(size);
            block.ip.push(ip);
        }
        let instructions = std::mem::take(&mut self.reader.instructions);
        self.warm_up = self.warm_up.map(|left| left.saturating_sub(instructions));
        totals.1 += instructions;
    }

    fn take(&mut self, news: IntervalNews) {
        match news {
            IntervalNews::Begin { process, thread, thread_base, cpu_ns, warm_up, is_new } => {
                if is_new {
                    self.plans.remove(&process);
                }
                (self.process, self.thread, self.thread_base) = (process, thread, thread_base);
                self.warm_up = Some(warm_up);
                self.events.push(Event::Interval { cpu_ns });
            }
            IntervalNews::Events(events) => self.events.extend(events),
            IntervalNews::Plans(plans) => self.plans.entry(self.process).or_default().extend(plans),
            IntervalNews::Words(words) => self.reader.read(words, self.thread_base),
        }
    }

    /// Blocks of totals.
    fn ends(&self) -> VecDeque<Block> {
        let mut processes: Vec<_> = self.totals.iter().collect();
        processes.sort_unstable_by_key(|(process, _)| **process);
        let of = |(&process, &([loads, stores, fetches], instructions)): (&u32, &(KindTotals, u64))| {
            let fetches = if self.fetches { fetches } else { 0 };
            let totals = Event::Totals { loads, stores, fetches, instructions };
            Block { process, thread: process, events: vec![(0, totals)], ..Block::default() }
        };
        processes.into_iter().map(of).collect()
    }
}

impl Source for IntervalSource {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        loop {
            block.clear();
            (block.process, block.thread) = (self.process, self.thread);
            block.events.extend(std::mem::take(&mut self.events).into_iter().map(|event| (0, event)));
            self.fill(block);
            if !block.is_empty() {
                return Ok(true);
            }
            match self.news.recv() {
                Ok(news) => self.take(news),
                Err(_) => break,
            }
        }
        if self.last.is_none() {
            self.last = Some(self.ends());
        }
        Ok(match self.last.as_mut().and_then(VecDeque::pop_front) {
            Some(end) => {
                *block = end;
                true
            }
            None => false,
        })
    }
}
