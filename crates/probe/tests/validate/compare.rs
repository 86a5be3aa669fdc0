//! The twin's twin: where the metal is the engine, a true description is off by the noise, and a wrong one by far more.

use lookaside_machine::{Machine, PageSize, Quartiles, RandomReads, ReadCosts, Timing};
use lookaside_probe::validate::{
    model, patterns, validate, AccessPattern, PairedRun, PatternFamily, Validation, ValidationOptions, ValidationRow,
};
use lookaside_probe::{AccessOrder, Halt, Metal, MetalError, NeighbourWalk, OtherCpu, PageChain, WordSequence};
use lookaside_stats::SplitMix64;

/// The engine in place of the metal, with noise on each sample.
struct Made {
    machine: Machine,
    noise: f64,
    rng: SplitMix64,
}

impl Metal for Made {
    fn page_bits(&self, size: PageSize) -> u32 {
        35 - size.shift()
    }

    fn max_pages(&self, _: PageSize) -> usize {
        usize::MAX
    }

    fn chase(&mut self, _: &PageChain<'_>, _: u32, _: usize) -> Result<Vec<f64>, MetalError> {
        Err(MetalError::Unsupported("not asked for".into()))
    }

    fn cycles_per_tick(&self) -> f64 {
        2.0
    }

    fn frame_run_pages(&mut self, _: PageSize) -> Result<u64, MetalError> {
        Ok(512)
    }

    fn replay(&mut self, sequence: &WordSequence<'_>, _: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        // Another seed than the model's: frames and tables lie elsewhere.
        let made =
            model(&self.machine, sequence.size, sequence.words, sequence.update, 512, 77).expect("a possible machine");
        let ticks = made.expect("pages of this size").cycles * sequence.words.len() as f64 / 2.0;
        let mut noisy = || 1.0 + self.noise * (2.0 * self.rng.unit() - 1.0);
        Ok((0..samples).map(|_| ticks * noisy()).collect())
    }
}

/// The quick patterns that a debug build models in no time.
fn small() -> Vec<AccessPattern> {
    let short = |pattern: &AccessPattern| pattern.bytes() <= 80 << 20 && pattern.words(1).len() <= 1 << 15;
    patterns(true).into_iter().filter(short).collect()
}

/// Of so many small pages.
fn pattern(family: PatternFamily, span_pages: u64) -> AccessPattern {
    let (page_size, order) = (PageSize::K4, AccessOrder::Dependent);
    AccessPattern { family, page_size, span_pages, stride_pages: 1, order, beside_stream: false }
}

fn options(patterns: Vec<AccessPattern>) -> ValidationOptions {
    ValidationOptions { patterns, max_bytes: 1 << 30, repeats: 3, seed: 1 }
}

fn compare(real: &Machine, described: &Machine, noise: f64) -> Validation {
    let mut metal = Made { machine: real.clone(), noise, rng: SplitMix64::new(9) };
    validate(&mut metal, described, &options(small()), &|| None, &mut |_, _| {}).expect("a possible machine")
}

/// A preset with a last cache that is small enough for a test.
fn preset() -> Machine {
    with_last_cache("1M")
}

/// The same with another last cache.
fn with_last_cache(bytes: &str) -> Machine {
    let overrides = [format!("cache.l3.size={bytes}"), "cache.l3.ways=16".into(), "cache.l2.size=64K".into()];
    lookaside_machine::preset("skylake").expect("a preset").with_overrides(&overrides).expect("a possible machine")
}

#[test]
fn a_true_description_is_off_by_the_noise() {
    let validation = compare(&preset(), &preset(), 0.02);
    let all = validation.with_edge.as_ref().expect("rows");
    assert_eq!((all.rows, validation.left_out.len()), (small().len(), 0));
    // 2 % noise, and what other frames change where few tables share the sets of a cache.
    assert!(all.median_error_percent <= 2.1 && all.worst_error_percent <= 20.0, "{all:?}");
    assert!(all.within());
    for row in &validation.rows {
        assert_eq!(row.runs.len(), 3);
        assert!(row.low_cycles <= row.measured_cycles && row.measured_cycles <= row.high_cycles);
        let parts = row.modelled.translation_cycles + row.modelled.data_cycles + 1.0;
        assert!((parts - row.modelled.cycles).abs() < 1e-9, "{row:?}");
    }
}

