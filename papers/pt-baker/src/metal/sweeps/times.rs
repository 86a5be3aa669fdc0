//! What was measured of each setting, and ratios of it.

use super::settings::HelperSetting;

/// What a setting came to, by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SettingTimes {
    /// Nanoseconds a read.
    pub ns_per_read: Vec<f64>,
    /// CPU time of the helper: share of one CPU.
    pub helper_cpu_share: Vec<f64>,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SweepTimes {
    /// How: the machine's part in it, sizes, CPUs, rounds, seeds.
    pub how: Vec<String>,
    /// Nanoseconds a read without a helper, by round.
    pub base: Vec<f64>,
    /// The same again, at another place in each round: a control.
    pub again: Vec<f64>,
    /// Every setting, or why it could not be.
    pub ways: Vec<(HelperSetting, Result<SettingTimes, String>)>,
    /// Rounds that were planned.
    pub rounds_wanted: u32,
    /// Why there were not as many.
    pub ended: Option<String>,
}

/// A ratio of medians, and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RatioInterval {
    /// The ratio.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The interval does not hold 1, and there were rounds enough.
    pub significant: bool,
}

/// Ratio of the medians of two lists by round, the first over the second; `None` if there is none.
pub(super) type JudgeRatio<'a> = &'a dyn Fn(&[f64], &[f64]) -> Option<RatioInterval>;

impl SweepTimes {
    /// What a setting came to, or why not.
    pub(super) fn came(&self, way: &HelperSetting) -> Result<&SettingTimes, &str> {
        let of = self.ways.iter().find(|(of, _)| of == way);
        of.map_or(Err("not measured"), |(_, came)| came.as_ref().map_err(String::as_str))
    }
}

/// Reads a second above those of base, in percent, by a ratio of times.
pub(super) fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}
