//! Larger pages: where they have entries of a kind of their own, how many, and which set each goes to.

use lookaside_machine::PageSize;
use serde::Serialize;

use crate::bench::{Bench, Halt};
use crate::budget::Budget;
use crate::finding::Finding;
use crate::hierarchy::Covers;
use crate::metal::Metal;
use crate::run::{lacks, twice, LevelReport, Options, Report, Step};
use crate::tlb::{first_level, second_level, FoundLevel};

/// TLB levels for pages larger than the smallest.
#[derive(Clone, Debug, Serialize)]
pub struct LargePages {
    /// Size of the pages.
    pub page_size: PageSize,
    /// How many could be had at once: entries beyond that are not seen.
    pub pages: usize,
    /// Levels, first level first.
    pub levels: Vec<LevelReport>,
}

impl LargePages {
    /// What of it was looked for in vain, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let name = |level: &LevelReport| format!("geometry of level {} for {} pages", level.level, self.page_size);
        self.levels.iter().filter_map(|level| lacks(name(level), &level.geometry)).collect()
    }
}

/// Finds them for 2 MiB pages, by what `report` says of the entries that these take.
pub(crate) fn large_pages(
    metal: &mut dyn Metal,
    options: &Options,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut Report,
) {
    if !options.wants(Step::Large) {
        return;
    }
    let halt = || budget.check();
    let mut bench = Bench::new(metal, PageSize::M2, options.seed, &halt);
    let own = [0, 1].map(|level| own_kind(report.covers.as_ref(), level));
    let mut found = [0, 1].map(|level| FoundLevel { geometry: unsought(&own[level]), ..FoundLevel::nothing("") });
    let mut ticks = [Vec::new(), Vec::new()];
    if bench.bits() == 0 {
        let reason = "no 2M pages can be had (see /sys/kernel/mm/transparent_hugepage/enabled)";
        found = [0, 1].map(|_| FoundLevel { geometry: no(reason), ..FoundLevel::nothing("") });
    } else if own[0] == Ok(true) && report.halted.is_none() {
        let work = |bench: &mut Bench<'_>| levels(bench, own[1] == Ok(true), &mut found, &mut ticks);
        match budget.part(&mut bench, Step::Large, "2M pages", progress, work) {
            Ok(Ok(())) => {}
            Ok(Err(reason)) => explain(&mut found, &reason),
            Err(Halt::Metal(error)) => explain(&mut found, &error.to_string()),
            Err(halt) => {
                let reason = halt.to_string();
                explain(&mut found, &reason);
                report.halted = Some(reason);
            }
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

/// Both levels, the second only where it has entries of the size.
fn levels(
    bench: &mut Bench<'_>,
    second: bool,
    found: &mut [FoundLevel; 2],
    ticks: &mut [Vec<f64>; 2],
) -> Result<(), Halt> {
    (found[0], ticks[0]) = twice(bench, first_level)?;
    if let (true, Some((geometry, level))) = (second, found[0].known()) {
        let (geometry, level) = (geometry.clone(), level.clone());
        (found[1], ticks[1]) = twice(bench, |bench| second_level(bench, &geometry, &level))?;
    }
    Ok(())
}

/// Whether a level has entries of a kind of their own for 2 MiB pages; or why that is not known.
fn own_kind(covers: Option<&Covers>, level: usize) -> Result<bool, String> {
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
