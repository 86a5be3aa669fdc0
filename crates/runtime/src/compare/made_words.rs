//! What huge pages came to in a variant's runs, in words.

use std::collections::BTreeSet;

use lookaside_stats::median;

use super::comparison::VariantRun;
use super::variant::Variant;
use crate::hugepages::{AppliedPlan, CodeTotals, CollapseSide, PromotionSummary};

/// What the chosen huge pages came to, over all runs.
pub(super) fn chosen_words(variant: &Variant, runs: &[VariantRun]) -> Vec<String> {
    let all: Vec<&PromotionSummary> = runs.iter().filter_map(|run| run.hugepages.as_ref()).collect();
    let middle = |of: &dyn Fn(&PromotionSummary) -> Option<f64>| median(all.iter().filter_map(|run| of(run)));
    let Some(made) = middle(&|run| Some(run.collapsed as f64)) else { return Vec::new() };
    let mut text = format!("{variant}: {made} windows of 2 MiB made huge in a run (median)");
    if let Some(covered) = middle(&|run| run.covered) {
        text += &format!(", with {:.0} % of the last samples in huge pages", 100.0 * covered);
    }
    if let Some(added) = middle(&|run| Some(run.bloat_bytes as f64)) {
        text += &format!(", {:.0} MiB more in memory", added / f64::from(1 << 20));
    }
    let longest = all.iter().map(|run| run.longest_call_nanos).max();
    text += &how(longest, all.iter().filter_map(|run| run.way).next_back());
    let told = all.iter().flat_map(|run| run.refused.keys().chain(&run.notes));
    std::iter::once(text).chain(each_once(variant, told.cloned())).collect()
}

/// What a plan's huge pages came to, over all runs.
pub(super) fn planned_words(variant: &Variant, runs: &[VariantRun]) -> Vec<String> {
    let all: Vec<&AppliedPlan> = runs.iter().filter_map(|run| run.planned.as_ref()).collect();
    let middle = |of: &dyn Fn(&AppliedPlan) -> u64| median(all.iter().map(|run| of(run)));
    let (Some(made), Some(found), Some(added)) =
        (middle(&|run| run.collapsed as u64), middle(&|run| run.found as u64), middle(&|run| run.bloat_bytes))
    else {
        return Vec::new();
    };
    let mut text = format!(
        "{variant}: {made} of {found} windows found of the plan made huge in a run (medians), {:.0} MiB more in memory",
        added / f64::from(1 << 20)
    );
    let longest = all.iter().map(|run| run.longest_call_nanos).max();
    text += &how(longest, all.iter().filter_map(|run| run.way).next_back());
    let changed = all.iter().flat_map(|run| &run.changed);
    let changed = changed.map(|(region, why)| format!("not as planned: {region}: {why}"));
    let told = changed.chain(all.iter().flat_map(|run| run.refused.keys().cloned()));
    std::iter::once(text).chain(each_once(variant, told)).collect()
}

/// What became of code, over all runs.
pub(super) fn code_words(variant: &Variant, runs: &[VariantRun]) -> Vec<String> {
    if !variant.is_text() || runs.is_empty() {
        return Vec::new();
    }
    let all: Vec<&CodeTotals> = runs.iter().filter_map(|run| run.code.as_ref()).collect();
    let middle = |of: &dyn Fn(&CodeTotals) -> f64| median(all.iter().map(|run| of(run)));
    let made = middle(&|run| f64::from(run.made())).unwrap_or(0.0);
    let told = all.iter().flat_map(|run| run.obstacles.keys().cloned());
    let text = match (middle(&|run| f64::from(run.windows)), middle(&|run| run.nanos as f64 / 1e6)) {
        (None, _) => format!("{variant}: no process reported: static and setuid programs don't load the library"),
        (Some(windows), Some(millis)) if windows > 0.0 => {
            let files = middle(&|run| f64::from(run.by_file)).unwrap_or(0.0);
            let ways = if files > 0.0 { format!(", {files} of them in the file's own pages") } else { String::new() };
            format!(
                "{variant}: {made} of {windows} whole windows of 2 MiB of code put on huge pages in a run (medians){ways}; \
                 it took {millis:.1} ms"
            )
        }
        _ => format!("{variant}: no code was put on huge pages: no mapping of code has a whole window of 2 MiB"),
    };
    std::iter::once(text).chain(each_once(variant, told)).collect()
}

/// The longest call, and from where the calls were made.
fn how(longest_call_nanos: Option<u64>, way: Option<CollapseSide>) -> String {
    let text = format!("; the longest call took {:.1} ms", longest_call_nanos.unwrap_or(0) as f64 / 1e6);
    match way {
        Some(way) => format!("{text}; made {}", way.words()),
        None => text,
    }
}

/// What was told of a variant, each thing once.
fn each_once(variant: &Variant, told: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let told: BTreeSet<String> = told.map(|what| format!("{variant}: {what}")).collect();
    told.into_iter()
}
