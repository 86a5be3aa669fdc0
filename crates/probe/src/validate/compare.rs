//! Measures and models each pattern, and compares.

use lookaside_engine::SetupError;
use lookaside_machine::{Machine, PageSize};

use crate::bench::Halt;
use crate::metal::{Metal, MetalError, WordSequence};
use crate::stream::{start_stream, stream_cpu};
use crate::validate::access_pattern::{AccessPattern, PatternFamily};
use crate::validate::last_level_cache::LastLevelCache;
use crate::validate::model::ModelledCycles;
use crate::validate::validation::{
    ErrorSummary, OmittedPattern, PairedRun, SharedCache, Validation, ValidationRow, WORST_BOUND_PERCENT,
};

/// Accesses that a sample has at least, in whole rounds: so many that the timer's cost does not show.
const ACCESSES_A_SAMPLE: usize = 1 << 14;
/// Tries of a run until the last cache is left as much to us after it as before it.
const TRIES: u32 = 3;

/// What to run.
#[derive(Clone, Debug)]
pub struct ValidationOptions {
    /// The patterns.
    pub patterns: Vec<AccessPattern>,
    /// Most bytes that a pattern may have; larger ones are left out and named.
    pub max_bytes: u64,
    /// Runs of each pattern, one after the other through all patterns of a page size.
    pub repeats: usize,
    /// Seed of the patterns and of the model.
    pub seed: u64,
}

