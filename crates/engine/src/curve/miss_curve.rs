//! A miss curve as data: misses by the size and the shape of a TLB.

use serde::{Deserialize, Serialize};

/// Most ways that are told apart: four vectors of eight.
pub const MAX_WAYS: usize = 16;

/// Misses as a function of TLB geometry, LRU, 4 KiB pages, from one pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MissCurve {
    /// Accesses behind the curve: its denominator.
    pub accesses: u64,
    /// First touches: misses at any size.
    pub cold_misses: u64,
    /// Fully associative: (entries, misses), ascending; a step function, exact at each listed size. Sizes within a
    /// recorder's window are not listed.
    pub fully_associative: Vec<(u64, u64)>,
    /// For each number of sets (linear index), misses by ways 1, 2, 3, …; none behind a recorder's window.
    pub set_associative: Vec<SetCurve>,
    /// `true`: from samples under the independent-reference assumption, an estimate.
    pub estimate: bool,
}

/// Misses of all associativities at one number of sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SetCurve {
    /// Sets, a power of two.
    pub sets: u32,
    /// `misses_by_ways[w - 1]` = misses with `w` ways.
    pub misses_by_ways: Vec<u64>,
}

/// Sizes at which a curve is listed: each up to 64, then 32 an octave (so that 1.5 · 2^k is among them), and the first
/// at which nothing but cold misses is left.
pub(super) fn listed_sizes(last: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = (1..64).collect();
    let octaves = (6..63).flat_map(|octave| (0..32).map(move |step| (32 + step) << (octave - 5)));
    sizes.extend(octaves.take_while(|&size| size < last));
    sizes.retain(|&size| size < last);
    if last > 0 {
        sizes.push(last);
    }
    sizes
}
