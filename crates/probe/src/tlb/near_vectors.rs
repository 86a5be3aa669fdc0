//! Random vectors of a space over GF(2), from its part with the smallest numbers.

use crate::bench::ChainBench;
use crate::gf2;

/// Dimensions of a space more than its pages need.
const SPARE: usize = 3;

/// `n` different vectors of a space, at random from its nearest part; all, if it has no more.
pub fn random_vectors(bench: &mut ChainBench<'_>, basis: &[u64], n: usize) -> Vec<u64> {
    let mut near = gf2::near_first(basis);
    // Some more than are needed: a smaller space's pages might be spread evenly over several sets.
    near.truncate(n.next_power_of_two().ilog2() as usize + SPARE);
    let mut all = gf2::span(&near);
    bench.rng.shuffle(&mut all);
    all.truncate(n);
    all
}
