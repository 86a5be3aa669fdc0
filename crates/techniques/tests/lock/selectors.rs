//! Histogram, selectors and all sets.

use std::sync::atomic::AtomicBool;

use lookaside_engine::{Outcome, Setup};
use lookaside_machine::Replacement;
use lookaside_techniques::lock::bench::LockBench;
use lookaside_techniques::lock::exhaustive::{best, sets};
use lookaside_techniques::lock::histogram::{LockPage, PageCounts};
use lookaside_techniques::lock::miss_stream::MissStream;
use lookaside_techniques::lock::select::{candidates, select, worth_locking, Objective, PageSelector, SearchLimits};
use lookaside_techniques::plan::PlanError;
use lookaside_trace::{Block, Event, Kind};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::twin;

const PLAIN: SearchLimits = SearchLimits { candidates: 12, lazy: false };
const LAZY: SearchLimits = SearchLimits { candidates: 12, lazy: true };
static GO: AtomicBool = AtomicBool::new(false);

fn bench<'a>(setup: &Setup, blocks: &'a [Block]) -> LockBench<'a> {
    LockBench::new(setup, "main", 4, twin::SEEDS.to_vec(), blocks, &GO)
}

/// Page after page, each tried by plain runs.
fn greedy(setup: &Setup, blocks: &[Block], pages: &[LockPage], most: usize, worst: bool) -> Vec<LockPage> {
    let score = |locked: &[LockPage]| {
        let stalls = twin::stalls(setup, blocks, locked);
        if worst {
            (twin::worst(&stalls), twin::mean(&stalls))
        } else {
            (twin::mean(&stalls), 0.0)
        }
    };
    let mut chosen: Vec<LockPage> = Vec::new();
    while chosen.len() < most {
        let mut lead = (score(&chosen), None);
        let mut left: Vec<LockPage> = pages.iter().copied().filter(|page| !chosen.contains(page)).collect();
        left.sort();
        for page in left {
            let with = score(&[chosen.as_slice(), &[page]].concat());
            if with < lead.0 {
                lead = (with, Some(page));
            }
        }
        let Some(page) = lead.1 else { break };
        chosen.push(page);
    }
    chosen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_histogram_counts_as_by_hand(blocks in twin::programs(14)) {
        let setup = twin::small("random", 4);
        let profile = twin::profile(&setup, &blocks);
        let found: Vec<_> = profile.counts.iter().map(|c| (c.page, (c.data_accesses, c.fetch_accesses))).collect();
        prop_assert_eq!(found, twin::counted(&blocks).into_iter().collect::<Vec<_>>());
        prop_assert_eq!(profile.accesses, profile.counts.iter().map(|c| c.data_accesses + c.fetch_accesses).sum::<u64>());
        // The array is the last: its misses are the walks.
        let outcome = twin::run(&setup, &blocks, &[], setup.seed);
        prop_assert_eq!(profile.counts.iter().map(|c| c.data_misses).sum::<u64>(), outcome.data.cost.walks);
        prop_assert_eq!(profile.counts.iter().map(|c| c.fetch_misses).sum::<u64>(), outcome.fetch.cost.walks);
        for row in &outcome.pages {
            // A page of the kernel's half is one row, of process 0.
            let is_of = |page: LockPage| page.vpn == row.addr / 4096 && (row.process == 0 || row.process == page.process);
            let counts = profile.counts.iter().filter(|c| is_of(c.page));
            prop_assert_eq!(counts.map(|c| c.misses()).sum::<u64>(), row.cost.walks);
        }
    }

    #[test]
    fn greedy_without_laziness_is_its_twin(blocks in twin::programs(10), replacement in 0..3usize) {
        let setup = twin::small(["random", "lru", "fifo"][replacement], 4);
        let counts = twin::profile(&setup, &blocks).counts;
        let mut bench = bench(&setup, &blocks);
        let pages = candidates(&counts, PLAIN.candidates);
        for (selector, worst) in [(PageSelector::Gain, false), (PageSelector::Worst, true)] {
            let found = select(selector, &counts, &mut bench, 3, PLAIN).expect("it runs");
            prop_assert_eq!(found, greedy(&setup, &blocks, &pages, 3, worst));
        }
    }

    /// Pages in any order, one that nobody uses among them: of their beginnings, tried by plain runs, the first of the
    /// best.
    #[test]
    fn what_is_worth_locking_is_the_best_beginning(blocks in twin::programs(8), order in any::<u64>(), worst: bool) {
        let setup = twin::small("random", 4);
        let mut pages: Vec<LockPage> = twin::counted(&blocks).into_keys().collect();
        pages.push(LockPage { process: 1, vpn: 1 << 19 });
        pages.sort_by_key(|page| (page.vpn ^ order).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        pages.truncate(4);
        let score = |locked: &[LockPage]| {
            let stalls = twin::stalls(&setup, &blocks, locked);
            if worst { (twin::worst(&stalls), twin::mean(&stalls)) } else { (twin::mean(&stalls), 0.0) }
        };
        let scores: Vec<(f64, f64)> = (0..=pages.len()).map(|n| score(&pages[..n])).collect();
        let first = (1..scores.len()).fold(0, |best, n| if scores[n] < scores[best] { n } else { best });
        let objective = if worst { Objective::Worst } else { Objective::Mean };
        let found = worth_locking(objective, &mut bench(&setup, &blocks), &pages).expect("it runs");
        prop_assert_eq!(found, &pages[..first]);
    }

    #[test]
    fn first_level_misses_alone_walk_as_often(blocks in twin::programs(12), which in 0..6usize, bits in any::<u16>()) {
        let mut setup = twin::small(["random", "lru", "fifo"][which % 3], 4);
        // Hits tell a true LRU something that misses alone do not.
        let first = if which < 3 { Replacement::Lru } else { Replacement::Fifo };
        setup.machine.tlbs[..2].iter_mut().for_each(|micro| micro.replacement = first);
        let lean = MissStream::of(&setup, "main", &blocks).expect("it runs").expect("a second level");
        let pages: Vec<LockPage> = twin::counted(&blocks).into_keys().collect();
        let locked: Vec<LockPage> = (0..pages.len()).filter(|i| bits >> (i % 16) & 1 == 1).map(|i| pages[i]).take(4).collect();
        for seed in [1, 2] {
            let whole = twin::run(&setup, &blocks, &locked, seed);
            let alone = twin::run(&lean.setup, &lean.blocks, &locked, seed);
            let counts = |o: &Outcome| (o.data.cost.walks, o.fetch.cost.walks, o.tlbs[2].clone());
            prop_assert_eq!(counts(&whole), counts(&alone));
            prop_assert_eq!(alone.data.accesses, whole.data.cost.l1_misses);
        }
        prop_assert!(MissStream::of(&setup, "micro-d", &blocks).expect("it runs").is_none());
    }

    #[test]
    fn no_choice_beats_all_sets(blocks in twin::programs(7), replacement in 0..3usize) {
        let setup = twin::small(["random", "lru", "fifo"][replacement], 4);
        let counts = twin::profile(&setup, &blocks).counts;
        let mut bench = bench(&setup, &blocks);
        let pages: Vec<LockPage> = candidates(&counts, 7);
        let among = |page: &LockPage| pages.contains(page);
        let mut least = (f64::INFINITY, f64::INFINITY);
        // By bits, and by plain runs.
        for bits in (0..1u32 << pages.len()).filter(|bits| bits.count_ones() <= 2) {
            let set: Vec<LockPage> = (0..pages.len()).filter(|i| bits >> i & 1 == 1).map(|i| pages[i]).collect();
            let stalls = twin::stalls(&setup, &blocks, &set);
            least = (least.0.min(twin::mean(&stalls)), least.1.min(twin::worst(&stalls)));
        }
        let by_mean = best(&mut bench, &pages, 2, Objective::Mean).expect("it runs");
        let by_worst = best(&mut bench, &pages, 2, Objective::Worst).expect("it runs");
        prop_assert_eq!(twin::mean(&twin::stalls(&setup, &blocks, &by_mean)), least.0);
        prop_assert_eq!(twin::worst(&twin::stalls(&setup, &blocks, &by_worst)), least.1);
        for selector in PageSelector::ALL {
            let search = SearchLimits { candidates: pages.len(), lazy: true };
            let found = select(selector, &counts, &mut bench, 2, search).expect("it runs");
            if found.iter().all(among) {
                let stalls = twin::stalls(&setup, &blocks, &found);
                prop_assert!(twin::mean(&stalls) >= least.0 && twin::worst(&stalls) >= least.1, "{:?}", selector);
            }
        }
    }

    #[test]
    fn a_locked_page_is_never_walked_for(blocks in twin::programs(12), chosen in any::<prop::sample::Index>()) {
        let setup = twin::small("random", 4);
        let counts = twin::profile(&setup, &blocks).counts;
        let page = counts[chosen.index(counts.len())].page;
        prop_assume!(page.vpn < 0xc0000);
        let outcome = twin::run(&setup, &blocks, &[page], 1);
        let rows = outcome.pages.iter().filter(|row| row.process == page.process && row.addr == page.vpn * 4096);
        prop_assert_eq!(rows.map(|row| row.cost.walks).sum::<u64>(), 0);
        prop_assert!(outcome.pages.iter().any(|row| row.cost.walks > 0) || counts.len() == 1);
    }
}

/// Forty programs that are always the same.
fn fixed_programs() -> Vec<Vec<Block>> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let programs = twin::programs(12);
    (0..40).map(|_| programs.new_tree(&mut runner).expect("a program").current()).collect()
}

