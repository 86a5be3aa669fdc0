//! Latency by footprint: how many levels there are, what each takes, and about how much it holds.

use crate::bench::Halt;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::metal::MemoryArea;
use crate::report::caches::LatencyPoint;

/// Bytes of a small page.
pub const PAGE: u64 = 4096;
/// Pages of a window: all lines of so many pages are walked in random order before the next window, so that a
/// translation serves 64 steps, from a first-level TLB (every one has 32 entries or more), while no prefetcher sees a
/// stream.
pub(super) const WINDOW: u64 = 32;
/// Bytes of a line where they were not determined: the most that cores have. Of steps half a line apart every other one
/// would hit; steps two lines apart use half of the lines of a cache, and as many bytes of addresses fit it.
pub const LINE: u64 = 128;
/// Smallest footprint.
const LEAST: u64 = 4096;

/// A latency rises within a level by less than this from one footprint to the next (half an octave).
const CLIMB: f64 = 1.14;
/// Footprints that a level's plateau has at least; the last, that only memory bounds, fewer.
const PLATEAU: (usize, usize) = (3, 2);
/// Where a step takes twice as long, so many miss that half would at most this many times that footprint (see
/// [`half_at_most`]): what seems to be more is a level between that others had for themselves.
const TWICE: f64 = 1.5;
/// From here on footprints are an octave apart: they take long.
const COARSE: u64 = 16 << 20;
/// A level takes at least so many times as long as the one before.
const SLOWER: f64 = 1.6;

/// A stretch of footprints that one level serves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plateau {
    /// Core cycles in its middle.
    pub cycles: f64,
    /// Smallest footprint on it.
    pub from: u64,
    /// Largest.
    pub fits: u64,
    /// Footprint at which half of the steps miss, if the next plateau serves those; `None` for the last.
    pub beyond: Option<u64>,
}

/// Footprints up to `most`: powers of two, and, while they are small, half-way between.
fn footprints(most: u64) -> Vec<u64> {
    let octaves = (0..50).map(|octave| LEAST << octave);
    let both = octaves.flat_map(|bytes| [Some(bytes), (bytes < COARSE).then_some(bytes + bytes / 2)]);
    both.flatten().filter(|&bytes| bytes <= most).collect()
}

/// Lines of so many bytes in an order that neither prefetchers nor TLBs have a part in.
fn order(bench: &mut LatencyBench<'_>, bytes: u64, line: u64) -> Vec<u64> {
    let mut pages: Vec<u64> = (0..bytes.div_ceil(PAGE)).collect();
    bench.rng.shuffle(&mut pages);
    let mut offsets = Vec::with_capacity((bytes / line) as usize);
    for window in pages.chunks(WINDOW as usize) {
        let from = offsets.len();
        let lines = window.iter().flat_map(|page| (0..PAGE / line).map(move |number| page * PAGE + number * line));
        offsets.extend(lines.filter(|&offset| offset < bytes));
        bench.rng.shuffle(&mut offsets[from..]);
    }
    offsets
}

/// Measures the curve up to `most` bytes, through lines of `line` bytes; no further than three footprints alike that
/// take `memory` cycles or more, if that is known: what only memory takes.
pub fn curve(
    bench: &mut LatencyBench<'_>,
    most: u64,
    line: u64,
    memory: Option<f64>,
) -> Result<Vec<LatencyPoint>, Halt> {
    let mut points = Vec::new();
    for bytes in footprints(most) {
        let offsets = order(bench, bytes, line);
        let area = MemoryArea::Own { bytes: most, huge: true };
        points.push(LatencyPoint { bytes, cycles: bench.cycles(area, &offsets)? });
        let last = &points[points.len().saturating_sub(PLATEAU.0)..];
        let slow = memory.is_some_and(|memory| last.iter().all(|point| point.cycles >= memory));
        if slow && bytes > COARSE && last.windows(2).all(|pair| flat(&pair[0], &pair[1])) {
            break;
        }
    }
    Ok(points)
}

