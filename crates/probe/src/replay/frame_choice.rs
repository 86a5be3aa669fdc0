//! Which of the held frames are given to the replay, so that they are as scattered as a program's.

use std::collections::BTreeMap;

use lookaside_host::{FrameScatter, BLOCK_FRAMES, REGION_FRAMES};
use lookaside_stats::SplitMix64;

/// The order of blocks and regions is drawn, always the same.
const SEED: u64 = 1;

/// Of these places in `frames` up to `count`, in the order in which to give them: as many to a block of eight frames,
/// and to a region of 2 MiB, as in `wanted`, on the mean and as far as there are such. Frames of a block come one after
/// another.
pub fn choose(frames: &[u64], places: &[u32], count: usize, wanted: FrameScatter) -> Vec<u32> {
    let a_block = (BLOCK_FRAMES as f64 / wanted.times_fewest()).clamp(1.0, BLOCK_FRAMES as f64);
    let mut blocks = blocks_of(frames, places);
    let mut rng = SplitMix64::new(SEED);
    shuffle(&mut blocks, &mut rng);
    // Those that can give what a block is to give come first.
    blocks.sort_by_key(|(_, places)| std::cmp::Reverse(places.len().min(a_block.ceil() as usize)));
    let regions = regions_first(&mut blocks, count as f64 / a_block, count as f64 * wanted.regions_a_page(), &mut rng);
    let mut chosen = Vec::with_capacity(count);
    let mut left = Vec::new();
    let mut owed = 0.0;
    for (at, (_, places)) in blocks.into_iter().enumerate() {
        if chosen.len() >= count {
            break;
        }
        // Beyond the chosen regions any frame will do.
        owed = if at < regions { owed + a_block } else { BLOCK_FRAMES as f64 };
        let given = (owed as usize).min(places.len()).min(count - chosen.len());
        owed -= given as f64;
        let (now, later) = places.split_at(given);
        chosen.extend_from_slice(now);
        left.extend_from_slice(later);
    }
    left.truncate(count - chosen.len());
    chosen.extend(left);
    chosen
}

/// A block's number and the places of its frames.
type FrameBlock = (u64, Vec<u32>);

/// By the number of the block.
fn blocks_of(frames: &[u64], places: &[u32]) -> Vec<FrameBlock> {
    let mut blocks: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for &place in places {
        blocks.entry(frames[place as usize] / BLOCK_FRAMES).or_default().push(place);
    }
    blocks.into_iter().collect()
}

/// Puts the blocks of `regions` regions, or of as many as it takes for so many blocks, before all others; how many
/// these are. The order among them stays.
fn regions_first(blocks: &mut [FrameBlock], wanted_blocks: f64, regions: f64, rng: &mut SplitMix64) -> usize {
    let region = |block: &FrameBlock| block.0 * BLOCK_FRAMES / REGION_FRAMES;
    let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
    blocks.iter().for_each(|block| *sizes.entry(region(block)).or_default() += 1);
    let mut order: Vec<u64> = sizes.keys().copied().collect();
    shuffle(&mut order, rng);
    let mut kept = BTreeMap::new();
    let mut room = 0;
    for number in order {
        if kept.len() as f64 >= regions.ceil() && room as f64 >= wanted_blocks.ceil() {
            break;
        }
        room += sizes[&number];
        kept.insert(number, ());
    }
    blocks.sort_by_key(|block| !kept.contains_key(&region(block)));
    room
}

fn shuffle<T>(list: &mut [T], rng: &mut SplitMix64) {
    for at in (1..list.len()).rev() {
        list.swap(at, rng.index(at + 1));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// Free frames in pieces of 4 KiB to 1 MiB.
    fn fragments(seed: u64) -> Vec<u64> {
        let mut rng = SplitMix64::new(seed);
        let mut frames = Vec::new();
        for start in (0..1u64 << 19).step_by(256) {
            let pages = 1 << rng.index(9);
            frames.extend(start..start + pages);
        }
        shuffle(&mut frames, &mut rng);
        frames
    }

    fn all(frames: &[u64]) -> Vec<u32> {
        (0..frames.len() as u32).collect()
    }

    #[test]
    fn they_are_as_scattered_as_was_wanted() {
        let frames = fragments(7);
        assert!(frames.len() > 100_000);
        for (times, regions) in [(1.05, 20), (1.5, 400), (2.5, 300), (4.1, 950), (7.5, 1000)] {
            let pages = 8000u64;
            let blocks = (pages as f64 / BLOCK_FRAMES as f64 * times) as u64;
            let wanted = FrameScatter { pages, blocks, regions };
            let chosen = choose(&frames, &all(&frames), pages as usize, wanted);
            let got: Vec<u64> = chosen.iter().map(|&place| frames[place as usize]).collect();
            let got = FrameScatter::of(&got).expect("some");
            let off = got.times_fewest() / wanted.times_fewest();
            // Four tenths of the pieces are smaller than a block.
            assert!(got.pages == pages && (0.85..1.18).contains(&off), "{times}: {got:?}");
            // A region has 114 free frames on the mean, and not each has a block of six.
            assert!(got.regions as f64 > 0.7 * regions as f64 && got.regions <= regions.max(90), "{times}: {got:?}");
        }
    }

    proptest! {
        /// Whatever there is: no frame twice, and as many as there are.
        #[test]
        fn each_is_given_once(
            frames in prop::collection::hash_set(0u64..5000, 0..600),
            count in 0usize..700,
            blocks in 1u64..100,
            regions in 1u64..20,
        ) {
            let frames: Vec<u64> = frames.into_iter().collect();
            let wanted = FrameScatter { pages: 100, blocks, regions };
            let chosen = choose(&frames, &all(&frames), count, wanted);
            prop_assert_eq!(chosen.len(), count.min(frames.len()));
            prop_assert_eq!(chosen.iter().collect::<HashSet<_>>().len(), chosen.len());
            prop_assert!(chosen.iter().all(|&place| (place as usize) < frames.len()));
        }
    }
}
