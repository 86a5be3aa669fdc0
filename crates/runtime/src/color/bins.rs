//! Free blocks by size: two-level segregated lists (TLSF: Masmano et al., ECRTS 2004), found and changed in constant
//! time.
//!
//! A block's class is that of its *gross* size: what it would fill with the [`RUN_OVERHEAD`] of a run of pages. So a
//! whole run of 2^k pages begins a class, and a request for all of it is not rounded up past it. Where no class above
//! has a block, the first 16 of the request's own class are looked at: runs of other lengths are given whole too.

use super::block::{BlockHeader, MIN_BLOCK, RUN_OVERHEAD};

/// log2 of the classes that sizes between two powers of two are divided into: a block found is at most 1/16 larger than
/// it must be.
const SECOND_LOG2: u32 = 4;
/// Below this gross size classes are 16 bytes apart: 2^8 bytes are the first that make 16 classes of 16 bytes.
const LINEAR_LOG2: u32 = 8;
/// Bits of the map of a group of lists.
const GROUP: usize = u64::BITS as usize;
/// Groups of lists: 465 lists are as many as gross sizes up to [`MAX_RUN`] have, and the one behind them is looked up
/// too.
const GROUPS: usize = 8;
/// Most blocks of a list that are looked at where no list is sure to have one that is large enough. A colour of rows of
/// sets has as many runs as it has ways: 16 in the largest TLBs that have sets. It bounds the call: each block that is
/// looked at may miss the caches.
const LOOKED_AT: usize = 16;
/// Bytes of the longest run, a multiple of any page: 2^36 is the largest power of two whose lists, pool and all, fit in
/// a page of 4 KiB.
pub(crate) const MAX_RUN: usize = 1 << 36;
const _: () = assert!(class_of(MAX_RUN) + 1 < GROUPS * GROUP);

/// Lists of free blocks, one for each class. Its lists follow it in memory: see [`Bins::bytes`].
///
/// What the first block of a list has for the one before it means nothing: so the second need not be touched, a likely
/// miss of TLB and caches, where the first is taken.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Bins {
    /// Lists that there is room for.
    lists: u32,
    /// Bit g: some list of group g holds a block.
    groups: u32,
    /// Bit i of group g: list 64 g + i holds a block.
    held: [u64; GROUPS],
    heads: [BlockHeader; 0],
}

/// log2 of how far apart the classes are where a size lies. (The compiler makes one instruction of this logarithm; of
/// one that something is subtracted from it makes four.)
#[inline]
const fn step_log2(gross: usize) -> u32 {
    (gross >> SECOND_LOG2 | 1 << (LINEAR_LOG2 - SECOND_LOG2)).ilog2()
}

/// Number of the class that `steps` of that many bytes begin: sizes between two powers of two are 16 to 31 steps, and
/// there are 16 classes for each power from the second linear one on.
#[inline]
const fn class(steps: usize, step_log2: u32) -> usize {
    steps + ((step_log2 as usize) << SECOND_LOG2) - (((LINEAR_LOG2 - SECOND_LOG2) as usize) << SECOND_LOG2)
}

/// Class of a gross size: rounded down.
#[inline]
const fn class_of(gross: usize) -> usize {
    let step_log2 = step_log2(gross);
    class(gross >> step_log2, step_log2)
}

/// The first class that has no smaller size. What is carried into the next power of two counts on in the same steps.
#[inline]
const fn class_from(gross: usize) -> usize {
    let step_log2 = step_log2(gross);
    class((gross + (1 << step_log2) - 1) >> step_log2, step_log2)
}

impl Bins {
    /// Bytes that the lists for blocks of runs up to `run_bytes` take.
    pub(crate) const fn bytes(run_bytes: usize) -> usize {
        std::mem::size_of::<Self>() + (class_of(run_bytes) + 1) * std::mem::size_of::<BlockHeader>()
    }

