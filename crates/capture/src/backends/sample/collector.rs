//! The collecting thread: turns the kernel's records into blocks of the trace while the program runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;
use lookaside_host::Process;
use lookaside_trace::{parse_maps, source_of, Block, Event, MemoryMap, Region};

use super::access_resolver::AccessResolver;
use super::child_state::{child_state, ChildState};
use super::events::Events;
use super::perf::now_ns;
use super::perf_record::{ClockSample, PerfRecord};

/// How often the rings are emptied. At the highest rate a ring holds several times as much.
const ROUND: Duration = Duration::from_millis(50);
/// How often a process's memory map is read anew: the kernel reports no unmapping.
const REREAD_NS: u64 = 1_000_000_000;

/// How long a child may take from the end of its events to its own.
const EXIT_NS: u64 = 1_000_000_000;

/// Shared by the collecting thread and those who hold the recording.
#[derive(Default)]
pub struct CollectorState {
    /// Asked to stop.
    pub stop: AtomicBool,
    /// Samples that the kernel had no room for.
    pub lost: AtomicU64,
}

/// The process that is sampled.
pub enum SampledProcess {
    /// A process attached to.
    Attached(u32),
    /// A child of ours.
    Child(u32),
}

/// A record, or a listing of a process's memory map, to be put in order of time.
enum TimedItem {
    PerfRecord(PerfRecord),
    Listing { process: u32, regions: Vec<Region> },
}

/// Collects until all sampled processes have ended, or until told to stop.
pub struct Collector {
    events: Events,
    sampled: SampledProcess,
    state: Arc<CollectorState>,
    blocks: Sender<Block>,
    resolver: AccessResolver,
    regions: HashMap<u32, MemoryMap>,
    /// When each process's map is to be read next, for those that were seen since the last reading.
    active: HashMap<u32, bool>,
    reread_at_ns: HashMap<u32, u64>,
    /// Not yet in order.
    pending: Vec<(u64, TimedItem)>,
    /// Being filled, at most one for a thread.
    open: Vec<Block>,
}

impl Collector {
    /// Nothing collected yet.
    pub fn new(events: Events, sampled: SampledProcess, state: Arc<CollectorState>, blocks: Sender<Block>) -> Self {
        let mut collector = Collector {
            events,
            sampled,
            state,
            blocks,
            resolver: AccessResolver::new(),
            regions: HashMap::new(),
            active: HashMap::new(),
            reread_at_ns: HashMap::new(),
            pending: Vec::new(),
            open: Vec::new(),
        };
        if let SampledProcess::Attached(process) = collector.sampled {
            // What was mapped before comes before everything.
            collector.list(process, 0);
        }
        collector
    }

    /// Runs to the end.
    pub fn run(mut self) {
        let mut settled_ns = 0;
        loop {
            let alive = self.events.wait(ROUND);
            let stopped = self.state.stop.load(Ordering::Relaxed) && self.may_stop();
            // A record is in its ring within a moment of its time; a whole round is ample.
            let round_began_ns = now_ns();
            self.gather();
            if !alive || stopped {
                break;
            }
            self.reread(round_began_ns);
            if !self.settle(settled_ns) {
                // Nobody listens any more.
                return;
            }
            settled_ns = round_began_ns;
        }
        self.settle(u64::MAX);
        self.push_exit();
        self.send();
    }

    /// An attached process is let go at once; a child is waited for.
    fn may_stop(&self) -> bool {
        match self.sampled {
            SampledProcess::Attached(_) => true,
            SampledProcess::Child(process) => !matches!(child_state(process), ChildState::Running),
        }
    }

    fn gather(&mut self) {
        let (pending, active, state) = (&mut self.pending, &mut self.active, &self.state);
        self.events.drain(|time, record| {
            match &record {
                PerfRecord::Sample(sample) => drop(active.insert(sample.process, true)),
                PerfRecord::Exec { process, .. } => drop(active.insert(*process, true)),
                PerfRecord::Lost { count } => drop(state.lost.fetch_add(*count, Ordering::Relaxed)),
                _ => {}
            }
            pending.push((time, TimedItem::PerfRecord(record)));
        });
    }

    /// Reads the maps of the processes that ran and whose turn it is.
    fn reread(&mut self, now_ns: u64) {
        let due: Vec<u32> = self
            .active
            .keys()
            .copied()
            .filter(|process| self.reread_at_ns.get(process).is_none_or(|&at| at <= now_ns))
            .collect();
        for process in due {
            self.active.remove(&process);
            self.reread_at_ns.insert(process, now_ns + REREAD_NS);
            self.list(process, now_ns);
        }
    }