#[test]
fn laziness_loses_little() {
    let (mut same, mut plain_runs, mut lazy_runs) = (0, 0, 0);
    let (mut plain_cycles, mut lazy_cycles, mut most_lost) = (0.0, 0.0, 0.0f64);
    let programs = fixed_programs();
    for (i, blocks) in programs.iter().enumerate() {
        let setup = twin::small(["random", "lru"][i % 2], 4);
        let counts = twin::profile(&setup, blocks).counts;
        let (mut of_plain, mut of_lazy) = (bench(&setup, blocks), bench(&setup, blocks));
        let plain = select(PageSelector::Gain, &counts, &mut of_plain, 4, PLAIN).expect("it runs");
        let lazy = select(PageSelector::Gain, &counts, &mut of_lazy, 4, LAZY).expect("it runs");
        same += usize::from(plain == lazy);
        plain_runs += of_plain.runs();
        lazy_runs += of_lazy.runs();
        let score = |bench: &mut LockBench, set: &[LockPage]| {
            let all: Vec<f64> = bench.stalls(set).expect("it runs").iter().map(|stall| stall.cycles()).collect();
            twin::mean(&all)
        };
        let (with_plain, with_lazy) = (score(&mut of_plain, &plain), score(&mut of_lazy, &lazy));
        plain_cycles += with_plain;
        lazy_cycles += with_lazy;
        most_lost = most_lost.max(with_lazy / with_plain - 1.0);
    }
    // Of forty some are chosen otherwise, and one of these is the worse for it.
    assert!(same >= 30, "{same} of {}", programs.len());
    assert!(lazy_cycles <= 1.005 * plain_cycles && most_lost < 0.2, "{lazy_cycles} {plain_cycles} {most_lost}");
    assert!(lazy_runs * 10 < plain_runs * 9, "{lazy_runs} {plain_runs}");
}

