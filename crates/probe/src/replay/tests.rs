use lookaside_timing::VisitLine;

use super::*;

/// Visits to pages of `mib` MiB in an order without a pattern, each with a second line.
fn random(visits: u64, mib: u64, huge: bool) -> VisitWindow {
    let mut rng = lookaside_stats::SplitMix64::new(3);
    let lines = mib << 14;
    let line = |rng: &mut lookaside_stats::SplitMix64| {
        VisitLine::new(0, 0x7000_0000_0000 + ((rng.index(lines as usize) as u64) << 6), huge)
    };
    VisitWindow {
        visits: (0..visits).map(|_| (line(&mut rng), 1)).collect(),
        others: (0..visits).map(|_| line(&mut rng)).collect(),
        first_timed: visits as usize / 2,
        weight: 2.0,
        cost_share: 0.1,
    }
}

fn budget(mib: u64) -> ReplayBudget {
    ReplayBudget { time: Duration::ZERO, bytes: mib << 20 }
}

#[test]
fn rounds_are_made_each_way() {
    let windows = [random(4000, 8, true), random(2000, 8, false)];
    let times = match replay(&windows, budget(256), &|| false) {
        Ok(times) => times,
        Err(ReplayError::NoHugePages { .. }) => return, // a system without them: said, and nothing to see
        Err(e) => panic!("{e}"),
    };
    assert_eq!((times.rounds.len(), times.windows, times.timed_visits % 3000), (5, 2, 0));
    assert_eq!((times.represented_visits, times.represented_cost), (6000.0, 0.4));
    assert!(times.rounds.iter().all(|round| round.times().iter().all(|&seconds| seconds > 0.0)));
    assert!(times.huge_bytes >= 7 << 20, "{}", times.huge_bytes);
    let costs = [times.faults.again_microseconds, times.faults.fresh_microseconds];
    assert!(costs.as_flattened().iter().all(|&cost| cost > 0.0), "{costs:?}");
}

#[test]
fn memory_that_is_short_leaves_windows_out_and_then_says_so() {
    let windows = [random(1000, 64, false), random(10, 1, false), random(1000, 64, false)];
    let (kept, slots) = fitting(&windows, u64::MAX).unwrap();
    assert_eq!(kept.len(), 3);
    let (kept, _) = fitting(&windows[1..], slots.bytes() / 2).unwrap();
    assert_eq!(kept.len(), 1);
    assert!(matches!(fitting(&windows, 1 << 20), Err(ReplayError::Memory { available_bytes: 1_048_576, .. })));
    assert!(matches!(fitting(&[VisitWindow::default()], 1 << 30), Err(ReplayError::NoVisits)));
}

#[test]
fn it_stops_when_told() {
    assert_eq!(replay(&[random(1000, 4, false)], budget(256), &|| true), Err(ReplayError::Stopped));
}

#[test]
fn lines_keep_their_place_in_their_window() {
    let lines = [(0, 0x1234_5678, true), (0, 0x1234_5678 + (4 << 20), true), (1, 0x1234_5678, true), (0, 0xff, false)];
    let lines = lines.map(|(process, addr, huge)| VisitLine::new(process, addr, huge));
    let window = VisitWindow { visits: lines.iter().map(|&line| (line, 0)).collect(), ..VisitWindow::default() };
    let slots = ReplaySlots::new(&[&window]);
    let places: Vec<u32> = lines.iter().map(|&line| slots.line(line)).collect();
    let same = places[0] & 0x7fff;
    assert_eq!(places, [same, 1 << 15 | same, 2 << 15 | same, 3 << 15 | 3]);
    // Four pages of one copy, the small one of the other too; three huge pages; tables of four windows, twice.
    assert_eq!(slots.bytes(), 5 * 4096 + (3 << 21) + 8 * 4096);
}
