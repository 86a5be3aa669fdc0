//! Measures the cache line: the distance at which a second word of a missing line misses too.

use crate::bench::Halt;
use crate::finding::Finding;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::hierarchy::latency_curve::PAGE;
use crate::metal::MemoryArea;

/// Distances tried: lines of 16 to 256 bytes are told apart from smaller and larger ones.
const DISTANCES: [u64; 6] = [8, 16, 32, 64, 128, 256];
/// Blocks, a pair of words in each: their lines are more than a first level holds, and in reach of the second.
const BLOCKS: u64 = 2048;
/// Times as long as at the least distance that a step takes at most within a line, and at least beyond.
const LIKE: f64 = 1.1;
/// See [`LIKE`].
const LONGER: f64 = 1.25;
/// Passes that have to agree, and at most; none may show another size.
const PASSES: (usize, usize) = (2, 5);

/// The line size.
pub fn line_bytes(bench: &mut LatencyBench<'_>) -> Result<Finding<u64>, Halt> {
    let mut evidence = Vec::new();
    let mut seen: Vec<u64> = Vec::new();
    for _ in 0..PASSES.1 {
        let mut cycles = Vec::new();
        for distance in DISTANCES {
            cycles.push(pairs(bench, distance)?);
        }
        let list: Vec<String> = DISTANCES.iter().zip(&cycles).map(|(d, c)| format!("{d}: {c:.1}")).collect();
        evidence.push(format!("cycles a step by distance of pairs: {}", list.join(", ")));
        // A pass in which something disturbs shows none.
        seen.extend(line_of(&cycles));
        if seen.len() >= PASSES.0 {
            break;
        }
    }
    Ok(match seen[..] {
        [line, other] if line == other => Finding::confirmed(line, evidence),
        _ => Finding::NotDetermined { reason: "pairs of words show no one line size".into(), evidence, asked: true },
    })
}

/// The first of the distances at which a step surely takes longer than at the least, if it does at all beyond, and at
/// none before takes any longer. How much longer may differ: pairs far apart use fewer sets of the levels below.
fn line_of(cycles: &[f64]) -> Option<u64> {
    let least = cycles[0];
    let first = cycles.iter().position(|&c| c > LIKE * least)?;
    cycles[first..].iter().all(|&c| c > LONGER * least).then(|| DISTANCES[first])
}

/// Cycles a step through pairs of words so far apart, the second first.
fn pairs(bench: &mut LatencyBench<'_>, distance: u64) -> Result<f64, Halt> {
    let block = 2 * DISTANCES[DISTANCES.len() - 1];
    let mut order: Vec<u64> = (0..BLOCKS).collect();
    // Page by page, so that translations are no part of it.
    let mut pages: Vec<u64> = (0..BLOCKS * block / PAGE).collect();
    bench.rng.shuffle(&mut pages);
    let a_page = (PAGE / block) as usize;
    for (chunk, page) in order.chunks_mut(a_page).zip(pages) {
        (0..).zip(chunk.iter_mut()).for_each(|(i, at)| *at = page * a_page as u64 + i);
        bench.rng.shuffle(chunk);
    }
    let mut offsets = Vec::with_capacity(2 * order.len());
    for at in order {
        // Anywhere in the block, so that all sets are used alike, whatever the distance.
        let base = at * block + bench.rng.below(block / (2 * distance)) * 2 * distance;
        offsets.extend([base + distance, base]);
    }
    bench.cycles(MemoryArea::Own { bytes: BLOCKS * block, huge: true }, &offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_where_the_second_word_misses_too() {
        assert_eq!(line_of(&[9.0, 9.1, 9.0, 14.0, 14.1, 14.0]), Some(64));
        assert_eq!(line_of(&[9.0, 9.1, 9.0, 9.0, 14.1, 14.0]), Some(128));
        assert_eq!(line_of(&[9.7, 9.7, 9.7, 18.7, 20.7, 15.4]), Some(64)); // Zen 4
        assert_eq!(line_of(&[9.0, 9.1, 9.0, 10.5, 14.1, 14.0]), None); // neither hits nor misses: a prefetcher
        assert_eq!(line_of(&[9.0, 9.1, 9.0, 14.0, 9.1, 14.0]), None);
        assert_eq!(line_of(&[9.0; 6]), None);
    }
}