/// Runs the patterns on both sides. `halt` is asked before each run and each model; `progress` is told what comes next
/// and the share that is done.
///
/// # Errors
/// The description is one that the engine refuses. What the metal refuses is in [`Validation::left_out`].
pub fn validate(
    metal: &mut dyn Metal,
    machine: &Machine,
    options: &ValidationOptions,
    halt: &dyn Fn() -> Option<Halt>,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<Validation, SetupError> {
    let mut validation = Validation {
        version: env!("CARGO_PKG_VERSION").into(),
        machine: machine.name.clone(),
        repeats: options.repeats,
        seed: options.seed,
        cycles_per_tick: (f64::INFINITY, 0.0),
        frame_run_pages: 1,
        last_cache: None,
        unsteady_runs: 0,
        rows: Vec::new(),
        left_out: Vec::new(),
        summary: None,
        with_edge: None,
        as_described: None,
        families: Vec::new(),
        halted: None,
    };
    let last_cache = LastLevelCache::of(machine);
    let mut sides: Vec<PatternComparison> = Vec::new();
    let total = options.patterns.len().max(1) as f64;
    for pattern in &options.patterns {
        let mut leave = |reason: String| {
            validation.left_out.push(OmittedPattern { pattern: *pattern, name: pattern.name(), reason });
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
        if let Err(reason) = pattern.scale(machine) {
            leave(reason);
            continue;
        }
        progress(&format!("modelling {}", pattern.name()), MODELLING * sides.len() as f64 / total);
        let runs = frame_run_pages(metal, pattern.page_size);
        match pattern.model(machine, runs, options.seed)? {
            Some(described) => {
                sides.push(PatternComparison { pattern: *pattern, described, samples: Vec::new(), refused: None })
            }
            None => leave(format!("the description's page tables have no pages of {}", pattern.page_size)),
        }
    }
    let mut run = PatternRunner { metal, options, halt, last_cache: last_cache.as_ref(), fresh: None, streams: false };
    run.measure(progress, &mut sides, &mut validation);
    // What cannot be ended was not there.
    let _ = run.stream(false);

    let total = sides.len().max(1) as f64;
    for (number, side) in sides.into_iter().enumerate() {
        let name = side.pattern.name();
        if side.samples.is_empty() {
            let unsteady = || "the last cache was left more or less to us after each run than before it".to_string();
            let reason = side.refused.clone().or_else(|| validation.halted.clone()).unwrap_or_else(unsteady);
            validation.left_out.push(OmittedPattern { pattern: side.pattern, name, reason });
            continue;
        }
        progress(
            &format!("modelling {name}, the last cache as it was"),
            MEASURED + (1.0 - MEASURED) * number as f64 / total,
        );
        let frame_run_pages = frame_run_pages(metal, side.pattern.page_size);
        let mut sized =
            SizedModels { machine, cache: last_cache.as_ref(), options, frame_run_pages, known: Vec::new() };
        match side.row(&name, &mut sized, halt)? {
            Ok(row) => validation.rows.push(row),
            Err(halt) => {
                let reason = format!("{halt} before it was modelled with the last cache as it was");
                validation.halted = Some(halt.to_string());
                validation.left_out.push(OmittedPattern { pattern: side.pattern, name, reason });
            }
        }
    }
    let all: Vec<&ValidationRow> = validation.rows.iter().collect();
    validation.with_edge = ErrorSummary::of(&all, |row| row.error_percent);
    validation.as_described = ErrorSummary::of(&all, |row| row.as_described_error_percent);
    let judged: Vec<&ValidationRow> = all.iter().copied().filter(|row| !row.on_edge).collect();
    validation.summary = ErrorSummary::of(&judged, |row| row.error_percent);
    for family in PatternFamily::ALL {
        let rows: Vec<&ValidationRow> = judged.iter().copied().filter(|row| row.pattern.family == family).collect();
        let summary = ErrorSummary::of(&rows, |row| row.error_percent);
        validation.families.extend(summary.map(|summary| (family, summary)));
    }
    Ok(validation)
}

/// Share of the progress after modelling, and after measuring.
const MODELLING: f64 = 0.3;
const MEASURED: f64 = 0.8;

/// The last cache's share is known within this factor: a quarter of an octave, and [`LastLevelCache::same`] before and
/// after. It is measured by lines in random order; an ascending walk comes back to a line some fifty times sooner,
/// before others take it, and may have up to what the description says.
const UNSURE: f64 = 1.3;

/// How the metal's frames lie; where it does not say, at random.
fn frame_run_pages(metal: &mut dyn Metal, size: PageSize) -> u64 {
    metal.frame_run_pages(size).unwrap_or(1)
}

/// A run of a pattern.
#[derive(Clone, Copy)]
struct PatternSample {
    cycles: f64,
    last_cache_bytes: Option<u64>,
}

/// A pattern with what is known of it so far.
struct PatternComparison {
    pattern: AccessPattern,
    /// With the last cache that the description has.
    described: ModelledCycles,
    samples: Vec<PatternSample>,
    refused: Option<String>,
}

impl PatternComparison {
    /// The row of a pattern with at least one run.
    fn row(
        &self,
        name: &str,
        sized: &mut SizedModels<'_>,
        halt: &dyn Fn() -> Option<Halt>,
    ) -> Result<Result<ValidationRow, Halt>, SetupError> {
        let mut runs = Vec::new();
        for sample in &self.samples {
            let PatternSample { cycles, last_cache_bytes } = *sample;
            // As described it is modelled already.
            if let Some(halt) = last_cache_bytes.and_then(|_| halt()) {
                return Ok(Err(halt));
            }
            let modelled = sized.model(self, last_cache_bytes, 1.0)?;
            runs.push((PairedRun { cycles, last_cache_bytes, modelled_cycles: modelled.cycles }, modelled));
        }
        runs.sort_by(|(a, _), (b, _)| (a.cycles / a.modelled_cycles).total_cmp(&(b.cycles / b.modelled_cycles)));
        let (chosen, modelled) = runs[(runs.len() - 1) / 4];
        let larger = match (self.pattern.family, chosen.last_cache_bytes, sized.cache) {
            (PatternFamily::Sequential | PatternFamily::Streams, Some(bytes), Some(cache)) => {
                UNSURE.max(cache.described as f64 / bytes as f64)
            }
            _ => UNSURE,
        };
        let (mut least, mut most) = (modelled.cycles, modelled.cycles);
        for factor in [1.0 / UNSURE, larger] {
            let other = sized.model(self, chosen.last_cache_bytes, factor)?.cycles;
            (least, most) = (least.min(other), most.max(other));
        }
        let cycles = || runs.iter().map(|(run, _)| run.cycles);
        let error_percent = |modelled: ModelledCycles| (modelled.cycles / chosen.cycles - 1.0) * 100.0;
        Ok(Ok(ValidationRow {
            pattern: self.pattern,
            name: name.to_string(),
            measured_cycles: chosen.cycles,
            low_cycles: cycles().fold(f64::INFINITY, f64::min),
            high_cycles: cycles().fold(0.0, f64::max),
            last_cache_bytes: chosen.last_cache_bytes,
            modelled,
            modelled_range_cycles: (least, most),
            on_edge: most > (1.0 + WORST_BOUND_PERCENT / 100.0) * least,
            error_percent: error_percent(modelled),
            as_described_error_percent: error_percent(self.described),
            runs: runs.into_iter().map(|(run, _)| run).collect(),
        }))
    }
}

/// Models a pattern with last caches of several sizes, each once.
struct SizedModels<'a> {
    machine: &'a Machine,
    cache: Option<&'a LastLevelCache>,
    options: &'a ValidationOptions,
    frame_run_pages: u64,
    known: Vec<(Machine, ModelledCycles)>,
}

impl SizedModels<'_> {
    /// With so many times the bytes; as described where the pattern does not get there.
    fn model(
        &mut self,
        side: &PatternComparison,
        bytes: Option<u64>,
        factor: f64,
    ) -> Result<ModelledCycles, SetupError> {
        let (Some(cache), Some(bytes)) = (self.cache, bytes) else { return Ok(side.described) };
        let resized = cache.resized(self.machine, (bytes as f64 * factor) as u64);
        if let Some((_, known)) = self.known.iter().find(|(machine, _)| *machine == resized) {
            return Ok(*known);
        }
        let modelled = side.pattern.model(&resized, self.frame_run_pages, self.options.seed)?.unwrap_or_default();
        self.known.push((resized, modelled));
        Ok(modelled)
    }
}

