//! Measures the data caches and memory: latencies and sizes that two passes agree on.

use crate::agreed_range::agreed_range;
use crate::agreed_range::MeasuredRange;
use crate::agreed_range::SAME_CYCLES;
use crate::bench::Halt;
use crate::finding::Finding;
use crate::hierarchy::l1_cache::first_cache;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::hierarchy::latency_curve::{curve, plateaus, Plateau, LINE};
use crate::hierarchy::line_size::line_bytes;
use crate::metal::MemoryArea;
use crate::report::caches::CacheReport;
use crate::report::caches::CacheReports;
use crate::report::caches::UNEVEN;

/// Largest footprint of the curve, where that much memory may be used: four times the largest share of a last level
/// that a core commonly has to itself.
const MOST_BYTES: u64 = 128 << 20;
/// Least footprint with which memory may come into it.
const LEAST_BYTES: u64 = 4 << 20;
/// Passes at most; two have to agree.
const PASSES: usize = 4;
/// Lines that any first-level cache holds.
const FEW: u64 = 16;
/// Passes agree on how much fits within this share: others take more or less of a shared cache, and the span is said.
const SAME_BYTES: f64 = 1.0;
/// From a level to the next it is at most so many times the footprint; else there may be one between that is too small,
/// or too much disturbed, to be told.
const LEAP: u64 = 4;
/// What takes longer is memory, in nanoseconds: last-level caches take 10 to 40 ns, memory 60 and more on all machines
/// that lmbench's `lat_mem_rd` is commonly reported for.
const MEMORY_NS: f64 = 50.0;

/// Measures them. `ns_a_cycle` is what a core cycle takes, where that is known.
pub fn caches(bench: &mut LatencyBench<'_>, ns_a_cycle: Option<f64>) -> Result<CacheReports, Halt> {
    let most = bench.metal().area_bytes(MemoryArea::Own { bytes: 0, huge: true }).min(MOST_BYTES);
    if most < LEAST_BYTES {
        return Ok(CacheReports::nothing(&format!("needs an area of {} MiB at least", LEAST_BYTES >> 20)));
    }
    let line_bytes = line_bytes(bench)?;
    let line = line_bytes.value().copied().unwrap_or(LINE);
    let few: Vec<u64> = (0..FEW).map(|number| number * line).collect();
    let hit = bench.cycles(MemoryArea::Own { bytes: FEW * line, huge: true }, &few)?;
    let shape = match line_bytes.value() {
        Some(_) => first_cache(bench, line, hit)?,
        None => Finding::not_determined("the line size is not known"),
    };
    let memory = ns_a_cycle.map(|ns| MEMORY_NS / ns);
    let mut curves = Vec::new();
    let mut passes: Vec<Vec<Plateau>> = Vec::new();
    while passes.len() < 2 || passes.len() < PASSES && !settled(&passes, ns_a_cycle) {
        match curve(bench, most, line, memory) {
            // Two passes will do, if there are two.
            Err(Halt::ShareUp(_)) => break,
            points => curves.push(points?),
        }
        passes.push(plateaus(&curves[curves.len() - 1]));
    }
    let (mut levels, memory_cycles) = agreed(&passes, ns_a_cycle);
    if let Some(first) = levels.first_mut() {
        first.shape = shape;
        contradict(first);
        first.ways = match &first.shape {
            Finding::Confirmed { value, .. } => Finding::confirmed(value.ways, Vec::new()),
            Finding::NotDetermined { reason, .. } => Finding::not_determined(reason.as_str()),
        };
    }
    crate::hierarchy::l2_cache::second(bench, line, &mut levels, &memory_cycles)?;
    let memory_from = passes.iter().filter_map(|pass| pass.last()).map(|plateau| plateau.from).max();
    Ok(CacheReports { line_bytes, levels, memory_cycles, memory_from, curves })
}

/// A shape that the curve does not bear out is none.
fn contradict(level: &mut CacheReport) {
    let (Some(shape), Some(seen)) = (level.shape.value(), level.bytes.value()) else { return };
    if (shape.bytes as f64) < seen.low || shape.bytes as f64 > seen.high {
        let reason = format!("{} bytes by lines that fit, but {} to {} by latency", shape.bytes, seen.low, seen.high);
        level.shape = Finding::not_determined(reason);
    }
}

/// Whether passes agree on memory, and on as many levels as any of them saw: others may have a shared one for a while.
fn settled(passes: &[Vec<Plateau>], ns_a_cycle: Option<f64>) -> bool {
    let (levels, memory) = agreed(passes, ns_a_cycle);
    let most = passes.iter().map(Vec::len).max().unwrap_or(0);
    memory.value().is_some() && levels.len() + 1 >= most
}

