//! Several models over one source.

use std::ops::ControlFlow;

use lookaside_engine::{run_many, run_many_watched, run_source, Detail, Engine, RunEnd, Setup, WalkModel};
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Kind, Source, TraceError, TraceInfo};

/// Blocks of accesses of one seed; a source that can't be read after `bad` of them.
struct Blocks {
    info: TraceInfo,
    given: usize,
    all: Vec<Block>,
    bad: Option<usize>,
}

impl Blocks {
    fn new(bad: Option<usize>) -> Self {
        let mut rng = SplitMix64::new(3);
        let block = |_| {
            let mut block = Block { process: 1, thread: 1, ..Block::default() };
            for _ in 0..5000 {
                let kind = [Kind::Load, Kind::Store, Kind::Fetch][(rng.next_u64() % 3) as usize];
                block.push(kind, rng.next_u64() % (4000 << 12));
            }
            block
        };
        Self { info: TraceInfo::default(), given: 0, all: (0..20).map(block).collect(), bad }
    }
}

impl Source for Blocks {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        block.clear();
        if self.bad == Some(self.given) {
            return Err(TraceError::Io { what: "blocks".into(), source: std::io::Error::other("gone") });
        }
        let Some(next) = self.all.get(self.given) else { return Ok(false) };
        self.given += 1;
        block.clone_from(next);
        Ok(true)
    }
}

fn setups() -> Vec<Setup> {
    let machine = |name: &str| Setup::new(lookaside_machine::preset(name).expect("a preset"));
    vec![
        machine("ryzen-5900x"),
        Setup { walks: WalkModel::CountOnly, ..machine("skylake") },
        Setup { detail: Detail::Totals, ..machine("golden-cove") },
        machine("cortex-a9"),
    ]
}

/// What each setup makes of the first blocks, by itself.
fn alone(blocks: usize) -> Vec<lookaside_engine::Outcome> {
    let run = |setup| {
        let mut engine = Engine::new(setup).expect("a good setup");
        Blocks::new(None).all[..blocks].iter().for_each(|block| engine.run(block));
        engine.outcome()
    };
    setups().into_iter().map(run).collect()
}

#[test]
fn side_by_side_is_one_by_one() {
    let ran = run_many(setups(), &mut Blocks::new(None), |_| ControlFlow::Continue(())).expect("good setups");
    assert!(matches!(ran.end, RunEnd::Complete));
    assert_eq!(ran.accesses, 100_000);
    assert_eq!(ran.outcomes, alone(20));
    let first = run_source(setups().remove(0), &mut Blocks::new(None), |_| ControlFlow::Continue(()));
    assert_eq!(first.expect("a good setup").outcomes, ran.outcomes[..1]);
}

#[test]
fn a_stopped_run_gives_all_models_the_same_part() {
    let stop = |accesses| if accesses < 35_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let ran = run_many(setups(), &mut Blocks::new(None), stop).expect("good setups");
    assert!(matches!(ran.end, RunEnd::Stopped));
    assert_eq!(ran.accesses, 35_000);
    assert_eq!(ran.outcomes, alone(7));
}

#[test]
fn what_came_before_a_failure_counts() {
    let ran = run_many(setups(), &mut Blocks::new(Some(4)), |_| ControlFlow::Continue(())).expect("good setups");
    assert!(matches!(&ran.end, RunEnd::Unreadable(error) if error.to_string().contains("gone")), "{:?}", ran.end);
    assert_eq!(ran.outcomes, alone(4));
}

#[test]
fn an_impossible_setup_is_an_error() {
    let mut all = setups();
    all[1].walks = WalkModel::AlwaysAt("no such cache".into());
    let error = run_many(all, &mut Blocks::new(None), |_| ControlFlow::Continue(())).expect_err("no such cache");
    assert!(error.to_string().contains("no such cache"), "{error}");
}

#[test]
fn without_models_the_source_is_read_to_its_end() {
    let ran = run_many(Vec::new(), &mut Blocks::new(None), |_| ControlFlow::Continue(())).expect("no setup");
    assert!(matches!(ran.end, RunEnd::Complete));
    assert_eq!((ran.accesses, ran.outcomes.len()), (100_000, 0));
}

/// More models than threads, each with blocks of its own length to fall behind by.
#[test]
fn a_crowd_of_models_is_one_by_one() {
    let crowd = || setups().into_iter().cycle().take(61).collect::<Vec<_>>();
    let seen = std::sync::Mutex::new(vec![0; 61]);
    let threads = std::sync::Mutex::new(std::collections::HashSet::new());
    let count = |number: usize, _: &Engine, block: &Block| {
        let mut seen = seen.lock().expect("nobody panics");
        // Each setup has the blocks in order.
        assert_eq!(block.addr, Blocks::new(None).all[seen[number]].addr);
        seen[number] += 1;
        threads.lock().expect("nobody panics").insert(std::thread::current().id());
    };
    let ran = run_many_watched(crowd(), &mut Blocks::new(None), |_| ControlFlow::Continue(()), count);
    let alone = alone(20);
    let ran = ran.expect("good setups");
    assert!(ran.outcomes.iter().enumerate().all(|(i, outcome)| *outcome == alone[i % alone.len()]));
    assert_eq!(seen.into_inner().expect("nobody panics"), vec![20; 61]);
    let cpus = std::thread::available_parallelism().expect("a number").get();
    assert!(threads.into_inner().expect("nobody panics").len() <= cpus);
}

#[test]
fn a_panic_in_a_model_or_a_source_is_passed_on() {
    let fails = |number: usize, _: &Engine, _: &Block| assert!(number != 2, "model 2 fails");
    let run = || run_many_watched(setups(), &mut Blocks::new(None), |_| ControlFlow::Continue(()), fails);
    let panic = std::panic::catch_unwind(run).expect_err("it panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"model 2 fails"));

    let progress = |accesses| {
        assert!(accesses < 50_000, "the caller fails");
        ControlFlow::Continue(())
    };
    let run = || run_many(setups(), &mut Blocks::new(None), progress);
    let panic = std::panic::catch_unwind(run).expect_err("it panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the caller fails"));
}
