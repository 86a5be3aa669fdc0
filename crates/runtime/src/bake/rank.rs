//! In which order processes are worth baking: by the cycles that their walks take where a PMU counts them, else by the
//! bytes of their page tables' leaves times the CPUs that they use.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::survey::Surveyed;

/// Counts of an event since it began to count.
pub(super) trait Count: Debug + Send {
    /// `None`: it can't be read.
    fn count(&mut self) -> Option<u64>;
}

/// A PMU.
pub(super) trait Pmu: Debug + Send {
    /// Counts an event in the calling thread from now on.
    ///
    /// # Errors
    /// Why it is refused, in words.
    fn own(&self, code: u64) -> Result<Box<dyn Count>, String>;

    /// The same in all threads of a process, and in those that these start.
    ///
    /// # Errors
    /// Why it is refused, or that the process has ended.
    fn process(&self, code: u64, pid: u32) -> Result<Box<dyn Count>, String>;

    /// Reads a byte each of so many pages (a power of two), again and again, [`READS`] times in all.
    fn read_pages(&self, pages: usize);
}

/// An event that counts cycles in which walks for loads are under way.
pub(super) struct WalkCycleEvent {
    /// The vendor's name.
    name: &'static str,
    /// `config` of `perf_event_open`: event, unit mask from bit 8 on, counter mask from bit 24 on.
    code: u64,
}

/// Source: Intel's perfmon events (Linux, tools/perf/pmu-events/arch/x86/*/virtual-memory.json): 0x12 from Alder Lake
/// and Sapphire Rapids on, 0x08 from Haswell (there WALK_DURATION) to Ice Lake. AMD and Arm have events that count
/// walks, none that counts their cycles by load.
pub(super) const EVENTS: [WalkCycleEvent; 2] = [
    WalkCycleEvent { name: "DTLB_LOAD_MISSES.WALK_ACTIVE (r1001012)", code: 0x0100_1012 },
    WalkCycleEvent { name: "DTLB_LOAD_MISSES.WALK_ACTIVE (r1001008)", code: 0x0100_1008 },
];

/// Reads of a proof.
pub(super) const READS: usize = 1 << 16;
/// Pages that any TLB holds, and that none does: sixteen times the largest second level known (2048 entries).
const PAGES: (usize, usize) = (2, 1 << 15);
/// Cycles a read that stand for "none": interrupts cost some walks.
const NONE_PER_READ: f64 = 0.1;
/// Least cycles a read where each misses: a walk takes a load of an entry at least, which is some four cycles where it
/// is nearest, and two walks may be under way at once.
const WALK_PER_READ: f64 = 2.0;

/// By what processes are ranked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Ranking {
    /// `walk-cycles` or `table-bytes`.
    pub by: String,
    /// Event of the PMU, where one counts.
    pub event: Option<String>,
    /// Why no PMU counts.
    pub no_pmu: Option<String>,
}

/// Ranks processes again and again.
#[derive(Debug)]
pub(super) struct Rank {
    pmu: Box<dyn Pmu>,
    /// The event's name and code; or why there is none.
    event: Result<(&'static str, u64), String>,
    counted: BTreeMap<u32, CountedProcess>,
    looked: Option<Instant>,
}

/// A process that is counted.
#[derive(Debug)]
struct CountedProcess {
    started_ticks: u64,
    /// Why it is not, or its counter.
    counter: Result<Box<dyn Count>, String>,
    last: u64,
    cycles_per_second: Option<f64>,
}

impl Rank {
    /// Looks for an event that is proven to count; nothing is asked of others.
    pub(super) fn new(pmu: Box<dyn Pmu>, events: &[WalkCycleEvent]) -> Self {
        let mut reasons: Vec<String> = Vec::new();
        let mut proven = None;
        for event in events {
            match prove(&*pmu, event.code) {
                Ok(()) => {
                    proven = Some((event.name, event.code));
                    break;
                }
                // Most machines refuse all of them for one and the same reason.
                Err(why) if !reasons.contains(&why) => reasons.push(why),
                Err(_) => {}
            }
        }
        let event = proven.ok_or_else(|| match reasons.is_empty() {
            true => "no event is known for this processor".into(),
            false => reasons.join("; "),
        });
        Self { pmu, event, counted: BTreeMap::new(), looked: None }
    }

    /// By what it ranks.
    pub(super) fn ranking(&self) -> Ranking {
        let by = if self.event.is_ok() { "walk-cycles" } else { "table-bytes" };
        let event = self.event.as_ref().ok().map(|(name, _)| (*name).to_string());
        Ranking { by: by.into(), event, no_pmu: self.event.as_ref().err().cloned() }
    }

    /// Cycles a second that the walks of a process took until the last look.
    pub(super) fn cycles_per_second(&self, pid: u32) -> Option<f64> {
        self.counted.get(&pid)?.cycles_per_second
    }

