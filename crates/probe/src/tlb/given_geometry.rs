//! Levels whose geometry a machine description gives: only the cost of a miss is measured.

use crate::bench::{ChainBench, Halt};
use crate::finding::Finding;
use crate::gf2;
use crate::tlb::core_use::CoreUse;
use crate::tlb::geometry::{FoundLevel, Geometry};
use crate::tlb::level_meter::LevelMeter;
use crate::tlb::near_vectors::random_vectors;
use crate::tlb::search::{behind, hit_ticks, known, FLOOD, MISSES, WALK};

/// Pages of one set that nearly all miss in a circle, whatever the policy, in ways: under random replacement 98 %.
const TOO_MANY: usize = 4;

/// The first level, of this geometry. Not determined where pages of one set that are too many take no longer than two:
/// then it is another machine's.
///
/// # Errors
/// It is to end, or the machine refuses.
pub fn given_first_level(bench: &mut ChainBench<'_>, geometry: &Geometry) -> Result<FoundLevel, Halt> {
    let hit_ticks = hit_ticks(bench)?;
    let Some(pages) = too_many(bench, geometry) else { return Ok(no_room(bench, geometry)) };
    let miss_ticks = bench.pages(&pages)? / pages.len() as f64 - hit_ticks;
    if miss_ticks <= MISSES * hit_ticks {
        return Ok(not_here(pages.len(), "one of two pages"));
    }
    Ok(level(LevelMeter { hit_ticks, miss_ticks, ..LevelMeter::default() }, geometry))
}

/// The second level, of this geometry, behind a first one. Not determined where pages of one set that are too many cost
/// no walk. Its misses are told by walks where the system counts them.
///
/// # Errors
/// It is to end, or the machine refuses.
pub fn given_second_level(
    bench: &mut ChainBench<'_>,
    geometry: &Geometry,
    first: &Geometry,
    first_level: &LevelMeter,
) -> Result<FoundLevel, Halt> {
    let Some(pages) = too_many(bench, geometry) else { return Ok(no_room(bench, geometry)) };
    let core = if bench.counts_walks() { CoreUse::Shared } else { CoreUse::Own };
    let mut second = behind(bench, first, first_level, FLOOD.1, core)?;
    second.know_masks(&geometry.masks);
    second.miss_ticks = second.ticks_of_crowd(bench, &pages)?;
    if second.miss_ticks <= WALK * second.above_ticks {
        return Ok(not_here(pages.len(), "one that the second level serves"));
    }
    Ok(level(second, geometry))
}

fn level(level: LevelMeter, geometry: &Geometry) -> FoundLevel {
    known(level, Finding::confirmed(geometry.clone(), vec!["given, not looked for".into()]))
}

/// More pages of one set than fit; none where there are no such pages.
fn too_many(bench: &mut ChainBench<'_>, geometry: &Geometry) -> Option<Vec<u64>> {
    let count = TOO_MANY * geometry.ways as usize;
    let kernel = gf2::null_space(&geometry.masks, bench.bits());
    let start = bench.page();
    let pages: Vec<u64> = random_vectors(bench, &kernel, count).into_iter().map(|v| v ^ start).collect();
    (pages.len() == count && count <= bench.max_pages()).then_some(pages)
}

fn no_room(bench: &ChainBench<'_>, geometry: &Geometry) -> FoundLevel {
    FoundLevel::nothing(format!(
        "{TOO_MANY} times the {} ways of a set are more pages than there are: {}, with numbers of {} bits",
        geometry.ways,
        bench.max_pages(),
        bench.bits()
    ))
}

fn not_here(pages: usize, than: &str) -> FoundLevel {
    FoundLevel::nothing(format!(
        "an access to one of {pages} pages, which should be too many for their set, takes no longer than {than}"
    ))
}