/// The levels of a curve. What lies between is not said.
pub(crate) fn plateaus(points: &[LatencyPoint]) -> Vec<Plateau> {
    // A larger footprint is no faster: what is slower than a larger one was disturbed.
    let mut steady = points.to_vec();
    for i in (1..steady.len()).rev() {
        steady[i - 1].cycles = steady[i - 1].cycles.min(steady[i].cycles);
    }
    let mut found: Vec<Plateau> = Vec::new();
    for run in steady.chunk_by(flat) {
        let last = run.last() == steady.last();
        if run.len() < if last { PLATEAU.1 } else { PLATEAU.0 } {
            continue;
        }
        let (cycles, from, fits) = (run[run.len() / 2].cycles, run[0].bytes, run[run.len() - 1].bytes);
        match found.last_mut() {
            Some(before) if cycles < SLOWER * before.cycles => before.fits = fits,
            _ => found.push(Plateau { cycles, from, fits, beyond: None }),
        }
    }
    for i in 1..found.len() {
        let (own, next) = (found[i - 1].cycles, found[i].cycles);
        let half = crossing(&steady, (own + next) / 2.0);
        let until_two_agree =
            crossing(&steady, 2.0 * own).map(|bytes| (bytes as f64 * half_at_most(own / (next - own))) as u64);
        found[i - 1].beyond = half.into_iter().chain(until_two_agree).min();
    }
    found
}

/// Half of the steps miss at most at so many times the footprint at which this share of them does. Pages at random
/// crowd some sets long before all are full, the more so the fewer ways: of 4 (the fewest of any second level known),
/// by Poisson's distribution, half miss at 1.6 times the footprint at which 21 in 100 do, 2.1 times that of 10 in 100,
/// 3.0 times that of 2.6 in 100.
fn half_at_most(share: f64) -> f64 {
    TWICE.max(1.09 + 0.67 * (0.45 / share).ln())
}

/// Whether a step takes about as long.
fn flat(a: &LatencyPoint, b: &LatencyPoint) -> bool {
    b.cycles < CLIMB * a.cycles
}

/// The footprint at which a step takes so long.
fn crossing(points: &[LatencyPoint], cycles: f64) -> Option<u64> {
    points.windows(2).find(|pair| pair[1].cycles > cycles).map(|pair| {
        let (a, b) = (pair[0], pair[1]);
        let part = ((cycles - a.cycles) / (b.cycles - a.cycles)).clamp(0.0, 1.0);
        a.bytes + (part * (b.bytes - a.bytes) as f64) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(cycles: &[f64]) -> Vec<LatencyPoint> {
        footprints(u64::MAX).into_iter().zip(cycles).map(|(bytes, &cycles)| LatencyPoint { bytes, cycles }).collect()
    }

    #[test]
    fn levels_of_a_curve_from_the_metal() {
        // Zen 4, 4 KiB to 128 MiB.
        let curve = [
            4.1, 4.1, 4.1, 4.1, 4.1, 4.1, 4.6, 14.3, 14.3, 14.2, 14.3, 14.3, 14.2, 14.3, 15.2, 18.7, 25.7, 41.3, 41.4,
            43.5, 44.8, 49.4, 47.6, 116.4, 350.9, 378.7, 375.2, 375.1,
        ];
        let found = plateaus(&points(&curve));
        let cycles: Vec<f64> = found.iter().map(|level| level.cycles).collect();
        assert_eq!(cycles, [4.1, 14.2, 44.8, 375.1]);
        let fits: Vec<u64> = found.iter().map(|level| level.fits >> 10).collect();
        assert_eq!(fits, [32, 512, 8192, 128 << 10]);
        let beyond: Vec<Option<u64>> = found.iter().map(|level| level.beyond.map(|bytes| bytes >> 10)).collect();
        assert_eq!(beyond, [Some(39), Some(1148), Some(13_922), None]);
    }

    #[test]
    fn one_slow_footprint_is_no_level() {
        let mut curve = vec![4.0; 7];
        curve.extend([14.0; 8]);
        curve.extend([90.0; 6]);
        let clean = plateaus(&points(&curve));
        curve[3] = 30.0;
        curve[9] = 60.0;
        assert_eq!(plateaus(&points(&curve)), clean);
        assert_eq!(clean.len(), 3);
    }
}
