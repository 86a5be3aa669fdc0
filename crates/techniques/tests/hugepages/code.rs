//! Plans of code on huge pages, for small programs whose code is known.

use std::sync::atomic::AtomicBool;

use lookaside_engine::Setup;
use lookaside_machine::{preset, PageSize, Serves};
use lookaside_techniques::hugepages::code_plan::CodePlan;
use lookaside_techniques::hugepages::code_planner::CodePlanner;
use lookaside_techniques::names::Unnamed;
use lookaside_techniques::plan::{Plan, PlanError, Planner};
use lookaside_trace::{Block, Event, Kind, MapSource, MemorySource, TraceInfo};

const WINDOW: u64 = 2 << 20;
const CODE: u64 = 0x60_1000;

/// A program with 16 MiB of code that fetches from the whole windows of these numbers, in turns, page by page.
fn program(windows: &[u64], rounds: u64) -> Vec<Block> {
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    let file = MapSource::File { path: "/usr/bin/large".into(), offset: 0x1000 };
    block.push_event(Event::Map { addr: CODE, len: 16 << 20, prot: 5, source: file, site: 0 });
    for number in 0..rounds {
        for window in windows {
            let page = lookaside_engine::os::mix(5, number, *window, 0) % 512;
            block.push(Kind::Fetch, CODE.next_multiple_of(WINDOW) + window * WINDOW + page * 4096);
        }
    }
    vec![block]
}

fn planned(setup: Setup, budget: u32, blocks: Vec<Block>) -> Result<CodePlan, PlanError> {
    let planner = CodePlanner::new(setup, budget)?;
    let mut source = MemorySource::new(TraceInfo::default(), blocks);
    let profile = planner.profile(&mut source, &mut |_| ())?;
    planner.plan(&profile, vec!["large".into()], &Unnamed, &AtomicBool::new(false))
}

fn skylake() -> Setup {
    Setup::new(preset("skylake").expect("a preset"))
}

#[test]
fn the_windows_that_are_executed_are_planned_and_weigh_by_their_parts() {
    let plan = planned(skylake(), 4, program(&[1, 3], 200_000)).expect("a plan");
    let offsets: Vec<u64> = plan.all().map(|window| window.offset).collect();
    // The code begins 0x1000 into the file and into a window; the first whole window lies 2 MiB - 0x1000 further.
    let of = |window: u64| WINDOW + window * WINDOW;
    let mut sorted = offsets.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [of(1), of(3)].map(|at| at - WINDOW + (CODE.next_multiple_of(WINDOW) - CODE) + 0x1000));
    assert_eq!((plan.most_in_a_process(), plan.edge_cycles), (2, 0.0));
    assert!(plan.window_cycles > 0.99 * plan.base_cycles && plan.planned.saved_cycles <= plan.base_cycles);
    let weights = plan.weights();
    assert_eq!(weights.len(), 64, "64 KiB each, in two windows");
    assert!(weights
        .iter()
        .all(|(path, _, bytes, weight)| path == "/usr/bin/large" && *bytes == 64 << 10 && *weight > 0));
    let saved: f64 = plan.all().map(|window| window.saved_cycles).sum();
    let last = plan.curve.last().expect("a curve");
    assert!((saved - last.saved_cycles).abs() < 1e-6 * saved && last.windows == 2, "{:?}", plan.curve);
}

/// Where fetches have one entry for huge pages and nothing behind it, two hot windows in turns throw each other out.
#[test]
fn a_machine_with_few_entries_for_huge_code_gets_fewer_windows() {
    let mut setup = skylake();
    for tlb in &mut setup.machine.tlbs {
        tlb.page_sizes.retain(|size| *size == PageSize::K4);
    }
    let fetches = setup.machine.tlbs.iter().position(|tlb| tlb.serves == [Serves::Fetch]).expect("an array");
    let mut one = setup.machine.tlbs[fetches].clone();
    (one.name, one.page_sizes) = ("huge-code".into(), vec![PageSize::M2]);
    (one.entries, one.ways) = (1, lookaside_machine::Ways::Count(1));
    setup.machine.tlbs.retain(|tlb| !tlb.page_sizes.is_empty());
    setup.machine.tlbs.insert(0, one);
    // A few pages of each of six windows: small pages hold them all.
    let mut blocks = program(&[], 0);
    for number in 0..60_000u64 {
        blocks[0].push(Kind::Fetch, CODE.next_multiple_of(WINDOW) + number % 6 * WINDOW + number / 6 % 4 * 4096);
    }
    let plan = planned(setup, 6, blocks).expect("a plan");
    let all = plan.curve.last().expect("a curve");
    assert_eq!((all.windows, plan.windows.len()), (6, 0), "{:?}", plan.curve);
    assert!(all.saved_cycles < 0.0 && plan.all().count() <= 1, "{:?}", plan.curve);
}

#[test]
fn plans_are_written_and_read_and_what_cannot_be_is_refused() {
    let plan = planned(skylake(), 1, program(&[0, 2], 50_000)).expect("a plan");
    assert_eq!(plan.all().count(), 1);
    let text = plan.to_toml();
    assert_eq!(CodePlan::parse(&text, "code.toml").expect("a plan"), plan);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("code.toml");
    std::fs::write(&file, &text).expect("written");
    assert!(CodePlan::is_in(&file) && CodePlan::load(&file).is_ok() && !CodePlan::is_in(folder.path()));
    for (from, to, part) in [
        ("page_bytes = 2097152", "page_bytes = 4096", "page_bytes: 4096"),
        ("\"/usr/bin/large\"", "\"large\"", "path: \"large\" is no file's path"),
        ("bytes = 65536", "bytes = 0", "cycles and bytes must be"),
        ("plan = \"code\"", "plan = \"memory\"", "memory"),
    ] {
        assert!(text.contains(from), "{from}\n{text}");
        let error = CodePlan::parse(&text.replace(from, to), "code.toml").expect_err(to).to_string();
        assert!(error.starts_with("code.toml") && error.contains(part), "{error}");
    }
    let none =
        planned(skylake(), 1, vec![Block { process: 1, addr: vec![1], kind: vec![Kind::Load], ..Block::default() }]);
    assert!(none.expect_err("no fetches").to_string().contains("no fetches of instructions"));
}