#[test]
fn the_papers_choice_is_the_most_accessed_data_pages() {
    let setup = twin::small("random", 4);
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    for (page, kind, times) in [(3, Kind::Load, 5), (1, Kind::Store, 7), (2, Kind::Fetch, 50), (9, Kind::Load, 5)] {
        (0..times).for_each(|_| block.push(kind, twin::BASE + page * 4096));
    }
    let blocks = [block];
    let counts = twin::profile(&setup, &blocks).counts;
    let found = select(PageSelector::Accesses, &counts, &mut bench(&setup, &blocks), 4, PLAIN).expect("it runs");
    let vpns: Vec<u64> = found.iter().map(|page| page.vpn - twin::BASE / 4096).collect();
    assert_eq!(vpns, [1, 3, 9]);
}

#[test]
fn misses_of_both_sides_rank_pages_and_those_without_are_left_out() {
    let page = |vpn| LockPage { process: 1, vpn };
    let of = |vpn, [data_accesses, fetch_accesses, data_misses, fetch_misses]: [u64; 4]| PageCounts {
        page: page(vpn),
        data_accesses,
        fetch_accesses,
        data_misses,
        fetch_misses,
    };
    let counts =
        [of(1, [9, 0, 1, 0]), of(2, [5, 9, 1, 3]), of(3, [4, 0, 2, 0]), of(4, [0, 7, 0, 2]), of(5, [8, 0, 0, 0])];
    let setup = twin::small("random", 4);
    let ranked = |selector, most| select(selector, &counts, &mut bench(&setup, &[]), most, PLAIN).expect("no runs");
    assert_eq!(ranked(PageSelector::Accesses, 9), [1, 5, 2, 3].map(page));
    assert_eq!(ranked(PageSelector::Misses, 9), [2, 3, 4, 1].map(page));
    assert_eq!(ranked(PageSelector::Misses, 2), [2, 3].map(page));
    assert_eq!(candidates(&counts, 3), [2, 3, 4].map(page));
}