    /// Makes empty lists.
    ///
    /// # Safety
    /// `at` points to [`Bins::bytes`] writable bytes that are nobody else's, aligned to 8, and stay so.
    pub(crate) unsafe fn init(at: *mut Self, run_bytes: usize) {
        // SAFETY: the caller's; null is a valid `BlockHeader`.
        unsafe {
            std::ptr::write_bytes(at.cast::<u8>(), 0, Self::bytes(run_bytes));
            (*at).lists = class_of(run_bytes) as u32 + 1;
        }
    }

    #[inline]
    fn head(&mut self, list: usize) -> *mut BlockHeader {
        debug_assert!(list < self.lists as usize);
        let heads: *mut BlockHeader = std::ptr::addr_of_mut!(self.heads).cast();
        // SAFETY: that many lists lie behind this structure (`init`).
        unsafe { heads.add(list) }
    }

    /// The map of a list's group, and the list's bit in it.
    #[inline]
    fn held(&mut self, list: usize) -> (&mut u64, u64) {
        (&mut self.held[list / GROUP % GROUPS], 1 << (list % GROUP))
    }

    /// Puts a free block of `size` bytes first in its list.
    ///
    /// # Safety
    /// The block is free, of this heap and of this size, and in no list.
    #[inline]
    pub(crate) unsafe fn insert(&mut self, block: BlockHeader, size: usize) {
        // SAFETY: the caller's.
        unsafe { self.insert_in(class_of(size + RUN_OVERHEAD), block) };
    }

    /// # Safety
    /// As [`Bins::insert`]; it is the list of its size.
    #[inline]
    unsafe fn insert_in(&mut self, list: usize, block: BlockHeader) {
        // SAFETY: the block is free, so its first two words are links; so are those of the list's first.
        unsafe {
            let head = self.head(list);
            let next = *head;
            *head = block;
            block.set_next(next);
            if next.is_null() {
                let (held, bit) = self.held(list);
                *held |= bit;
                self.groups |= 1 << (list / GROUP);
            } else {
                next.set_before(block);
            }
        }
    }