#[test]
fn a_wrong_description_shows() {
    let wrongs = [
        (vec!["walker.base_cycles=60"], "random chase"),
        (vec!["cache.l1d-cache.hit_cycles=9"], "stride"),
        (vec!["tlb.stlb.hit_cycles=40"], "random chase"),
    ];
    for (overrides, family) in wrongs {
        let overrides: Vec<String> = overrides.into_iter().map(String::from).collect();
        let wrong = preset().with_overrides(&overrides).expect("a possible machine");
        let validation = compare(&preset(), &wrong, 0.02);
        let all = validation.summary.as_ref().expect("rows");
        assert!(!all.within(), "{overrides:?}: {all:?}");
        let of_family = validation.families.iter().find(|(f, _)| f.name() == family).expect("the family");
        assert!(of_family.1.worst_error_percent > 30.0, "{overrides:?}: {of_family:?}");
    }
}

#[test]
fn what_others_leave_of_the_last_cache_is_found_and_modelled() {
    let (real, described) = (with_last_cache("256K"), with_last_cache("1M"));
    let validation = compare(&real, &described, 0.02);
    let shared = validation.last_cache.expect("a shared cache");
    assert_eq!(shared.described_bytes, 1 << 20);
    // Within a quarter of an octave, and what random frames make of it.
    assert!(shared.least_bytes > 180 << 10 && shared.most_bytes < 360 << 10, "{shared:?}");
    assert_eq!(validation.unsteady_runs, 0);
    let (all, as_described) = (validation.summary.expect("rows"), validation.as_described.expect("another"));
    assert!(as_described.worst_error_percent > 50.0, "{as_described:?}");
    assert!(all.worst_error_percent < 30.0, "{all:?}");
    // What is not judged is about as large as that cache, and within what the model allows.
    let edge: Vec<&ValidationRow> = validation.rows.iter().filter(|row| row.on_edge).collect();
    assert_eq!(all.rows + edge.len(), validation.rows.len());
    for row in edge {
        let (least, most) = row.modelled_range_cycles;
        assert!(0.97 * least < row.measured_cycles && row.measured_cycles < 1.03 * most, "{row:?}");
    }
    // A row that never leaves the first caches is the same with both.
    let row = validation.rows.iter().find(|row| row.pattern.pages() == 2).expect("a small one");
    assert_eq!((row.last_cache_bytes, row.error_percent), (None, row.as_described_error_percent));
}

/// A machine that leaves now more, now less of its last cache.
struct Restless {
    states: [Made; 2],
    at: usize,
    /// When it changes: from pass to pass, or after each run of the pattern.
    by_pass: bool,
}

impl Restless {
    fn new(last_caches: [&str; 2], by_pass: bool) -> Self {
        let made = |bytes| Made { machine: with_last_cache(bytes), noise: 0.0, rng: SplitMix64::new(9) };
        Self { states: last_caches.map(made), at: 0, by_pass }
    }
}

impl Metal for Restless {
    fn page_bits(&self, size: PageSize) -> u32 {
        self.states[0].page_bits(size)
    }
    fn max_pages(&self, size: PageSize) -> usize {
        self.states[0].max_pages(size)
    }
    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        self.states[0].chase(chain, rounds, samples)
    }
    fn cycles_per_tick(&self) -> f64 {
        2.0
    }
    fn cycles_per_tick_now(&mut self) -> f64 {
        self.at += usize::from(self.by_pass); // asked where a pass begins
        2.0
    }
    fn replay(&mut self, sequence: &WordSequence<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        let ticks = self.states[self.at % 2].replay(sequence, rounds, samples);
        // The pattern is the only sequence that writes.
        self.at += usize::from(sequence.update && !self.by_pass);
        ticks
    }
}

#[test]
fn runs_during_which_the_last_cache_changes_do_not_count() {
    let mut metal = Restless::new(["1M", "256K"], false);
    let gups = pattern(PatternFamily::Gups, 512);
    let mut options = options(vec![gups]);
    options.repeats = 1;
    let validation =
        validate(&mut metal, &with_last_cache("1M"), &options, &|| None, &mut |_, _| {}).expect("a possible machine");
    assert_eq!((validation.unsteady_runs, validation.rows.len()), (1, 0));
    assert!(validation.left_out[0].reason.contains("last cache"), "{:?}", validation.left_out);
}