/// The metal's side.
struct PatternRunner<'a> {
    metal: &'a mut dyn Metal,
    options: &'a ValidationOptions,
    halt: &'a dyn Fn() -> Option<Halt>,
    last_cache: Option<&'a LastLevelCache>,
    /// What the last cache held for us after the run just done.
    fresh: Option<u64>,
    /// A thread on another CPU reads memory in a row.
    streams: bool,
}

impl PatternRunner<'_> {
    /// All runs on the metal: through all patterns of a page size, again and again, so that a disturbance falls on many
    /// patterns once and not on one in all its runs.
    fn measure(
        &mut self,
        progress: &mut dyn FnMut(&str, f64),
        sides: &mut [PatternComparison],
        validation: &mut Validation,
    ) {
        let mut sizes: Vec<PageSize> = sides.iter().map(|side| side.pattern.page_size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let total = (sides.len() * self.options.repeats).max(1) as f64;
        let mut done = 0.0;
        for size in sizes {
            if size == PageSize::K4 {
                validation.frame_run_pages = frame_run_pages(self.metal, size);
            }
            for repeat in 0..self.options.repeats {
                let cycles_per_tick = self.metal.cycles_per_tick_now();
                let (low, high) = validation.cycles_per_tick;
                validation.cycles_per_tick = (low.min(cycles_per_tick), high.max(cycles_per_tick));
                self.fresh = None;
                for side in sides.iter_mut().filter(|side| side.pattern.page_size == size) {
                    if let Some(halt) = (self.halt)() {
                        validation.halted = Some(halt.to_string());
                        return;
                    }
                    done += 1.0;
                    if side.refused.is_some() {
                        continue;
                    }
                    let run = format!("run {} of {}", repeat + 1, self.options.repeats);
                    progress(
                        &format!("measuring {} ({run})", side.pattern.name()),
                        MODELLING + (MEASURED - MODELLING) * done / total,
                    );
                    match self.sample(&side.pattern, cycles_per_tick, validation) {
                        Ok(Some(sample)) => side.samples.push(sample),
                        Ok(None) => validation.unsteady_runs += 1,
                        Err(e) => side.refused = Some(e.to_string()),
                    }
                }
            }
        }
    }

    /// Has a thread on another CPU read memory in a row, or none.
    fn stream(&mut self, wanted: bool) -> Result<(), MetalError> {
        if self.streams == wanted {
            return Ok(());
        }
        // Others leave more or less of the last cache from now on.
        self.fresh = None;
        self.streams = wanted;
        if !wanted {
            return self.metal.neighbour(None);
        }
        let none = || MetalError::Cannot("there is no other CPU to put a stream on".into());
        let cpu = stream_cpu(self.metal).ok_or_else(none);
        cpu.and_then(|cpu| start_stream(self.metal, cpu)).inspect_err(|_| self.streams = false)
    }

    /// One run; `None` where the last cache was never the same before and after.
    fn sample(
        &mut self,
        pattern: &AccessPattern,
        cycles_per_tick: f64,
        validation: &mut Validation,
    ) -> Result<Option<PatternSample>, MetalError> {
        let size = pattern.page_size;
        let words = pattern.words(self.options.seed);
        let (order, update) = (pattern.order, pattern.updates());
        let sequence = WordSequence { order, update, ..WordSequence::dependent(size, &words) };
        self.stream(pattern.beside_stream)?;
        let rounds = ACCESSES_A_SAMPLE.div_ceil(words.len()).max(1) as u32;
        let cycles = |metal: &mut dyn Metal| -> Result<f64, MetalError> {
            let ticks = metal.replay(&sequence, rounds, 1)?.first().copied().unwrap_or_default();
            Ok(ticks * cycles_per_tick / words.len() as f64)
        };
        let Some(cache) = self.last_cache.filter(|cache| cache.serves(words.len())) else {
            return Ok(Some(PatternSample { cycles: cycles(self.metal)?, last_cache_bytes: None }));
        };
        for _ in 0..TRIES {
            let mut held = || cache.now(self.metal, size, cycles_per_tick, self.options.max_bytes);
            let before = match self.fresh.take() {
                Some(fresh) => fresh,
                None => held()?,
            };
            let cycles = cycles(self.metal)?;
            let after = cache.now(self.metal, size, cycles_per_tick, self.options.max_bytes)?;
            self.fresh = Some(after);
            if LastLevelCache::same(before, after) {
                let bytes = (before as f64 * after as f64).sqrt() as u64;
                let shared = validation.last_cache.get_or_insert(SharedCache {
                    described_bytes: cache.described,
                    least_bytes: bytes,
                    most_bytes: bytes,
                });
                (shared.least_bytes, shared.most_bytes) = (shared.least_bytes.min(bytes), shared.most_bytes.max(bytes));
                return Ok(Some(PatternSample { cycles, last_cache_bytes: Some(bytes) }));
            }
        }
        Ok(None)
    }
}