    fn list(&mut self, process: u32, time: u64) {
        // A process that has ended has an empty listing or none.
        if let Ok(text) = Process::of(process).maps_text() {
            let regions = parse_maps(&text);
            if !regions.is_empty() {
                self.pending.push((time, TimedItem::Listing { process, regions }));
            }
        }
    }

    /// Handles what happened before `until_ns`, in order of time; `false` when nobody listens.
    fn settle(&mut self, until_ns: u64) -> bool {
        self.pending.sort_by_key(|(time, _)| *time);
        let ready = self.pending.partition_point(|(time, _)| *time < until_ns);
        let ready: Vec<(u64, TimedItem)> = self.pending.drain(..ready).collect();
        for (_, item) in ready {
            match item {
                TimedItem::PerfRecord(record) => self.take(record),
                TimedItem::Listing { process, regions } => {
                    let events = self.regions.entry(process).or_default().reconcile(regions);
                    events.into_iter().for_each(|event| self.event(process, process, event));
                }
            }
        }
        self.send()
    }

    fn take(&mut self, record: PerfRecord) {
        match record {
            PerfRecord::Sample(sample) => self.sample(&sample),
            PerfRecord::Map { process, thread, addr, len, offset, prot, name } => {
                let region = Region::new(addr, addr.saturating_add(len), prot, source_of(&name, offset));
                if let Some(event) = self.regions.entry(process).or_default().map(region) {
                    self.event(process, thread, event);
                }
            }
            PerfRecord::Exec { process, name } => {
                self.regions.entry(process).or_default().clear();
                // The record has 15 letters of the name only.
                let path = Process::of(process).exe();
                let path = path.map_or(name, |path| path.to_string_lossy().into_owned());
                self.reread_at_ns.remove(&process);
                self.event(process, process, Event::Exec { path });
            }
            PerfRecord::Fork { process, thread, parent, parent_thread } if process == parent => {
                self.event(process, parent_thread, Event::ThreadStart { thread });
            }
            PerfRecord::Fork { process, parent, parent_thread, .. } => {
                let copy = self.regions.get(&parent).cloned().unwrap_or_default();
                self.regions.insert(process, copy);
                self.event(parent, parent_thread, Event::Fork { parent, child: process });
            }
            PerfRecord::Exit { process, thread } => self.event(process, thread, Event::ThreadExit { thread }),
            PerfRecord::Lost { .. } => {}
        }
    }

    fn sample(&mut self, sample: &ClockSample) {
        let access = self.resolver.resolve(sample);
        let block = self.block(sample.process, sample.thread);
        block.push(access.kind, access.addr);
        block.size.push(access.size);
        block.ip.push(access.ip);
    }

    /// An event comes after all samples of its process so far and before all later ones.
    fn event(&mut self, process: u32, thread: u32, event: Event) {
        self.resolver.observe(process, &event);
        let (others, of_process): (Vec<Block>, Vec<Block>) =
            std::mem::take(&mut self.open).into_iter().partition(|block| block.process != process);
        self.open = others;
        for block in of_process {
            if block.thread == thread {
                self.open.push(block);
            } else if !block.is_empty() {
                let _ = self.blocks.send(block);
            }
        }
        self.block(process, thread).push_event(event);
    }

    fn block(&mut self, process: u32, thread: u32) -> &mut Block {
        let open = self.open.iter().position(|block| block.process == process && block.thread == thread);
        let index = open.unwrap_or_else(|| {
            self.open.push(Block { process, thread, ..Block::default() });
            self.open.len() - 1
        });
        &mut self.open[index]
    }

    /// Sends what is open; `false` when nobody listens.
    fn send(&mut self) -> bool {
        self.open.drain(..).filter(|block| !block.is_empty()).all(|block| self.blocks.send(block).is_ok())
    }

    /// Adds the event of our child's end, if it has ended.
    fn push_exit(&mut self) {
        if let SampledProcess::Child(process) = self.sampled {
            // Its events end a moment before it does.
            let until_ns = now_ns() + EXIT_NS;
            while child_state(process) == ChildState::Running && now_ns() < until_ns {
                std::thread::sleep(Duration::from_millis(1));
            }
            if let ChildState::Ended(code) = child_state(process) {
                self.event(process, process, Event::ProcessExit { code });
            }
        }
    }
}
