//! Which pages a partition may have: those whose set, at each level, has room left for it.
//!
//! Nothing is assumed of the index functions: sets are computed page by page (any GF(2) matrix).

use lookaside_machine::{ColorLevel, Partition, MAX_COLOR_LEVELS, MAX_COLOR_SETS};

/// log2 of [`MAX_COLOR_SETS`]: masks of a level at most.
const MAX_MASKS: usize = MAX_COLOR_SETS.trailing_zeros() as usize;
/// Room of a set that may have any number of pages.
const ANY: u16 = u16::MAX;

/// One level: each set's room.
#[derive(Clone, Debug)]
pub(crate) struct LevelRoom {
    masks: [u64; MAX_MASKS],
    bits: usize,
    room: [u16; MAX_COLOR_SETS as usize],
}

/// What a partition may still have. Of fixed size, so that it can be used where nothing can be allocated.
#[derive(Clone, Debug)]
pub(crate) struct Picker {
    levels: [LevelRoom; MAX_COLOR_LEVELS],
    used: usize,
}

impl LevelRoom {
    const NONE: Self = Self { masks: [0; MAX_MASKS], bits: 0, room: [ANY; MAX_COLOR_SETS as usize] };

    /// Room of sets; `None` for any number of pages. `None` is given where there are no such sets.
    pub(crate) fn set_room(&mut self, first: u32, last: u32, ways: Option<u32>) -> Option<()> {
        let sets = self.room[..1 << self.bits].get_mut(first as usize..=last as usize)?;
        sets.fill(ways.map_or(ANY, |ways| u16::try_from(ways).map_or(ANY - 1, |ways| ways.min(ANY - 1))));
        Some(())
    }

    #[inline]
    fn set_of(&self, vpn: u64) -> usize {
        let masks = self.masks.iter().take(self.bits).enumerate();
        masks.map(|(bit, mask)| (((vpn & mask).count_ones() & 1) as usize) << bit).sum()
    }
}

impl Picker {
    /// All pages.
    pub(crate) const EVERY: Self = Self { levels: [LevelRoom::NONE; MAX_COLOR_LEVELS], used: 0 };

    /// Writes [`Picker::EVERY`], in place: it is too large for a stack that is not known.
    ///
    /// # Safety
    /// `at` points to memory of its size, of zeros.
    pub(crate) unsafe fn every_at(at: *mut Self) {
        // SAFETY: the caller's; zeros are valid for all of its fields.
        for level in unsafe { &mut (*at).levels } {
            level.room.fill(ANY);
        }
    }

    /// The pages of a partition. Both were checked when they were read.
    pub(crate) fn new(levels: &[ColorLevel], partition: &Partition) -> Box<Self> {
        let mut picker = Box::new(Self::EVERY);
        for level in levels {
            let mut shares = partition.shares.iter().filter(|share| share.level == level.name).peekable();
            if shares.peek().is_none() {
                continue;
            }
            // Masks and sets were checked: there are as many levels and sets as there is room for.
            if let Some(to) = picker.add(level.index.masks(level.sets).into_iter().map(Some)) {
                for share in shares {
                    for &set in &share.sets {
                        let _ = to.set_room(set, set, share.ways);
                    }
                }
            }
        }
        picker
    }

    /// Adds a level none of whose sets has room yet; `None`: a mask is none, or there are too many.
    pub(crate) fn add(&mut self, masks: impl Iterator<Item = Option<u64>>) -> Option<&mut LevelRoom> {
        let level = self.levels.get_mut(self.used)?;
        self.used += 1;
        level.bits = 0;
        for mask in masks {
            *level.masks.get_mut(level.bits)? = mask?;
            level.bits += 1;
        }
        level.room.fill(0);
        Some(level)
    }

    fn levels(&self) -> &[LevelRoom] {
        &self.levels[..self.used]
    }

