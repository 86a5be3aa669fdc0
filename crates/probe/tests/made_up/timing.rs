//! Reads, streams and page faults of a made-up machine: what they cost is found again, whatever else is known of it.

use std::cell::Cell;
use std::time::Duration;

use lookaside_machine::{preset, PageSize, Quartiles, RandomReads, Timing};
use lookaside_probe::{
    probe, AccessOrder, Halt, Metal, MetalError, NeighbourWalk, OtherCpu, PageChain, ProbeOptions, ProbeReport,
    ProbeStep, TimedFaults, WordSequence,
};
use lookaside_stats::SplitMix64;

/// Ticks of a nanosecond.
const TICKS: f64 = 2.5;
/// A read from memory, a walk, and how many of either are under way at a time; so much longer beside a stream.
const MISS_NS: f64 = 80.0;
const WALK_NS: f64 = 40.0;
const OVERLAPS: (f64, f64) = (8.0, 4.0);
const BESIDE: f64 = 1.5;

/// A machine of which nothing can be found but times of sequences and first touches.
struct Clock {
    rng: SplitMix64,
    bytes: u64,
    huge: bool,
    cpus: Vec<OtherCpu>,
    streams: bool,
    /// Independent reads hide their walks.
    hides: bool,
    faults: Vec<PageSize>,
}

impl Clock {
    fn new() -> Self {
        let faults = [PageSize::K4, PageSize::K64, PageSize::M2];
        let cpus = vec![OtherCpu { number: 7, sibling: Some(true) }, OtherCpu { number: 9, sibling: Some(false) }];
        let rng = SplitMix64::new(3);
        Self { rng, bytes: 1 << 30, huge: true, cpus, streams: false, hides: false, faults: faults.into() }
    }

    fn noisy(&mut self, ns: f64) -> f64 {
        ns * TICKS * (1.0 + 0.02 * (2.0 * self.rng.unit() - 1.0))
    }
}

impl Metal for Clock {
    fn page_bits(&self, _: PageSize) -> u32 {
        0
    }

    fn max_pages(&self, _: PageSize) -> usize {
        0
    }

    fn chase(&mut self, _: &PageChain<'_>, _: u32, _: usize) -> Result<Vec<f64>, MetalError> {
        Err(MetalError::Cannot("no chains".into()))
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }

    fn ticks_per_second(&self) -> Option<f64> {
        Some(TICKS * 1e9)
    }

    fn sequence_bytes(&self) -> u64 {
        self.bytes
    }

    fn cpus(&mut self) -> Vec<OtherCpu> {
        self.cpus.clone()
    }

    fn neighbour(&mut self, walk: Option<NeighbourWalk>) -> Result<(), MetalError> {
        assert!(walk.is_none_or(|walk| walk.cpu == 9 && walk.all_lines), "{walk:?}");
        self.streams = walk.is_some();
        Ok(())
    }

    fn replay(&mut self, sequence: &WordSequence<'_>, _: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        if sequence.size == PageSize::M2 && !self.huge {
            return Err(MetalError::Cannot("no huge pages".into()));
        }
        assert!(!sequence.before.is_empty());
        // In a row: 8 bytes a word, 64 of them a line, at 10 bytes a nanosecond.
        if sequence.words.windows(2).all(|pair| pair[1] == pair[0] + 8) {
            let ns = sequence.words.len() as f64 * 6.4 * if self.streams { BESIDE } else { 1.0 };
            return Ok((0..samples).map(|_| self.noisy(ns)).collect());
        }
        let walk = if sequence.size == PageSize::K4 { WALK_NS } else { 0.0 };
        let (misses, walks) = match (sequence.order, self.hides) {
            (AccessOrder::Dependent, _) => (1.0, 1.0),
            (AccessOrder::Independent, true) => (OVERLAPS.0, f64::INFINITY),
            (AccessOrder::Independent, false) => OVERLAPS,
        };
        let ns = (MISS_NS / misses + walk / walks) * if self.streams { BESIDE } else { 1.0 };
        Ok((0..samples).map(|_| self.noisy(ns * sequence.words.len() as f64)).collect())
    }

    fn fault_sizes(&self) -> Vec<PageSize> {
        self.faults.clone()
    }

    fn time_faults(&mut self, size: PageSize, bytes: u64) -> Result<TimedFaults, MetalError> {
        assert!(!self.streams, "first touches have the machine to themselves");
        let faults = bytes / size.bytes();
        // Pages of 64 KiB are offered, and come in parts.
        let more_faults = if size == PageSize::K64 { faults } else { 0 };
        Ok(TimedFaults { ticks: self.noisy(faults as f64 * (500.0 + size.bytes() as f64 / 40.0)), faults, more_faults })
    }
}

fn report(machine: &mut Clock, halt: &dyn Fn() -> Option<Halt>) -> ProbeReport {
    let options = ProbeOptions { only: Some(ProbeStep::Timing), seed: 1, ..ProbeOptions::default() };
    probe(machine, &options, halt, &mut |_| ())
}

fn timing(machine: &mut Clock) -> Timing {
    report(machine, &|| None).timing.expect("a report").costs.value().cloned().expect("figures")
}

fn near(found: Quartiles, truth: f64, share: f64) {
    assert!((found.median / truth - 1.0).abs() < share, "{found:?} for {truth}");
    assert!(found.lower <= found.median && found.median <= found.upper, "{found:?}");
}

