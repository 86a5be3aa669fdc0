//! The blocks of one run.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use proptest::prelude::*;

proptest! {
    /// What is found right in one step is what is found right step by step.
    #[test]
    fn a_plain_pointer_has_no_fault(
        offset in prop_oneof![0usize..600, (0usize..38).prop_map(|units| units * 16)],
        size in prop_oneof![0u64..40, any::<u64>()],
        flags in 0u64..8,
        high in prop_oneof![4 => Just(0u64), 1 => any::<u64>()],
    ) {
        let mut memory = [0u128; 32]; // aligned to 16
        let mut bins = vec![0u64; ColorPool::bytes(4096) / 8];
        let pool = bins.as_mut_ptr().cast::<ColorPool>();
        let start = memory.as_mut_ptr() as usize;
        let at = (start + offset) as *mut u8;
        // SAFETY: a pool's bytes; its memory is written to within its ends.
        let (plain, fault) = unsafe {
            ColorPool::init(pool, 4096, 0);
            ((*pool).low, (*pool).high) = (start + 16, start + std::mem::size_of_val(&memory));
            if (16..512).contains(&offset) {
                at.sub(8).cast::<u64>().write_unaligned(size.wrapping_mul(16) & (u64::MAX >> 16) | flags | high << 48);
            }
            ((*pool).is_plain(at), (*pool).check_pointer::<false>(at))
        };
        prop_assert_eq!(plain, fault.is_ok(), "{:?}", fault);
        prop_assert!((16..512).contains(&offset) || fault == Err(BadFree::Foreign));
    }
}

/// A run of one page.
#[repr(align(4096))]
struct Page([AtomicU64; 512]);

impl Page {
    fn start(&self) -> usize {
        self.0[0].as_ptr() as usize
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.0[(at - self.start()) / 8]
    }
}

/// A pool of that page alone.
fn with_pool<T>(act: impl FnOnce(&mut ColorPool, &Page) -> T) -> T {
    let page = Box::new(Page([const { AtomicU64::new(0) }; 512]));
    let mut bytes = vec![0u64; ColorPool::bytes(4096) / 8];
    let pool = bytes.as_mut_ptr().cast::<ColorPool>();
    // SAFETY: a pool's bytes; its page is nobody else's.
    unsafe {
        ColorPool::init(pool, 4096, 0);
        (*pool).add_run::<false>(page.start(), 4096);
        act(&mut *pool, &page)
    }
}

fn free(pool: &mut ColorPool, at: *mut u8) {
    // SAFETY: it came from there, and nobody uses it.
    assert_eq!(unsafe { pool.free::<false>(at) }, Ok(()));
}

/// Blocks as a walk shows them: offset in the page, bytes, in use.
fn blocks(pool: &ColorPool, page: &Page) -> Option<Vec<(usize, usize, bool)>> {
    let mut all = Vec::new();
    let each = &mut |at: *mut u8, bytes, in_use| all.push((at as usize - page.start(), bytes, in_use));
    pool.walk::<false>(page.start(), 4096, each).then_some(all)
}

#[test]
fn blocks_lie_one_behind_another_with_8_bytes_between() {
    with_pool(|pool, page| {
        assert_eq!(
            blocks(pool, page),
            Some(vec![(16, 4072, false)]),
            "a run's first 8 bytes and its last are no block's"
        );
        let [a, b, c] = [100, 40, 24].map(|bytes| pool.malloc::<false>(bytes));
        let expected = [(16, 104, true), (128, 40, true), (176, 24, true), (208, 3880, false)];
        assert_eq!(blocks(pool, page), Some(expected.to_vec()));
        assert_eq!(
            (pool.stats.used_bytes, pool.stats.allocations, pool.stats.capacity_bytes),
            (112 + 48 + 32, 3, 4096)
        );
        free(pool, b);
        let expected = [(16, 104, true), (128, 40, false), (176, 24, true), (208, 3880, false)];
        assert_eq!(blocks(pool, page), Some(expected.to_vec()));
        // It is free on both sides, and joins them.
        free(pool, c);
        assert_eq!(blocks(pool, page), Some(vec![(16, 104, true), (128, 3960, false)]));
        free(pool, a);
        assert_eq!(blocks(pool, page), Some(vec![(16, 4072, false)]));
        assert_eq!((pool.stats.used_bytes, pool.stats.peak_bytes, pool.stats.allocations), (0, 192, 0));
        assert_eq!((pool.stats.refused, pool.stats.largest_asked_bytes), (0, 100));
        assert!(pool.malloc::<false>(4072) as usize == page.start() + 16 && pool.malloc::<false>(0).is_null());
        assert_eq!((pool.stats.refused, pool.stats.largest_asked_bytes), (1, 4072));
    });
}

