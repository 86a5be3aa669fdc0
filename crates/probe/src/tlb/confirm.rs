//! Confirms a proposed geometry with fresh pages.

use crate::bench::{ChainBench, Halt};
use crate::gf2;
use crate::tlb::geometry::Geometry;
use crate::tlb::level_meter::LevelMeter;
use crate::tlb::set_capacity::{fit, SetFit};
use crate::tlb::set_index::{search, Halves, LevelHeadroom};

/// Times that the number of ways is looked at again.
const WAYS_AGAIN: u32 = 16;
/// Of these, looks at pages that should fit that may show misses (a foreign page was in the set), and at pages that
/// should not fit that may show none. Two sets taken for one give other numbers: their pages fit where they happen to
/// be shared out evenly.
const WAYS_SPOILT: (u32, u32) = (4, 1);

/// Looks at a geometry when all else is done.
const LAST_LOOKS: u32 = 5;

/// Holds a geometry against the machine: `None` if all is as predicted, else the first thing that is not.
pub fn contradiction(
    bench: &mut ChainBench<'_>,
    level: &LevelMeter,
    masks: &[u64],
    ways: u32,
    room: LevelHeadroom,
) -> Result<Option<String>, Halt> {
    let kernel = gf2::null_space(masks, bench.bits());
    let (mut misfits, mut fitting, mut clear) = (0, 0, 0);
    for _ in 0..WAYS_AGAIN {
        let fits = fit(bench, level, &kernel, u64::from(ways), true)?;
        misfits += u32::from(fits == SetFit::No);
        clear += u32::from(fits == SetFit::Clear);
        fitting += u32::from(fit(bench, level, &kernel, u64::from(ways) + 1, false)? != SetFit::No);
        if misfits > WAYS_SPOILT.0 {
            return Ok(Some(format!("{ways} pages of one set do not always fit")));
        }
        if fitting > WAYS_SPOILT.1 {
            return Ok(Some(format!("{} pages of one set fit at times, not only {ways}", ways + 1)));
        }
    }
    // Under random replacement a page too many costs little more than none, if a miss is taken for dearer than it is.
    if 2 * clear < WAYS_AGAIN {
        return Ok(Some(format!("{ways} pages of one set miss now and then")));
    }
    let halves = Halves::new(bench, level, kernel.clone(), ways, room)?;
    // What should not change the set does not: a basis, each with a random sum of others added.
    for (i, vector) in kernel.iter().enumerate() {
        let others = bench.rng.next_u64() & !(1 << i);
        let sum = vector ^ gf2::combine(&kernel, others);
        if !halves.meets(bench, level, &[sum])? {
            return Ok(Some(format!("{sum:#x} should not change the set, and does")));
        }
    }
    // What should change it does: a vector into every other set.
    let reach = pivots(masks);
    let mut others: Vec<u64> = gf2::span(&reach).into_iter().skip(1).collect();
    bench.rng.shuffle(&mut others);
    for group in others.chunks(halves.vectors_at_once(bench, level)) {
        let vectors: Vec<u64> = group.iter().map(|v| v ^ gf2::combine(&kernel, bench.rng.next_u64())).collect();
        if let Some(vector) = search(bench, level, &halves, &vectors)? {
            return Ok(Some(format!("{vector:#x} should change the set, and does not")));
        }
        if !halves.surely_apart(bench, level, &vectors)? {
            let count = vectors.len();
            return Ok(Some(format!("one of {count} vectors that should change the set seems not to")));
        }
        // That nothing was seen says something only where something can be: with one that does not change it.
        let control = gf2::combine(&kernel, bench.rng.next_u64());
        if !halves.meets(bench, level, &[&vectors[1..], &[control]].concat())? {
            return Ok(Some(format!("{control:#x} does not change the set, but that is not seen beside others")));
        }
    }
    Ok(None)
}

/// Whether more pages of one set fit than the geometry says, in most of some looks: then who took the other entries all
/// through the passes that confirmed it, a neighbour on the same core, has gone.
pub fn outgrown(bench: &mut ChainBench<'_>, level: &LevelMeter, geometry: &Geometry) -> Result<bool, Halt> {
    let kernel = gf2::null_space(&geometry.masks, bench.bits());
    let mut fitting = 0;
    for _ in 0..LAST_LOOKS {
        fitting += u32::from(fit(bench, level, &kernel, u64::from(geometry.ways) + 1, false)? == SetFit::Clear);
    }
    Ok(2 * fitting > LAST_LOOKS)
}

/// One vector for each mask (in reduced form) that it alone sees.
fn pivots(masks: &[u64]) -> Vec<u64> {
    gf2::reduce(masks).iter().map(|row| row & row.wrapping_neg()).collect()
}
