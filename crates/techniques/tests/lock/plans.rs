//! Whole plans: what they state is what the engine says.

use std::sync::atomic::AtomicBool;

use lookaside_machine::preset;
use lookaside_techniques::lock::histogram::LockPage;
use lookaside_techniques::lock::plan::{CurvePoint, LockPlan};
use lookaside_techniques::lock::planner::LockPlanner;
use lookaside_techniques::lock::select::{PageSelector, SearchLimits};
use lookaside_techniques::lock::target::LockTarget;
use lookaside_techniques::names::Unnamed;
use lookaside_techniques::plan::{Plan as _, Planner as _};
use lookaside_trace::{Block, Event, Kind, MapSource, MemorySource, TraceInfo};
use proptest::prelude::*;

use crate::twin;

fn planned(setup: &lookaside_engine::Setup, blocks: &[Block], selector: PageSelector) -> LockPlan {
    let target = LockTarget::find(&setup.machine, None, None).expect("a place");
    let planner = LockPlanner { setup: setup.clone(), target, selector, search: SearchLimits::default() };
    planner.plan(&twin::profile(setup, blocks), vec!["x".into()], &Unnamed, &AtomicBool::new(false)).expect("a plan")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_plan_states_the_engine_says(blocks in twin::programs(12), choice in 0..4usize, lockable in 1..3u32) {
        let setup = twin::small("random", lockable);
        let made = planned(&setup, &blocks, PageSelector::ALL[choice]);
        prop_assert_eq!(&made.seeds, &twin::SEEDS);
        let base = twin::stalls(&setup, &blocks, &[]);
        prop_assert_eq!((made.base.mean.cycles(), made.base.worst_cycles), (twin::mean(&base), twin::worst(&base)));
        for choice in &made.choices {
            let with = twin::stalls(&setup, &blocks, &choice.pages);
            let stated = (choice.stalls.mean.cycles(), choice.stalls.worst_cycles);
            prop_assert_eq!(stated, (twin::mean(&with), twin::worst(&with)));
        }
        // Side by side, level by level: hits beyond the first level, and walks.
        let locked: Vec<LockPage> = made.pages.iter().map(|page| LockPage { process: page.process, vpn: page.vpn }).collect();
        prop_assert_eq!(&locked, &made.choices[choice].pages);
        let data = |of: fn(&lookaside_engine::Outcome) -> f64| {
            twin::mean(&twin::SEEDS.map(|seed| of(&twin::run(&setup, &blocks, &locked, seed))))
        };
        prop_assert_eq!(made.locked.mean.data.main_cycles, data(|o| o.data.cost.walk_cycles));
        prop_assert_eq!(made.locked.mean.fetch.main_cycles, data(|o| o.fetch.cost.walk_cycles));
        prop_assert_eq!(made.locked.mean.fetch.micro_cycles, data(|o| o.fetch.cost.tlb_hit_cycles));
        // 4 cycles a hit in main, of what missed the first level.
        prop_assert_eq!(made.locked.mean.data.micro_cycles, data(|o| 4.0 * (o.data.cost.l1_misses - o.data.cost.walks) as f64));
        // What the pages save is what the plan does; the curve goes on for two more.
        let saved: f64 = made.pages.iter().map(|page| page.saving_cycles).sum();
        prop_assert!((saved - (made.base.mean.cycles() - made.locked.mean.cycles())).abs() < 1e-6);
        prop_assert_eq!(made.curve.len(), lockable as usize + 3);
        prop_assert_eq!(made.curve[0].mean_cycles, made.base.mean.cycles());
        prop_assert_eq!(made.curve[made.pages.len()].mean_cycles, made.locked.mean.cycles());
        // By gain no page is locked that costs: fewer entries would not be better, and more have not been.
        let entries = &made.curve[..=lockable as usize];
        let least = |of: fn(&CurvePoint) -> f64| entries.iter().map(of).fold(f64::INFINITY, f64::min);
        match made.selector {
            PageSelector::Gain => prop_assert_eq!(made.locked.mean.cycles(), least(|point| point.mean_cycles)),
            PageSelector::Worst => prop_assert_eq!(made.locked.worst_cycles, least(|point| point.worst_cycles)),
            _ => prop_assert_eq!(made.locked.mean.cycles(), made.curve[lockable as usize].mean_cycles),
        }
        let optimum = made.optimum.as_ref().expect("few accesses");
        prop_assert!(optimum.mean_cycles <= made.base.mean.cycles());
        for page in &made.pages {
            let counts = twin::counted(&blocks)[&LockPage { process: page.process, vpn: page.vpn }];
            prop_assert_eq!((page.data_accesses, page.fetch_accesses), counts);
            let mapped = page.process == blocks[0].process && page.vpn * 4096 < 0xc000_0000;
            prop_assert_eq!(page.region.is_some(), mapped);
            if let Some(region) = &page.region {
                prop_assert_eq!((region.name.as_str(), region.mapping.start), ("x", twin::BASE));
                prop_assert_eq!(region.offset_bytes, page.vpn * 4096 - twin::BASE);
                prop_assert_eq!(&region.mapping.source, &MapSource::File { path: "/bin/x".into(), offset: 0 });
            }
        }
        prop_assert_eq!(LockPlan::parse(&made.to_toml(), "t"), Ok(made));
    }
}

