//! Measures the TLB entries for 2 MiB and 1 GiB pages: whether they have entries of their own, how many, and which set
//! each maps to.

use lookaside_machine::PageSize;

use crate::bench::{ChainBench, Halt};
use crate::budget::{Budget, NoteTaker};
use crate::finding::Finding;
use crate::hierarchy::gigantic_coverage;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::metal::Metal;
use crate::options::{ProbeOptions, ProbeStep};
use crate::report::entry_coverage::EntryCoverage;
use crate::report::levels::LevelReport;
use crate::report::page_sizes::GiganticPages;
use crate::report::page_sizes::LargePages;
use crate::report::walks::WalkCosts;
use crate::report::ProbeReport;
use crate::tlb::geometry::FoundLevel;
use crate::tlb::search::{first_level, second_level};
use crate::until_two_agree::until_two_agree;

/// Finds them for 2 MiB pages, by what `report` says of the entries that these take.
pub(crate) fn large_pages(
    metal: &mut dyn Metal,
    options: &ProbeOptions,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut ProbeReport,
) {
    if !options.wants(ProbeStep::Large) {
        return;
    }
    let halt = || budget.check();
    let mut bench = ChainBench::new(metal, PageSize::M2, options.seed, &halt);
    let own = [0, 1].map(|level| own_kind(report.covers.as_ref(), level));
    let mut found = [0, 1].map(|level| FoundLevel { geometry: unsought(&own[level]), ..FoundLevel::nothing("") });
    let mut ticks = [Vec::new(), Vec::new()];
    if let Some(reason) = bench.metal().lacks(PageSize::M2) {
        found = [0, 1].map(|_| FoundLevel { geometry: no(&reason), ..FoundLevel::nothing("") });
    } else if own[0] == Ok(true) && report.halted.is_none() {
        let work = |bench: &mut ChainBench<'_>| levels(bench, own[1] == Ok(true), &mut found, &mut ticks);
        let done = budget.part(&mut bench, ProbeStep::Large, "2M pages", progress, work);
        if let Some(reason) = ended(done, &mut report.halted) {
            explain(&mut found, &reason);
        }
    } else if let Some(reason) = &report.halted {
        explain(&mut found, reason);
    }
    let levels = (1..)
        .zip(found.iter().zip(&ticks))
        .map(|(level, (found, ticks))| LevelReport::new(level, &bench, found, ticks));
    let levels = levels.collect();
    report.large = Some(LargePages { page_size: PageSize::M2, pages: bench.max_pages(), levels });
    report.measurements += bench.measurements();
}

/// Why a part ended early, if it did; whether all has to end is `halted`'s matter.
fn ended(done: Result<Result<(), String>, Halt>, halted: &mut Option<String>) -> Option<String> {
    match done {
        Ok(done) => done.err(),
        Err(Halt::Metal(error)) => Some(error.to_string()),
        Err(halt) => Some(halted.insert(halt.to_string()).clone()),
    }
}

/// Both levels, the second only where it has entries of the size.
fn levels(
    bench: &mut ChainBench<'_>,
    second: bool,
    found: &mut [FoundLevel; 2],
    ticks: &mut [Vec<f64>; 2],
) -> Result<(), Halt> {
    (found[0], ticks[0]) = until_two_agree(bench, first_level)?;
    if let (true, Some((geometry, level))) = (second, found[0].known()) {
        let (geometry, level) = (geometry.clone(), level.clone());
        (found[1], ticks[1]) = until_two_agree(bench, |bench| second_level(bench, &geometry, &level))?;
    }
    Ok(())
}

/// Finds them for 1 GiB pages, where there is one.
pub(crate) fn gigantic_pages(
    metal: &mut dyn Metal,
    options: &ProbeOptions,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut ProbeReport,
) {
    if !options.wants(ProbeStep::Large) {
        return;
    }
    let lacks = metal.lacks(PageSize::G1);
    let mut look = GiganticSearch::nothing("not looked at");
    let geometry = |level: usize| report.levels.get(level).and_then(|level| level.geometry.value());
    match (&lacks, &report.halted, geometry(0), geometry(1), &report.walks) {
        (Some(reason), ..) => look = GiganticSearch::nothing(reason).unasked(),
        (_, Some(reason), ..) => look = GiganticSearch::nothing(reason),
        (_, _, Some(first), Some(second), Some(walks)) => {
            let (small, mut machine) = ([first.entries, second.entries], NotedMetal(metal));
            let work = |machine: &mut NotedMetal<'_>| {
                let halt = || budget.check();
                look.levels(machine.0, small, walks, options.seed, &halt)
            };
            let done = budget.part(&mut machine, ProbeStep::Large, "1G pages", progress, work);
            if let Some(reason) = ended(done, &mut report.halted) {
                look.explain(&reason);
            }
        }
        _ => look = GiganticSearch::nothing("needs the geometry of both levels"),
    }
    report.measurements += look.measurements;
    report.gigantic = Some(look.report(metal, lacks));
}

/// The levels for 1 GiB pages of a machine that has one, and so many entries for small pages in its levels.
///
/// # Errors
/// It is to end, or the machine refuses.
pub fn gigantic_levels(
    metal: &mut dyn Metal,
    small: [u32; 2],
    walks: &WalkCosts,
    seed: u64,
    halt: &dyn Fn() -> Option<Halt>,
) -> Result<GiganticPages, Halt> {
    let mut look = GiganticSearch::nothing("not looked at");
    look.levels(metal, small, walks, seed, halt)?;
    Ok(look.report(metal, None))
}

