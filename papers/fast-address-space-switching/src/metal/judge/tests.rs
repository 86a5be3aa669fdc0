use super::super::plan::{cases, PageKind};
use super::super::SwitchOptions;
use super::*;

fn sample(step_ns: f64, keys: Option<KeyUse>) -> RingSample {
    RingSample { step_ns, extra_switches_per_kilo_step: 0.0, involuntary_per_kilo_step: 0.0, keys }
}

/// A turn alone takes 50 ns and 2 a page; a switch of compartments 200 ns, of threads 1,000 ns, one of processes 300
/// more, and 5 for each page that all have in common.
fn step_ns(case: &RingCase) -> f64 {
    let ring = case.ring;
    let alone = 50.0 + 2.0 * ring.size as f64;
    let common = if ring.frames == Frames::Shared { 5.0 * ring.size as f64 } else { 0.0 };
    match (ring.participants, case.who) {
        (1, _) => alone,
        (_, Who::Compartments) => alone + 200.0,
        (_, Who::Threads) => alone + 1000.0,
        (_, Who::Processes) => alone + 1300.0 + common,
    }
}

fn options() -> SwitchOptions {
    SwitchOptions {
        participants: vec![2, 8],
        kib: vec![0, 16],
        children: vec![2],
        page_counts: vec![1, 64],
        ..SwitchOptions::default()
    }
}

/// So many rounds, each slower than the one before as a whole.
fn judged(rounds: u32) -> (Vec<RingPoint>, Vec<Contrast>) {
    let cases = cases(&options(), true, true);
    let keys = |case: &RingCase, round: u32| {
        let recycled_per_kilo_step = f64::from(round * round);
        let keys = KeyUse { recycled_per_kilo_step, protect_calls_per_kilo_step: 2.0 * recycled_per_kilo_step };
        (case.who == Who::Compartments).then_some(keys)
    };
    let of = |case: &RingCase| {
        (0..rounds).map(|round| sample(step_ns(case) + 10.0 * f64::from(round), keys(case, round))).collect()
    };
    let samples: Vec<Vec<RingSample>> = cases.iter().map(of).collect();
    judge(&cases, &samples, 1)
}

#[test]
fn a_switch_is_a_turn_less_the_same_alone() {
    let (points, contrasts) = judged(6);
    // lat_ctx: two rings, nothing read in base pages and 16 KiB in both; extreme: two sizes, two memories, two kinds of
    // pages. Compartments: base pages.
    assert_eq!((points.len(), contrasts.len()), (2 * (2 * 3 + 8) + 4 + 4, 2 * 3 + 8));
    for point in &points {
        let expected = step_ns(&RingCase { who: point.who, ring: point.ring });
        let alone = 50.0 + 2.0 * point.ring.size as f64;
        assert_eq!((point.step_ns.value, point.alone_ns.value), (expected + 25.0, alone + 25.0), "{point:?}");
        // What a round adds to all of its measurements is in no switch.
        let switch = expected - alone;
        assert_eq!((point.switch_ns.value, point.switch_ns.low, point.switch_ns.high), (switch, switch, switch));
        assert_eq!(point.rounds.len(), 6);
        let (step_ns, alone_ns) = (expected + 50.0, alone + 50.0);
        let undisturbed =
            Round { step_ns, alone_ns, extra_switches_per_kilo_step: 0.0, alone_extra_switches_per_kilo_step: 0.0 };
        assert_eq!(point.rounds[5], undisturbed);
        // The median of 0, 1, 4, 9, 16 and 25.
        let keys = KeyUse { recycled_per_kilo_step: 6.5, protect_calls_per_kilo_step: 13.0 };
        assert_eq!(point.keys, (point.who == Who::Compartments).then_some(keys));
    }
}

