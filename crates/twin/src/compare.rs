//! Both sides of each pattern, and the sum of it.

use lookaside_engine::SetupError;
use lookaside_machine::{Machine, PageSize};
use lookaside_probe::{Halt, Metal, Sequence};
use serde::Serialize;

use crate::model::{model, Modelled};
use crate::pattern::{Family, Pattern};

/// Median error that a description is to stay within, in percent.
pub const MEDIAN_BOUND_PERCENT: f64 = 10.0;
/// Worst error that it is to stay within, in percent.
pub const WORST_BOUND_PERCENT: f64 = 30.0;
/// Accesses that a sample has at least, in whole rounds: so many that the timer's cost does not show.
const ACCESSES_A_SAMPLE: usize = 1 << 14;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The patterns.
    pub patterns: Vec<Pattern>,
    /// Most bytes that a pattern may have; larger ones are left out and named.
    pub max_bytes: u64,
    /// Runs of each pattern, one after the other through all patterns of a page size.
    pub repeats: usize,
    /// Seed of the patterns and of the model.
    pub seed: u64,
}

/// What came out.
#[derive(Clone, Debug, Serialize)]
pub struct Validation {
    /// Lookaside's version.
    pub version: String,
    /// Name of the description.
    pub machine: String,
    /// Seed.
    pub seed: u64,
    /// Runs of each pattern.
    pub repeats: usize,
    /// Core cycles in a tick of the timer, lowest and highest seen.
    pub cycles_per_tick: (f64, f64),
    /// Patterns with both sides.
    pub rows: Vec<Row>,
    /// Patterns without.
    pub left_out: Vec<LeftOut>,
    /// All rows.
    pub summary: Option<Summary>,
    /// Each family's rows.
    pub families: Vec<(Family, Summary)>,
    /// Why it ended early; `None` = it did not.
    pub halted: Option<String>,
}

/// A pattern, measured and modelled.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The pattern.
    pub pattern: Pattern,
    /// Its name.
    pub name: String,
    /// Core cycles an access on the metal: median of the runs.
    pub measured_cycles: f64,
    /// The fastest run.
    pub low_cycles: f64,
    /// The slowest run.
    pub high_cycles: f64,
    /// Runs.
    pub runs: usize,
    /// Cycles an access in the model.
    pub modelled: Modelled,
    /// Modelled less measured, in percent of measured.
    pub error_percent: f64,
}

/// A pattern that was not compared.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// The pattern.
    pub pattern: Pattern,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Errors without their sign over some rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Rows.
    pub rows: usize,
    /// Median error in percent of the measured.
    pub median_error_percent: f64,
    /// Worst error in percent of the measured.
    pub worst_error_percent: f64,
    /// The row that has it.
    pub worst: String,
}

impl Summary {
    fn of(rows: &[&Row]) -> Option<Self> {
        let mut errors: Vec<(f64, &str)> =
            rows.iter().map(|row| (row.error_percent.abs(), row.name.as_str())).collect();
        errors.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (worst, name) = *errors.last()?;
        let values: Vec<f64> = errors.iter().map(|error| error.0).collect();
        Some(Self {
            rows: errors.len(),
            median_error_percent: median(&values),
            worst_error_percent: worst,
            worst: name.to_string(),
        })
    }

    /// Whether it is within the bounds.
    pub fn within(&self) -> bool {
        self.median_error_percent <= MEDIAN_BOUND_PERCENT && self.worst_error_percent <= WORST_BOUND_PERCENT
    }
}