#[test]
fn each_run_is_held_against_the_last_cache_as_it_was_then() {
    let mut metal = Restless::new(["4M", "256K"], true);
    let gups = pattern(PatternFamily::Gups, 512);
    let mut options = options(vec![gups]);
    options.repeats = 4;
    let validation =
        validate(&mut metal, &with_last_cache("1M"), &options, &|| None, &mut |_, _| {}).expect("a possible machine");
    let row = &validation.rows[0];
    let least = row.runs.iter().map(|run| run.modelled_cycles).fold(f64::INFINITY, f64::min);
    let most = row.runs.iter().map(|run| run.modelled_cycles).fold(0.0, f64::max);
    assert!(most > 1.5 * least, "{row:?}");
    let off = |run: &PairedRun| (run.modelled_cycles / run.cycles - 1.0).abs();
    assert!(row.runs.iter().all(|run| off(run) < 0.2), "{row:?}");
    // Given is the lower quartile of the ratio of the two.
    let ratios: Vec<f64> = row.runs.iter().map(|run| run.cycles / run.modelled_cycles).collect();
    assert!(ratios.is_sorted(), "{ratios:?}");
    assert_eq!((row.measured_cycles, row.runs.len()), (row.runs[0].cycles, 4));
}

#[test]
fn the_same_seed_gives_the_same_model() {
    let (a, b) = (compare(&preset(), &preset(), 0.0), compare(&preset(), &preset(), 0.0));
    let modelled = |v: &Validation| v.rows.iter().map(|row| row.modelled).collect::<Vec<_>>();
    assert_eq!(modelled(&a), modelled(&b));
}

#[test]
fn what_does_not_fit_is_left_out_and_named() {
    let mut metal = Made { machine: preset(), noise: 0.0, rng: SplitMix64::new(9) };
    let mut options = options(small());
    options.max_bytes = 1 << 20;
    let validation = validate(&mut metal, &preset(), &options, &|| None, &mut |_, _| {}).expect("a possible machine");
    assert_eq!(validation.rows.len() + validation.left_out.len(), small().len());
    assert!(validation.rows.iter().all(|row| row.pattern.bytes() <= 1 << 20));
    assert!(!validation.left_out.is_empty());
    assert!(validation.left_out.iter().all(|left| left.reason.contains("1 MiB are allowed")));

    // A machine without pages of 2 MiB.
    let small_pages = lookaside_machine::preset("cortex-a7").expect("a preset");
    options.max_bytes = 1 << 30;
    let validation =
        validate(&mut metal, &small_pages, &options, &|| None, &mut |_, _| {}).expect("a possible machine");
    assert!(validation.left_out.iter().any(|left| left.reason.contains("no pages of 2M")), "{:?}", validation.left_out);
}

#[test]
fn an_interruption_gives_what_is_known() {
    let mut metal = Made { machine: preset(), noise: 0.0, rng: SplitMix64::new(9) };
    let asked = std::cell::Cell::new(0);
    let patterns = small();
    // After all models and the first run of half of the patterns.
    let most = patterns.len() + patterns.len() / 2;
    let halt = || {
        asked.set(asked.get() + 1);
        (asked.get() > most).then_some(Halt::Interrupted)
    };
    let validation =
        validate(&mut metal, &preset(), &options(patterns.clone()), &halt, &mut |_, _| {}).expect("a possible machine");
    assert_eq!(validation.halted.as_deref(), Some("interrupted"));
    assert!(!validation.rows.is_empty() && validation.rows.len() < patterns.len());
    assert_eq!(validation.rows.len() + validation.left_out.len(), patterns.len());
}

/// A machine that overlaps reads, and takes longer beside a stream.
struct Overlapping {
    made: Made,
    streams: bool,
}

/// Parts that are left of data and of what small pages add: of independent reads, and of any beside a stream.
const INDEPENDENT: (f64, f64) = (0.1, 0.25);
const BESIDE: (f64, f64) = (1.5, 2.0);

/// Both of what a pattern is.
fn left(order: AccessOrder, streams: bool) -> (f64, f64) {
    let (a, b) = (
        if order == AccessOrder::Independent { INDEPENDENT } else { (1.0, 1.0) },
        if streams { BESIDE } else { (1.0, 1.0) },
    );
    (a.0 * b.0, a.1 * b.1)
}

