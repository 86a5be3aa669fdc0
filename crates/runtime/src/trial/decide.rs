//! What comes of a trial.

use serde::Serialize;

use super::effect::MeasureEffect;

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TrialVerdict {
    /// All of the interval is on the good side.
    Helps,
    /// All of it is on the bad side.
    Hurts,
    /// The interval holds no change, and is as narrow as was asked for.
    NoEffect,
    /// The interval holds no change, and is wider: an effect of that size can't be told from none.
    CantTell,
}

/// What was done with what was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It stays applied; `lookaside undo` takes it back.
    Kept,
    /// It was taken back.
    TakenBack,
    /// Not all of it could be taken back; `lookaside undo` tries again.
    NotAllTakenBack,
    /// The processes have ended.
    Ended,
}

impl TrialVerdict {
    /// By the effect on the metric; without one nothing can be told.
    pub fn of(effect: Option<&MeasureEffect>, more_is_better: bool, precision: f64) -> Self {
        let Some(effect) = effect else { return Self::CantTell };
        let (low, high) = (effect.change.low, effect.change.high);
        match (high < 0.0, low > 0.0) {
            (true, _) if more_is_better => Self::Hurts,
            (true, _) => Self::Helps,
            (_, true) if more_is_better => Self::Helps,
            (_, true) => Self::Hurts,
            _ if effect.half_width() <= precision => Self::NoEffect,
            _ => Self::CantTell,
        }
    }
}

#[cfg(test)]
mod tests {
    use lookaside_stats::Shift;

    use super::super::effect::Measure;
    use super::*;

    fn effect(low: f64, value: f64, high: f64) -> MeasureEffect {
        let change = Shift { value, low, high };
        MeasureEffect { measure: Measure::CpuTime, name: String::new(), off: 1.0, on: 1.0, change, pairs: 9 }
    }

    #[test]
    fn the_interval_decides() {
        let of = |low, value, high, more| TrialVerdict::of(Some(&effect(low, value, high)), more, 0.01);
        assert_eq!(of(-0.09, -0.05, -0.01, false), TrialVerdict::Helps);
        assert_eq!(of(-0.09, -0.05, -0.01, true), TrialVerdict::Hurts);
        assert_eq!(of(0.01, 0.05, 0.09, false), TrialVerdict::Hurts);
        assert_eq!(of(0.01, 0.05, 0.09, true), TrialVerdict::Helps);
        assert_eq!(of(-0.009, 0.0, 0.009, false), TrialVerdict::NoEffect);
        assert_eq!(of(-0.011, 0.0, 0.009, true), TrialVerdict::CantTell);
        assert_eq!(of(0.0, 0.05, 0.09, false), TrialVerdict::CantTell);
        assert_eq!(TrialVerdict::of(None, false, 0.01), TrialVerdict::CantTell);
    }
}
