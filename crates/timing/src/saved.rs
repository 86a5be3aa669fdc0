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
    let usual = medians(&replay.held_rounds)?;
    // Of each round by itself: what the machine did for a while struck both of its kinds of pages.
    let held: Vec<f64> = replay.held_rounds.iter().map(|round| program.saved(&round.times(), scale)).collect();
    let as_run = median(held.iter().copied())?;
    // In other frames the program takes other seconds with small pages, and the same with huge ones.
    let huge_seconds = user_seconds - as_run;
    let in_other_frames = |round: &ReplayRound| {
        let small_seconds = huge_seconds + program.saved_as_in(&usual, &round.times(), scale);
        if small_seconds > 0.0 {
            user_seconds * (1.0 - huge_seconds / small_seconds)
        } else {
            0.0
        }
    };
    let other: Vec<f64> = replay.other_rounds.iter().map(in_other_frames).collect();
    // Which frames a run gets differs from run to run: those of the native one are as good a guess as those before it.
    let any_frames = replay.other_scatter.and_then(|_| median(held.iter().chain(&other).copied()));
    let best = any_frames.unwrap_or(as_run);
    let (mut least, mut most) = (best, best);
    for frames in [held, other] {
        let stretch = quartile_stretch(frames.len());
        if let Some([low, middle, high]) = quantiles(frames, QUARTILES) {
            least = least.min(middle - stretch * (middle - low));
            // No more is saved than there is.
            most = most.max((middle + stretch * (high - middle)).min(user_seconds.max(high)));
        }
    }
    let noise = program.sampling_error(&usual, scale, user_seconds, seconds_a_sample)
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
    sites: Vec<SiteShares>,
}

/// One instruction.
#[derive(Clone, Copy)]
struct SiteShares {
    seconds: f64,
    /// Of all visits.
    visits: f64,
    /// Of all translation cycles.
    cycles: f64,
    /// Of its own visits, those that wait by where their addresses come from.
    chained: f64,
}

impl Program {
    fn new(sites: &[SiteTime], visits: u64) -> Self {
        let cycles: f64 = sites.iter().map(|site| site.translation_cycles).sum();
        let share = |site: &SiteTime| {
            let of_visits = site.visits as f64 / visits as f64;
            // Where the model sees no cost at all the visits stand in.
            let of_cycles = if cycles > 0.0 { site.translation_cycles / cycles } else { of_visits };
            let chained = (site.waiting_visits / site.visits.max(1) as f64).min(1.0);
            SiteShares { seconds: site.seconds, visits: of_visits, cycles: of_cycles, chained }
        };
        Self { sites: sites.iter().map(share).collect() }
    }

    /// Of all sites, by the seconds of a round.
    fn saved(&self, times: &[f64; 5], scale: RunScale) -> f64 {
        self.saved_as_in(times, times, scale)
    }

    /// The same, how much waits being told by one round's seconds, and what that saves by another's.
    fn saved_as_in(&self, waiting: &[f64; 5], saving: &[f64; 5], scale: RunScale) -> f64 {
        let at = |&site| SiteWaits::new(site, waiting, scale).saved(site, saving, scale);
        self.sites.iter().map(at).sum()
    }

    /// Two standard deviations, of samples that are shared out among the instructions: of all `user_seconds` one sample
    /// saves so much on the mean, and each differs from that by its own part.
    fn sampling_error(&self, times: &[f64; 5], scale: RunScale, user_seconds: f64, seconds_a_sample: f64) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for &site in self.sites.iter().filter(|site| site.seconds > 0.0) {
            let saved = SiteWaits::new(site, times, scale).saved(site, times, scale);
            sum += saved;
            squares += saved * saved / site.seconds;
        }
        let mean = if user_seconds > 0.0 { sum * sum / user_seconds } else { 0.0 };
        2.0 * (seconds_a_sample * (squares - mean).max(0.0)).sqrt()
    }
}

/// How an instruction's visits wait.
struct SiteWaits {
    /// The part of them that waits for the one before.
    depth: f64,
    /// Its seconds, of those that they take if only those wait whose addresses say so: 1 at the most.
    of_least: f64,
}

impl SiteWaits {
    /// At one instruction.
    fn new(site: SiteShares, times: &[f64; 5], scale: RunScale) -> Self {
        let &[_, chained_huge, _, free_huge, instructions] = times;
        let (full_walks, fast_walks) = walks(site.cycles, times, scale);
        let full = scale.visits * chained_huge * site.visits + full_walks;
        let fast = scale.visits * (free_huge - instructions).max(0.0) * site.visits + fast_walks;
        let least = fast + site.chained * (full - fast);
        if site.seconds < least {
            return Self { depth: site.chained, of_least: site.seconds / least };
        }
        let depth = if site.seconds < full {
            (site.seconds - fast) / (full - fast)
        } else {
            let spread = full.max(0.0) / site.seconds.max(f64::MIN_POSITIVE);
            // Of a chain the instructions between its visits hide as much as they take, at the most.
            let work = scale.visits * instructions * site.visits;
            spread.max(site.chained * (1.0 - work / full.max(f64::MIN_POSITIVE)))
        };
        Self { depth, of_least: 1.0 }
    }

    /// What that instruction saves by these times.
    fn saved(&self, site: SiteShares, times: &[f64; 5], scale: RunScale) -> f64 {
        let (full_walks, fast_walks) = walks(site.cycles, times, scale);
        self.of_least * ((1.0 - self.depth) * fast_walks + self.depth * full_walks)
    }
}

/// Seconds of translation of such a share, if each visit waits for the one before, and if none does.
fn walks(of_cycles: f64, times: &[f64; 5], scale: RunScale) -> (f64, f64) {
    let &[chained_small, chained_huge, free_small, free_huge, _] = times;
    let of = |small: f64, huge: f64| scale.translation * (small - huge) * of_cycles;
    (of(chained_small, chained_huge), of(free_small, free_huge))
}

#[cfg(test)]
mod tests;
