//! Classifies one load (hit, first-level miss, walk) by its times with and without its translation in the TLB.

use lookaside_stats::median;
use serde::Serialize;

/// Samples beyond this many times their median are left out: interrupted. Walks whose tables are in memory are as long,
/// but then so is the median; where they are a minority, too many are left out to be interrupts, and that is seen.
const LONG: f64 = 4.0;
/// Share of samples left out from which on they were no interrupts.
const TOO_MANY: f64 = 0.05;
/// A load now hits, now misses, where the times' variance is larger than the control's by this share of the largest
/// that a mixture of hits and misses can have.
const MIXED: f64 = 0.4;

/// What a miss takes, from known sequences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MissCosts {
    /// Ticks that a first-level miss adds where the second level hits (where there is no second: a walk).
    pub l1_miss_ticks: f64,
    /// Ticks that a second-level miss adds to that; none where there is no second level.
    pub walk_ticks: Option<f64>,
}

/// What became of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessVerdict {
    /// It hit the first level.
    Hit,
    /// It missed the first level, and hit the second.
    L1Miss,
    /// It missed all levels: a walk.
    StlbMiss,
    /// Now this, now that, from round to round.
    Mixed,
}

/// Times of one load in many rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LoadTimes {
    pub mean: f64,
    variance: f64,
    /// Share of the samples left out.
    left_out: f64,
}

impl LoadTimes {
    /// Of these samples, without those that something long fell into.
    pub(crate) fn of(mut samples: Vec<f64>) -> Self {
        let Some(median) = median(&samples) else {
            return Self { mean: 0.0, variance: 0.0, left_out: 0.0 };
        };
        let all = samples.len() as f64;
        samples.retain(|&ticks| ticks <= LONG * median);
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let variance = samples.iter().map(|ticks| (ticks - mean).powi(2)).sum::<f64>() / count;
        Self { mean, variance, left_out: 1.0 - count / all }
    }

    /// The variance that is not the timer's: a duration of `f` grains beyond a whole number is read as one more in a
    /// share `f` of the cases.
    fn own_variance(&self, grain: f64) -> f64 {
        if !grain.is_finite() {
            return self.variance; // all times were the same
        }
        let part = (self.mean / grain).fract();
        (self.variance - grain * grain * part * (1.0 - part)).max(0.0)
    }
}

impl MissCosts {
    /// The verdict on a load that took `shot`, and `control` with its translation at hand.
    pub(crate) fn verdict(&self, shot: LoadTimes, control: LoadTimes, grain: f64) -> AccessVerdict {
        let extra = shot.mean - control.mean;
        let whole = self.l1_miss_ticks + self.walk_ticks.unwrap_or(0.0);
        let spread = shot.own_variance(grain) - control.own_variance(grain);
        if shot.left_out > control.left_out + TOO_MANY {
            return AccessVerdict::Mixed;
        }
        if extra < 0.5 * self.l1_miss_ticks {
            return AccessVerdict::Hit;
        }
        match self.walk_ticks {
            None => AccessVerdict::L1Miss,
            // Half of the walks missing would give a quarter of the square. Walks themselves vary: only what is
            // clearly below a whole one can be a mixture.
            Some(_) if extra < 0.8 * whole && spread > MIXED * 0.25 * whole * whole => AccessVerdict::Mixed,
            Some(walk) if extra < self.l1_miss_ticks + 0.5 * walk => AccessVerdict::L1Miss,
            Some(_) => AccessVerdict::StlbMiss,
        }
    }
}
