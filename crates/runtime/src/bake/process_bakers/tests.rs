//! Bakers of processes, some of which are made up.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::super::rank::{Count, Pmu, READS};
use super::super::survey::Surveyed;
use super::*;

fn settings() -> Settings {
    "scan,sleep=1ms,share=0.5".parse().expect("settings")
}

/// Whether this kernel has the call; where not, that is what is said.
fn can_scan() -> bool {
    match Baker::start(&settings(), &[]) {
        Ok(_) => true,
        Err(e) => {
            assert!(e.to_string().contains("Linux 6.7"), "{e}");
            false
        }
    }
}

#[test]
fn a_process_is_baked_until_it_ends() {
    if !can_scan() {
        return;
    }
    // 16 MiB in small pages; it ends with its input.
    let script = "import mmap, sys; x = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); \
        x.madvise(mmap.MADV_NOHUGEPAGE); x.write(b'x' * (16 << 20)); print(flush=True); sys.stdin.read()";
    let python = Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = python else {
        return eprintln!("LEFT OUT: python3 is not installed (apt-get install python3)");
    };
    let mut line = [0u8];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut line).expect("it is ready");
    let pid = child.id();
    let mut outside =
        ProcessBakers::start(&settings(), ProcessSelection { pids: vec![pid], ..ProcessSelection::default() })
            .expect("a process");
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let report = outside.report();
        assert_eq!((report.len(), report[0].pid, report[0].running), (1, pid, true));
        if report[0].stats.rounds >= 3 {
            assert!(report[0].small_bytes >= 16 << 20, "{report:?}");
            assert!(report[0].stats.touches >= 3 * report[0].small_bytes / 4096, "{report:?}");
            assert_eq!((report[0].stats.failed_calls, &report[0].refused), (0, &None));
            break;
        }
        assert!(Instant::now() < end, "{report:?}");
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(outside.refresh(), Ok(1));
    }
    drop(child.stdin.take());
    child.wait().expect("it ends");
    assert_eq!(outside.refresh(), Ok(0));
    let report = outside.stop();
    assert_eq!((report.len(), report[0].running), (1, false));
}

#[test]
fn what_cannot_be_baked_is_said_at_once() {
    let refused =
        |settings: &Settings, wanted| ProcessBakers::start(settings, wanted).expect_err("refused").to_string();
    assert!(refused(&settings(), ProcessSelection::default()).contains("no process"));
    let nobody = ProcessSelection { pids: vec![4_194_305], ..ProcessSelection::default() };
    assert!(refused(&settings(), nobody.clone()).contains("there is none"));
    assert!(refused(&"prefetch".parse().expect("settings"), nobody).contains("scan"));
    let group = ProcessSelection { groups: vec!["/nonexistent".into()], ..ProcessSelection::default() };
    assert!(refused(&settings(), group).contains("control group"));
}

/// A look of 0.3 s at a share of a tenth: six seconds to the next, and half of the share for the baker.
#[test]
fn looks_use_half_of_the_share_at_most() {
    let settings: Settings = "scan,share=0.1".parse().expect("settings");
    let wanted = ProcessSelection { comms: vec!["no-such-program".into()], ..ProcessSelection::default() };
    let mut outside = ProcessBakers::start(&settings, wanted).expect("nobody yet");
    assert_eq!(outside.until_refresh(), LOOK_INTERVAL);
    assert!(outside.looks.all > Duration::ZERO && outside.looks_cpu_share() > 0.0);
    outside.looks.last = Duration::from_millis(300);
    assert!((outside.until_refresh().as_secs_f64() - 6.0).abs() < 1e-6);
    outside.running.insert(1, resting(1));
    outside.share_out().expect("a share");
    let share = outside.running[&1].baker.as_ref().expect("a baker").cpu_share();
    assert!((share - 0.05).abs() < 1e-6, "{share}");
}

/// A process with so many regions, whose baker has nothing to do.
fn resting(regions: u64) -> BakedProcess {
    BakedProcess {
        identity: Identity::of(std::process::id()).expect("this process"),
        baker: Baker::start(&"mincore".parse().expect("settings"), &[]).map_err(|e| e.to_string()),
        regions: (0..regions).map(|at| BakedRegion { start: at << 20, len: 4096 }).collect(),
        small_bytes: 0,
    }
}

/// Nobody is baked, nor looked for.
fn nobody(settings: &str) -> ProcessBakers {
    ProcessBakers {
        settings: settings.parse().expect("settings"),
        wanted: ProcessSelection::default(),
        survey: Survey::new(),
        rank: None,
        running: BTreeMap::new(),
        ended: Vec::new(),
        looks: LookTimes { all: Duration::ZERO, last: Duration::ZERO, started: Instant::now() },
    }
}

/// Of a half of a CPU looks take a fifth: two that have memory get a fifth each, one that has none keeps what it
/// had.
#[test]
fn the_share_is_divided_among_those_that_have_memory() {
    let mut outside = nobody("scan,share=0.5");
    outside.looks.last = Duration::from_millis(100);
    outside.running.extend([(1, resting(1)), (2, resting(0)), (3, resting(4))]);
    outside.share_out().expect("shares");
    let shares = outside.running.values().map(|kept| kept.baker.as_ref().expect("a baker").cpu_share());
    let shares: Vec<f64> = shares.collect();
    assert!(shares.iter().zip([0.2, 1.0, 0.2]).all(|(share, wanted)| (share - wanted).abs() < 1e-9), "{shares:?}");
}