    /// Every set that has room has it for any number of pages.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.levels().iter().all(|level| level.room[..1 << level.bits].iter().all(|&room| room == 0 || room == ANY))
    }

    /// Pages after which the sets come again: 2 to the number of the highest bit that an index looks at, and one.
    pub(crate) fn period(&self) -> u64 {
        let masks = self.levels().iter().flat_map(|level| &level.masks[..level.bits]);
        let bits = masks.map(|mask| u64::BITS - mask.leading_zeros()).max().unwrap_or(0);
        1u64.checked_shl(bits).unwrap_or(u64::MAX)
    }

    /// Each of the page's sets has room.
    pub(crate) fn fits(&self, vpn: u64) -> bool {
        self.levels().iter().all(|level| level.room[level.set_of(vpn)] > 0)
    }

    /// Takes the room of a page that fits.
    pub(crate) fn take(&mut self, vpn: u64) {
        self.change(vpn, |room| room - 1);
    }

    /// Gives it back.
    pub(crate) fn give(&mut self, vpn: u64) {
        self.change(vpn, |room| room + 1);
    }

    fn change(&mut self, vpn: u64, how: impl Fn(u16) -> u16) {
        for level in &mut self.levels[..self.used] {
            let set = level.set_of(vpn);
            if level.room[set] != ANY {
                level.room[set] = how(level.room[set]);
            }
        }
    }

    /// The first run of `pages` contiguous pages in `from..to` that all have room at once, none of them `taken`. Takes
    /// their room.
    pub(crate) fn run(&mut self, from: u64, to: u64, pages: u64, taken: impl Fn(u64) -> bool) -> Option<u64> {
        let mut start = from;
        for vpn in from..to {
            // Without its first pages the rest of a run may leave room for this one, where sets come again within it.
            while start < vpn && !self.fits(vpn) {
                self.give(start);
                start += 1;
            }
            if !self.fits(vpn) || taken(vpn) {
                (start..vpn).for_each(|vpn| self.give(vpn));
                start = vpn + 1;
                continue;
            }
            self.take(vpn);
            if vpn + 1 - start == pages {
                return Some(start);
            }
        }
        (start..to).for_each(|vpn| self.give(vpn));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{LevelRoom, Picker};
    use lookaside_machine::{ColorLevel, IndexFn, Partition, Share};
    use proptest::prelude::*;

    /// A level whose index is a random full-rank matrix over the low 10 bits of a page number.
    fn level(name: &'static str) -> impl Strategy<Value = ColorLevel> {
        (0u32..5, 1u32..5, proptest::collection::vec(0u64..1 << 10, 5)).prop_map(move |(bits, ways, mut masks)| {
            masks.truncate(bits as usize);
            // Upper bits at random; each row has a low bit that no other has.
            let masks = masks.iter().enumerate().map(|(bit, mask)| mask & !31 | 1 << bit).collect();
            ColorLevel { name: name.into(), sets: 1 << bits, ways, index: IndexFn::Masks(masks) }
        })
    }

    fn shares(level: &ColorLevel, choice: u64) -> Vec<Share> {
        let sets: Vec<u32> = (0..level.sets).filter(|set| choice >> set & 1 == 1).collect();
        let ways = (choice >> 40 & 1 == 1).then_some(1 + (choice >> 41) as u32 % level.ways);
        if sets.is_empty() {
            Vec::new()
        } else {
            vec![Share { level: level.name.clone(), sets, ways }]
        }
    }

    /// However many ways a share has: it never has any number of pages.
    #[test]
    fn a_set_of_many_ways_has_a_room_that_ends() {
        let room = |ways| {
            let mut level = LevelRoom::NONE;
            level.set_room(0, 0, ways)?;
            Some(level.room[0])
        };
        let most = u16::MAX - 1;
        assert_eq!([1, 65_533, 65_534].map(|ways| room(Some(ways))), [1, most - 1, most].map(Some));
        assert_eq!([65_535, 65_536, u32::MAX].map(|ways| room(Some(ways))), [Some(most); 3]);
        assert_eq!(room(None), Some(u16::MAX));
        let mut level = LevelRoom::NONE;
        assert_eq!([level.set_room(0, 1, Some(1)), level.set_room(1, 1, Some(1))], [None; 2], "there is one set");
    }

    proptest! {
        #[test]
        fn a_run_is_the_first_that_fits(l1 in level("a"), l2 in level("b"), choice: (u64, u64), pages in 1u64..6, from in 0u64..200) {
            let partition = Partition {
                name: "p".into(), pages: None, contiguous_pages: 1,
                shares: [shares(&l1, choice.0), shares(&l2, choice.1)].concat(),
            };
            let levels = [l1, l2];
            let taken = |vpn: u64| vpn % 7 == 3;
            // Naive: count the pages of each set, for each start.
            let fits = |start: u64| (start..start + pages).all(|vpn| !taken(vpn)) && levels.iter().all(|level| {
                let shares: Vec<&Share> = partition.shares.iter().filter(|s| s.level == level.name).collect();
                shares.is_empty() || (start..start + pages).all(|vpn| {
                    let set = level.set_of(vpn);
                    let in_set = (start..start + pages).filter(|&v| level.set_of(v) == set).count() as u32;
                    shares.iter().any(|s| s.sets.contains(&set) && s.ways.is_none_or(|ways| in_set <= ways))
                })
            });
            let naive = (from..400).find(|&start| start + pages <= 400 && fits(start));
            let mut picker = Picker::new(&levels, &partition);
            let before = picker.clone();
            prop_assert_eq!(picker.run(from, 400, pages, taken), naive);
            // What was taken is the run's alone.
            if let Some(start) = naive {
                (start..start + pages).for_each(|vpn| picker.give(vpn));
            }
            for (now, then) in picker.levels().iter().zip(before.levels()) {
                prop_assert_eq!(now.room, then.room);
            }
        }
    }
}
