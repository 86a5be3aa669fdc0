//! Measures the first-level data cache: how many lines at which distance fit.
//!
//! In a cache of `2^q` sets with a linear index, of lines `2^s` apart `ways * 2^(q - s)` fit where `s < q`, and `ways`
//! where the distance is that of lines of one set, or more. An index of another kind fits no such pattern.

use crate::bench::Halt;
use crate::finding::Finding;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::metal::MemoryArea;
use crate::report::caches::CacheShape;

/// log2 of the bytes of the area: 64 pages, whose translations a first-level TLB holds.
const BITS: u32 = 18;
/// Lines fit where a step takes no longer than a hit by this share.
const HITS: f64 = 1.08;
/// Looks at lines that should fit; the fastest counts, since disturbances only add misses.
const LOOKS: u32 = 3;
/// Attempts: a neighbour may have disturbed one.
const ATTEMPTS: u32 = 4;
/// So few lines too many do not show where there are many.
const NEARLY: f64 = 0.97;
/// From so many lines on, what else the core does (in a virtual machine a neighbour on its other hardware thread, too)
/// may take the rest of the cache but for this share. With fewer, exactly as many fit as should: these tell an index of
/// another kind.
const MANY: (u64, f64) = (128, 0.4);

/// Shape of the first-level data cache, if its lines have `line` bytes and a hit takes `hit` cycles.
pub fn first_cache(bench: &mut LatencyBench<'_>, line: u64, hit: f64) -> Result<Finding<CacheShape>, Halt> {
    let mut found = first_once(bench, line, hit)?;
    for _ in 1..ATTEMPTS {
        if found.value().is_some() {
            break;
        }
        found = first_once(bench, line, hit)?;
    }
    Ok(found)
}

fn first_once(bench: &mut LatencyBench<'_>, line: u64, hit: f64) -> Result<Finding<CacheShape>, Halt> {
    let bits = BITS - line.ilog2();
    let mut fitting = Vec::new();
    for distance in 0..bits {
        fitting.push(most_that_fit(bench, line, bits, distance, hit)?);
    }
    let shape = match shape(&fitting, line) {
        Ok(shape) => shape,
        Err(reason) => return Ok(Finding::not_determined(reason)),
    };
    // A second look, at other lines: one more than fit does not.
    for distance in 0..bits.min(shape.sets.ilog2() + 2) {
        let most = u64::from(shape.ways) << shape.sets.ilog2().saturating_sub(distance);
        let fewer = at_least(most);
        if 1 << (bits - distance) <= most {
            break;
        }
        let more = most + most.div_ceil(u64::from(shape.ways));
        if !fits(bench, line, bits, distance, fewer, hit)? || fits(bench, line, bits, distance, more, hit)? {
            return Ok(Finding::not_determined(format!(
                "{} ways of {} sets do not hold at a second look at lines {} bytes apart",
                shape.ways,
                shape.sets,
                line << distance
            )));
        }
    }
    let evidence = fitting.iter().enumerate().filter_map(|(distance, most)| {
        most.map(|most| format!("{most} lines fit that are {} bytes apart", line << distance))
    });
    Ok(Finding::confirmed(shape, evidence.collect()))
}

/// Of so many lines that should fit, how many have to.
fn at_least(lines: u64) -> u64 {
    match lines >= MANY.0 {
        true => (lines as f64 * MANY.1) as u64,
        false => (lines as f64 * NEARLY).ceil() as u64,
    }
}

/// The shape that explains how many lines fit, by log2 of their distance in lines; `None` = all that there are.
fn shape(fitting: &[Option<u64>], line: u64) -> Result<CacheShape, String> {
    let known: Vec<(u32, u64)> = (0..).zip(fitting).filter_map(|(at, most)| Some((at, (*most)?))).collect();
    let Some(&(_, ways)) = known.last() else {
        return Err(format!("{} lines fit", 1u64 << fitting.len()));
    };
    // The least distance at which no more fit than at the largest.
    let sets_log2 = known.iter().find(|(_, most)| *most == ways).map_or(0, |(at, _)| *at);
    for &(at, most) in &known {
        let wanted = ways << sets_log2.saturating_sub(at);
        if most as f64 * NEARLY > wanted as f64 || most < at_least(wanted) {
            return Err(format!(
                "{most} lines fit that are {} bytes apart, and not {wanted}, as with {ways} ways and a linear index",
                line << at
            ));
        }
    }
    // Two distances of lines of one set, or the last may just be where the area ends.
    if !known.iter().any(|(at, _)| *at > sets_log2) {
        return Err("lines of one set are too few in the area".into());
    }
    let ways32 = u32::try_from(ways).map_err(|_| "too many ways".to_string())?;
    Ok(CacheShape { bytes: (ways << sets_log2) * line, ways: ways32, sets: 1 << sets_log2 })
}

/// How many lines so far apart fit; `None` if all do.
fn most_that_fit(
    bench: &mut LatencyBench<'_>,
    line: u64,
    bits: u32,
    distance: u32,
    hit: f64,
) -> Result<Option<u64>, Halt> {
    let (mut fit, mut too_many) = (0, 1 << (bits - distance));
    if fits(bench, line, bits, distance, too_many, hit)? {
        return Ok(None);
    }
    while too_many - fit > 1 {
        let middle = (fit + too_many) / 2;
        if fits(bench, line, bits, distance, middle, hit)? {
            fit = middle;
        } else {
            too_many = middle;
        }
    }
    Ok((fit > 0).then_some(fit))
}

/// Whether so many lines fit: neighbours at this distance, from anywhere in the area on, in random order.
fn fits(bench: &mut LatencyBench<'_>, line: u64, bits: u32, distance: u32, count: u64, hit: f64) -> Result<bool, Halt> {
    let area = MemoryArea::Own { bytes: line << bits, huge: true };
    for _ in 0..LOOKS {
        let (start, shift) = (bench.rng.next_u64(), bench.rng.index(1 << distance) as u64);
        let place = |i: u64| (((start.wrapping_add(i) << distance) + shift) & ((1 << bits) - 1)) * line;
        let mut offsets: Vec<u64> = (0..count.max(1)).map(place).collect();
        bench.rng.shuffle(&mut offsets);
        if bench.cycles(area, &offsets)? <= HITS * hit {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_cache_and_nothing_else_is_recognised() {
        // 8 ways, 64 sets; 4096 lines.
        let mut fitting: Vec<Option<u64>> = [512, 256, 128, 64, 32, 16, 8, 8, 8].map(Some).to_vec();
        fitting.extend([None, None, None]);
        let found = shape(&fitting, 64).expect("a shape");
        assert_eq!((found.bytes, found.ways, found.sets), (32 << 10, 8, 64));
        for about in [254, 505, 513] {
            fitting[0] = Some(about);
            assert_eq!(shape(&fitting, 64).expect("a shape"), found);
        }
        for (at, wrong) in [(0, 600), (0, 200), (1, 100), (3, 61), (5, 17), (6, 9), (8, 9)] {
            let mut other = fitting.clone();
            other[at] = Some(wrong);
            assert!(shape(&other, 64).is_err(), "{wrong} at {at}");
        }
        // Only one distance at which lines of a set are too many: it may have more sets.
        assert!(shape(&[Some(512), Some(256), None, None], 64).is_err());
        assert!(shape(&[None; 12], 64).is_err());
    }
}
