use lookaside_timing::{PageVisit, VisitLine};

use super::*;

/// A visit with four accesses.
fn visit(line: VisitLine, others: u8, store: bool) -> PageVisit {
    PageVisit { line, others, accesses: 4, store }
}

/// Visits to pages of `mib` MiB in an order without a pattern, each with a second line, every third a store.
fn random(visits: u64, mib: u64, huge: bool) -> VisitWindow {
    let mut rng = lookaside_stats::SplitMix64::new(3);
    let lines = mib << 14;
    let line = |rng: &mut lookaside_stats::SplitMix64| {
        VisitLine::new(0, 0x7000_0000_0000 + ((rng.index(lines as usize) as u64) << 6), huge)
    };
    VisitWindow {
        visits: (0..visits).map(|number| visit(line(&mut rng), 1, number % 3 == 0)).collect(),
        others: (0..visits).map(|_| line(&mut rng)).collect(),
        first_timed: visits as usize / 2,
        weight: 2.0,
        cost_share: 0.1,
        thread: (0, mib as u32),
        instructions: 100.0 * visits as f64,
    }
}

fn run(windows: &[VisitWindow]) -> RunVisits {
    RunVisits { windows: windows.to_vec(), touched: Vec::new() }
}

const ALONE: ThreadTurns = ThreadTurns { at_once: 1, on_each: 1, seconds: f64::INFINITY };

fn budget(mib: u64) -> ReplayBudget {
    ReplayBudget { time: Duration::ZERO, unsteady_time: Duration::ZERO, bytes: mib << 20, turns: ALONE }
}

