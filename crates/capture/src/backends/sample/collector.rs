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
    /// Processes attached to.
    Attached(Vec<u32>),
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
        if let SampledProcess::Attached(processes) = &collector.sampled {
            // What was mapped before comes before everything.
            processes.clone().into_iter().for_each(|process| collector.list(process, 0));
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

    /// Samples for so long, and sends what was seen; `false` when nobody listens.
    pub fn burst(&mut self, time: Duration) -> bool {
        self.events.switch(true);
        std::thread::sleep(time);
        self.events.switch(false);
        self.gather();
        self.reread(now_ns());
        self.settle(u64::MAX)
    }

    /// An attached process is let go at once; a child is waited for.
    fn may_stop(&self) -> bool {
        match &self.sampled {
            SampledProcess::Attached(_) => true,
            SampledProcess::Child(process) => !matches!(child_state(*process), ChildState::Running),
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use crossbeam_channel::Receiver;
    use lookaside_trace::{Kind, MapSource};

    use super::super::events::tests::arrived;
    use super::super::perf_record::tests::{exec_at, lost_at, sample_at};
    use super::*;

    /// Above the largest pids that Linux gives (2^22): nothing can be read of them.
    const ONE: u32 = 5_000_001;
    const OTHER: u32 = 5_000_002;

    fn collector(rings: &[&[Vec<u8>]], sampled: SampledProcess) -> (Collector, Receiver<Block>) {
        let (sender, blocks) = crossbeam_channel::unbounded();
        (Collector::new(arrived(rings), sampled, Arc::new(CollectorState::default()), sender), blocks)
    }

    fn sample(process: u32, thread: u32) -> PerfRecord {
        PerfRecord::Sample(ClockSample { process, thread, ip: 0, registers: None })
    }

    fn map(process: u32) -> PerfRecord {
        let name = "/lib/some".into();
        PerfRecord::Map { process, thread: process, addr: 0x1000, len: 0x2000, offset: 0x3000, prot: 5, name }
    }

    fn mapped() -> Event {
        let source = MapSource::File { path: "/lib/some".into(), offset: 0x3000 };
        Event::Map { addr: 0x1000, len: 0x2000, prot: 5, source, site: 0 }
    }

    #[test]
    fn records_become_blocks_in_order_of_time() {
        let (early, late) = (sample_at(10, ONE, ONE, 0x100), sample_at(30, ONE, ONE, 0x300));
        let rings: [&[Vec<u8>]; 2] = [&[late, lost_at(15, 4)], &[exec_at(20, ONE, "program"), early, lost_at(16, 3)]];
        let (collector, blocks) = collector(&rings, SampledProcess::Child(ONE));
        let state = Arc::clone(&collector.state);
        collector.run();
        let expected = Block {
            process: ONE,
            thread: ONE,
            addr: vec![0, 0],
            kind: vec![Kind::Load; 2],
            size: vec![0, 0],
            ip: vec![0x100, 0x300],
            events: vec![(1, Event::Exec { path: "program".into() })],
            ..Block::default()
        };
        assert_eq!(blocks.iter().collect::<Vec<_>>(), [expected]);
        assert_eq!(state.lost.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn what_is_gathered_says_whose_maps_to_read_again() {
        let records = [sample_at(1, ONE, 9, 0), exec_at(2, OTHER, "program"), lost_at(3, 1)];
        let (mut collector, _blocks) = collector(&[&records], SampledProcess::Child(ONE));
        collector.gather();
        assert_eq!(collector.pending.len(), 3);
        let mut active: Vec<u32> = collector.active.keys().copied().collect();
        active.sort_unstable();
        assert_eq!(active, [ONE, OTHER]);
    }

    #[test]
    fn an_event_comes_after_what_other_threads_of_its_process_did_before() {
        let (mut collector, blocks) = collector(&[], SampledProcess::Child(ONE));
        collector.take(sample(ONE, 1));
        collector.take(sample(ONE, 2));
        collector.take(sample(OTHER, 9));
        collector.take(PerfRecord::Exit { process: ONE, thread: 1 });
        assert_eq!(blocks.len(), 1, "of the second thread");
        collector.take(sample(ONE, 2));
        collector.take(sample(ONE, 1));
        assert!(collector.send());
        let seen: Vec<_> =
            blocks.try_iter().map(|block| (block.process, block.thread, block.len(), block.events)).collect();
        let exit = vec![(1, Event::ThreadExit { thread: 1 })];
        assert_eq!(seen, [(ONE, 2, 1, vec![]), (OTHER, 9, 1, vec![]), (ONE, 1, 2, exit), (ONE, 2, 1, vec![])]);

        // Nobody listens: that is seen with the first block that there is.
        drop(blocks);
        assert!(collector.send());
        collector.take(sample(ONE, 1));
        assert!(!collector.send());
    }

    #[test]
    fn a_fork_takes_the_maps_along_and_an_exec_drops_them() {
        let (mut collector, blocks) = collector(&[], SampledProcess::Child(ONE));
        let fork = |process, thread| PerfRecord::Fork { process, thread, parent: ONE, parent_thread: ONE };
        collector.take(map(ONE));
        collector.take(fork(ONE, 7));
        collector.take(fork(OTHER, OTHER));
        collector.take(map(OTHER)); // as it is known
        collector.take(PerfRecord::Exec { process: OTHER, name: "program".into() });
        collector.take(map(OTHER));
        assert!(collector.send());
        let seen: Vec<_> = blocks.try_iter().map(|block| (block.process, block.thread, block.events)).collect();
        let of_one = [mapped(), Event::ThreadStart { thread: 7 }, Event::Fork { parent: ONE, child: OTHER }];
        let of_other = [Event::Exec { path: "program".into() }, mapped()];
        let at_start = |events: &[Event]| events.iter().map(|event| (0, event.clone())).collect::<Vec<_>>();
        assert_eq!(seen, [(ONE, ONE, at_start(&of_one)), (OTHER, OTHER, at_start(&of_other))]);
    }

    #[test]
    fn what_is_not_settled_yet_waits() {
        let (mut collector, blocks) = collector(&[], SampledProcess::Child(ONE));
        for time in [11, 9, 10] {
            let sample = ClockSample { process: ONE, thread: ONE, ip: time, registers: None };
            collector.pending.push((time, TimedItem::PerfRecord(PerfRecord::Sample(sample))));
        }
        let ips = || blocks.try_iter().map(|block| block.ip).collect::<Vec<_>>();
        assert!(collector.settle(10));
        assert_eq!(ips(), [[9]]);
        assert!(collector.settle(10) && ips().is_empty());
        assert!(collector.settle(u64::MAX));
        assert_eq!(ips(), [[10, 11]]);
        drop(blocks);
        collector.pending.push((1, TimedItem::PerfRecord(sample(ONE, ONE))));
        assert!(!collector.settle(10));
    }

    #[test]
    fn maps_are_read_again_a_second_later_if_the_process_ran() {
        let own = std::process::id();
        let (mut collector, _blocks) = collector(&[], SampledProcess::Attached(vec![own]));
        let listings = |collector: &Collector| -> Vec<u64> {
            let of_own = |item: &TimedItem| match item {
                TimedItem::Listing { process, regions } => *process == own && !regions.is_empty(),
                TimedItem::PerfRecord(_) => false,
            };
            collector.pending.iter().filter(|(_, item)| of_own(item)).map(|(time, _)| *time).collect()
        };
        // Of a process that ran before there is one from the start.
        assert_eq!(listings(&collector), [0]);
        collector.reread(5);
        assert_eq!(listings(&collector), [0]);
        for (ran_until_ns, times) in
            [(5, &[0, 5][..]), (1_000_000_004, &[0, 5]), (1_000_000_005, &[0, 5, 1_000_000_005])]
        {
            collector.active.insert(own, true);
            collector.reread(ran_until_ns);
            assert_eq!(listings(&collector), times);
        }
        collector.reread(u64::MAX / 2);
        assert_eq!(listings(&collector).len(), 3, "it did not run");
        // After an exec at once; and of a process that has ended there is none.
        collector.take(PerfRecord::Exec { process: own, name: String::new() });
        collector.active.extend([(own, true), (ONE, true)]);
        collector.reread(1_000_000_006);
        assert_eq!((listings(&collector).len(), collector.pending.len()), (4, 4));
    }

    #[test]
    fn a_childs_end_is_waited_for_and_is_the_last_event() {
        let mut command = std::process::Command::new("sh");
        let mut child = command.args(["-c", "read line; exit 3"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let (mut collector, blocks) = collector(&[], SampledProcess::Child(child.id()));
        assert!(!collector.may_stop());
        let mut stdin = child.stdin.take().unwrap();
        let ending = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            stdin.write_all(b"\n").unwrap();
        });
        collector.push_exit();
        ending.join().unwrap();
        assert!(collector.may_stop() && collector.send());
        let seen: Vec<_> = blocks.try_iter().map(|block| (block.process, block.events)).collect();
        assert_eq!(seen, [(child.id(), vec![(0, Event::ProcessExit { code: 3 })])]);
        child.wait().unwrap();

        // Of one that is not ours nothing is known, and nothing waited for.
        let (mut attached, blocks) = self::collector(&[], SampledProcess::Attached(vec![ONE]));
        assert!(attached.may_stop());
        attached.push_exit();
        assert!(attached.send() && blocks.is_empty());
    }
}
