//! What loads cost that lie far apart, and in a row: memory under random loads, ascending walks, and whether a huge
//! page is held as one translation. All by sequences ([`WordSequence`]), as programs make them.

use lookaside_machine::PageSize;

use crate::agreed_range::MeasuredRange;
use crate::bench::Halt;
use crate::finding::Finding;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::metal::{MemoryArea, WordSequence};
use crate::report::access_patterns::AccessPatternCosts;
use crate::report::caches::CacheReports;
use crate::report::walks::WalkCosts;

/// Bytes of a word, of a line, of a small page.
const WORD: u64 = 8;
const LINE: u64 = 64;
const PAGE: u64 = 4096;
/// Cycles of the addition that makes each address of a sequence depend on what was read before.
const ADDITION: f64 = 1.0;
/// Pages of a window of random loads: its translations stay in a second-level TLB (all of these cores have 512 entries
/// or more), and it is much larger than a row of DRAM.
const WINDOW: u64 = 256;
/// Lines read at random are so many times what the last cache holds.
const BEYOND: f64 = 4.0;
/// Where the last cache is not known: what is beyond all but the largest.
const FAR_BYTES: u64 = 64 << 20;
/// A walk through memory is so long: beyond what caches keep of the walk before, also of the list that its order is
/// read from, a sixteenth of it.
const STREAM_BYTES: u64 = 256 << 20;
/// Two passes agree within this share; memory that others use too is no steadier.
const ALIKE: f64 = 0.12;
/// Pages of an ascending walk whose translations are at hand.
const HOT: u64 = 8;
/// Two passes agree within so many cycles of a page-table walk, too: it is told from 64 loads of 4 to 5 cycles, whose
/// clocks differ by up to 2 %.
const GRAIN: f64 = 8.0;
/// Passes at most.
const PASSES: usize = 5;

/// The middle of a figure, where it is known.
fn middle(finding: &Finding<MeasuredRange>) -> Option<f64> {
    finding.value().map(|seen| (seen.low + seen.high) / 2.0)
}

/// Looks for all of it.
pub(crate) fn access_patterns(
    bench: &mut LatencyBench<'_>,
    caches: &CacheReports,
    walks: &WalkCosts,
) -> Result<AccessPatternCosts, Halt> {
    let mut found = AccessPatternCosts::nothing("not looked at");
    found.memory_bytes = lookaside_host::meminfo_bytes("MemTotal").ok();
    let hit = middle(&walks.second_level_cycles);
    let held = |level: usize| caches.levels.get(level).and_then(|level| level.bytes.value());
    let last = caches.levels.len().checked_sub(1).and_then(held).map(|seen| seen.high);
    let room = bench.metal().max_pages(PageSize::K4) as u64 * PAGE;

    let wanted = last.map_or(FAR_BYTES, |bytes| (bytes * BEYOND) as u64);
    found.random_memory_cycles = match hit {
        None => Finding::not_determined("what a hit of the second-level TLB adds is not known"),
        Some(hit) => agreed(bench, 0.0, |bench| {
            let words = windows(bench, room, wanted / LINE);
            Ok(cycles(bench, PageSize::K4, &words)? - hit)
        })?,
    };

    let huge = bench.metal().page_bits(PageSize::M2) > 0;
    let size = if huge { PageSize::M2 } else { PageSize::K4 };
    let ascending = |bytes: u64| (0..bytes / LINE).map(|line| (line * LINE / WORD) as u32).collect::<Vec<u32>>();
    found.stream_cache_cycles = match (caches.levels.get(1), caches.levels.get(2)) {
        (Some(second), Some(third)) => {
            let memory = middle(&caches.memory_cycles);
            match (middle(&second.bytes), middle(&third.bytes), middle(&third.cycles), memory) {
                (Some(second), Some(third), Some(hit), Some(memory)) if second < third => {
                    let bytes = (second * third).sqrt() as u64;
                    // Half of it missing would be too much.
                    let mut scattered = ascending(bytes);
                    bench.rng.shuffle(&mut scattered);
                    match cycles(bench, size, &scattered)? {
                        took if took < (hit + memory) / 2.0 => {
                            let words = ascending(bytes);
                            agreed(bench, 0.0, |bench| cycles(bench, size, &words))?
                        }
                        took => Finding::not_determined(format!(
                            "of {} KiB the third cache held too little just then: a load took {took:.0} cycles",
                            bytes >> 10
                        )),
                    }
                }
                _ => Finding::not_determined(
                    "sizes and latencies of the second and third cache, and memory's, are not known",
                ),
            }
        }
        _ => Finding::not_determined("no third cache"),
    };
    found.huge_pages_are_whole = match (huge, hit, middle(&walks.base_cycles)) {
        (false, ..) => Finding::not_determined("no huge pages").unasked(),
        (_, Some(hit), Some(base)) => huge_pages_are_whole(bench, room, hit, base)?,
        _ => Finding::not_determined("what a walk costs is not known"),
    };
    found.stream_walk_cycles = stream_walk(bench)?;
    // Where walks begin anew every small page, they are in the time, and are not the stream's.
    let split = !huge || found.huge_pages_are_whole.value() == Some(&false);
    let leaf = caches.levels.last().and_then(|level| middle(&level.cycles)).unwrap_or(0.0);
    let any_walk = || middle(&walks.base_cycles).map(|base| base + leaf);
    let walk = middle(&found.stream_walk_cycles).or_else(any_walk).filter(|_| split).unwrap_or(0.0);
    let bytes = STREAM_BYTES.min(room);
    let words = ascending(bytes);
    found.stream_memory_cycles =
        agreed(bench, 0.0, |bench| Ok(cycles(bench, size, &words)? - walk * LINE as f64 / PAGE as f64))?;
    Ok(found)
}