/// What at least two passes agree on: levels, and memory.
fn agreed(passes: &[Vec<Plateau>], ns_a_cycle: Option<f64>) -> (Vec<CacheReport>, Finding<MeasuredRange>) {
    let last: Vec<f64> = passes.iter().filter_map(|pass| pass.last()).map(|plateau| plateau.cycles).collect();
    let memory = match (agreed_range(&last, SAME_CYCLES), ns_a_cycle) {
        (None, _) => Finding::NotDetermined {
            reason: "no two passes agree on what the largest footprints take".into(),
            evidence: vec![format!("{last:.1?} cycles")],
            asked: true,
        },
        (Some(seen), Some(ns)) if seen.low * ns < MEMORY_NS => Finding::not_determined(format!(
            "a cache may still serve the largest footprint, at {:.1} cycles: needs more memory (--memory)",
            seen.low
        )),
        (Some(seen), _) => Finding::confirmed(seen, vec![format!("{last:.1?} cycles by pass")]),
    };
    let mut levels: Vec<CacheReport> = Vec::new();
    // All plateaus but the last, which is memory (or else it is not known where it ends).
    while let Some(level) = level(passes, levels.len()) {
        levels.push(level);
    }
    (levels, memory)
}

fn level(passes: &[Vec<Plateau>], at: usize) -> Option<CacheReport> {
    let numbered = passes.iter().filter(|pass| at + 1 < pass.len() && !leaps(&pass[..=at]));
    let seen: Vec<&Plateau> = numbered.filter_map(|pass| pass.get(at)).collect();
    let cycles: Vec<f64> = seen.iter().map(|plateau| plateau.cycles).collect();
    let took = agreed_range(&cycles, SAME_CYCLES)?;
    let beyond: Vec<f64> = seen.iter().filter_map(|plateau| plateau.beyond).map(|bytes| bytes as f64).collect();
    let bytes = match agreed_range(&beyond, (SAME_BYTES, 0.0)) {
        Some(span) => {
            let low = seen.iter().map(|plateau| plateau.fits as f64).fold(f64::MAX, f64::min);
            Finding::confirmed(MeasuredRange { low, high: UNEVEN * span.high, ..span }, Vec::new())
        }
        None => Finding::NotDetermined {
            reason: "no two passes agree on how much fits: others use it too, or it is not steady".into(),
            evidence: vec![format!("half of the steps miss at {beyond:.0?} bytes")],
            asked: true,
        },
    };
    let unknown =
        "a set of a third level is not looked for: its lines have to get past two levels, and others take room";
    let evidence = vec![format!("{cycles:.1?} cycles by pass")];
    Some(CacheReport {
        level: at as u32 + 1,
        cycles: Finding::confirmed(took, evidence),
        bytes,
        ways: Finding::not_determined(unknown).unasked(),
        shape: Finding::not_determined(unknown).unasked(),
    })
}

/// Whether there is room for another level between two of these.
fn leaps(plateaus: &[Plateau]) -> bool {
    plateaus.windows(2).any(|pair| pair[1].from > LEAP * pair[0].fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(cycles: &[f64], beyond: &[u64]) -> Vec<Plateau> {
        let beyond = beyond.iter().map(|&bytes| Some(bytes)).chain([None]);
        cycles
            .iter()
            .zip(beyond)
            .map(|(&cycles, beyond)| Plateau { cycles, from: 0, fits: beyond.unwrap_or(1) / 2, beyond })
            .collect()
    }

    #[test]
    fn only_what_two_passes_agree_on_is_said() {
        let one = pass(&[4.0, 14.0, 45.0, 380.0], &[40_000, 1_100_000, 9_000_000]);
        let two = pass(&[4.1, 14.2, 44.0, 400.0], &[41_000, 1_150_000, 15_000_000]);
        let (levels, memory) = agreed(&[one.clone(), two.clone()], Some(0.3));
        assert_eq!(memory.value(), Some(&MeasuredRange { low: 380.0, high: 400.0, passes: 2 }));
        assert_eq!(levels.len(), 3);
        assert_eq!(
            levels[1].bytes.value(),
            Some(&MeasuredRange { low: 550_000.0, high: UNEVEN * 1_150_000.0, passes: 2 })
        );
        assert_eq!(
            levels[2].bytes.value(),
            Some(&MeasuredRange { low: 4_500_000.0, high: UNEVEN * 15_000_000.0, passes: 2 })
        );
        let three = pass(&[4.1, 14.2, 44.0, 400.0], &[41_000, 1_150_000, 19_000_000]);
        let third = &agreed(&[one.clone(), three], Some(0.3)).0[2];
        assert!(third.bytes.is_missing() && third.cycles.value().is_some());
        // A pass in which the last level was not to be seen.
        let (levels, memory) = agreed(&[one.clone(), pass(&[4.0, 14.0, 700.0], &[40_000, 1_100_000])], Some(0.3));
        assert_eq!((levels.len(), memory.value()), (2, None));
        // What takes 0.1 ns * 400 may be a cache.
        assert!(agreed(&[one.clone(), two.clone()], Some(0.1)).1.is_missing());
        // Room for a level between the first and what seems to be the second.
        let leap = [one, two].map(|mut pass| {
            pass[1].from = 1 << 18;
            pass
        });
        assert_eq!(agreed(&leap, Some(0.3)).0.len(), 1);
    }
}