#[test]
fn processes_stand_against_threads_in_the_same_ring() {
    for contrast in judged(6).1 {
        let common = if contrast.ring.frames == Frames::Shared { 5.0 * contrast.ring.size as f64 } else { 0.0 };
        assert_eq!(contrast.over_threads_ns.value, 300.0 + common, "{contrast:?}");
        assert!(contrast.significant);
        let ratio = contrast.ratio.expect("a ratio");
        assert!((ratio.value - (1300.0 + common) / 1000.0).abs() < 1e-12 && ratio.significant);
        let of_pages = contrast.of_pages_ns.map(|figure| figure.value);
        let expected = (contrast.ring.benchmark == Benchmark::Extreme && contrast.ring.size > 1).then_some(
            match contrast.ring.frames {
                Frames::Shared => 5.0 * 63.0,
                Frames::Private => 0.0,
            },
        );
        assert_eq!(of_pages, expected, "{contrast:?}");
        assert_eq!(contrast.of_pages_significant, expected.is_some_and(|ns| ns > 0.0));
        assert_eq!(contrast.sharing_ns().is_some(), expected.is_some() && contrast.ring.frames == Frames::Shared);
    }
}

#[test]
fn few_rounds_are_not_significant_and_none_say_nothing() {
    assert!(judged(4).1.iter().all(|contrast| !contrast.significant && !contrast.of_pages_significant));
    assert_eq!(judged(0), (Vec::new(), Vec::new()));
    assert_eq!(judge(&cases(&options(), false, false), &[], 1), (Vec::new(), Vec::new()));
}

#[test]
fn disturbed_rounds_are_told() {
    let cases = cases(&options(), false, false);
    // Alone it is worse.
    let of = |case: &RingCase| {
        let alone = if case.ring.participants == 1 { 100.0 } else { 0.0 };
        let round = |extra| RingSample {
            extra_switches_per_kilo_step: extra + alone,
            involuntary_per_kilo_step: 7.0,
            ..sample(9.0, None)
        };
        vec![round(0.0), round(2.0), round(40.0)]
    };
    let samples: Vec<Vec<RingSample>> = cases.iter().map(of).collect();
    for point in judge(&cases, &samples, 1).0 {
        assert_eq!((point.extra_switches_per_kilo_step, point.most_extra_switches_per_kilo_step), (2.0, 40.0));
        assert_eq!(point.involuntary_per_kilo_step, 7.0);
        let round = point.rounds[1];
        assert_eq!((round.extra_switches_per_kilo_step, round.alone_extra_switches_per_kilo_step), (2.0, 102.0));
        assert_eq!(point.ring.pages, PageKind::Base);
    }
}

/// One that some rounds found faster than the work alone tells nothing, and is held against nothing; nor does the
/// whole, where more than half of the rings are so.
#[test]
fn what_else_ran_is_not_taken_for_a_switch() {
    let cases = cases(&options(), false, false);
    let judged = |disturbed: &dyn Fn(&RingCase) -> bool| {
        let of = |case: &RingCase| {
            let off = |round: u32| {
                if disturbed(case) && case.ring.participants > 1 {
                    [-9e3, 4e3][round as usize % 2]
                } else {
                    0.0
                }
            };
            (0..6).map(|round| sample(step_ns(case) + off(round), None)).collect()
        };
        let samples: Vec<Vec<RingSample>> = cases.iter().map(of).collect();
        judge(&cases, &samples, 1)
    };
    let (points, all) = judged(&|_| false);
    assert!(points.iter().all(RingPoint::is_told) && disturbed(&points).is_none());
    let first = cases.iter().find(|case| case.ring.participants > 1).copied().expect("a ring");
    let (points, contrasts) = judged(&|case| *case == first);
    assert_eq!(points.iter().filter(|point| !point.is_told()).count(), 1);
    assert!(contrasts.len() < all.len() && disturbed(&points).is_none());
    let (points, contrasts) = judged(&|_| true);
    assert!(contrasts.is_empty());
    let why = disturbed(&points).expect("all are disturbed");
    assert!(why.starts_with(&format!("in {0} of {0} rings", points.len())), "{why}");
}
