//! What every view of an analysis says, computed in one place.

use lookaside_machine::{Machine, Serves};
use lookaside_techniques::{Analysis, ChildExit, MissCurve, NamedCost, Remedy, Seeing};
use lookaside_trace::Granularity;

use lookaside_report::num;

/// Share of modelled cycles below which there is nothing to gain.
const NOTHING_TO_GAIN: f64 = 0.01;

/// Totals of an exact run, data and fetch side together.
pub struct Totals {
    /// Loads, stores, and fetches if recorded: the denominator of "per thousand accesses".
    pub accesses: u64,
    /// Cycles of translation.
    pub translation_cycles: f64,
    /// All modelled cycles.
    pub modelled_cycles: f64,
    /// First of these in the second, 1 = all; not a number where nothing ran.
    pub share: f64,
    /// Walk references by server, in the machine's order, `memory` last.
    pub by_server: Vec<(String, u64)>,
}

impl Totals {
    /// Adds up an analysis.
    pub fn of(analysis: &Analysis) -> Self {
        let outcome = &analysis.outcome;
        Self {
            accesses: outcome.data.accesses.saturating_add(outcome.fetch.accesses),
            translation_cycles: outcome.translation_cycles(),
            modelled_cycles: outcome.modelled_cycles(),
            share: num::share(outcome.translation_cycles(), outcome.modelled_cycles()),
            by_server: merged(&outcome.data.walk_references_by_server, &outcome.fetch.walk_references_by_server),
        }
    }

    /// The answer in one sentence.
    pub fn verdict(&self) -> String {
        if self.accesses == 0 {
            return "No access was seen: there is nothing to say about translation.".into();
        }
        let share = num::percent(self.share);
        if self.share < NOTHING_TO_GAIN {
            return format!("Translation costs {share} of the modelled cycles: nothing to gain here.");
        }
        format!(
            "Translation costs {share} of the modelled cycles: {} of {}.",
            num::short(self.translation_cycles),
            num::short(self.modelled_cycles)
        )
    }

    /// There is a cost worth looking at.
    pub fn worth_it(&self) -> bool {
        self.share >= NOTHING_TO_GAIN
    }
}

/// Sums by name; the first list's order, then what only the second has; `memory` at the end.
fn merged(a: &[(String, u64)], b: &[(String, u64)]) -> Vec<(String, u64)> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for (name, n) in a.iter().chain(b) {
        match sums.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(*n),
            None => sums.push((name.clone(), *n)),
        }
    }
    sums.sort_by_key(|(name, _)| name == "memory");
    sums
}

/// Sum of the counts.
pub fn sum(counts: &[(String, u64)]) -> u64 {
    counts.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
}

/// The command in one line.
pub fn command(analysis: &Analysis) -> String {
    if analysis.command.is_empty() {
        "(no command recorded)".into()
    } else {
        analysis.command.join(" ")
    }
}

/// How the program was seen: in a word, and what to know of it.
pub fn seeing(seeing: &Seeing) -> (&'static str, String) {
    match seeing {
        Seeing::Exact { recorder, granularity, .. } => {
            let by = if recorder.is_empty() { String::new() } else { format!(" by {recorder}") };
            let fine = match granularity {
                Granularity::Byte => "full addresses",
                Granularity::Line => "line-granular (64 bytes)",
                Granularity::Page => "page-granular (4 KiB)",
            };
            ("exact", format!("every access{by}, {fine}, through the model"))
        }
        Seeing::Sampled { period_ns, samples, resolved } => (
            "sampled, an estimate",
            format!(
                "{} samples by the clock, one each {}; the data address was found for {}",
                num::grouped(*samples),
                num::seconds(*period_ns as f64 / 1e9),
                num::percent(num::share(*resolved as f64, *samples as f64)),
            ),
        ),
    }
}

/// The modelled OS, in words.
pub fn os(analysis: &Analysis) -> String {
    use lookaside_engine::{FrameLayout, PagePolicy};
    let base = analysis.machine.page_table.format.page_sizes().first().copied();
    let huge = analysis.os.huge_page.map_or("huge pages".to_string(), |size| format!("{size} pages"));
    let pages = match &analysis.os.pages {
        PagePolicy::Base => base.map_or("base pages only".to_string(), |size| format!("{size} pages only")),
        PagePolicy::Thp => format!("{huge} wherever a whole one fits (THP)"),
        PagePolicy::Selective(ranges) => format!("{huge} in {} chosen ranges", ranges.len()),
    };
    let frames = match analysis.os.frames {
        FrameLayout::Contiguous => "contiguous frames".to_string(),
        FrameLayout::Fragmented { run_pages } => format!("frames contiguous in runs of {run_pages} pages"),
        FrameLayout::Random => "scattered frames".to_string(),
    };
    format!("{pages}, {frames}, seed {}", analysis.seed)
}