#[test]
fn each_set_is_run_once_a_seed() {
    let page = |vpn| LockPage { process: 1, vpn };
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    (0..5).for_each(|number| block.push(Kind::Load, number << 12));
    let (setup, blocks) = (twin::small("lru", 4), [block]);
    let mut bench = bench(&setup, &blocks);
    assert_eq!((bench.seeds(), bench.rows(), bench.runs()), (&twin::SEEDS[..], 5, 0));
    for set in [&[][..], &[1], &[1, 2], &[2, 1], &[2, 1, 2]] {
        let set: Vec<LockPage> = set.iter().copied().map(page).collect();
        assert_eq!(bench.stalls(&set).expect("it runs").len(), 8);
    }
    assert_eq!(bench.runs(), 3 * 8);
}

/// Twelve pages that are in nobody's way: between any two visits four others fill the main TLB, so that each visit
/// misses, whatever else is locked. Page n is visited 2 (n + 1) times.
#[test]
fn in_later_rounds_lazy_search_tries_the_first_six_again() {
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    // Beyond the lines that page tables lie in.
    let mut visit = |number: u64| block.push(Kind::Load, twin::BASE + number * 4096 + 0xaa0);
    let visits = (0..24u64).flat_map(|round| (0..12).filter(move |number| 2 * (number + 1) > round));
    for (hot, others) in visits.zip([12..16, 16..20].into_iter().cycle()) {
        visit(hot);
        others.for_each(&mut visit);
    }
    let (setup, blocks) = (twin::small("lru", 4), [block]);
    let counts = twin::profile(&setup, &blocks).counts;
    let is_hot = |counts: &&PageCounts| counts.page.vpn < twin::BASE / 4096 + 12;
    let hot: Vec<PageCounts> = counts.iter().filter(is_hot).copied().collect();
    let pages = [11, 10, 9].map(|number| LockPage { process: 1, vpn: twin::BASE / 4096 + number });
    for (search, runs) in [(PLAIN, 1 + 12 + 11 + 10), (LAZY, 1 + 12 + 6 + 6)] {
        let mut bench = LockBench::new(&setup, "main", 4, vec![1], &blocks, &GO);
        let found = select(PageSelector::Gain, &hot, &mut bench, 3, search).expect("it runs");
        assert_eq!((&found[..], bench.runs()), (&pages[..], runs));
    }
}

#[test]
fn first_level_misses_keep_their_thread_and_the_events_between() {
    let marker = |text: &str| Event::Marker { text: text.into() };
    let mut block = Block { process: 3, thread: 5, ..Block::default() };
    // The first level has two entries.
    let pages = [0, 0, 1, 1, 2].map(|number| twin::BASE + number * 4096);
    for (i, addr) in pages.into_iter().enumerate() {
        match i {
            2 => block.push_event(marker("before the second page")),
            4 => block.push_event(Event::Repeats { addr, kind: Kind::Load, count: 7 }),
            _ => {}
        }
        block.push(Kind::Store, addr);
    }
    block.push_event(marker("behind all"));
    // A place that no access has is behind all, too.
    block.events.push((99, marker("and more")));
    let mut setup = twin::small("lru", 4);
    let lean = MissStream::of(&setup, "main", std::slice::from_ref(&block)).expect("it runs").expect("a second level");
    let expected = Block {
        process: 3,
        thread: 5,
        addr: vec![pages[0], pages[2], pages[4]],
        kind: vec![Kind::Store; 3],
        events: vec![(1, marker("before the second page")), (3, marker("behind all")), (3, marker("and more"))],
        ..Block::default()
    };
    assert_eq!(lean.blocks, [expected]);
    // Fetches that no first level serves come to the main TLB at once.
    setup.machine.tlbs.retain(|array| array.name != "micro-i");
    assert!(MissStream::of(&setup, "main", &[block]).expect("it runs").is_none());
}

#[test]
fn sets_are_all_and_stop_is_heeded() {
    let page = |vpn| LockPage { process: 1, vpn };
    let pages: Vec<LockPage> = (0..12).map(page).collect();
    let all = sets(&pages, 4);
    assert_eq!(all.len(), 1 + 12 + 66 + 220 + 495);
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), all.len());
    assert_eq!(sets(&pages[..2], 4), [vec![], vec![page(0)], vec![page(1)], vec![page(0), page(1)]]);
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    block.push(Kind::Load, 0);
    let (blocks, stop) = ([block], AtomicBool::new(true));
    let mut stopped = LockBench::new(&twin::small("lru", 4), "main", 4, vec![1], &blocks, &stop);
    assert!(matches!(stopped.stalls(&[]), Err(PlanError::Stopped)));
}
