//! Data caches, memory, and what walks cost by where their tables lie.

mod caches;
mod contiguous;
mod crowd;
mod curve;
mod describe;
mod field;
mod first;
pub(crate) mod gigantic;
mod line;
mod spread;
mod step;
mod walk_cache;
mod walks;
mod ways;

pub(crate) use caches::alike;
pub use caches::{caches, CacheReport, Caches};
pub use contiguous::{covers, Cover, Covers};
pub use curve::{curve, plateaus, Plateau, Point};
pub(crate) use describe::describe;
pub use field::Field;
pub use first::{first_cache, CacheShape};
pub use line::line_bytes;
pub use spread::Spread;
pub use step::{Cost, Rise};
pub use walk_cache::{walk_caches, Held, WalkCacheReport, WalkCaches};
pub use walks::{walks, KnownLevels, Place, WalkReport, Walks};

use crate::bench::Halt;
use crate::budget::Budget;
use crate::metal::Metal;
use crate::run::{Options, Report, Step};

/// Finds what of it is wanted; what it does not get to says why.
pub(crate) fn find(
    metal: &mut dyn Metal,
    options: &Options,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut Report,
) {
    report.ticks_per_second = metal.ticks_per_second();
    let ns_a_cycle = report.ns_a_cycle();
    let halt = || budget.check();
    let mut field = Field::new(metal, options.seed, &halt);
    if options.wants(Step::Caches) {
        report.caches = Some(part(&mut field, &mut report.halted, Caches::nothing, |field| {
            budget.part(field, Step::Caches, "data caches", progress, |field| caches(field, ns_a_cycle))
        }));
    }
    if options.wants(Step::Walks) {
        let geometry = |level: usize| report.levels.get(level).and_then(|level| level.geometry.value());
        report.walks = Some(match (geometry(0), geometry(1), &report.caches) {
            (Some(first), Some(second), Some(caches)) => {
                let known = KnownLevels { first, second, caches };
                part(&mut field, &mut report.halted, Walks::nothing, |field| {
                    budget.part(field, Step::Walks, "walks", progress, |field| walks(field, known))
                })
            }
            _ => Walks::nothing("needs the geometry of both levels"),
        });
    }
    if options.wants(Step::WalkCaches) {
        let geometry = |level: usize| report.levels.get(level).and_then(|level| level.geometry.value());
        report.walk_caches = Some(match (geometry(0), geometry(1), &report.caches) {
            (Some(first), Some(second), Some(caches)) => {
                let known = KnownLevels { first, second, caches };
                part(&mut field, &mut report.halted, WalkCaches::nothing, |field| {
                    budget.part(field, Step::WalkCaches, "walk caches", progress, |field| walk_caches(field, known))
                })
            }
            _ => WalkCaches::nothing("needs the geometry of both levels"),
        });
    }
    if options.wants(Step::Covers) {
        let geometry = |level: usize| report.levels.get(level).and_then(|level| level.geometry.value());
        report.covers = Some(match (geometry(0), geometry(1), &report.caches, &report.walks) {
            (Some(first), Some(second), Some(caches), Some(walks)) => {
                let known = KnownLevels { first, second, caches };
                part(&mut field, &mut report.halted, Covers::nothing, |field| {
                    let what = "what entries cover";
                    budget.part(field, Step::Covers, what, progress, |field| covers(field, known, walks))
                })
            }
            _ => Covers::nothing("needs the geometry of both levels"),
        });
    }
    if options.wants(Step::Spread) {
        report.spread = Some(match (&report.caches, &report.walks) {
            (Some(caches), Some(walks)) => part(&mut field, &mut report.halted, Spread::nothing, |field| {
                budget.part(field, Step::Spread, "loads far apart and in a row", progress, |field| {
                    spread::spread(field, caches, walks)
                })
            }),
            _ => Spread::nothing("needs caches and walks"),
        });
    }
    report.measurements += field.measurements();
}

/// Does a part. What this machine refuses is not determined; only an end of all ends the others too.
fn part<'m, T>(
    field: &mut Field<'m>,
    halted: &mut Option<String>,
    nothing: impl Fn(&str) -> T,
    work: impl FnOnce(&mut Field<'m>) -> Result<Result<T, String>, Halt>,
) -> T {
    if let Some(reason) = halted {
        return nothing(reason);
    }
    match work(field) {
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