/// How the program ended, and whether it matters: (words, it went well).
pub fn ending(analysis: &Analysis) -> Option<(String, bool)> {
    analysis.child_exit.map(|exit| match exit {
        ChildExit::Code(0) => ("program ended with exit code 0".to_string(), true),
        ChildExit::Code(code) => (format!("program ended with exit code {code}"), false),
        ChildExit::Signal(signal) => (format!("program was killed by signal {signal}"), false),
    })
}

/// Time that a number of samples stands for, in seconds.
pub fn sampled_seconds(samples: u64, period_ns: u64) -> f64 {
    samples as f64 * period_ns as f64 / 1e9
}

/// Cycles as seconds on this machine; not a number where its clock is not known.
pub fn cycles_seconds(cycles: f64, machine: &Machine) -> f64 {
    num::share(cycles, machine.clock_mhz * 1e6)
}

/// The machine's own reach: (level, entries) of the arrays that serve loads of base pages, by level.
pub fn tlb_levels(machine: &Machine) -> Vec<(u32, u64)> {
    let base = machine.page_table.format.page_sizes().first().copied();
    let mut levels: Vec<(u32, u64)> = Vec::new();
    for tlb in &machine.tlbs {
        if !tlb.serves.contains(&Serves::Load) || !base.is_some_and(|size| tlb.page_sizes.contains(&size)) {
            continue;
        }
        match levels.iter_mut().find(|(level, _)| *level == tlb.level) {
            Some((_, entries)) => *entries += u64::from(tlb.entries),
            None => levels.push((tlb.level, u64::from(tlb.entries))),
        }
    }
    levels.sort();
    levels
}

/// The curve as points to draw: (entries, misses per thousand accesses), only where both are positive;
/// empty where there is nothing to draw.
pub fn curve_points(curve: &MissCurve) -> Vec<(f64, f64)> {
    curve
        .fully_associative
        .iter()
        .filter(|&&(entries, _)| entries > 0)
        .map(|&(entries, misses)| (entries as f64, num::per_kilo(misses as f64, curve.accesses)))
        .filter(|(_, y)| y.is_finite())
        .collect()
}

/// A row's name, or a word that it has none.
pub fn name(row: &NamedCost) -> &str {
    if row.name.is_empty() {
        "(no name)"
    } else {
        &row.name
    }
}

/// The weight by which rows are ranked and shares are given.
pub fn weight(row: &NamedCost, sampled: bool) -> f64 {
    if sampled {
        row.samples as f64
    } else {
        row.cost.cycles()
    }
}

/// What all rows' weights are shares of: translation cycles, or samples taken.
pub fn whole(analysis: &Analysis) -> f64 {
    match analysis.seeing {
        Seeing::Exact { .. } => analysis.outcome.translation_cycles(),
        Seeing::Sampled { samples, .. } => samples as f64,
    }
}

/// Only time was seen, not accesses.
pub fn is_sampled(analysis: &Analysis) -> bool {
    matches!(analysis.seeing, Seeing::Sampled { .. })
}

/// What a remedy gives.
pub struct Savings {
    /// Of translation cycles, 1 = all; negative = it costs.
    pub of_translation: f64,
    /// Of all modelled cycles.
    pub of_all: f64,
    /// Walks with it in walks without it.
    pub walks_left: f64,
}

impl Savings {
    /// Of one remedy.
    pub fn of(remedy: &Remedy) -> Self {
        let saved = remedy.base_translation_cycles - remedy.translation_cycles;
        Self {
            of_translation: num::share(saved, remedy.base_translation_cycles),
            of_all: num::share(saved, remedy.base_modelled_cycles),
            walks_left: num::share(remedy.walks as f64, remedy.base_walks as f64),
        }
    }
}

/// What has to be known to judge a remedy's row, in words: its caveat, and over how much it was computed.
pub fn remedy_caveat(remedy: &Remedy) -> String {
    let mut parts = Vec::new();
    if !remedy.caveat.is_empty() {
        parts.push(remedy.caveat.clone());
    }
    if remedy.approximate {
        parts.push("near: what base pages make hits was left out, --granularity line is exact".into());
    }
    if remedy.accesses_share < 0.9995 {
        parts.push(format!("computed over {} of the accesses", num::percent(remedy.accesses_share)));
    }
    parts.join("; ")
}

/// What stands before the numbers of a row that is near.
pub fn near(remedy: &Remedy) -> &'static str {
    if remedy.approximate {
        "≈\u{a0}"
    } else {
        ""
    }
}

/// The rows are of more than one process.
pub fn several_processes(rows: &[NamedCost]) -> bool {
    rows.windows(2).any(|pair| pair[0].process != pair[1].process)
}