/// What measures, by chains and by steps.
struct NotedMetal<'m>(&'m mut dyn Metal);

impl NoteTaker for NotedMetal<'_> {
    fn note(&mut self, text: &str) {
        self.0.note(text);
    }
}

/// What is known of 1 GiB pages so far.
struct GiganticSearch {
    parts: [Finding<PageSize>; 2],
    found: [FoundLevel; 2],
    ticks: [Vec<f64>; 2],
    measurements: u64,
}

impl GiganticSearch {
    fn nothing(reason: &str) -> Self {
        let parts = [0, 1].map(|_| Finding::not_determined(reason));
        let found = [0, 1].map(|_| FoundLevel { geometry: no(reason), ..FoundLevel::nothing("") });
        Self { parts, found, ticks: [Vec::new(), Vec::new()], measurements: 0 }
    }

    fn unasked(mut self) -> Self {
        self.parts = self.parts.map(Finding::unasked);
        self
    }

    fn report(self, metal: &mut dyn Metal, lacks: Option<String>) -> GiganticPages {
        let bench = ChainBench::new(metal, PageSize::G1, 0, &|| None);
        let levels = (1..).zip(self.found.iter().zip(&self.ticks));
        let levels = levels.map(|(level, (found, ticks))| LevelReport::new(level, &bench, found, ticks)).collect();
        GiganticPages { lacks, parts: self.parts.into(), levels }
    }

    /// What is not known yet is so for this reason.
    fn explain(&mut self, reason: &str) {
        for part in self.parts.iter_mut().filter(|part| part.is_missing()) {
            *part = Finding::not_determined(reason);
        }
        explain(&mut self.found, reason);
    }

    /// Both levels, which have so many entries for small pages: what an entry covers, and where that is a whole page
    /// how many there are.
    fn levels(
        &mut self,
        metal: &mut dyn Metal,
        small: [u32; 2],
        walks: &WalkCosts,
        seed: u64,
        halt: &dyn Fn() -> Option<Halt>,
    ) -> Result<(), Halt> {
        for level in [0, 1] {
            let whole_above = level == 1 && self.parts[0].value() == Some(&PageSize::G1);
            let above = self.found[0].known().map(|(geometry, level)| (geometry.clone(), level.clone()));
            let pages = match (&above, whole_above) {
                (None, true) => {
                    self.parts[1] = Finding::not_determined(FIRST_UNKNOWN);
                    return Ok(());
                }
                // Twice as many as there are entries put one another out, nearly always.
                (Some((first, _)), true) => 2 * u64::from(first.entries),
                (_, false) => 1,
            };
            let mut latency_bench = LatencyBench::new(metal, seed, halt);
            let entries = gigantic_coverage::LevelEntries { level: level as u32 + 1, small: small[level], pages };
            let part = gigantic_coverage::part(&mut latency_bench, entries, walks);
            self.measurements += latency_bench.measurements();
            self.parts[level] = part?;
            self.found[level].geometry = match self.parts[level].value() {
                Some(&PageSize::G1) if level == 1 && !whole_above => Finding::not_determined(FIRST_UNKNOWN),
                Some(&PageSize::G1) => {
                    let mut bench = ChainBench::new(metal, PageSize::G1, seed, halt);
                    self.found[level].geometry = Finding::not_determined("not looked at");
                    let found = until_two_agree(&mut bench, |bench| match &above {
                        Some((first, above)) => second_level(bench, first, above),
                        None => first_level(bench),
                    });
                    self.measurements += bench.measurements();
                    (self.found[level], self.ticks[level]) = found?;
                    continue;
                }
                Some(&PageSize::M2) => no("a 1G page takes entries of 2M pages here"),
                Some(_) => no("a 1G page takes entries of its small pages here"),
                None => no("what its entries cover of a 1G page is not known"),
            };
        }
        Ok(())
    }
}

/// Why nothing is said of the second level.
const FIRST_UNKNOWN: &str = "the first level's entries for 1G pages are not known";

/// Whether a level has entries of a kind of their own for 2 MiB pages; or why that is not known.
fn own_kind(covers: Option<&EntryCoverage>, level: usize) -> Result<bool, String> {
    let Some(cover) = covers.and_then(|covers| covers.levels.get(level)) else {
        return Err("what its entries cover of a 2M page is not known".into());
    };
    match &cover.huge {
        Finding::Confirmed { value, .. } => Ok(*value > 1),
        Finding::NotDetermined { reason, .. } => {
            Err(format!("what its entries cover of a 2M page is not known: {reason}"))
        }
    }
}

/// What is said of a level that is not looked at.
fn unsought<T>(own: &Result<bool, String>) -> Finding<T> {
    match own {
        Ok(false) => no("a 2M page takes entries of its small pages here"),
        Ok(true) => Finding::not_determined("the first level for 2M pages is not known"),
        Err(reason) => no(reason),
    }
}

/// Nothing, and nobody misses it.
fn no<T>(reason: &str) -> Finding<T> {
    Finding::not_determined(reason).unasked()
}

/// Says why what was not got to is not known.
fn explain(found: &mut [FoundLevel; 2], reason: &str) {
    for level in found.iter_mut().filter(|level| level.geometry.is_missing()) {
        level.geometry = Finding::not_determined(reason);
    }
}
