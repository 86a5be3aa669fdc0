//! User seconds that huge pages save: `RULES.md`, "One instruction" and "The interval".

use lookaside_stats::{median, quantiles};

use crate::replay_round::{ReplayRound, ReplayTimes};
use crate::saved_seconds::SavedSeconds;
use crate::site_time::SiteTime;

/// Seconds saved at `sites` of a program of `user_seconds` with `visits` page visits, by replays of windows of them.
/// `seconds_a_sample` is how finely the sites' seconds are known. `None` without rounds or visits.
pub fn saved(
    sites: &[SiteTime],
    user_seconds: f64,
    visits: u64,
    replay: &ReplayTimes,
    seconds_a_sample: f64,
) -> Option<SavedSeconds> {
    let scale = RunScale::new(visits, replay)?;
    let program = Program::new(sites, visits);
    // Of each round by itself: what the machine did for a while struck both of its kinds of pages.
    let of_rounds =
        |rounds: &[ReplayRound]| rounds.iter().map(|round| program.saved(&round.times(), scale)).collect::<Vec<f64>>();
    let held = of_rounds(&replay.held_rounds);
    let best = median(held.iter().copied())?;
    let (mut least, mut most) = (best, best);
    for frames in [held, of_rounds(&replay.other_rounds)] {
        let stretch = quartile_stretch(frames.len());
        if let Some([low, middle, high]) = quantiles(frames, QUARTILES) {
            least = least.min(middle - stretch * (middle - low));
            // No more is saved than there is.
            most = most.max((middle + stretch * (high - middle)).min(user_seconds.max(high)));
        }
    }
    let noise = program.sampling_error(&medians(&replay.held_rounds)?, scale, seconds_a_sample)
        + user_seconds * unsteadiness(&replay.held_rounds);
    Some(SavedSeconds { least: least - noise, best, most: most + noise })
}

/// Of each of the times.
fn medians(rounds: &[ReplayRound]) -> Option<[f64; 5]> {
    let times = [0, 1, 2, 3, 4].map(|way| median(rounds.iter().map(|round| round.times()[way])));
    let [Some(a), Some(b), Some(c), Some(d), Some(e)] = times else { return None };
    Some([a, b, c, d, e])
}

/// Half of the rounds lie between the outer ones.
const QUARTILES: [f64; 3] = [0.25, 0.5, 0.75];

/// How much farther the quartiles of many rounds lie from their median than those of so few, as
/// [`lookaside_stats::quantile`] has them, if rounds are normally distributed: 0.6745 ÷ the expected distance.
fn quartile_stretch(rounds: usize) -> f64 {
    /// Of two rounds and more; each the mean of 200,000 samples, the last for all that are more.
    const OF: [f64; 15] = [2.39, 1.60, 1.41, 1.36, 1.27, 1.22, 1.19, 1.18, 1.15, 1.13, 1.12, 1.12, 1.11, 1.10, 1.09];
    // A single round has no distance.
    rounds.checked_sub(2).map_or(1.0, |at| OF[at.min(OF.len() - 1)])
}

/// How far times of the same work lie apart on this machine now: half the distance of the quartiles, of the median.
fn unsteadiness(rounds: &[ReplayRound]) -> f64 {
    let quartiles = quantiles(rounds.iter().map(|round| round.chained_small), QUARTILES);
    let half = |[low, middle, high]: [f64; 3]| if middle > 0.0 { (high - low) / 2.0 / middle } else { 0.0 };
    quartile_stretch(rounds.len()) * quartiles.map_or(0.0, half)
}

/// From a round's seconds to the whole run's.
#[derive(Clone, Copy)]
struct RunScale {
    /// Of what the visits take with huge pages: by their number.
    visits: f64,
    /// Of what translation adds: by its modelled cost; by the visits where that is nothing.
    translation: f64,
}

impl RunScale {
    fn new(visits: u64, replay: &ReplayTimes) -> Option<Self> {
        let by_visits = visits as f64 / replay.represented_visits;
        let by_cost = 1.0 / replay.represented_cost;
        let known = visits > 0 && by_visits.is_finite();
        known.then_some(Self { visits: by_visits, translation: if by_cost.is_finite() { by_cost } else { by_visits } })
    }
}

/// Sites with their shares.
struct Program {
    /// Seconds, share of the visits, share of the translation cycles.
    sites: Vec<(f64, f64, f64)>,
}

impl Program {
    fn new(sites: &[SiteTime], visits: u64) -> Self {
        let cycles: f64 = sites.iter().map(|site| site.translation_cycles).sum();
        let share = |site: &SiteTime| {
            let of_visits = site.visits as f64 / visits as f64;
            // Where the model sees no cost at all the visits stand in.
            let of_cycles = if cycles > 0.0 { site.translation_cycles / cycles } else { of_visits };
            (site.seconds, of_visits, of_cycles)
        };
        Self { sites: sites.iter().map(share).collect() }
    }

    /// Of all sites, by the seconds of a round.
    fn saved(&self, times: &[f64; 5], scale: RunScale) -> f64 {
        self.sites.iter().map(|&site| at_site(site, times, scale)).sum()
    }

    /// Two standard deviations: each sample that counts moves the saving by its own part.
    fn sampling_error(&self, times: &[f64; 5], scale: RunScale, seconds_a_sample: f64) -> f64 {
        let variance: f64 = self
            .sites
            .iter()
            .filter(|(seconds, ..)| *seconds > 0.0)
            .map(|&site| {
                let part = at_site(site, times, scale) / site.0;
                site.0 * seconds_a_sample * part * part
            })
            .sum();
        2.0 * variance.sqrt()
    }
}

/// Saved at one instruction of (seconds, share of visits, share of translation).
fn at_site((seconds, of_visits, of_cycles): (f64, f64, f64), times: &[f64; 5], scale: RunScale) -> f64 {
    let &[chained_small, chained_huge, free_small, free_huge, instructions] = times;
    let full_walks = scale.translation * (chained_small - chained_huge) * of_cycles;
    let full = scale.visits * chained_huge * of_visits + full_walks;
    let fast_walks = scale.translation * (free_small - free_huge) * of_cycles;
    let fast = scale.visits * (free_huge - instructions).max(0.0) * of_visits + fast_walks;
    if seconds < fast {
        return seconds * fast_walks / fast;
    }
    let depth =
        if seconds < full { (seconds - fast) / (full - fast) } else { full.max(0.0) / seconds.max(f64::MIN_POSITIVE) };
    (1.0 - depth) * fast_walks + depth * full_walks
}

#[cfg(test)]
mod tests;