#[test]
fn a_block_grows_into_what_is_free_behind_it_and_gives_back_what_it_leaves() {
    with_pool(|pool, page| {
        let [a, b] = [100, 40].map(|bytes| pool.malloc::<false>(bytes));
        assert_eq!(pool.resize::<false>(a, 105), Ok(false), "the one behind is in use");
        assert_eq!(pool.resize::<false>(a, 104), Ok(true), "it has as much");
        free(pool, b);
        assert_eq!(pool.resize::<false>(a, 4072), Ok(true), "to the end of the page");
        assert_eq!(blocks(pool, page), Some(vec![(16, 4072, true)]));
        assert_eq!((pool.stats.used_bytes, pool.stats.peak_bytes), (4080, 4080));
        assert_eq!(pool.resize::<false>(a, 4073), Ok(false));
        assert_eq!(pool.resize::<false>(a, 4050), Ok(true), "too little is left for a block");
        assert_eq!(pool.resize::<false>(a, usize::MAX), Ok(false));
        assert_eq!(blocks(pool, page), Some(vec![(16, 4072, true)]));
        assert_eq!(pool.resize::<false>(a, 4040), Ok(true), "32 bytes are one");
        assert_eq!(blocks(pool, page), Some(vec![(16, 4040, true), (4064, 24, false)]));
        assert_eq!(pool.resize::<false>(a, 0), Ok(true));
        assert_eq!(blocks(pool, page), Some(vec![(16, 24, true), (48, 4040, false)]));
        assert_eq!((pool.stats.used_bytes, pool.stats.peak_bytes, pool.stats.allocations), (32, 4080, 1));
        assert!(pool.sound());
    });
}

#[test]
fn what_is_left_of_a_block_is_one_where_it_is_as_large_as_the_smallest() {
    with_pool(|pool, page| {
        let at = pool.malloc::<false>(4040);
        assert_eq!(blocks(pool, page), Some(vec![(16, 4040, true), (4064, 24, false)]));
        free(pool, at);
        let at = pool.malloc::<false>(4041);
        assert_eq!(blocks(pool, page), Some(vec![(16, 4072, true)]), "16 bytes are none");
        assert_eq!(pool.usable::<false>(at), Ok(4072));
    });
    // Its counts, the secret, two ends and two lengths, and 81 lists for a page.
    assert_eq!(ColorPool::bytes(4096), 48 + 5 * 8 + 72 + 8 * 81);
}

/// From the first byte of a pool's memory to its last; sizes from the smallest to what is left of it.
#[test]
fn a_pointer_may_be_given_back_where_a_block_can_be() {
    let page = Box::new(Page([const { AtomicU64::new(0) }; 512]));
    let mut bytes = vec![0u64; ColorPool::bytes(4096) / 8];
    let pool = bytes.as_mut_ptr().cast::<ColorPool>();
    let (low, high) = (page.start() + 1024, page.start() + 2048);
    let of = |at: usize, size: usize| {
        page.word(at - 8).store(size as u64, Ordering::Relaxed);
        // SAFETY: a pool's bytes; what is looked at lies in the page.
        unsafe {
            ColorPool::init(pool, 4096, 0);
            ((*pool).low, (*pool).high) = (low, high);
            let fault = (*pool).check_pointer::<false>(at as *mut u8).map(|block| block.size());
            assert_eq!((*pool).is_plain(at as *mut u8), fault.is_ok(), "{fault:?}");
            fault
        }
    };
    assert_eq!([low, high - 32].map(|at| of(at, 32)), [Ok(32); 2]);
    assert_eq!([low - 16, high, high + 16].map(|at| of(at, 32)), [Err(BadFree::Foreign); 3]);
    assert_eq!([low + 8, low + 20].map(|at| of(at, 32)), [Err(BadFree::NoStart); 2]);
    // Up to the pool's end: the header is 8 bytes in front.
    let left = high - (low + 64 - 8);
    assert_eq!([16, 32, left - 8, left + 8].map(|size| of(low + 64, size)), {
        let no_start = Err(BadFree::NoStart);
        [no_start, Ok(32), Ok(left - 8), no_start]
    });
}

