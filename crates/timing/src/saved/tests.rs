use proptest::prelude::*;

use super::*;

fn round(chained_small: f64, chained_huge: f64, free_small: f64, free_huge: f64) -> ReplayRound {
    ReplayRound { chained_small, chained_huge, free_small, free_huge, instructions_alone: 0.0 }
}

/// Rounds that stand for so many visits and all of the cost.
fn replayed(rounds: &[ReplayRound], represented_visits: f64) -> ReplayTimes {
    ReplayTimes { held_rounds: rounds.to_vec(), represented_visits, represented_cost: 1.0, ..ReplayTimes::default() }
}

fn site(seconds: f64, visits: u64) -> SiteTime {
    SiteTime { seconds, visits, translation_cycles: visits as f64, waiting_visits: 0.0 }
}

/// A million visits replayed, as many in the program.
fn of_one(seconds: f64, rounds: &[ReplayRound]) -> SavedSeconds {
    saved(&[site(seconds, 1_000_000)], seconds, 1_000_000, &replayed(rounds, 1e6), 0.0).unwrap()
}

#[test]
fn a_chain_saves_what_the_chained_replay_saves() {
    let rounds = [round(0.2, 0.15, 0.01, 0.009); 5];
    let SavedSeconds { least, best, most } = of_one(0.2, &rounds);
    for value in [least, best, most] {
        assert!((value - 0.05).abs() < 1e-9, "{value}");
    }
}

#[test]
fn free_accesses_save_what_the_free_replay_saves() {
    let rounds = [round(0.2, 0.1, 0.01, 0.008); 5];
    let SavedSeconds { least, best, most } = of_one(0.01, &rounds);
    for value in [least, best, most] {
        assert!((value - 0.002).abs() < 1e-9, "{value}");
    }
    // In half of the time, or faster: as large a part of it.
    assert!((of_one(0.005, &rounds).best - 0.001).abs() < 1e-9);
}

#[test]
fn a_chain_that_is_faster_than_its_replay_saves_as_large_a_part() {
    // Half of its 0.2 seconds are translation in the replay: so it is in the program's 0.12, as each visit waits.
    let rounds = [round(0.2, 0.1, 0.01, 0.008); 5];
    let of = |waiting_visits, seconds| {
        let site = SiteTime { waiting_visits, ..site(seconds, 1_000_000) };
        saved(&[site], seconds, 1_000_000, &replayed(&rounds, 1e6), 0.0).unwrap().best
    };
    assert!((of(1e6, 0.12) - 0.06).abs() < 1e-9, "{}", of(1e6, 0.12));
    // Where nothing is known of addresses, some of the visits might overlap.
    assert!((of(0.0, 0.12) - of_one(0.12, &rounds).best).abs() < 1e-9);
    // Half of the visits wait for sure, which would take 0.105: more of them may.
    assert!((of(5e5, 0.12) - of(0.0, 0.12)).abs() < 1e-9);
    assert!((of(5e5, 0.07) - 0.07 / 0.105 * 0.051).abs() < 1e-9, "{}", of(5e5, 0.07));
}

#[test]
fn between_both_a_part_of_the_visits_waits() {
    // 0.105 is in the middle: half of the visits save 0.002, half 0.1.
    let saving = of_one(0.105, &[round(0.2, 0.1, 0.01, 0.008); 5]);
    assert!((saving.best - 0.051).abs() < 1e-9, "{saving:?}");
}

#[test]
fn instructions_between_visits_are_no_waiting() {
    // Of 0.03 seconds 0.02 are the instructions': the visits take 0.01, as above.
    let with_work = ReplayRound { instructions_alone: 0.02, ..round(0.2, 0.1, 0.03, 0.028) };
    let without = of_one(0.05, &[round(0.2, 0.1, 0.01, 0.008); 5]);
    assert!((of_one(0.05, &[with_work; 5]).best - without.best).abs() < 1e-9);
    // They take longer alone than with the visits: no visit shows.
    let hidden = ReplayRound { instructions_alone: 0.04, ..round(0.2, 0.1, 0.03, 0.028) };
    assert!((of_one(0.001, &[hidden; 5]).best - 0.001).abs() < 1e-9);
}

#[test]
fn work_beyond_the_visits_is_not_saved() {
    let rounds = [round(0.2, 0.1, 0.01, 0.008); 5];
    let saving = of_one(20.0, &rounds).best;
    assert!((0.002..0.01).contains(&saving), "{saving:?}");
    // Of a chain it hides no more than the instructions between two visits take: nothing, half of it, all.
    for (instructions_alone, least) in [(0.0, 0.1), (0.1, 0.051), (0.2, 0.0)] {
        let rounds = [ReplayRound {
            instructions_alone,
            ..round(0.2, 0.1, 0.01 + instructions_alone, 0.008 + instructions_alone)
        }; 5];
        let chain = SiteTime { waiting_visits: 1e6, ..site(20.0, 1_000_000) };
        let chain = saved(&[chain], 20.0, 1_000_000, &replayed(&rounds, 1e6), 0.0).unwrap();
        let unseen = of_one(20.0, &rounds).best;
        assert!((chain.best - unseen.max(least)).abs() < 1e-9, "{instructions_alone}: {chain:?} {unseen}");
    }
    assert_eq!(of_one(0.0, &rounds), SavedSeconds::default());
}

