//! Small programs whose best windows are known: what is tried, what is chosen, and how many runs that takes.

use std::sync::atomic::AtomicBool;

use lookaside_techniques::hugepages::bench::HugePageBench;
use lookaside_techniques::hugepages::cost::collapse_cycles;
use lookaside_techniques::hugepages::profile::WindowCounts;
use lookaside_techniques::hugepages::select::{candidates, gain, ranked, CandidateWindow};
use lookaside_techniques::hugepages::{Window, WINDOW_BYTES};
use lookaside_trace::{Block, Kind};

use crate::twin;

static GO: AtomicBool = AtomicBool::new(false);

fn window(number: u64) -> Window {
    Window { process: 1, addr: number * WINDOW_BYTES }
}

fn counts(number: u64, accesses: u64, cycles: f64) -> WindowCounts {
    WindowCounts { window: window(number), accesses, walks: 0, cycles, touched_pages: number }
}

/// Three windows, each of which has ten pages in turns.
fn three_windows() -> Vec<Block> {
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    for i in 0..300u64 {
        block.push(Kind::Load, (10 + i % 3) * WINDOW_BYTES + i % 10 * 4096);
    }
    vec![block]
}

#[test]
fn candidates_are_the_dearest_windows_that_cost_anything() {
    let mut windows: Vec<WindowCounts> = (0..40).map(|number| counts(number, 1, (number / 2) as f64)).collect();
    windows.push(counts(40, 1, 100.0));
    let tried = candidates(&windows, 1, 500.0);
    // Of equal ones the lower is first; a budget of one has 26 candidates.
    let numbers = [40, 38, 39, 36, 37].map(window);
    assert_eq!(
        (tried.len(), tried.iter().take(5).map(|tried| tried.window).collect::<Vec<_>>()),
        (26, numbers.to_vec())
    );
    let last = CandidateWindow { window: window(14), cycles: 7.0, collapse_cycles: collapse_cycles(14, 500.0) };
    assert_eq!(tried[25], last);
    // The first two cost nothing.
    assert_eq!(candidates(&windows, 100, 500.0).len(), 39);
}

#[test]
fn what_has_nothing_has_no_rank() {
    let windows = [counts(1, 0, 0.0), counts(2, 5, 0.0), counts(3, 1, 0.0), counts(4, 5, 0.0), counts(5, 9, 0.0)];
    let most = |most| ranked(&windows, |counts| counts.accesses, most);
    assert_eq!(most(10), [5, 2, 4, 3].map(window));
    assert_eq!(most(2), [5, 2].map(window));
}

#[test]
fn a_set_of_windows_is_run_once_and_scaled() {
    let (setup, blocks) = (twin::small(), three_windows());
    let base = twin::cycles(&setup, &blocks, &[]);
    let mut bench = HugePageBench::new(&setup, &blocks, 3.0 * base, &GO).expect("it runs");
    let mut scaled = |huge: &[Window]| (bench.cycles(huge).expect("it runs"), bench.runs());
    let both = 3.0 * twin::cycles(&setup, &blocks, &[window(10), window(12)]);
    for (huge, cycles, runs) in [
        (vec![], 3.0 * base, 1),
        (vec![window(10), window(12)], both, 2),
        (vec![window(12), window(10), window(12)], both, 2),
        (vec![window(11)], 3.0 * twin::cycles(&setup, &blocks, &[window(11)]), 3),
    ] {
        let (found, ran) = scaled(&huge);
        assert!((found / cycles - 1.0).abs() < 1e-12 && ran == runs, "{huge:?}: {found} {cycles}, {ran} {runs}");
    }
}

#[test]
fn what_saves_nothing_is_not_chosen_and_no_run_is_made_for_it_twice() {
    let (setup, blocks) = (twin::small(), three_windows());
    let base = twin::cycles(&setup, &blocks, &[]);
    let chosen = |numbers: &[u64], collapse_cycles: f64, budget: usize| {
        let candidate = |&number: &u64| CandidateWindow { window: window(number), cycles: 1e9, collapse_cycles };
        let tried: Vec<CandidateWindow> = numbers.iter().map(candidate).collect();
        let mut bench = HugePageBench::new(&setup, &blocks, base, &GO).expect("it runs");
        let (chosen, paying) = gain(&mut bench, &tried, budget).expect("it runs");
        let numbers: Vec<u64> = chosen.iter().map(|chosen| chosen.window.addr / WINDOW_BYTES).collect();
        (numbers, paying, bench.runs())
    };
    let saves = |number| base - twin::cycles(&setup, &blocks, &[window(number)]);
    let best = [10, 11, 12].into_iter().max_by(|a, b| saves(*a).total_cmp(&saves(*b)).then(b.cmp(a))).expect("one");
    assert!(saves(best) > 0.0 && saves(20) == 0.0);
    // Nobody touches the last. The run without any, and one for each.
    assert_eq!(chosen(&[10, 11, 12, 20], 0.0, 1), (vec![best], 1, 5));
    let (all, paying, _) = chosen(&[10, 11, 12, 20], 0.0, 4);
    assert!(all.starts_with(&[best]) && all.len() == paying && !all.contains(&20), "{all:?} {paying}");
    // Whatever the collapse costs, the best saves most.
    assert_eq!(chosen(&[10, 11, 12, 20], 1e9, 1), (vec![best], 0, 5));
    assert_eq!(chosen(&[20], 0.0, 1), (vec![], 0, 2));
    assert_eq!((chosen(&[10], 0.0, 0), chosen(&[], 0.0, 3)), ((vec![], 0, 1), (vec![], 0, 1)));
}
