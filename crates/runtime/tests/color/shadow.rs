//! The heap against a shadow: a map of what was given out.

use std::collections::BTreeMap;

use lookaside_runtime::color::{ColoredHeap, HeapOptions};
use proptest::prelude::*;

use crate::support::{hashed, options, partition, xeon};

/// An allocation as its owner knows it.
struct Owned {
    bytes: usize,
    color: u32,
    fill: u8,
}

#[derive(Clone, Debug)]
enum Step {
    Malloc(usize, u32),
    Calloc(usize, u32),
    Aligned(u32, usize, u32),
    Realloc(usize, usize),
    Free(usize),
}

fn step(colors: u32) -> impl Strategy<Value = Step> {
    // Sizes around a page and a few pages matter as much as small ones.
    let bytes = prop_oneof![0usize..200, 0usize..5000, 4060usize..4110, 0usize..40_000];
    let color = 0..colors;
    prop_oneof![
        3 => (bytes.clone(), color.clone()).prop_map(|(bytes, color)| Step::Malloc(bytes, color)),
        1 => (bytes.clone(), color.clone()).prop_map(|(bytes, color)| Step::Calloc(bytes, color)),
        1 => (0u32..14, bytes.clone(), color).prop_map(|(log2, bytes, color)| Step::Aligned(log2, bytes, color)),
        2 => (any::<usize>(), bytes).prop_map(|(which, bytes)| Step::Realloc(which, bytes)),
        4 => any::<usize>().prop_map(Step::Free),
    ]
}

struct Shadow {
    heap: ColoredHeap,
    options: HeapOptions,
    owned: BTreeMap<usize, Owned>,
    next_fill: u8,
}

impl Shadow {
    fn new(options: HeapOptions) -> Self {
        Self { heap: ColoredHeap::new(&options).expect("a heap"), options, owned: BTreeMap::new(), next_fill: 0 }
    }

    fn key(&self, which: usize) -> Option<usize> {
        self.owned.keys().nth(which % self.owned.len().max(1)).copied()
    }

    fn bytes(&self, at: usize) -> &[u8] {
        // SAFETY: an allocation in use.
        unsafe { std::slice::from_raw_parts(at as *const u8, self.owned[&at].bytes) }
    }

    /// A new allocation, or one that `stayed` where it was with another size (as a whole run does; what is to be
    /// aligned may get a longer run): in pages of its colour, where nothing else is, of the size that was promised.
    /// Filled.
    fn take(&mut self, start: *mut u8, bytes: usize, color: u32, alignment: usize, kept: &[u8], stayed: bool) {
        if start.is_null() {
            self.refused_rightly(bytes, alignment, color);
            return;
        }
        let at = start as usize;
        assert_eq!(at % alignment.max(16), 0);
        let usable = self.heap.usable_size(start).expect("an allocation");
        assert!(usable >= bytes);
        let whole = at.is_multiple_of(4096) && usable.is_multiple_of(4096);
        assert!(
            usable <= (bytes + 31).max(40) || (whole && (stayed || alignment > 16 || usable < bytes + 4096)),
            "{usable} for {bytes}"
        );
        let vpns = self.heap.vpns(color);
        assert!((at >> 12..=(at + usable - 1) >> 12).all(|vpn| vpns.contains(&(vpn as u64))));
        if let Some((before, owned)) = self.owned.range(..at).next_back() {
            assert!(before + owned.bytes <= at);
        }
        if let Some((behind, _)) = self.owned.range(at..).next() {
            assert!(at + usable <= *behind);
        }
        // SAFETY: the allocation's own bytes.
        let all = unsafe { std::slice::from_raw_parts_mut(start, usable) };
        assert_eq!(&all[..kept.len()], kept);
        self.next_fill = self.next_fill.wrapping_add(1);
        all.fill(self.next_fill);
        self.owned.insert(at, Owned { bytes, color, fill: self.next_fill });
    }

    /// Nothing that is free is surely large enough; of up to 16 free blocks, none is.
    fn refused_rightly(&mut self, bytes: usize, alignment: usize, color: u32) {
        let vpns = self.heap.vpns(color);
        let (mut largest, mut largest_run, mut free) = (0, 0, 0);
        self.heap.walk(color, |at, size, used| {
            if !used {
                let (first, behind) = (at as u64 >> 12, (at as u64 + size as u64 + 8) >> 12);
                let is_whole = at as usize % 4096 == 16 && !vpns.contains(&(first - 1)) && !vpns.contains(&behind);
                // With the header, and what no block has at both ends.
                largest_run = largest_run.max(if is_whole { size + 24 } else { 0 });
                largest = largest.max(size);
                free += 1;
            }
        });
        // Larger alignments need room to move.
        let room = if alignment > 16 { alignment + 32 } else { 0 };
        if free <= 16 {
            let size = ((bytes + 8 + 15) & !15).max(32) + room;
            assert!(largest + 8 < size, "{bytes} bytes were refused with {largest} free");
            let is_for_pages = bytes > 0 && alignment <= 4096 && (room > 0 || bytes + 24 > self.longest_run(color));
            let pages = bytes.next_multiple_of(4096);
            assert!(!is_for_pages || largest_run < pages, "{bytes} bytes were refused with a free run");
        }
        // Header and rounding; then up by at most a sixteenth.
        let size = bytes + 8 + 15 + room;
        let sure = size + 16 + (size + 16) / 16;
        assert!(largest < sure, "{bytes} bytes were refused with {largest} free");
    }