    /// Takes a free block of `size` bytes out of its list.
    ///
    /// # Safety
    /// The block is of this size and in a list here.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, block: BlockHeader, size: usize) {
        // SAFETY: the caller's.
        unsafe { self.remove_from(class_of(size + RUN_OVERHEAD), block) };
    }

    /// A free block has grown: it moves to the list of its size, if that is another.
    ///
    /// # Safety
    /// The block is free and in the list of `old` bytes.
    #[inline]
    pub(crate) unsafe fn grown(&mut self, block: BlockHeader, old: usize, size: usize) {
        let [from, to] = [old, size].map(|size| class_of(size + RUN_OVERHEAD));
        if from != to {
            // SAFETY: the caller's.
            unsafe {
                self.remove_from(from, block);
                self.insert_in(to, block);
            }
        }
    }

    /// # Safety
    /// The block is in this list.
    #[inline]
    unsafe fn remove_from(&mut self, list: usize, block: BlockHeader) {
        // SAFETY: links of blocks in lists are blocks in lists.
        unsafe {
            let (next, before) = block.links();
            if *self.head(list) == block {
                self.set_head(list, next);
                return;
            }
            before.set_next(next);
            if !next.is_null() {
                next.set_before(before);
            }
        }
    }

    /// A free block of at least `size` bytes that is a run of pages as a whole, left in its list; `None` if none is
    /// among the first of the lists for this size and for that of the longest run, `longest`.
    pub(crate) fn find_run(&mut self, size: usize, longest: usize) -> Option<BlockHeader> {
        // What is left of longer runs may lie in these lists too.
        let fits = |block: BlockHeader| block.size() >= size && block.is_whole_run();
        let lists = [size, longest].map(|size| Some(class_of(size + RUN_OVERHEAD)));
        let lists = [self.list_for(size)].into_iter().chain(lists).flatten();
        lists.into_iter().find_map(|list| self.look(list, fits))
    }

    /// The first block of a list's first ones that fits.
    fn look(&mut self, list: usize, fits: impl Fn(BlockHeader) -> bool) -> Option<BlockHeader> {
        if list >= self.lists as usize {
            return None;
        }
        // SAFETY: a list that there is room for; blocks in lists are free, so that they have links.
        let mut block = unsafe { *self.head(list) };
        for _ in 0..LOOKED_AT {
            if block.is_null() {
                return None;
            }
            if fits(block) {
                return Some(block);
            }
            // SAFETY: as above.
            block = unsafe { block.links().0 };
        }
        None
    }

    /// Takes a block of at least `size` bytes out of its list; `None` if no list is sure to have one.
    #[inline]
    pub(crate) fn take(&mut self, size: usize) -> Option<BlockHeader> {
        let list = self.list_for(size)?;
        // SAFETY: a list that holds a block; blocks in lists are free, so that they have links.
        unsafe {
            let block = *self.head(list);
            self.set_head(list, block.links().0);
            Some(block)
        }
    }

    /// The same among the first blocks of its own class, which [`Bins::take`] rounds up past.
    pub(crate) fn take_among(&mut self, size: usize) -> Option<BlockHeader> {
        let block = self.look(class_of(size + RUN_OVERHEAD), |block| block.size() >= size)?;
        // SAFETY: it is in that list.
        unsafe { self.remove(block, block.size()) };
        Some(block)
    }

    /// The first list that holds blocks, all of at least `size` bytes.
    #[inline]
    fn list_for(&self, size: usize) -> Option<usize> {
        let from = class_from(size + RUN_OVERHEAD);
        let group = from / GROUP;
        // Sizes that no run can have are in no group.
        let here = self.held.get(group)? & (u64::MAX << (from % GROUP));
        if here != 0 {
            return Some(group * GROUP + here.trailing_zeros() as usize);
        }
        let above = self.groups & (u32::MAX << 1 << group);
        if above == 0 {
            return None;
        }
        let group = above.trailing_zeros() as usize;
        Some(group * GROUP + self.held[group % GROUPS].trailing_zeros() as usize)
    }

    /// Makes the second of a list's blocks, or none, its first.
    ///
    /// # Safety
    /// It is that.
    #[inline]
    unsafe fn set_head(&mut self, list: usize, next: BlockHeader) {
        // SAFETY: one of the lists.
        unsafe { *self.head(list) = next };
        if !next.is_null() {
            return;
        }
        let (held, bit) = self.held(list);
        *held &= !bit;
        if *held == 0 {
            self.groups &= !(1 << (list / GROUP));
        }
    }

    /// Whether bits and lists agree, and each list's first block belongs there. Constant time: only the first two
    /// blocks are looked at.
    pub(crate) fn agree(&mut self) -> bool {
        let groups = (0..GROUPS).all(|group| (self.groups >> group & 1 == 1) == (self.held[group] != 0));
        let is_held = |bins: &mut Self, list| {
            let (held, bit) = bins.held(list);
            *held & bit != 0
        };
        let lists = (0..self.lists as usize).all(|list| {
            // SAFETY: the lists of all classes are there.
            let head = unsafe { *self.head(list) };
            if head.is_null() {
                return !is_held(self, list);
            }
            // SAFETY: a block in a list is free, so that it has links.
            let (next, size) = unsafe { (head.links().0, head.size()) };
            // SAFETY: as above.
            let is_second = |next: BlockHeader| next.is_free() && unsafe { next.links().1 } == head;
            is_held(self, list)
                && head.is_free()
                && (next.is_null() || is_second(next))
                && size >= MIN_BLOCK
                && class_of(size + RUN_OVERHEAD) == list
        });
        groups
            && self.groups >> GROUPS == 0
            && lists
            && (self.lists as usize..GROUPS * GROUP).all(|list| !is_held(self, list))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::block::Seal;
    use super::*;
    use proptest::prelude::*;

    /// Lists for runs of four pages, and room for blocks.
    struct Made {
        lists: Box<[u64]>,
        room: Box<[AtomicU64]>,
    }

    impl Made {
        fn new() -> Self {
            let lists = vec![0; Bins::bytes(4 * 4096) / 8].into_boxed_slice();
            let mut made = Self { lists, room: (0..2048).map(|_| AtomicU64::new(0)).collect() };
            // SAFETY: as many bytes as they take, of nobody else.
            unsafe { Bins::init(made.lists.as_mut_ptr().cast(), 4 * 4096) };
            made
        }

        fn bins(&mut self) -> &mut Bins {
            // SAFETY: made above.
            unsafe { &mut *self.lists.as_mut_ptr().cast() }
        }

        fn block(&self, word: usize) -> BlockHeader {
            BlockHeader::at(self.room[word].as_ptr() as usize)
        }

        /// A free block of so many bytes in its list.
        fn add(&mut self, word: usize, size: usize) -> BlockHeader {
            let block = self.block(word);
            Seal::<false>(0).set_free_still(block, size, false);
            // SAFETY: free, and in no list.
            unsafe { self.bins().insert(block, size) };
            block
        }

        fn write(&self, word: usize, value: u64) {
            self.room[word].store(value, Ordering::Relaxed);
        }
    }

    /// Three blocks of one list, the last of which is first in it, and one of another group of lists.
    fn made() -> Made {
        let mut made = Made::new();
        assert!(made.bins().agree(), "no blocks");
        [100, 200, 300].into_iter().for_each(|word| _ = made.add(word, 96));
        made.add(400, 8192);
        assert!(made.bins().agree());
        made
    }

    #[test]
    fn lists_agree_as_long_as_nobody_changes_them() {
        type Damage = (&'static str, fn(&mut Made));
        let damaged: [Damage; 13] = [
            ("a group without blocks is said to have some", |made| made.bins().groups |= 1 << 4),
            ("a group with blocks is said to have none", |made| made.bins().groups &= !1),
            ("a group that is none", |made| made.bins().groups |= 1 << 8),
            ("a list without blocks is said to have some", |made| made.bins().held[0] |= 1 << 20),
            ("a list with blocks is said to have none", |made| {
                made.add(500, 64);
                *made.bins().held(class_of(64 + RUN_OVERHEAD)).0 &= !(1 << class_of(64 + RUN_OVERHEAD));
            }),
            ("a list that is not there", |made| {
                let behind = made.bins().lists as usize;
                assert!(behind < 2 * GROUP && made.bins().held[1] != 0);
                made.bins().held[behind / GROUP] |= 1 << (behind % GROUP);
            }),
            ("the first block is in use", |made| made.write(300, 96)),
            ("the second is", |made| made.write(200, 96)),
            ("the first is in another list", |made| made.write(300, 112 | 1)),
            // Its links are its own, and so is the list that it is in.
            ("the first is too small to be a block", |made| {
                made.add(600, 16);
            }),
            ("the second has another before it", |made| made.write(202, made.block(400).address() as u64)),
            ("the first has another behind it", |made| made.write(301, made.block(400).address() as u64)),
            ("a list has lost its blocks", |made| {
                // SAFETY: that list is there.
                unsafe { *made.bins().head(class_of(96 + RUN_OVERHEAD)) = BlockHeader::at(0) };
            }),
        ];
        for (what, damage) in damaged {
            let mut made = made();
            damage(&mut made);
            assert!(!made.bins().agree(), "{what}");
        }
    }

    #[test]
    fn the_first_list_that_is_sure_to_have_a_block_is_taken_from_and_left_as_it_was() {
        let mut made = made();
        let (third, large) = (made.block(300), made.block(400));
        // Its own list's blocks may be smaller: what is rounded up past it is taken of the next.
        assert_eq!(made.bins().take(8192 - 16), Some(large));
        assert_eq!((made.bins().take(8192 - 16), made.bins().agree()), (None, true));
        assert_eq!((made.bins().take(96), made.bins().agree()), (Some(third), true));
        let second = made.block(200);
        assert_eq!(made.bins().take_among(96), Some(second));
        assert_eq!(made.bins().take_among(112), None);
        let first = made.block(100);
        // SAFETY: the last one of its list.
        unsafe { made.bins().remove(first, 96) };
        assert!(made.bins().agree() && made.bins().groups == 0 && made.bins().held == [0; GROUPS]);
        assert_eq!(made.bins().take(0), None);
        assert_eq!(made.bins().take(MAX_RUN * 64), None, "no run is as long");
    }

    #[test]
    fn a_block_in_the_midst_of_a_list_is_taken_out_of_it() {
        let mut made = made();
        let [first, second, third] = [100, 200, 300].map(|word| made.block(word));
        // SAFETY: it is in that list.
        unsafe { made.bins().remove(second, 96) };
        // SAFETY: both are free.
        assert_eq!(unsafe { (third.links().0, first.links().1) }, (first, third));
        assert!(made.bins().agree());
        // One grows into another list, one within its own.
        Seal::<false>(0).set_free_still(third, 512, false);
        // SAFETY: it is free, in the list of its old size.
        unsafe { made.bins().grown(third, 96, 512) };
        assert_eq!((made.bins().take(480), made.bins().agree()), (Some(third), true));
        let large = made.add(600, 1024);
        Seal::<false>(0).set_free_still(large, 1040, false);
        // SAFETY: as above.
        unsafe { made.bins().grown(large, 1024, 1040) };
        assert_eq!((made.bins().agree(), made.bins().take_among(1040)), (true, Some(large)));
        assert_eq!((made.bins().take_among(96), made.bins().take_among(96)), (Some(first), None));
    }

    #[test]
    fn at_most_16_blocks_of_a_list_are_looked_at() {
        let mut made = Made::new();
        // Of one class: 1024 and 1040 bytes with what a run has beside; the larger one is in first.
        assert_eq!(class_of(1040 + RUN_OVERHEAD), class_of(1024 + RUN_OVERHEAD));
        let large = made.add(0, 1040);
        (1..16).for_each(|n| _ = made.add(8 * n, 1024));
        assert_eq!(made.bins().take_among(1040), Some(large), "the sixteenth");
        made.add(0, 1040);
        (1..17).for_each(|n| _ = made.add(1024 + 8 * n, 1024));
        assert_eq!(made.bins().take_among(1040), None, "one more is before it");
        assert!(made.bins().take_among(1024).is_some());
    }

    #[test]
    fn whole_runs_begin_classes() {
        for pages in (1..=16usize).chain([32, 64, 1 << 20]) {
            let gross = pages << 12;
            assert_eq!(class_from(gross), class_of(gross), "{pages}");
            assert_ne!(class_of(gross), class_of(gross - 16));
        }
        // 113 lists for four pages: sixteen steps of 16 bytes, and as many for each power of two from 2^8 to 2^13.
        assert_eq!([0, 256, 4096, 4 * 4096].map(class_of), [0, 16, 80, 112]);
        assert_eq!(Bins::bytes(4 * 4096), 8 + 8 * GROUPS + 8 * 113);
    }

    proptest! {
        #[test]
        fn classes_rise_with_size_and_requests_begin_at_the_next(units in 3usize..MAX_RUN / 16) {
            let gross = units * 16;
            prop_assert!(class_of(gross + 16) - class_of(gross) <= 1);
            // The class that a request begins at has no smaller size, and is the first that has none.
            let begins = class_of(gross - 16) < class_of(gross);
            prop_assert_eq!(class_from(gross), class_of(gross) + usize::from(!begins));
            // A class is a sixteenth of its size at most.
            prop_assert!(class_from(gross) <= class_of(gross + gross / 16));
        }
    }
}