/// Runs the patterns on both sides. `halt` is asked before each run; `progress` is told what comes next and the share that
/// is done.
///
/// # Errors
/// The description is one that the engine refuses. What the metal refuses is in [`Validation::left_out`].
pub fn validate(
    metal: &mut dyn Metal,
    machine: &Machine,
    options: &Options,
    halt: &dyn Fn() -> Option<Halt>,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<Validation, SetupError> {
    let mut validation = Validation {
        version: env!("CARGO_PKG_VERSION").into(),
        machine: machine.name.clone(),
        repeats: options.repeats,
        seed: options.seed,
        cycles_per_tick: (f64::INFINITY, 0.0),
        rows: Vec::new(),
        left_out: Vec::new(),
        summary: None,
        families: Vec::new(),
        halted: None,
    };
    let mut sides: Vec<Side> = Vec::new();
    let total = options.patterns.len().max(1) as f64;
    for pattern in &options.patterns {
        let mut leave = |reason: String| {
            validation.left_out.push(LeftOut { pattern: *pattern, name: pattern.name(), reason });
        };
        if let Some(halt) = halt() {
            leave(halt.to_string());
            validation.halted = Some(halt.to_string());
            continue;
        }
        if pattern.bytes() > options.max_bytes {
            leave(format!("needs {} MiB, {} MiB are allowed", pattern.bytes() >> 20, options.max_bytes >> 20));
            continue;
        }
        progress(&format!("modelling {}", pattern.name()), 0.4 * sides.len() as f64 / total);
        let words = pattern.words(options.seed);
        match model(machine, pattern.page_size, &words, pattern.updates(), options.seed)? {
            Some(modelled) => sides.push(Side { pattern: *pattern, modelled, cycles: Vec::new(), refused: None }),
            None => leave(format!("the description's page tables have no pages of {}", pattern.page_size)),
        }
    }
    measure(metal, options, halt, progress, &mut sides, &mut validation);
    for side in sides {
        let name = side.pattern.name();
        if side.cycles.is_empty() {
            let reason = side.refused.or_else(|| validation.halted.clone()).unwrap_or_default();
            validation.left_out.push(LeftOut { pattern: side.pattern, name, reason });
            continue;
        }
        validation.rows.push(side.row(name));
    }
    let all: Vec<&Row> = validation.rows.iter().collect();
    validation.summary = Summary::of(&all);
    for family in Family::ALL {
        let rows: Vec<&Row> = all.iter().copied().filter(|row| row.pattern.family == family).collect();
        validation.families.extend(Summary::of(&rows).map(|summary| (family, summary)));
    }
    Ok(validation)
}

/// A pattern with what is known of it so far.
struct Side {
    pattern: Pattern,
    modelled: Modelled,
    cycles: Vec<f64>,
    refused: Option<String>,
}

impl Side {
    fn row(mut self, name: String) -> Row {
        self.cycles.sort_by(f64::total_cmp);
        let measured_cycles = median(&self.cycles);
        Row {
            pattern: self.pattern,
            name,
            measured_cycles,
            low_cycles: self.cycles[0],
            high_cycles: self.cycles[self.cycles.len() - 1],
            runs: self.cycles.len(),
            modelled: self.modelled,
            error_percent: (self.modelled.cycles / measured_cycles - 1.0) * 100.0,
        }
    }
}

/// All runs on the metal: through all patterns of a page size, again and again, so that a disturbance falls on many
/// patterns once and not on one in all its runs.
fn measure(
    metal: &mut dyn Metal,
    options: &Options,
    halt: &dyn Fn() -> Option<Halt>,
    progress: &mut dyn FnMut(&str, f64),
    sides: &mut [Side],
    validation: &mut Validation,
) {
    let mut sizes: Vec<PageSize> = sides.iter().map(|side| side.pattern.page_size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let total = (sides.len() * options.repeats).max(1) as f64;
    let mut done = 0.0;
    for size in sizes {
        for repeat in 0..options.repeats {
            let cycles_per_tick = metal.cycles_per_tick_now();
            let (low, high) = validation.cycles_per_tick;
            validation.cycles_per_tick = (low.min(cycles_per_tick), high.max(cycles_per_tick));
            for side in sides.iter_mut().filter(|side| side.pattern.page_size == size) {
                if let Some(halt) = halt() {
                    validation.halted = Some(halt.to_string());
                    return;
                }
                done += 1.0;
                if side.refused.is_some() {
                    continue;
                }
                let what = format!("measuring {} (run {} of {})", side.pattern.name(), repeat + 1, options.repeats);
                progress(&what, 0.4 + 0.6 * done / total);
                let words = side.pattern.words(options.seed);
                let sequence = Sequence { size, words: &words, update: side.pattern.updates() };
                let rounds = ACCESSES_A_SAMPLE.div_ceil(words.len()).max(1) as u32;
                match metal.replay(&sequence, rounds, 1) {
                    Ok(ticks) => side.cycles.extend(ticks.iter().map(|t| t * cycles_per_tick / words.len() as f64)),
                    Err(e) => side.refused = Some(e.to_string()),
                }
            }
        }
    }
}

/// The middle of a sorted list; 0 of an empty one.
fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}