#[test]
fn a_round_unlike_the_others_moves_nothing() {
    let mut rounds = [round(0.25, 0.15, 0.01, 0.009); 7];
    let calm = of_one(0.3, &rounds);
    rounds[2].chained_small = 5.0;
    assert_eq!(of_one(0.3, &rounds), calm);
}

#[test]
fn other_frames_change_what_small_pages_take_and_not_what_huge_ones_do() {
    // Of 0.3 seconds small pages in frames like the program's cost 0.1, in others they would cost 0.05 of 0.25.
    let held_rounds = vec![round(0.25, 0.15, 0.01, 0.009); 3];
    let other_rounds = vec![round(0.2, 0.15, 0.01, 0.009); 3];
    let replay = ReplayTimes { held_rounds, other_rounds, ..replayed(&[], 1e6) };
    let saving = saved(&[site(0.3, 1_000_000)], 0.3, 1_000_000, &replay, 0.0).unwrap();
    let held = of_one(0.3, &replay.held_rounds).best;
    // Beyond `full` 0.05 seconds of the 0.3 are work: five sixths of the visits wait.
    let other = (0.3 - held) + 0.05 * 0.25 / 0.3 + 0.001 * 0.05 / 0.3;
    let other = 0.3 * (1.0 - (0.3 - held) / other);
    assert!((saving.most - held).abs() < 1e-9 && (saving.least - other).abs() < 1e-9, "{saving:?} {held} {other}");
    assert_eq!(saving.best, saving.most);
    // Where frames may be seen either kind is as good a guess: here, of as many rounds of both, the midst.
    let seen = ReplayTimes { other_scatter: Some(1.0), ..replay };
    let either = saved(&[site(0.3, 1_000_000)], 0.3, 1_000_000, &seen, 0.0).unwrap();
    assert!((either.best - (saving.least + saving.most) / 2.0).abs() < 1e-9, "{either:?}");
    assert_eq!((either.least, either.most), (saving.least, saving.most));
    // One round more of a kind, and it has the majority.
    let mut more = seen.clone();
    more.other_rounds.push(seen.other_rounds[0]);
    let more = saved(&[site(0.3, 1_000_000)], 0.3, 1_000_000, &more, 0.0).unwrap();
    assert!((more.best - saving.least).abs() < 1e-9, "{more:?}");
}

#[test]
fn nothing_to_compute_from_is_none() {
    let rounds = [round(0.2, 0.1, 0.01, 0.008); 5];
    assert_eq!(saved(&[site(1.0, 1)], 1.0, 1, &replayed(&[], 1.0), 0.0), None);
    assert_eq!(saved(&[site(1.0, 1)], 1.0, 0, &replayed(&rounds, 1.0), 0.0), None);
    assert_eq!(saved(&[site(1.0, 1)], 1.0, 1, &replayed(&rounds, 0.0), 0.0), None);
    assert_eq!(saved(&[], 0.0, 1, &replayed(&rounds, 1.0), 0.0), Some(SavedSeconds::default()));
}

#[test]
fn rounds_that_differ_and_few_samples_widen_it() {
    let same = [round(0.2, 0.15, 0.01, 0.009); 5];
    let mut differing = same;
    differing.iter_mut().enumerate().for_each(|(i, round)| round.chained_small += 0.01 * i as f64);
    let width = |saving: SavedSeconds| saving.most - saving.least;
    assert!(width(of_one(0.1, &differing)) > width(of_one(0.1, &same)) + 1e-6);
    // Half of the time is elsewhere: 20 samples of 0.01 seconds, each of which may have been there.
    let by = |sample| saved(&[site(0.1, 1_000_000)], 0.2, 1_000_000, &replayed(&same, 1e6), sample).unwrap();
    let part = by(0.0).best / 0.1;
    let error = 2.0 * part * (20.0f64 * 0.25).sqrt() * 0.01;
    assert!((width(by(0.01)) - width(by(0.0)) - 2.0 * error).abs() < 1e-9, "{:?}", by(0.01));
    // All samples are at one instruction: none could have been elsewhere.
    let coarse = saved(&[site(0.1, 1_000_000)], 0.1, 1_000_000, &replayed(&same, 1e6), 0.01).unwrap();
    assert_eq!(width(coarse), width(of_one(0.1, &same)));
}

