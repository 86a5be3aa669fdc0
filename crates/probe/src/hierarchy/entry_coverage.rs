//! What one TLB entry covers: contiguous small pages, and parts of a huge page; and whether a second stage of
//! translation is seen.

use crate::agreed_range::{agreed_range, MeasuredRange, SAME_CYCLES};
use crate::bench::Halt;
use crate::finding::Finding;
use crate::hierarchy::known_levels::KnownLevels;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::hierarchy::latency_curve::{LINE, PAGE};
use crate::metal::{MemoryArea, MetalError};
use crate::report::entry_coverage::EntryCoverage;
use crate::report::entry_coverage::LevelCoverage;
use crate::report::walks::WalkCosts;

/// Pages beyond what entries of one page each hold, as a share.
pub(super) const BEYOND: f64 = 1.5;
/// Steps hit where they take longer than those that surely do by less than this part of a miss. Of random replacement
/// 58 in 100 miss with half as many pages again.
pub(super) const HITS: f64 = 0.3;
/// Most pages that an entry is tried for: no core is known to coalesce more.
const MOST: u32 = 16;
/// Passes that have to agree.
pub(super) const PASSES: usize = 2;
/// Cycles that small pages' walks cost more, and a share of them, for a table more to be seen.
const MORE: (f64, f64) = (3.0, 0.1);

/// Finds them for what is known, misses costing what `walks` says.
pub fn covers(bench: &mut LatencyBench<'_>, known: KnownLevels<'_>, walks: &WalkCosts) -> Result<EntryCoverage, Halt> {
    let line = known.caches.line_bytes.value().copied().unwrap_or(LINE);
    let (hit, walk) = hit_and_walk(walks);
    let costs = [hit, hit.zip(walk).map(|(hit, walk)| walk - hit)];
    let mut levels = Vec::new();
    for ((level, geometry), cost) in (1..).zip([known.first, known.second]).zip(costs) {
        let mut of = |split: bool| match cost.filter(|&cost| cost > 0.0) {
            None => Ok(Finding::not_determined("what a miss costs is not known")),
            Some(cost) => or_refused(covered(bench, split, geometry.entries, cost, line)),
        };
        levels.push(LevelCoverage { level, small: of(true)?, huge: of(false)? });
    }
    let is_guest = bench.metal().is_guest();
    let second_stage_cycles = match levels.iter().all(|level| level.huge.value() == Some(&1)) {
        true => or_refused(second_stage(bench, known.second.entries, line))?,
        false if is_guest == Some(false) => Finding::not_asked(),
        false => Finding::not_determined("seen only where entries of huge pages are those of small ones"),
    };
    Ok(EntryCoverage { levels, is_guest, second_stage_cycles })
}

/// Cycles that a hit of the second level adds, and the least that a walk was seen to: that of leaf entries that are
/// neighbours, and mostly at hand.
pub(super) fn hit_and_walk(walks: &WalkCosts) -> (Option<f64>, Option<f64>) {
    let middle = |seen: &MeasuredRange| (seen.low + seen.high) / 2.0;
    let seen = walks.walks.iter().filter_map(|walk| walk.cycles.value().map(middle));
    let walk = walks.base_cycles.value().and_then(|_| seen.reduce(f64::min));
    (walks.second_level_cycles.value().map(middle), walk)
}

/// What this machine refuses is not determined.
pub(super) fn or_refused<T>(found: Result<Finding<T>, Halt>) -> Result<Finding<T>, Halt> {
    match found {
        Err(Halt::Metal(error @ (MetalError::Cannot(_) | MetalError::Memory { .. }))) => {
            Ok(Finding::not_determined(error.to_string()))
        }
        other => other,
    }
}