    fn free(&mut self, at: usize) {
        let owned = &self.owned[&at];
        assert!(self.bytes(at).iter().all(|byte| *byte == owned.fill), "written by somebody else");
        let color = owned.color;
        // SAFETY: an allocation in use, which is forgotten now.
        let done = unsafe {
            if at.is_multiple_of(32) {
                self.heap.free(at as *mut u8)
            } else {
                self.heap.free_of(at as *mut u8, color)
            }
        };
        done.expect("a free");
        self.owned.remove(&at);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Malloc(bytes, color) => {
                let start = self.heap.malloc(bytes, color);
                self.take(start, bytes, color, 1, &[], false);
            }
            Step::Calloc(bytes, color) => {
                let start = self.heap.calloc(3, bytes / 3, color);
                self.take(start, bytes / 3 * 3, color, 1, &vec![0; bytes / 3 * 3], false);
            }
            Step::Aligned(log2, bytes, color) => {
                let start = self.heap.aligned(1 << log2, bytes, color);
                self.take(start, bytes, color, 1 << log2, &[], false);
            }
            Step::Realloc(which, bytes) => {
                let Some(at) = self.key(which) else { return };
                let kept: Vec<u8> = self.bytes(at).iter().take(bytes).copied().collect();
                let color = self.owned[&at].color;
                // SAFETY: an allocation in use.
                let start = unsafe { self.heap.realloc(at as *mut u8, bytes, color) }.expect("an allocation");
                if start.is_null() {
                    assert_eq!(self.bytes(at)[..kept.len()], kept);
                } else {
                    self.owned.remove(&at);
                    self.take(start, bytes, color, 1, &kept, start as usize == at);
                }
            }
            Step::Free(which) => {
                if let Some(at) = self.key(which) {
                    self.free(at);
                }
            }
        }
    }

    /// What the heap says of itself is what its owners know.
    fn agrees(&mut self) {
        assert!(self.heap.is_sound());
        for color in 0..self.heap.colors() {
            let mut used = BTreeMap::new();
            let mut free = 0;
            assert!(self.heap.walk(color, |at, bytes, in_use| {
                if in_use {
                    used.insert(at as usize, bytes);
                } else {
                    free += 1;
                }
            }));
            let mine: Vec<(&usize, &Owned)> = self.owned.iter().filter(|(_, owned)| owned.color == color).collect();
            assert!(used.keys().eq(mine.iter().map(|(at, _)| *at)));
            let stats = self.heap.stats(color).expect("a colour");
            assert_eq!(stats.allocations, mine.len() as u64);
            let runs = self.runs(color);
            assert!(free <= mine.len() + runs, "{free} free blocks, {} in use, {runs} runs", mine.len());
        }
    }

    fn runs(&self, color: u32) -> usize {
        let vpns = self.heap.vpns(color);
        1 + vpns.windows(2).filter(|pair| pair[1] != pair[0] + 1).count()
    }

    fn longest_run(&self, color: u32) -> usize {
        let vpns = self.heap.vpns(color);
        4096 * vpns.chunk_by(|vpn, next| vpn + 1 == *next).map(<[u64]>::len).max().unwrap_or(0)
    }

    /// Free again: each run one block.
    fn ends_whole(mut self) {
        while let Some(at) = self.key(0) {
            self.free(at);
        }
        self.agrees();
        for color in 0..self.options.colors.len() as u32 {
            let mut blocks = 0;
            assert!(self.heap.walk(color, |_, _, _| blocks += 1));
            assert_eq!(blocks, self.runs(color));
            assert_eq!(self.heap.stats(color).expect("a colour").used_bytes, 0);
        }
    }
}

fn heaps() -> impl Strategy<Value = HeapOptions> {
    prop_oneof![
        (0u32..=16, any::<bool>()).prop_map(|(reserved, checked)| {
            let paper = HeapOptions::paper(lookaside_machine::PageSize::K4, xeon(), reserved).expect("colours");
            HeapOptions { checked, ..paper }
        }),
        any::<bool>().prop_map(|checked| HeapOptions {
            checked,
            ..options(
                vec![hashed("l1", 3, 4), hashed("l2", 5, 8)],
                vec![
                    partition(
                        "a",
                        Some(12),
                        3,
                        &[("l1", &[0, 1, 2, 3], Some(3)), ("l2", &(0..32).collect::<Vec<_>>(), Some(4))]
                    ),
                    partition("b", None, 1, &[("l1", &[5], Some(4))]),
                    partition("c", Some(41), 41, &[]),
                ],
            )
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_heap_does_as_its_shadow(
        (options, steps) in heaps().prop_flat_map(|options| {
            let colors = options.colors.len() as u32;
            (Just(options), proptest::collection::vec(step(colors), 1..300))
        })
    ) {
        let mut shadow = Shadow::new(options);
        for step in &steps {
            shadow.step(step);
            shadow.agrees();
        }
        shadow.ends_whole();
    }
}