impl Metal for Overlapping {
    fn page_bits(&self, size: PageSize) -> u32 {
        self.made.page_bits(size)
    }
    fn max_pages(&self, size: PageSize) -> usize {
        self.made.max_pages(size)
    }
    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        self.made.chase(chain, rounds, samples)
    }
    fn cycles_per_tick(&self) -> f64 {
        2.0
    }
    fn frame_run_pages(&mut self, _: PageSize) -> Result<u64, MetalError> {
        Ok(512)
    }
    fn cpus(&mut self) -> Vec<OtherCpu> {
        vec![OtherCpu { number: 1, sibling: Some(false) }]
    }
    fn neighbour(&mut self, walk: Option<NeighbourWalk>) -> Result<(), MetalError> {
        self.streams = walk.is_some();
        Ok(())
    }
    fn replay(&mut self, sequence: &WordSequence<'_>, _: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        let of_size = |size| {
            let made = model(&self.made.machine, size, sequence.words, sequence.update, 512, 77);
            made.expect("a possible machine").expect("pages of this size")
        };
        let (small, huge) = (of_size(sequence.size), of_size(PageSize::M2));
        let (data, walks) = left(sequence.order, self.streams);
        let added = (small.translation_cycles - huge.translation_cycles).max(0.0);
        let cycles = (small.data_cycles + small.translation_cycles - added) * data + added * walks;
        let addition = if sequence.order == AccessOrder::Dependent { 1.0 } else { 0.0 };
        Ok(vec![(cycles + addition) * sequence.words.len() as f64 / 2.0; samples])
    }
}

/// What such a machine's table says, over footprints that no pattern has.
fn timing() -> Timing {
    let row = |footprint: u64, beside_stream: bool| {
        let costs = |added: f64| {
            let ns = |order| {
                let (data, walks) = left(order, beside_stream);
                Quartiles::from([1.0; 3].map(|all| all * (80.0 * data + added * walks)))
            };
            ReadCosts {
                dependent_ns_per_read: ns(AccessOrder::Dependent),
                independent_ns_per_read: ns(AccessOrder::Independent),
            }
        };
        let (small_pages, huge_pages) = (costs(30.0), Some(costs(0.0)));
        RandomReads {
            footprint,
            beside_stream,
            small_pages,
            huge_pages,
            overlapping_misses: None,
            overlapping_walks: None,
        }
    };
    let random_reads = [(2 << 20, false), (2 << 20, true), (1 << 30, false), (1 << 30, true)];
    Timing { random_reads: random_reads.map(|(bytes, beside)| row(bytes, beside)).into(), ..Timing::default() }
}

#[test]
fn overlap_and_load_are_what_the_description_s_timing_says() {
    let mut metal =
        Overlapping { made: Made { machine: preset(), noise: 0.0, rng: SplitMix64::new(9) }, streams: false };
    let reads = pattern(PatternFamily::Random, (16 << 20) / 4096);
    let kinds = [false, true].map(|beside_stream| {
        [AccessOrder::Dependent, AccessOrder::Independent].map(|order| AccessPattern { order, beside_stream, ..reads })
    });
    let options = ValidationOptions { repeats: 1, ..options(kinds.concat()) };
    // Without the table only what the engine itself says is compared.
    let plain = validate(&mut metal, &preset(), &options, &|| None, &mut |_, _| {}).expect("a possible machine");
    assert_eq!((plain.rows.len(), plain.left_out.len()), (1, 3));
    assert!(plain.left_out.iter().all(|left| left.reason.contains("[timing]")), "{:?}", plain.left_out);
    let described = Machine { timing: Some(timing()), ..preset() };
    let validation = validate(&mut metal, &described, &options, &|| None, &mut |_, _| {}).expect("a possible machine");
    assert!(!metal.streams, "the stream ends");
    assert_eq!((validation.rows.len(), validation.left_out.len()), (4, 0));
    for row in &validation.rows {
        assert!(row.error_percent.abs() < 3.0 && row.modelled.walks_per_access > 0.5, "{row:?}");
    }
    let cycles: Vec<f64> = validation.rows.iter().map(|row| row.measured_cycles).collect();
    assert!(cycles[1] < 0.3 * cycles[0] && cycles[2] > 1.4 * cycles[0] && cycles[3] > 1.4 * cycles[1], "{cycles:?}");
}
