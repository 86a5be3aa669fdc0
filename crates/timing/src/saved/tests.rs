use proptest::prelude::*;

use super::*;

fn round(chained_small: f64, chained_huge: f64, free_small: f64, free_huge: f64) -> ReplayRound {
    ReplayRound { chained_small, chained_huge, free_small, free_huge }
}

/// Rounds that stand for so many visits and all of the cost.
fn replayed(rounds: &[ReplayRound], represented_visits: f64) -> ReplayTimes {
    ReplayTimes { held_rounds: rounds.to_vec(), represented_visits, represented_cost: 1.0, ..ReplayTimes::default() }
}

fn site(seconds: f64, visits: u64) -> SiteTime {
    SiteTime { seconds, visits, translation_cycles: visits as f64 }
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
fn free_accesses_at_full_speed_save_what_the_free_replay_saves() {
    let rounds = [round(0.2, 0.1, 0.01, 0.008); 5];
    let saving = of_one(0.01, &rounds);
    assert!((saving.least - 0.002).abs() < 1e-9, "{saving:?}");
    // All of it may be waiting: half of a chained visit is translation.
    assert!((saving.most - 0.005).abs() < 1e-9, "{saving:?}");
}

#[test]
fn work_beyond_the_visits_is_not_saved() {
    let rounds = [round(0.2, 0.1, 0.01, 0.008); 5];
    let saving = of_one(20.0, &rounds);
    assert!(saving.most <= 0.1 + 1e-9 && saving.least >= 0.002 && saving.least < 0.01, "{saving:?}");
    assert_eq!(of_one(0.0, &rounds), SavedSeconds::default());
}

#[test]
fn held_frames_give_the_best_guess_and_both_kinds_the_interval() {
    let held_rounds = vec![round(0.25, 0.15, 0.01, 0.009); 3];
    let other_rounds = vec![round(0.2, 0.15, 0.01, 0.009); 3];
    let replay = ReplayTimes { held_rounds, other_rounds, ..replayed(&[], 1e6) };
    let saving = saved(&[site(0.3, 1_000_000)], 0.3, 1_000_000, &replay, 0.0).unwrap();
    let [held, other] = [&replay.held_rounds, &replay.other_rounds].map(|rounds| of_one(0.3, rounds));
    assert!((saving.best, saving.most) == (held.best, held.most), "{saving:?} {held:?}");
    assert!(saving.least == other.least && other.least < held.least, "{saving:?} {other:?}");
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
    let coarse = saved(&[site(0.1, 1_000_000)], 0.1, 1_000_000, &replayed(&same, 1e6), 0.01).unwrap();
    assert!(width(coarse) > width(of_one(0.1, &same)) + 1e-6);
}

/// The rules word by word, for one instruction: seconds of the run's visits, and of its translation.
fn twin(t: f64, v: f64, tau: f64, [chained, free, chained_walks, free_walks]: [f64; 4]) -> (f64, f64) {
    let full = chained * v + chained_walks * tau;
    let fast = free * v + free_walks * tau;
    let (full_walks, fast_walks) = (chained_walks * tau, free_walks * tau);
    let waiting = if t < full { t } else { full };
    let most = waiting * f64::max(full_walks / full, fast_walks / fast);
    let depth = if t <= fast {
        0.0
    } else if t > full {
        full / t
    } else {
        (t - fast) / (full - fast)
    };
    let shown = f64::min(fast_walks, t * fast_walks / fast);
    let least = (1.0 - depth) * shown + depth * waiting * full_walks / full;
    (f64::min(least, most), f64::max(least, most))
}

proptest! {
    /// Against the rules word by word, over several instructions.
    #[test]
    fn is_its_twin(
        sites in prop::collection::vec((0.0f64..10.0, 1u64..1_000_000, 1.0f64..1e9), 1..12),
        huge in 0.001f64..1.0, chained in 1.0f64..3.0, overlap in 1.5f64..40.0, free in 1.0f64..3.0,
        (stands_for, cost) in (0.01f64..2.0, 0.01f64..2.0),
    ) {
        let sites: Vec<SiteTime> = sites.into_iter()
            .map(|(seconds, visits, translation_cycles)| SiteTime { seconds, visits, translation_cycles })
            .collect();
        let visits: u64 = sites.iter().map(|site| site.visits).sum();
        let cycles: f64 = sites.iter().map(|site| site.translation_cycles).sum();
        let one = round(huge * chained, huge, huge / overlap * free, huge / overlap);
        let replay = ReplayTimes { represented_cost: cost, ..replayed(&[one; 3], visits as f64 * stands_for) };
        let [c4, c2, f4, f2] = one.times();
        let run = [c2 / stands_for, f2 / stands_for, (c4 - c2) / cost, (f4 - f2) / cost];
        let saving = saved(&sites, 1.0, visits, &replay, 0.0).unwrap();
        let (mut least, mut most) = (0.0, 0.0);
        for site in &sites {
            let (v, tau) = (site.visits as f64 / visits as f64, site.translation_cycles / cycles);
            let (low, high) = twin(site.seconds, v, tau, run);
            (least, most) = (least + low, most + high);
        }
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
        prop_assert!(near(saving.least, least) && near(saving.most, most), "{saving:?} {least} {most}");
        prop_assert!(near(saving.best, (least + most) / 2.0));
    }

    /// No more is saved than there is, the ends are in order, and no time gives no number that is none.
    #[test]
    fn stays_within_bounds(
        sites in prop::collection::vec((0.0f64..10.0, 0u64..1_000_000, 0.0f64..1e9), 0..12),
        times in prop::collection::vec(prop::array::uniform4(0.0f64..1.0), 1..6),
    ) {
        let sites: Vec<SiteTime> = sites.into_iter()
            .map(|(seconds, visits, translation_cycles)| SiteTime { seconds, visits, translation_cycles })
            .collect();
        let rounds: Vec<ReplayRound> = times.iter().map(|&[a, b, c, d]| round(a, b, c, d)).collect();
        let all: f64 = sites.iter().map(|site| site.seconds).sum();
        let Some(saving) = saved(&sites, all, 1_000_000, &replayed(&rounds, 1000.0), 0.0) else { return Ok(()) };
        prop_assert!(saving.least.is_finite() && saving.most.is_finite());
        prop_assert!(saving.least <= saving.best && saving.best <= saving.most);
        prop_assert!(saving.most <= all * (1.0 + unsteadiness(&rounds)) + 1e-9, "{saving:?} of {all}");
    }
}