#[test]
fn a_program_without_accesses_has_an_empty_plan() {
    let made = planned(&twin::small("random", 4), &[], PageSelector::Gain);
    assert_eq!((made.pages.len(), made.base.worst_cycles, made.accesses), (0, 0.0, 0));
    // All sets are one, which is run where pages are chosen and where the plan is measured.
    assert_eq!((made.model_runs, made.curve.len()), (2 * 8, 4 + 3));
    assert!(made.choices.iter().all(|choice| choice.pages.is_empty()));
}

/// Long enough that pages are chosen on first-level misses alone: what is stated is of whole runs all the same.
#[test]
fn long_programs_are_chosen_for_by_their_misses() {
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    // Four pages of one set come again and again, and one of the other set; each is visited several times in a row.
    (0..20_000u64)
        .for_each(|i| block.push(Kind::Load, twin::BASE + [0, 2, 1, 4, 6][i as usize / 4 % 5] * 4096 + i % 64 * 64));
    let (setup, blocks) = (twin::small("random", 2), [block]);
    let made = planned(&setup, &blocks, PageSelector::Gain);
    assert!(made.remarks.iter().any(|remark| remark.contains("over the 5000 accesses that miss the first level")));
    for choice in &made.choices {
        let with = twin::stalls(&setup, &blocks, &choice.pages);
        assert_eq!((choice.stalls.mean.cycles(), choice.stalls.worst_cycles), (twin::mean(&with), twin::worst(&with)));
    }
    assert!(made.pages.iter().all(|page| page.vpn % 2 == 0 && page.saving_cycles > 0.0), "{:?}", made.pages);
    assert!(made.locked.mean.cycles() < 0.7 * made.base.mean.cycles());
    let least = made.curve[..=2].iter().map(|point| point.mean_cycles).fold(f64::INFINITY, f64::min);
    assert_eq!(made.locked.mean.cycles(), least, "by whole runs");
}

#[test]
fn whole_runs_choose_up_to_4096_accesses() {
    let remarks = |accesses: u64| {
        let mut block = Block { process: 1, thread: 1, ..Block::default() };
        (0..accesses).for_each(|i| block.push(Kind::Load, twin::BASE + i % 3 * 4096));
        planned(&twin::small("lru", 1), &[block], PageSelector::Gain).remarks
    };
    assert_eq!(remarks(4096), [""; 0]);
    let beyond = remarks(4097);
    assert!(beyond.len() == 1 && beyond[0].contains("that miss the first level"), "{beyond:?}");
}