/// A walk goes by headers alone, and sees one that cannot be.
#[test]
fn a_header_that_cannot_be_ends_a_walk() {
    /// What is done to the pool's page, in which a block of 112 bytes is in use, one of 48 free, one of 32 in use; the
    /// rest is free. Their headers are at 8, 120, 168 and 200; the page's last is at 4088.
    type Damage = (&'static str, fn(&Page) -> (usize, u64));
    let damaged: [Damage; 9] = [
        ("no size", |_| (8, 4)),
        ("less than a block", |_| (168, 16 | 2)),
        ("beyond the page", |_| (168, 4096 | 2)),
        ("one byte of a block beyond it", |_| (168, (4088 - 168 + 16) | 2)),
        ("a free one in front of it that is not marked", |_| (168, 32)),
        ("a mark behind one that is in use", |page| {
            // What the mark says is in front.
            page.word(page.start() + 192).store(page.start() as u64 + 168, Ordering::Relaxed);
            (200, 3888 | 1 | 2)
        }),
        ("two free ones side by side", |_| (168, 32 | 1 | 2)),
        ("an end that is not marked", |_| (4088, 0)),
        ("an end with a size", |_| (4088, 32 | 2)),
    ];
    for (what, damage) in damaged {
        with_pool(|pool, page| {
            let [_, b, _] = [100, 40, 24].map(|bytes| pool.malloc::<false>(bytes));
            free(pool, b);
            assert!(blocks(pool, page).is_some());
            let (at, header) = damage(page);
            page.word(page.start() + at).store(header, Ordering::Relaxed);
            assert_eq!(blocks(pool, page), None, "{what}");
        });
    }
}

#[test]
fn counts_that_cannot_be_are_seen() {
    type Damage = (&'static str, fn(&mut ColorStats));
    let damaged: [Damage; 5] = [
        ("more is used than ever was", |stats| stats.used_bytes = stats.peak_bytes + 16),
        ("more was used than there is", |stats| stats.peak_bytes = stats.capacity_bytes + 1),
        ("bytes are used by nobody", |stats| stats.allocations = 0),
        ("allocations of nothing", |stats| stats.used_bytes = 0),
        ("allocations smaller than a block", |stats| stats.allocations = stats.used_bytes / 32 + 1),
    ];
    for (what, damage) in damaged {
        with_pool(|pool, _| {
            pool.malloc::<false>(100);
            assert!(pool.sound());
            damage(&mut pool.stats);
            assert!(!pool.sound(), "{what}");
        });
    }
    with_pool(|pool, _| {
        pool.malloc::<false>(24);
        pool.stats.allocations = 1;
        (pool.stats.used_bytes, pool.stats.peak_bytes) = (32, 4096);
        assert!(pool.sound(), "to the last byte");
    });
}

#[test]
fn a_whole_page_is_taken_as_it_is_and_given_back() {
    with_pool(|pool, page| {
        let a = pool.malloc::<false>(1);
        assert!(pool.take_run::<false>(4096).is_null(), "a part of it is in use");
        assert_eq!((pool.stats.refused, pool.stats.largest_asked_bytes), (1, 4096));
        free(pool, a);
        let whole = pool.take_run::<false>(4096);
        assert_eq!(whole as usize, page.start());
        assert_eq!((pool.stats.used_bytes, pool.stats.allocations), (4096, 1));
        assert!(pool.malloc::<false>(1).is_null() && pool.sound());
        // SAFETY: that run, which nobody uses.
        unsafe { pool.give_run::<false>(whole, 4096) };
        assert_eq!((pool.stats.used_bytes, pool.stats.allocations, pool.stats.capacity_bytes), (0, 0, 4096));
        assert_eq!((blocks(pool, page), pool.sound()), (Some(vec![(16, 4072, false)]), true));
    });
}

#[test]
fn an_aligned_block_leaves_a_block_in_front_or_nothing() {
    with_pool(|pool, page| {
        // The first byte of a run's first block is at 16: the next multiple of 32 is too near for a block between.
        assert_eq!(pool.aligned::<false>(32, 8) as usize, page.start() + 64);
        assert_eq!(pool.aligned::<false>(16, 8) as usize, page.start() + 16, "what is left in front is a block");
        assert_eq!(pool.aligned::<false>(512, 8) as usize, page.start() + 512);
        let expected = [(16, 40, true), (64, 24, true), (96, 408, false), (512, 24, true), (544, 3544, false)];
        assert_eq!(blocks(pool, page), Some(expected.to_vec()));
        assert!(pool.aligned::<false>(4096, 8).is_null() && pool.aligned::<false>(1 << 63, 8).is_null());
        assert!(pool.aligned::<false>(8, 4073).is_null() && pool.aligned::<false>(64, usize::MAX).is_null());
        assert_eq!((pool.stats.refused, pool.sound()), (4, true));
    });
}