#[test]
fn the_share_of_looks_is_theirs_of_the_time_since_the_start() {
    let mut outside = nobody("scan");
    let Some(started) = Instant::now().checked_sub(Duration::from_secs(4)) else {
        return eprintln!("LEFT OUT: the system began less than 4 s ago");
    };
    (outside.looks.all, outside.looks.started) = (Duration::from_secs(6), started);
    let most = 6.0 / started.elapsed().as_secs_f64();
    let share = outside.looks_cpu_share();
    assert!((6.0 / started.elapsed().as_secs_f64()..=most).contains(&share), "{share}");
}

/// A PMU made up: a walk of 30 cycles for each read of many pages, and none for a read of a few.
#[derive(Clone, Debug, Default)]
struct MadeUp(Arc<AtomicU64>);

impl Count for MadeUp {
    fn count(&mut self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed))
    }
}

impl Pmu for MadeUp {
    fn own(&self, _: u64) -> Result<Box<dyn Count>, String> {
        Ok(Box::new(self.clone()))
    }

    fn process(&self, code: u64, _: u32) -> Result<Box<dyn Count>, String> {
        self.own(code)
    }

    fn read_pages(&self, pages: usize) {
        self.0.fetch_add(if pages > 2 { 30 * READS as u64 } else { 0 }, Ordering::Relaxed);
    }
}

/// Of two of the whole system one has ended. Between two looks, a second apart, the proof's walks were counted.
#[test]
fn reports_say_how_each_process_of_the_system_was_ranked() {
    let mut outside = nobody("scan");
    outside.running.insert(7, resting(0));
    assert_eq!((outside.ranking(), outside.report()[0].rank.clone()), (None, None), "these were named");
    let mut rank = Rank::new(Box::new(MadeUp::default()), &EVENTS);
    let ranking = rank.ranking();
    assert_eq!((ranking.by.as_str(), &ranking.no_pmu), ("walk-cycles", &None));
    let surveyed = |pid| Surveyed { comm: "p".into(), ..super::super::rank::tests::surveyed(pid) };
    let (both, begin) = ([5, 7].map(surveyed), Instant::now());
    for second in 0..2 {
        rank.order(both.iter().collect(), begin + Duration::from_secs(second));
    }
    outside.rank = Some(rank);
    outside.ended.push(resting(0).end(5));
    let ranked = |walk_cycles_per_second| Some(ProcessRank { ranking: ranking.clone(), walk_cycles_per_second });
    let expected = [(5, false, ranked(None)), (7, true, ranked(Some(30.0 * READS as f64)))];
    let of = |reports: Vec<ProcessReport>| {
        reports.into_iter().map(|baked| (baked.pid, baked.running, baked.rank)).collect::<Vec<_>>()
    };
    assert_eq!((outside.ranking().as_ref(), of(outside.report())), (Some(&ranking), expected.to_vec()));
    assert_eq!(of(outside.stop()), expected);
}

#[test]
fn who_is_not_wanted_any_more_is_let_go_and_still_runs() {
    if !can_scan() {
        return;
    }
    let mut child = Command::new("sleep").arg("60").spawn().expect("sleep is everywhere");
    let wanted = ProcessSelection { pids: vec![child.id()], ..ProcessSelection::default() };
    let mut outside = ProcessBakers::start(&settings(), wanted.clone()).expect("a process");
    assert_eq!(outside.refresh(), Ok(1));
    let of = |reports: &[ProcessReport]| -> Vec<(u32, bool, bool)> {
        reports.iter().map(|baked| (baked.pid, baked.running, baked.let_go)).collect()
    };
    assert_eq!(of(&outside.report()), [(child.id(), true, false)]);
    outside.wanted.pids.clear();
    assert_eq!(outside.refresh(), Ok(0));
    assert_eq!(of(&outside.report()), [(child.id(), true, true)]);
    assert_eq!(of(&outside.stop()), [(child.id(), true, true)]);
    let mut outside = ProcessBakers::start(&settings(), wanted).expect("a process");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(outside.refresh(), Ok(0));
    assert_eq!(of(&outside.report()), [(child.id(), false, false)]);
}

#[test]
fn who_runs_when_all_is_stopped_is_said_to_run() {
    let mut outside = nobody("scan");
    outside.running.extend([(7, resting(2)), (9, BakedProcess { baker: Err("no".into()), ..resting(0) })]);
    let of = |baked: ProcessReport| (baked.pid, baked.running, baked.mappings, baked.refused);
    let expected = [(7, true, 2, None), (9, true, 0, Some("no".to_string()))];
    assert_eq!(outside.report().into_iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(outside.stop().into_iter().map(of).collect::<Vec<_>>(), expected);
}

#[test]
fn nobody_of_that_name_is_waited_for() {
    let wanted = ProcessSelection { comms: vec!["no-such-program".into()], ..ProcessSelection::default() };
    let mut outside = ProcessBakers::start(&settings(), wanted).expect("nobody yet");
    assert_eq!(outside.refresh(), Ok(0));
    assert!(outside.stop().is_empty());
}