/// What a page-table walk adds in an ascending walk, line by line over far more pages than TLBs have entries, beside
/// one over few pages.
fn stream_walk(bench: &mut LatencyBench<'_>) -> Result<Finding<MeasuredRange>, Halt> {
    let area = MemoryArea::Shared;
    let pages = PARTS.min(bench.metal().area_bytes(area) / PAGE);
    if pages < PARTS {
        return Ok(Finding::not_determined("needs more addresses for pages that share a frame"));
    }
    let ascending = |pages: u64| (0..pages * PAGE / LINE).map(|line| line * LINE).collect::<Vec<u64>>();
    let (many, few) = (ascending(pages), ascending(HOT));
    agreed(bench, GRAIN, |bench| {
        let longer = bench.cycles(area, &many)? - bench.cycles(area, &few)?;
        Ok(longer.max(0.0) * (PAGE / LINE) as f64)
    })
}

/// Core cycles of an access of a sequence, without the addition.
fn cycles(bench: &mut LatencyBench<'_>, size: PageSize, words: &[u32]) -> Result<f64, Halt> {
    bench.check()?;
    let per_tick = bench.metal().cycles_per_tick_now();
    let ticks = bench.metal().replay(&WordSequence::dependent(size, words), 1, 1)?;
    let least = ticks.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(least * per_tick / words.len().max(1) as f64 - ADDITION)
}

/// So many lines, those of a window in random order before the next window's, the windows in random order too.
fn windows(bench: &mut LatencyBench<'_>, room: u64, lines: u64) -> Vec<u32> {
    let bytes = WINDOW * PAGE;
    let mut windows: Vec<u64> = (0..(room / bytes).max(1)).collect();
    bench.rng.shuffle(&mut windows);
    let each = lines.div_ceil(windows.len() as u64).min(bytes / LINE);
    let mut words = Vec::new();
    for window in windows {
        let mut offsets: Vec<u64> = (0..bytes / LINE).collect();
        bench.rng.shuffle(&mut offsets);
        words.extend(offsets.iter().take(each as usize).map(|line| ((window * bytes + line * LINE) / WORD) as u32));
    }
    words
}