#[test]
fn rounds_are_made_each_way() {
    for (at_once, on_each) in [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)] {
        let windows = [random(4000, 8, true), random(2000, 7, false)];
        let turns = ThreadTurns { at_once, on_each, seconds: 1e-6 };
        let budget = ReplayBudget { turns, ..budget(256) };
        match replay(&run(&windows), HeldFrames::hold().released_for(|| ((), None)).1, budget, &|| false) {
            Ok(times) => each_way(&times),
            Err(ReplayError::NoHugePages { .. }) => return, // a system without them: said, and nothing to see
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn rounds_that_differ_are_given_more_time() {
    let round = |chained_small, free_small| ReplayRound {
        chained_small,
        chained_huge: 1.0,
        free_small,
        free_huge: 0.5,
        instructions_alone: 0.0,
    };
    // What strikes both pages of a round is no difference.
    let steady = vec![round(2.0, 0.5), round(2.02, 0.51), round(2.02, 0.5).times_factor(1.7), round(2.04, 0.5)];
    let chained = vec![round(2.0, 0.5), round(2.3, 0.5), round(2.6, 0.5), round(1.9, 0.5)];
    let free = vec![round(2.0, 0.4), round(2.0, 0.5), round(2.0, 0.6), round(2.0, 0.45)];
    let budget = ReplayBudget { time: Duration::from_secs(1), unsteady_time: Duration::from_secs(2), ..budget(1) };
    assert_eq!(budget.time_for(&[steady.clone(), steady.clone()]), budget.time);
    for unsteady in [chained, free, Vec::new()] {
        assert_eq!(budget.time_for(&[steady.clone(), unsteady.clone()]), budget.unsteady_time);
        assert_eq!(budget.time_for(&[unsteady, steady.clone()]), budget.unsteady_time);
    }
}

fn each_way(times: &ReplayTimes) {
    assert_eq!((times.held_rounds.len(), times.other_rounds.len()), (3, 3));
    assert_eq!((times.windows, times.timed_visits % 3000), (2, 0));
    assert_eq!((times.represented_visits, times.represented_cost), (6000.0, 0.4));
    let mut rounds = times.held_rounds.iter().chain(&times.other_rounds);
    assert!(rounds.all(|round| round.times().iter().all(|&seconds| seconds > 0.0)));
    assert!(times.huge_bytes >= 7 << 20, "{}", times.huge_bytes);
    let costs = [times.faults.again_microseconds, times.faults.fresh_microseconds];
    assert!(costs.as_flattened().iter().all(|&cost| cost > 0.0), "{costs:?}");
}

#[test]
fn memory_that_is_short_leaves_windows_out_and_then_says_so() {
    let windows = [random(1000, 64, false), random(10, 1, false), random(1000, 64, false)];
    let all = run(&windows);
    let (kept, slots) = fitting(&all, u64::MAX).unwrap();
    assert_eq!(kept.len(), 3);
    let rest = run(&windows[1..]);
    let (kept, _) = fitting(&rest, slots.bytes() / 2).unwrap();
    assert_eq!(kept.len(), 1);
    assert!(matches!(fitting(&all, 1 << 20), Err(ReplayError::Memory { available_bytes: 1_048_576, .. })));
    assert!(matches!(fitting(&run(&[VisitWindow::default()]), 1 << 30), Err(ReplayError::NoVisits)));
}

#[test]
fn pages_that_nothing_visits_are_touched_where_there_is_room() {
    let windows = [random(10, 1, false)];
    let touched = (0..1000).map(|page| VisitLine::new(0, 0x7000_0000_0000 + (page << 12), false)).collect();
    let all = RunVisits { windows: windows.to_vec(), touched };
    let (_, slots) = fitting(&all, u64::MAX).unwrap();
    let (_, fewer) = fitting(&all, slots.bytes() - 1).unwrap();
    assert!(fewer.bytes() < 100 << 12 && slots.bytes() > 1000 << 12, "{} {}", fewer.bytes(), slots.bytes());
}

#[test]
fn it_stops_when_told() {
    assert_eq!(
        replay(&run(&[random(1000, 4, false)]), HeldFrames::none(), budget(256), &|| true),
        Err(ReplayError::Stopped)
    );
}

#[test]
fn lines_keep_their_place_in_their_window() {
    let lines = [(0, 0x1234_5678, true), (0, 0x1234_5678 + (4 << 20), true), (1, 0x1234_5678, true), (0, 0xff, false)];
    let lines = lines.map(|(process, addr, huge)| VisitLine::new(process, addr, huge));
    let window =
        VisitWindow { visits: lines.iter().map(|&line| visit(line, 0, false)).collect(), ..VisitWindow::default() };
    // Touched in another order, and a fifth page that nothing is replayed in; the last page was not seen to be touched.
    let fifth = VisitLine::new(0, 6 << 20, false);
    let touched = [lines[2], fifth, lines[1], lines[0]];
    let slots = ReplaySlots::new(&[&window], &touched, true);
    let places = |kind| lines.map(|line| slots.line(line, kind));
    let held = places(ReplayPages::SmallHeld);
    let same = held[0] & 0x7fff;
    // The last two windows can't be huge, and have their places in the order of touches.
    assert_eq!(held, [same, 1 << 15 | same, 2 << 15 | same, 4 << 15 | 3]);
    assert_eq!(slots.line(fifth, ReplayPages::Huge), 3 << 15);
    assert_eq!(slots.pages(), [held[2], 3 << 15, held[1], held[0], held[3]]);
    assert_eq!(places(ReplayPages::SmallOther), [5 << 15 | same, 6 << 15 | same, 7 << 15 | same, held[3]]);
    assert_eq!(places(ReplayPages::Huge), [8 << 15 | same, 9 << 15 | same, 10 << 15 | same, held[3]]);
    assert_eq!(slots.others().collect::<Vec<_>>(), [7 << 15 | same, 6 << 15 | same, 5 << 15 | same]);
    // Five small pages and three others, tables of five windows and of three, three huge pages.
    assert_eq!(slots.bytes(), 16 * 4096 + (3 << 21));
    let slots = ReplaySlots::new(&[&window], &touched, false);
    let last = slots.line(lines[3], ReplayPages::Huge);
    assert_eq!((last, slots.pages()), (3 << 15 | 3, &[held[2], held[1], held[0], last][..]));
    assert_eq!(slots.bytes(), 14 * 4096 + (3 << 21));
    assert!(slots.fits(slots.bytes()) && !slots.fits(slots.bytes() - 1));
}