#[test]
fn what_reads_and_faults_cost_is_found_again() {
    let report = report(&mut Clock::new(), &|| None);
    assert_eq!(report.missing(), []);
    let found = report.timing.as_ref().expect("a report");
    assert_eq!(found.stream_cpu, Some(9), "no thread of the same core, if there is another");
    let timing = found.costs.value().expect("figures");
    let rows = |timing: &Timing| -> Vec<(u64, bool)> {
        timing.random_reads.iter().map(|row| (row.footprint >> 20, row.beside_stream)).collect()
    };
    assert_eq!(rows(timing), [(4, false), (4, true), (64, false), (64, true), (512, false), (512, true)]);
    for row in &timing.random_reads {
        let longer = if row.beside_stream { BESIDE } else { 1.0 };
        near(row.small_pages.dependent_ns_per_read, longer * (MISS_NS + WALK_NS), 0.02);
        near(row.small_pages.independent_ns_per_read, longer * (MISS_NS / OVERLAPS.0 + WALK_NS / OVERLAPS.1), 0.02);
        let huge = row.huge_pages.expect("huge pages");
        near(huge.dependent_ns_per_read, longer * MISS_NS, 0.02);
        near(row.overlapping_misses.expect("an overlap"), OVERLAPS.0, 0.03);
        near(row.overlapping_walks.expect("an overlap"), OVERLAPS.1, 0.1);
    }
    assert_eq!(timing.sequential_reads.iter().map(|row| row.beside_stream).collect::<Vec<_>>(), [false, true]);
    near(timing.sequential_reads[0].bytes_per_second, 1e10, 0.02);
    near(timing.sequential_reads[1].bytes_per_second, 1e10 / BESIDE, 0.02);
    let faults: Vec<PageSize> = timing.page_faults.iter().map(|row| row.page_size).collect();
    assert_eq!(faults, [PageSize::K4, PageSize::M2]);
    near(timing.page_faults[0].ns_per_fault, 500.0 + 4096.0 / 40.0, 0.02);
    assert_eq!(found.absent.len(), 1);
    assert!(found.absent[0].what == "page faults of 64K" && found.absent[0].why.contains("gave parts"), "{found:?}");
    // It is in the description, which is one that can be, and is read back as it was.
    let machine = report.machine(&preset("zen4").expect("a preset"));
    machine.check().expect("a possible machine");
    assert_eq!(machine.timing.as_ref(), Some(timing));
    let text = lookaside_machine::to_toml(&machine);
    assert_eq!(lookaside_machine::parse(&text, "it").expect("its own text"), machine);
    assert!(machine.not_determined.iter().any(|line| line.starts_with("timing, page faults of 64K: ")));
}

#[test]
fn what_is_not_there_is_said() {
    let absent = |machine: &mut Clock| -> Vec<String> {
        let report = report(machine, &|| None).timing.expect("a report");
        report.absent.into_iter().map(|absent| absent.what).collect()
    };
    // One CPU, little memory, no huge pages.
    let mut small = Clock { cpus: Vec::new(), bytes: 128 << 20, huge: false, faults: Vec::new(), ..Clock::new() };
    assert_eq!(
        absent(&mut small),
        [
            "random reads of larger footprints",
            "reads beside a stream",
            "random reads of 4 MiB in 2M pages",
            "random reads of 64 MiB in 2M pages"
        ]
    );
    let found = timing(&mut small);
    let none = |row: &RandomReads| row.huge_pages.is_none() && row.overlapping_misses.is_none() && !row.beside_stream;
    assert!(found.random_reads.len() == 2 && found.random_reads.iter().all(none), "{found:?}");
    assert!(found.page_faults.is_empty() && found.sequential_reads.len() == 1);
    // Walks that cost an independent read nothing have no overlap.
    let mut hidden = Clock { hides: true, faults: Vec::new(), ..Clock::new() };
    let found = timing(&mut hidden);
    assert!(found.random_reads.iter().all(|row| row.overlapping_walks.is_none() && row.overlapping_misses.is_some()));
    assert!(absent(&mut hidden).iter().all(|what| what.starts_with("walks that overlap in random reads of ")));
    // A machine without sequences misses nothing.
    let none = report(&mut Clock { bytes: 0, ..Clock::new() }, &|| None);
    assert!(none.timing.expect("a report").costs.value().is_none());
}

#[test]
fn rounds_that_were_done_stand_when_it_ends_early() {
    let ended = |replays: usize, halt: Halt| {
        let mut machine = Clock::new();
        // Who halts it has only the clock's count.
        let counter = std::rc::Rc::new(Cell::new(0));
        let counted = counter.clone();
        let asked = move || {
            counted.set(counted.get() + 1);
            (counted.get() > replays).then(|| halt.clone())
        };
        report(&mut machine, &asked)
    };
    let early = ended(20, Halt::Interrupted);
    assert_eq!(early.halted.as_deref(), Some("interrupted"));
    assert!(early.timing.expect("a report").costs.is_missing());
    let late = ended(200, Halt::Interrupted);
    let found = late.timing.expect("a report").costs;
    assert!(found.value().is_some_and(|timing| timing.random_reads.len() == 6), "{found:?}");
    // The time that is up is no news to the last step.
    let late = ended(200, Halt::ShareUp(Duration::from_secs(1)));
    assert!(late.halted.is_none() && late.timing.expect("a report").costs.value().is_some());
}