/// Even pages, of one set of the main TLB, so that each visit misses: three are visited twice a round.
#[test]
fn a_page_is_named_by_its_function_or_its_allocation() {
    let (code, object, plain) = (0, 16, 64);
    let page = |number: u64| twin::BASE + number * 4096;
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    block.push_event(Event::Site { id: 1, frames: vec![0x77] });
    block.push_event(Event::Alloc { addr: page(object), len: 64 << 10, site: 1 });
    for _ in 0..20 {
        for [one, other] in [[128, 130], [132, 134]] {
            [code, 100 + one, 100 + other].into_iter().for_each(|number| block.push(Kind::Fetch, page(number) + 8));
            [object, plain, one, other].into_iter().for_each(|number| block.push(Kind::Load, page(number) + 8));
        }
    }
    let (setup, blocks) = (twin::small("lru", 4), [block]);
    let named = |selector| -> Vec<(u64, String)> {
        let pages = planned(&setup, &blocks, selector).pages;
        pages.into_iter().map(|page| (page.vpn - twin::BASE / 4096, page.symbol)).collect()
    };
    let unnamed = |number| (number, String::new());
    let (function, site) = ((code, "0x10000000".to_string()), (object, "0x77".to_string()));
    assert_eq!(named(PageSelector::Misses), [function, site.clone(), unnamed(plain), unnamed(128)]);
    assert_eq!(named(PageSelector::Accesses), [site, unnamed(plain), unnamed(128), unnamed(130)]);
}

#[test]
fn where_to_lock() {
    let a9 = preset("cortex-a9").expect("a preset");
    let target = |tlb: Option<&str>, entries| LockTarget::find(&a9, tlb, entries).map_err(|e| e.to_string());
    assert_eq!(target(None, None), Ok(LockTarget { tlb: "main".into(), entries: 4 }));
    assert_eq!(target(Some("main"), Some(2)), Ok(LockTarget { tlb: "main".into(), entries: 2 }));
    let error = |tlb, entries| target(tlb, entries).expect_err("impossible");
    assert!(error(None, Some(5)).contains("has 4 lockable entries, not 5"));
    assert!(error(None, Some(0)).contains("give at least 1"));
    assert!(error(Some("micro-d"), None).contains("\"micro-d\" has no lockable entries; these have: main"));
    assert!(error(Some("stlb"), None).contains("no TLB is named \"stlb\"; it has: micro-d, micro-i, main"));
    let none = LockTarget::find(&preset("skylake").expect("a preset"), None, None).expect_err("none").to_string();
    assert_eq!(none, "skylake: no TLB array has lockable entries; choose a machine that has some, such as cortex-a9");
    let two = a9.with_overrides(&["tlb.micro-d.lockable_entries=1".into()]).expect("a machine");
    let several = LockTarget::find(&two, None, None).expect_err("several").to_string();
    assert!(several.contains("name one of micro-d, main"), "{several}");
}

#[test]
fn what_cannot_be_planned_is_said() {
    use lookaside_engine::PagePolicy;
    use lookaside_techniques::lock::profile::LockProfile;

    let mut setup = twin::small("random", 4);
    let nothing = |sample_period_ns| MemorySource::new(TraceInfo { sample_period_ns, ..TraceInfo::default() }, vec![]);
    let error = LockProfile::record(&mut nothing(1), &setup, "main", &mut |_| ()).expect_err("samples");
    assert!(error.to_string().contains("holds samples"));
    setup.os.pages = PagePolicy::Thp;
    let error = LockProfile::record(&mut nothing(0), &setup, "main", &mut |_| ()).expect_err("huge");
    assert!(error.to_string().contains("base pages only"));
}

#[test]
fn a_profile_says_what_its_figures_leave_out() {
    let setup = twin::small("lru", 4);
    let remarks = |addr: u64, accesses: usize| {
        let columns = (vec![addr; accesses], vec![Kind::Load; accesses]);
        let block = Block { process: 1, thread: 1, addr: columns.0, kind: columns.1, ..Block::default() };
        twin::profile(&setup, &[block]).coverage.remarks
    };
    assert_eq!(remarks(0xffff_f000, 1), [""; 0]);
    let wide = remarks(0x1_0000_0000, 1);
    assert!(wide.len() == 1 && wide[0].contains("of more than the 32 bits that this machine translates"), "{wide:?}");
    // 64 windows, each one access shorter than its part of the run.
    let sampled = remarks(twin::BASE, (2 << 20) + 64);
    let shares = "stall cycles come from 2097152 of 2097216 recorded accesses";
    assert!(sampled.len() == 1 && sampled[0].starts_with(shares), "{sampled:?}");
}
