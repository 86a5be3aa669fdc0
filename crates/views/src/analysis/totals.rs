//! Sums and shares that several sections name.

use lookaside_machine::Machine;
use lookaside_report::num;
use lookaside_techniques::{Analysis, NamedCost, Remedy, Seeing};

/// Share of modelled cycles below which there is nothing to gain.
const NOTHING_TO_GAIN: f64 = 0.01;

/// Totals of an exact run, data and fetch side together.
pub struct Totals {
    /// Loads, stores, and fetches if recorded.
    pub accesses: u64,
    /// Cycles of translation.
    pub translation_cycles: f64,
    /// All modelled cycles.
    pub modelled_cycles: f64,
    /// First of these in the second, 1 = all; not a number where nothing ran.
    pub share: f64,
    /// They are of intervals of the run.
    is_of_intervals: bool,
}

impl Totals {
    /// Adds up an analysis.
    pub fn of(analysis: &Analysis) -> Self {
        let outcome = &analysis.outcome;
        Self {
            accesses: outcome.data.accesses.saturating_add(outcome.fetch.accesses),
            translation_cycles: outcome.translation_cycles(),
            modelled_cycles: outcome.modelled_cycles(),
            share: match analysis.intervals.as_ref().and_then(|estimate| estimate.translation_share) {
                Some(share) => share.value,
                None => num::share(outcome.translation_cycles(), outcome.modelled_cycles()),
            },
            is_of_intervals: analysis.intervals.is_some(),
        }
    }

    /// There is a cost worth looking at.
    pub fn worth_it(&self) -> bool {
        self.share >= NOTHING_TO_GAIN
    }

    /// At the machine's clock: what translation takes of all; `None` where the clock is not known, and of intervals.
    pub fn seconds(&self, machine: &Machine) -> Option<String> {
        // Of intervals they would be nobody's.
        if self.is_of_intervals {
            return None;
        }
        let seconds = |cycles| num::share(cycles, machine.clock_mhz * 1e6);
        let time = seconds(self.translation_cycles);
        time.is_finite().then(|| {
            let (mhz, all) = (num::short(machine.clock_mhz), num::seconds(seconds(self.modelled_cycles)));
            format!("at {mhz} MHz: {} of {all}", num::seconds(time))
        })
    }
}

/// Sum of the counts.
pub fn sum(counts: &[(String, u64)]) -> u64 {
    counts.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
}

/// A row's name, or a word that it has none.
pub fn name(row: &NamedCost) -> &str {
    if row.name.is_empty() {
        "(no name)"
    } else {
        &row.name
    }
}

/// A row's share of translation cycles, or of all samples.
pub fn share(analysis: &Analysis, row: &NamedCost) -> f64 {
    match analysis.seeing {
        Seeing::Exact { .. } => num::share(row.cost.cycles(), in_rows(analysis)),
        Seeing::Sampled { samples, .. } => num::share(row.samples as f64, samples as f64),
    }
}

/// Translation cycles that the rows have in all. Those of a run in intervals have their warm-up too, which the totals
/// have not.
fn in_rows(analysis: &Analysis) -> f64 {
    match analysis.intervals {
        None => analysis.outcome.translation_cycles(),
        Some(_) => analysis.outcome.threads.iter().map(|thread| thread.cost.cycles()).sum(),
    }
}

/// What a remedy gives.
pub struct Savings {
    /// Of translation cycles, 1 = all; negative = it costs.
    pub of_translation: f64,
    /// The ends of its 95 % interval, the lower first; `None` = there is none: the run was computed whole, or it can't
    /// be told.
    pub interval: Option<[f64; 2]>,
    /// Of all modelled cycles: what translation is of them, times the saving of translation cycles. One scale, whatever
    /// part of the run the row was computed over.
    pub of_all: f64,
    /// Walks with it in walks without it.
    pub walks_left: f64,
}

impl Savings {
    /// Of one remedy, in a run of these totals.
    pub fn of(remedy: &Remedy, totals: &Totals) -> Self {
        let ends = remedy.least_saved_share.zip(remedy.most_saved_share);
        Self {
            of_translation: remedy.saved_share,
            interval: ends.map(|(least, most)| [least, most]).filter(|_| remedy.windows > 0),
            of_all: remedy.saved_share * totals.share,
            walks_left: num::share(remedy.walks as f64, remedy.base_walks as f64),
        }
    }
}

/// What stands before the numbers of a row that is near.
pub fn near(remedy: &Remedy) -> &'static str {
    if remedy.approximate {
        "≈\u{a0}"
    } else {
        ""
    }
}

/// A ratio of times, as `compare` writes it.
pub fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio.abs() < 1000.0 => format!("{ratio:.3}"),
        large => num::short(large),
    }
}