/// Most small pages that an entry covers, two passes agreeing.
fn covered(
    bench: &mut LatencyBench<'_>,
    split: bool,
    entries: u32,
    miss: f64,
    line: u64,
) -> Result<Finding<u32>, Halt> {
    let mut seen = Vec::new();
    let mut evidence = Vec::new();
    for _ in 0..PASSES {
        let mut pages = 1;
        while pages < MOST {
            let Some(added) = added(bench, split, entries, pages, line)? else {
                let mib = (needed(entries, pages) * 2).div_ceil(1 << 20);
                return Ok(Finding::not_determined(format!("{pages} at least; to know needs {mib} MiB (--memory)")));
            };
            evidence.push(format!("{added:.1} cycles more a step with {BEYOND} times {entries} * {pages} pages"));
            if added > HITS * miss {
                break;
            }
            pages *= 2;
        }
        seen.push(pages);
    }
    Ok(match seen.iter().all(|pages| *pages == seen[0]) {
        true => Finding::confirmed(seen[0], evidence),
        false => {
            Finding::NotDetermined { reason: format!("passes do not agree: {seen:?} pages"), evidence, asked: true }
        }
    })
}

/// Bytes of half as many pages again as so many entries cover if each has `pages`.
fn needed(entries: u32, pages: u32) -> u64 {
    (f64::from(entries) * f64::from(pages) * BEYOND) as u64 * PAGE
}

/// Cycles a step that contiguous pages take longer than as many lines in half as many pages as there are entries;
/// `None` = not enough memory.
fn added(bench: &mut LatencyBench<'_>, split: bool, entries: u32, pages: u32, line: u64) -> Result<Option<f64>, Halt> {
    let bytes = needed(entries, pages);
    let area = MemoryArea::Contiguous { bytes, split };
    if bytes > bench.metal().area_bytes(area) {
        return Ok(None);
    }
    let (count, lines) = (bytes / PAGE, PAGE / line);
    let few = (u64::from(entries) / 2).max(1);
    // Lines at random: of contiguous frames, lines in step with pages would meet in few sets of a cache.
    let mut many: Vec<u64> = Vec::new();
    for page in 0..count {
        many.push(page * PAGE + bench.rng.below(lines) * line);
    }
    let mut like: Vec<u64> = Vec::new();
    for page in 0..few {
        let mut of_page: Vec<u64> = (0..lines).map(|number| page * PAGE + number * line).collect();
        bench.rng.shuffle(&mut of_page);
        of_page.truncate((count * (page + 1) / few - count * page / few) as usize);
        like.extend(of_page);
    }
    bench.rng.shuffle(&mut many);
    bench.rng.shuffle(&mut like);
    Ok(Some(bench.cycles(area, &many)? - bench.cycles(area, &like)?))
}

/// What walks cost more where the first stage maps by small pages.
fn second_stage(bench: &mut LatencyBench<'_>, entries: u32, line: u64) -> Result<Finding<MeasuredRange>, Halt> {
    let bytes = needed(entries, 2).min(bench.metal().area_bytes(MemoryArea::Contiguous { bytes: 0, split: true }));
    if bytes < needed(entries, 1) {
        let mib = (needed(entries, 1) * 2).div_ceil(1 << 20);
        return Ok(Finding::not_determined(format!("needs {mib} MiB (--memory)")));
    }
    let mut seen = Vec::new();
    let mut whole = 0.0f64;
    for _ in 0..PASSES {
        let mut offsets: Vec<u64> = (0..bytes / PAGE).map(|page| page * PAGE).collect();
        for offset in &mut offsets {
            *offset += bench.rng.below(PAGE / line) * line;
        }
        bench.rng.shuffle(&mut offsets);
        let huge = bench.cycles(MemoryArea::Contiguous { bytes, split: false }, &offsets)?;
        let split = bench.cycles(MemoryArea::Contiguous { bytes, split: true }, &offsets)?;
        whole = whole.max(huge);
        seen.push(split - huge);
    }
    let evidence = vec![format!("{seen:.1?} cycles more by pass, of {whole:.1}")];
    Ok(match agreed_range(&seen, (1.0, SAME_CYCLES.1)) {
        Some(span) if span.low > MORE.0 + MORE.1 * whole => Finding::confirmed(span, evidence),
        _ => Finding::NotDetermined {
            reason: "walks cost the same by huge and by small pages, or too nearly so".into(),
            evidence,
            asked: true,
        },
    })
}
