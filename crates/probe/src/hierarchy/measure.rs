//! Runs the steps over data caches and walks, one after the other.

use crate::bench::Halt;
use crate::budget::Budget;
use crate::hierarchy::access_patterns::access_patterns;
use crate::hierarchy::caches::caches;
use crate::hierarchy::entry_coverage::covers;
use crate::hierarchy::known_levels::KnownLevels;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::hierarchy::walk_caches::walk_caches;
use crate::hierarchy::walk_costs::walks;
use crate::metal::Metal;
use crate::options::{ProbeOptions, ProbeStep};
use crate::report::access_patterns::AccessPatternCosts;
use crate::report::caches::CacheReports;
use crate::report::entry_coverage::EntryCoverage;
use crate::report::walk_caches::WalkCaches;
use crate::report::walks::WalkCosts;
use crate::report::ProbeReport;

/// Finds what of it is wanted; what it does not get to says why.
pub(crate) fn measure_hierarchy(
    metal: &mut dyn Metal,
    options: &ProbeOptions,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut ProbeReport,
) {
    report.ticks_per_second = metal.ticks_per_second();
    let ns_a_cycle = report.ns_a_cycle();
    let halt = || budget.check();
    let mut bench = LatencyBench::new(metal, options.seed, &halt);
    if options.wants(ProbeStep::Caches) {
        report.caches = Some(part(&mut bench, &mut report.halted, CacheReports::nothing, |bench| {
            budget.part(bench, ProbeStep::Caches, "data caches", progress, |bench| caches(bench, ns_a_cycle))
        }));
    }
    if options.wants(ProbeStep::Walks) {
        let geometry = |level: usize| report.levels.get(level).and_then(|level| level.geometry.value());
        report.walks = Some(match (geometry(0), geometry(1), &report.caches) {
            (Some(first), Some(second), Some(caches)) => {
                let known = KnownLevels { first, second, caches };
                part(&mut bench, &mut report.halted, WalkCosts::nothing, |bench| {
                    budget.part(bench, ProbeStep::Walks, "walks", progress, |bench| walks(bench, known))
                })
            }
            _ => WalkCosts::nothing("needs the geometry of both levels"),
        });
    }
    if options.wants(ProbeStep::WalkCaches) {
        let geometry = |level: usize| report.levels.get(level).and_then(|level| level.geometry.value());
        report.walk_caches = Some(match (geometry(0), geometry(1), &report.caches) {
            (Some(first), Some(second), Some(caches)) => {
                let known = KnownLevels { first, second, caches };
                part(&mut bench, &mut report.halted, WalkCaches::nothing, |bench| {
                    budget
                        .part(bench, ProbeStep::WalkCaches, "walk caches", progress, |bench| walk_caches(bench, known))
                })
            }
            _ => WalkCaches::nothing("needs the geometry of both levels"),
        });
    }
    if options.wants(ProbeStep::Covers) {
        let geometry = |level: usize| report.levels.get(level).and_then(|level| level.geometry.value());
        report.covers = Some(match (geometry(0), geometry(1), &report.caches, &report.walks) {
            (Some(first), Some(second), Some(caches), Some(walks)) => {
                let known = KnownLevels { first, second, caches };
                part(&mut bench, &mut report.halted, EntryCoverage::nothing, |bench| {
                    let what = "what entries cover";
                    budget.part(bench, ProbeStep::Covers, what, progress, |bench| covers(bench, known, walks))
                })
            }
            _ => EntryCoverage::nothing("needs the geometry of both levels"),
        });
    }
    if options.wants(ProbeStep::Spread) {
        report.spread = Some(match (&report.caches, &report.walks) {
            (Some(caches), Some(walks)) => part(&mut bench, &mut report.halted, AccessPatternCosts::nothing, |bench| {
                budget.part(bench, ProbeStep::Spread, "loads far apart and in a row", progress, |bench| {
                    access_patterns(bench, caches, walks)
                })
            }),
            _ => AccessPatternCosts::nothing("needs caches and walks"),
        });
    }
    report.measurements += bench.measurements();
}

/// Does a part. What this machine refuses is not determined; only an end of all ends the others too.
fn part<'m, T>(
    bench: &mut LatencyBench<'m>,
    halted: &mut Option<String>,
    nothing: impl Fn(&str) -> T,
    work: impl FnOnce(&mut LatencyBench<'m>) -> Result<Result<T, String>, Halt>,
) -> T {
    if let Some(reason) = halted {
        return nothing(reason);
    }
    match work(bench) {
        Ok(Ok(found)) => found,
        Ok(Err(reason)) => nothing(&reason),
        Err(Halt::Metal(error)) => nothing(&error.to_string()),
        Err(halt) => {
            let reason = halt.to_string();
            *halted = Some(reason.clone());
            nothing(&reason)
        }
    }
}
