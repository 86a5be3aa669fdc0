//! Heaps to test.

use lookaside_machine::{preset, ColorLevel, IndexFn, PageSize, Partition, Share};
use lookaside_runtime::color::{ColoredHeap, HeapOptions};

/// The paper's machine: 16 sets of 4 ways, linear.
pub fn xeon() -> Vec<ColorLevel> {
    preset("xeon-e5-2650").expect("a preset").color_levels(PageSize::K4)[..1].to_vec()
}

/// The paper's colours there.
pub fn paper(reserved_sets: u32) -> ColoredHeap {
    ColoredHeap::new(&HeapOptions::paper(PageSize::K4, xeon(), reserved_sets).expect("colours")).expect("a heap")
}

/// A level whose index looks at higher bits too.
pub fn hashed(name: &str, bits: u32, ways: u32) -> ColorLevel {
    let masks = (0..bits).map(|bit| 1 << bit | 1 << (bit + bits) | 1 << (9 - bit)).collect();
    ColorLevel { name: name.into(), sets: 1 << bits, ways, index: IndexFn::Masks(masks) }
}

/// A partition by shares: level, sets, ways.
pub fn partition(
    name: &str,
    pages: Option<u64>,
    contiguous_pages: u64,
    shares: &[(&str, &[u32], Option<u32>)],
) -> Partition {
    let share = |(level, sets, ways): &(&str, &[u32], Option<u32>)| Share {
        level: (*level).into(),
        sets: sets.to_vec(),
        ways: *ways,
    };
    Partition { name: name.into(), pages, contiguous_pages, shares: shares.iter().map(share).collect() }
}

pub fn options(levels: Vec<ColorLevel>, colors: Vec<Partition>) -> HeapOptions {
    HeapOptions {
        page_size: PageSize::K4,
        levels,
        colors,
        bookkeeping: None,
        checked: true,
        locked: false,
        runs_as_asked: false,
    }
}