    /// These in their order, the worst first. They come by weight, and stay so where nothing is counted; those that are
    /// not counted, or not yet, follow those that are.
    pub(super) fn order(&mut self, mut found: Vec<&Surveyed>, now: Instant) -> Vec<u32> {
        if let Ok((_, code)) = self.event {
            let seconds = self.looked.replace(now).map(|before| (now - before).as_secs_f64());
            let mut before = std::mem::take(&mut self.counted);
            for process in &found {
                let same = before.remove(&process.pid).filter(|counted| counted.started_ticks == process.started_ticks);
                let counted = same.map_or_else(
                    || CountedProcess {
                        started_ticks: process.started_ticks,
                        counter: self.pmu.process(code, process.pid),
                        last: 0,
                        cycles_per_second: None,
                    },
                    |counted| counted.again(seconds),
                );
                self.counted.insert(process.pid, counted);
            }
            let rate = |process: &Surveyed| self.cycles_per_second(process.pid).unwrap_or(-1.0);
            found.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        }
        found.iter().map(|process| process.pid).collect()
    }
}

impl CountedProcess {
    /// A look later.
    fn again(mut self, seconds: Option<f64>) -> Self {
        self.cycles_per_second = None;
        if let Some(count) = self.counter.as_mut().ok().and_then(|counter| counter.count()) {
            // A thread that ends may take what it counted out of the sum.
            let cycles = count.saturating_sub(std::mem::replace(&mut self.last, count));
            self.cycles_per_second = seconds.filter(|seconds| *seconds > 0.0).map(|seconds| cycles as f64 / seconds);
        }
        self
    }
}

/// Whether an event counts cycles of walks: none where no read needs one, some a read where each does.
fn prove(pmu: &dyn Pmu, code: u64) -> Result<(), String> {
    let mut counter = pmu.own(code)?;
    let mut cycles_per_read = |pages: usize| {
        let mut count = || counter.count().ok_or("opens, but can't be read");
        let before = count()?;
        pmu.read_pages(pages);
        Ok::<_, String>(count()?.saturating_sub(before) as f64 / READS as f64)
    };
    let (near, far) = (cycles_per_read(PAGES.0)?, cycles_per_read(PAGES.1)?);
    if near == 0.0 && far == 0.0 {
        return Err("the PMU opens an event of walk cycles, but does not count".into());
    }
    if near <= NONE_PER_READ && far >= WALK_PER_READ {
        return Ok(());
    }
    Err(format!(
        "the PMU's event counts something else than walk cycles: {near:.2} and {far:.2} a read of {} and of {} pages",
        PAGES.0, PAGES.1
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// A PMU made up.
    #[derive(Clone, Debug, Default)]
    struct SimulatedClock {
        /// Cycles a read that it counts: of pages that are near, and of those that are far. None: refused.
        per_read: Option<(u64, u64)>,
        own: Arc<AtomicU64>,
        /// Counts of processes; those that are not there are refused, those without a count can't be read any more.
        processes: Arc<Mutex<BTreeMap<u32, Option<u64>>>>,
        opened: Arc<AtomicU64>,
    }

    #[derive(Debug)]
    struct OwnCount(Arc<AtomicU64>);

    impl Count for OwnCount {
        fn count(&mut self) -> Option<u64> {
            Some(self.0.load(Ordering::Relaxed))
        }
    }

    #[derive(Debug)]
    struct ProcessCount(SimulatedClock, u32);

    impl Count for ProcessCount {
        fn count(&mut self) -> Option<u64> {
            self.0.processes.lock().expect("whole").get(&self.1).copied().flatten()
        }
    }

    impl Pmu for SimulatedClock {
        fn own(&self, _: u64) -> Result<Box<dyn Count>, String> {
            self.per_read.ok_or("no PMU here")?;
            Ok(Box::new(OwnCount(Arc::clone(&self.own))))
        }

        fn process(&self, _: u64, pid: u32) -> Result<Box<dyn Count>, String> {
            self.opened.fetch_add(1, Ordering::Relaxed);
            match self.processes.lock().expect("whole").contains_key(&pid) {
                true => Ok(Box::new(ProcessCount(self.clone(), pid))),
                false => Err("it has ended".into()),
            }
        }

        fn read_pages(&self, pages: usize) {
            let (near, far) = self.per_read.unwrap_or_default();
            let each = if pages == PAGES.0 { near } else { far };
            self.own.fetch_add(each * READS as u64, Ordering::Relaxed);
        }
    }

    impl SimulatedClock {
        fn set(&self, pid: u32, count: Option<u64>) {
            self.processes.lock().expect("whole").insert(pid, count);
        }
    }

    /// A process with a GiB of memory.
    pub(in crate::bake) fn surveyed(pid: u32) -> Surveyed {
        Surveyed {
            pid,
            comm: format!("p{pid}"),
            cpus: 1.0,
            resident_bytes: 1 << 30,
            huge_bytes: 0,
            table_bytes: 2 << 20,
            helpers: Vec::new(),
            started_ticks: 5,
        }
    }

    fn rank(per_read: Option<(u64, u64)>) -> (SimulatedClock, Rank) {
        let made = SimulatedClock { per_read, ..SimulatedClock::default() };
        (made.clone(), Rank::new(Box::new(made), &EVENTS))
    }

    #[test]
    fn only_what_is_proven_to_count_ranks() {
        let no_pmu = |per_read| rank(per_read).1.ranking().no_pmu;
        assert_eq!(no_pmu(Some((0, 30))), None);
        assert_eq!(rank(Some((0, 30))).1.ranking().event.as_deref(), Some(EVENTS[0].name));
        assert_eq!(no_pmu(None).as_deref(), Some("no PMU here"), "once for all events");
        assert!(no_pmu(Some((0, 0))).expect("nothing").contains("does not count"));
        // Cycles, and walks.
        assert!(no_pmu(Some((1, 40))).expect("else").contains("something else"));
        assert!(no_pmu(Some((0, 1))).expect("else").contains("something else"));
        assert!(Rank::new(Box::new(SimulatedClock::default()), &[])
            .ranking()
            .no_pmu
            .expect("none")
            .contains("no event"));
    }

    #[test]
    fn walk_cycles_rank_and_what_is_not_counted_comes_last() {
        let (made, mut rank) = rank(Some((0, 30)));
        let all = [1, 2, 3, 4].map(surveyed);
        let begin = Instant::now();
        made.set(1, Some(1_000));
        made.set(2, Some(0));
        made.set(3, Some(50));
        let order =
            |rank: &mut Rank, second: u64| rank.order(all.iter().collect(), begin + Duration::from_secs(second));
        assert_eq!(order(&mut rank, 0), [1, 2, 3, 4], "by weight until there are counts");
        order(&mut rank, 1);
        made.set(1, Some(1_500));
        made.set(2, Some(9_000));
        made.set(3, Some(50));
        assert_eq!(order(&mut rank, 3), [2, 1, 3, 4]);
        assert_eq!((rank.cycles_per_second(2), rank.cycles_per_second(3)), (Some(4_500.0), Some(0.0)));
        assert_eq!(rank.cycles_per_second(4), None, "the process was refused");
        // One ends meanwhile; its number is given anew.
        made.set(2, None);
        assert_eq!(order(&mut rank, 4), [1, 3, 2, 4]);
        assert_eq!(made.opened.load(Ordering::Relaxed), 4);
        let anew = Surveyed { started_ticks: 6, ..surveyed(2) };
        assert_eq!(rank.order(vec![&anew], begin + Duration::from_secs(5)), [2]);
        assert_eq!(made.opened.load(Ordering::Relaxed), 5);
        assert_eq!(rank.cycles_per_second(1), None, "forgotten with the process");
        // Of no time at all there are no cycles a second.
        for (count, second, expected) in [(70, 5, None), (100, 6, Some(30.0))] {
            made.set(2, Some(count));
            rank.order(vec![&anew], begin + Duration::from_secs(second));
            assert_eq!(rank.cycles_per_second(2), expected);
        }
    }

    proptest! {
        /// Without a PMU nothing changes; with one, whatever it counts, each process is there once, and by what was
        /// counted.
        #[test]
        fn any_counts_rank_all_processes_once(
            looks in prop::collection::vec(prop::collection::vec(prop::option::of(0..5_000u64), 6), 1..6)
        ) {
            let (made, mut with) = rank(Some((0, 30)));
            let (_, mut without) = rank(None);
            let all: Vec<Surveyed> = (0..6).map(surveyed).collect();
            let pids: Vec<u32> = (0..6).collect();
            let begin = Instant::now();
            for (second, counts) in looks.iter().enumerate() {
                for (pid, count) in pids.iter().zip(counts) {
                    made.set(*pid, *count);
                }
                let now = begin + Duration::from_secs(second as u64);
                prop_assert_eq!(&without.order(all.iter().collect(), now), &pids);
                let order = with.order(all.iter().collect(), now);
                let rates: Vec<f64> = order.iter().map(|&pid| with.cycles_per_second(pid).unwrap_or(-1.0)).collect();
                prop_assert!(rates.windows(2).all(|pair| pair[0] >= pair[1]), "{:?}", rates);
                let mut sorted = order.clone();
                sorted.sort_unstable();
                prop_assert_eq!(&sorted, &pids);
            }
        }
    }
}