/// A figure that two passes give alike, or within so many cycles. It is 0 only where these are not.
fn agreed(
    bench: &mut LatencyBench<'_>,
    grain: f64,
    mut measure: impl FnMut(&mut LatencyBench<'_>) -> Result<f64, Halt>,
) -> Result<Finding<MeasuredRange>, Halt> {
    let mut seen: Vec<f64> = Vec::new();
    for pass in 1..=PASSES {
        let next = measure(bench)?;
        let alike = |other: f64| (next - other).abs() <= (ALIKE * other.max(next)).max(grain);
        if let Some(&other) = seen.iter().find(|&&other| alike(other)) {
            if next > 0.0 || grain > 0.0 {
                let (low, high) = (other.min(next), other.max(next));
                let all = seen.iter().chain([&next]).map(|cycles| format!("{cycles:.1}")).collect::<Vec<_>>();
                return Ok(Finding::confirmed(
                    MeasuredRange { low, high, passes: pass },
                    vec![format!("passes: {}", all.join(", "))],
                ));
            }
        }
        seen.push(next);
    }
    let all = seen.iter().map(|cycles| format!("{cycles:.1}")).collect::<Vec<_>>();
    Ok(Finding::not_determined(format!("no two passes give the same: {} cycles", all.join(", "))))
}

/// Whether a huge page is one translation: lines in far more small pages than the TLBs have entries, beside as many
/// lines in few. What it takes longer is a miss of a TLB at most, or a walk.
fn huge_pages_are_whole(bench: &mut LatencyBench<'_>, room: u64, hit: f64, base: f64) -> Result<Finding<bool>, Halt> {
    let pages = (room / PAGE).min(PARTS);
    let mut excess = Vec::new();
    for _ in 0..2 {
        let mut order: Vec<u64> = (0..pages).collect();
        bench.rng.shuffle(&mut order);
        // Another line every 32 pages: a huge page's frames are contiguous, and lines in step with pages would meet in
        // few sets of a cache.
        let line = |i: u64| i / 32 % (PAGE / LINE);
        let apart: Vec<u32> = order.iter().map(|i| ((i * PAGE + line(*i) * LINE) / WORD) as u32).collect();
        let together: Vec<u32> = order.iter().map(|i| (i * LINE / WORD) as u32).collect();
        excess.push(cycles(bench, PageSize::M2, &apart)? - cycles(bench, PageSize::M2, &together)?);
    }
    let evidence =
        vec![format!("{pages} small pages of huge ones take {:.1} and {:.1} cycles longer", excess[0], excess[1])];
    // A part of the walks at least must show: of random replacement not all translations go.
    if excess.iter().all(|&cycles| cycles > hit + base / 2.0) {
        Ok(Finding::confirmed(false, evidence))
    } else if excess.iter().all(|&cycles| cycles < hit + base / 4.0) {
        Ok(Finding::confirmed(true, evidence))
    } else {
        Ok(Finding::NotDetermined { reason: "two passes differ".into(), evidence, asked: true })
    }
}

/// Small pages in which huge ones are tried: more than twice as many as the largest second-level TLBs have entries.
const PARTS: u64 = 8192;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::metal::{LineChain, Metal, MetalError, PageChain};

    /// Gives these cycles an access, one after the other, then refuses.
    struct ScriptedMetal(Vec<f64>);

    impl Metal for ScriptedMetal {
        fn page_bits(&self, _: PageSize) -> u32 {
            20
        }

        fn max_pages(&self, _: PageSize) -> usize {
            1 << 16
        }

        fn chase(&mut self, _: &PageChain<'_>, _: u32, _: usize) -> Result<Vec<f64>, MetalError> {
            Err(MetalError::Unsupported("no chains".into()))
        }

        fn cycles_per_tick(&self) -> f64 {
            2.0
        }

        fn replay(&mut self, sequence: &WordSequence<'_>, _: u32, _: usize) -> Result<Vec<f64>, MetalError> {
            let next = if self.0.is_empty() { None } else { Some(self.0.remove(0)) };
            let cycles = next.ok_or_else(|| MetalError::Unsupported("no more".into()))?;
            Ok(vec![cycles / 2.0 * sequence.words.len() as f64])
        }
    }

    fn found(told: &[f64]) -> Result<Finding<MeasuredRange>, Halt> {
        let mut metal = ScriptedMetal(told.to_vec());
        let mut bench = LatencyBench::new(&mut metal, 1, &|| None);
        agreed(&mut bench, 0.0, |bench| cycles(bench, PageSize::K4, &[0, 1, 2]))
    }

    #[test]
    fn two_passes_have_to_agree() {
        let seen = found(&[301.0, 501.0, 321.0]).expect("three passes");
        assert_eq!(seen.value().map(|seen| (seen.low, seen.high, seen.passes)), Some((300.0, 320.0, 3)));
        assert!(found(&[101.0, 201.0, 401.0, 801.0, 1601.0]).expect("five passes").value().is_none());
        assert!(found(&[101.0]).is_err());
    }

    #[test]
    fn a_host_with_small_pages_shows_and_a_walk_now_and_then_does_not() {
        let whole = |told: [f64; 4]| {
            let mut metal = ScriptedMetal(told.to_vec());
            let mut bench = LatencyBench::new(&mut metal, 1, &|| None);
            huge_pages_are_whole(&mut bench, 256 << 20, 7.0, 36.0).expect("four measurements").value().copied()
        };
        assert_eq!(whole([70.0, 15.0, 72.0, 15.0]), Some(false));
        assert_eq!(whole([15.5, 15.0, 22.0, 15.0]), Some(true));
        assert_eq!(whole([70.0, 15.0, 16.0, 15.0]), None);
    }

    /// Takes 5 cycles a step, and so many more where a page begins, of more pages than its TLB has entries.
    struct WalkingMetal {
        entries: usize,
        walk_cycles: f64,
        bytes: u64,
    }

    impl Metal for WalkingMetal {
        fn page_bits(&self, _: PageSize) -> u32 {
            20
        }

        fn max_pages(&self, _: PageSize) -> usize {
            1 << 16
        }

        fn chase(&mut self, _: &PageChain<'_>, _: u32, _: usize) -> Result<Vec<f64>, MetalError> {
            Err(MetalError::Unsupported("no chains".into()))
        }

        fn cycles_per_tick(&self) -> f64 {
            1.0
        }

        fn area_bytes(&mut self, _: MemoryArea) -> u64 {
            self.bytes
        }

        fn steps(&mut self, steps: &LineChain<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
            let pages: Vec<u64> = steps.offsets.iter().map(|offset| offset / PAGE).collect();
            let begun = 1 + pages.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let walks = if begun > self.entries { begun } else { 0 };
            Ok(vec![5.0 + self.walk_cycles * walks as f64 / pages.len() as f64; samples])
        }
    }

    #[test]
    fn a_walk_of_an_ascending_walk_is_told_by_the_page() {
        let found = |walk_cycles: f64, bytes: u64| {
            let mut metal = WalkingMetal { entries: 3072, walk_cycles, bytes };
            let mut bench = LatencyBench::new(&mut metal, 1, &|| None);
            stream_walk(&mut bench).expect("nobody halts")
        };
        for walk_cycles in [0.0, 6.5, 120.0] {
            let seen = middle(&found(walk_cycles, 1 << 30)).expect("two passes alike");
            assert!((seen - walk_cycles).abs() < 1e-6, "{seen} for {walk_cycles}");
        }
        assert!(found(6.5, 1 << 20).reason().is_some_and(|reason| reason.contains("addresses")));
    }

    #[test]
    fn windows_hold_distinct_lines_all_over_the_room() {
        let mut metal = ScriptedMetal(Vec::new());
        let mut bench = LatencyBench::new(&mut metal, 1, &|| None);
        let words = windows(&mut bench, 64 << 20, 1 << 16);
        assert_eq!(words.len(), 1 << 16);
        assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len());
        assert!(words.iter().all(|&word| u64::from(word) * WORD < 64 << 20));
        let touched: HashSet<u64> = words.iter().map(|&word| (u64::from(word) * WORD) >> 20).collect();
        assert_eq!(touched.len(), 64);
    }
}