#[test]
fn quartiles_of_few_rounds_are_moved_to_those_of_many() {
    let mut rng = lookaside_stats::SplitMix64::new(1);
    let mut normal = || {
        // Box and Muller, A Note on the Generation of Random Normal Deviates, 1958.
        let mut uniform = || (rng.index(1 << 30) as f64 + 1.0) / f64::from(1 << 30);
        (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
    };
    const SAMPLES: usize = 20_000;
    for rounds in 2..=16 {
        let mut distance = || {
            let values: Vec<f64> = (0..rounds).map(|_| normal()).collect();
            let [low, _, high] = quantiles(values, QUARTILES).expect("values");
            (high - low) / 2.0
        };
        let mean = (0..SAMPLES).map(|_| distance()).sum::<f64>() / SAMPLES as f64;
        let moved = quartile_stretch(rounds) * mean;
        assert!((moved - 0.6745).abs() < 0.02, "{rounds} rounds: {moved}");
    }
    assert_eq!((quartile_stretch(1), quartile_stretch(100)), (1.0, quartile_stretch(16)));
}

/// The rules word by word, for one instruction: seconds of the run's visits, and of its translation.
fn twin(t: f64, v: f64, tau: f64, d: f64, [chained, free, chained_walks, free_walks, work]: [f64; 5]) -> f64 {
    let full = chained * v + chained_walks * tau;
    let fast = free * v + free_walks * tau;
    let (full_walks, fast_walks) = (chained_walks * tau, free_walks * tau);
    let least = d * full + (1.0 - d) * fast;
    if t < least {
        t / least * (d * full_walks + (1.0 - d) * fast_walks)
    } else if t < full {
        let waits = (t - fast) / (full - fast);
        waits * full_walks + (1.0 - waits) * fast_walks
    } else {
        let seen = d * (full - work * v) / full;
        let waits = if full / t > seen { full / t } else { seen };
        waits * full_walks + (1.0 - waits) * fast_walks
    }
}

proptest! {
    /// Against the rules word by word, over several instructions.
    #[test]
    fn is_its_twin(
        sites in prop::collection::vec((0.0f64..10.0, 1u64..1_000_000, 1.0f64..1e9, 0.0f64..=1.0), 1..12),
        huge in 0.001f64..1.0, chained in 1.0f64..3.0, overlap in 1.5f64..40.0, free in 1.0f64..3.0, alone in 0.0f64..0.9,
        (stands_for, cost) in (0.01f64..2.0, 0.01f64..2.0),
    ) {
        let sites: Vec<SiteTime> = sites.into_iter()
            .map(|(seconds, visits, translation_cycles, chained)| SiteTime {
                seconds,
                visits,
                waiting_visits: chained * visits as f64,
                translation_cycles,
            })
            .collect();
        let visits: u64 = sites.iter().map(|site| site.visits).sum();
        let cycles: f64 = sites.iter().map(|site| site.translation_cycles).sum();
        let mut one = round(huge * chained, huge, huge / overlap * free, huge / overlap);
        one.instructions_alone = alone * one.free_huge;
        let replay = ReplayTimes { represented_cost: cost, ..replayed(&[one; 3], visits as f64 * stands_for) };
        let [c4, c2, f4, f2, w] = one.times();
        let run = [c2 / stands_for, (f2 - w) / stands_for, (c4 - c2) / cost, (f4 - f2) / cost, w / stands_for];
        let saving = saved(&sites, 1.0, visits, &replay, 0.0).unwrap();
        let expected: f64 = sites.iter()
            .map(|site| {
                let (v, tau) = (site.visits as f64 / visits as f64, site.translation_cycles / cycles);
                twin(site.seconds, v, tau, site.waiting_visits / site.visits as f64, run)
            })
            .sum();
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
        prop_assert!([saving.least, saving.best, saving.most].iter().all(|&it| near(it, expected)), "{saving:?} {expected}");
    }

    /// No more is saved than there is, the ends are in order, and no time gives no number that is none.
    #[test]
    fn stays_within_bounds(
        sites in prop::collection::vec((0.0f64..10.0, 0u64..1_000_000, 0.0f64..1e9, 0.0f64..=1.0), 0..12),
        times in prop::collection::vec(prop::array::uniform5(0.0f64..1.0), 1..6),
    ) {
        let sites: Vec<SiteTime> = sites.into_iter()
            .map(|(seconds, visits, translation_cycles, chained)| SiteTime {
                seconds,
                visits,
                waiting_visits: chained * visits as f64,
                translation_cycles,
            })
            .collect();
        let rounds: Vec<ReplayRound> = times.iter()
            .map(|&[a, b, c, d, e]| ReplayRound { instructions_alone: e, ..round(a, b, c, d) })
            .collect();
        let all: f64 = sites.iter().map(|site| site.seconds).sum();
        let Some(saving) = saved(&sites, all, 1_000_000, &replayed(&rounds, 1000.0), 0.0) else { return Ok(()) };
        prop_assert!(saving.least.is_finite() && saving.most.is_finite());
        prop_assert!(saving.least <= saving.best && saving.best <= saving.most);
        prop_assert!(saving.most <= all * (1.0 + unsteadiness(&rounds)) + 1e-9, "{saving:?} of {all}");
    }
}
