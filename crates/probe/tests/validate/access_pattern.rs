//! What each pattern promises of its words.

use std::collections::{HashMap, HashSet};

use lookaside_machine::PageSize;
use lookaside_probe::validate::{patterns, AccessPattern, PatternFamily, WORD};
use lookaside_probe::AccessOrder;
use proptest::prelude::*;

fn pattern(family: PatternFamily, page_size: PageSize, pages: u64, stride_pages: u64) -> AccessPattern {
    let (order, beside_stream) = (AccessOrder::Dependent, false);
    AccessPattern { family, page_size, span_pages: pages * stride_pages, stride_pages, order, beside_stream }
}

fn pages(words: &[u32], size: PageSize) -> Vec<u64> {
    words.iter().map(|&word| (u64::from(word) * WORD) >> size.shift()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_chase_visits_each_page_once_a_round(log2 in 0u32..12, huge: bool, seed: u64) {
        let size = if huge { PageSize::M2 } else { PageSize::K4 };
        let chase = pattern(PatternFamily::Chase, size, 1 << log2, 1);
        let words = chase.words(seed);
        let seen = pages(&words, size);
        prop_assert_eq!(seen.len() as u64, chase.pages());
        let distinct: HashSet<u64> = seen.iter().copied().collect();
        prop_assert_eq!(distinct, (0..chase.pages()).collect::<HashSet<u64>>());
        prop_assert_eq!(words, chase.words(seed));
    }

    #[test]
    fn a_stride_has_its_distance_and_no_line_twice(pages_wanted in 1u64..64, log2 in 0u32..17, seed: u64) {
        let stride = pattern(PatternFamily::Stride, PageSize::K4, pages_wanted, 1 << log2);
        let words = stride.words(seed);
        let seen: HashSet<u64> = pages(&words, PageSize::K4).into_iter().collect();
        prop_assert_eq!(seen, (0..pages_wanted).map(|i| i << log2).collect::<HashSet<u64>>());
        // No two pages are used at the same line: nothing but translation tells strides apart.
        let lines: HashSet<u64> = words.iter().map(|&word| u64::from(word) * WORD % 4096 / 64).collect();
        prop_assert_eq!(lines.len() as u64, pages_wanted);
    }

    #[test]
    fn another_seed_is_another_order(seed: u64) {
        for family in [PatternFamily::Chase, PatternFamily::Zipf] {
            let pattern = pattern(family, PageSize::K4, 1 << 10, 1);
            prop_assert_ne!(pattern.words(seed), pattern.words(seed.wrapping_add(1)));
        }
    }
}

/// With neighbouring frames a set of any cache gets no more of the lines than its share: else the model would miss by
/// conflicts where a cache that hashes its index, or random frames, do not.
#[test]
fn a_chase_uses_all_sets_alike() {
    for log2_pages in 6..=18 {
        let words = pattern(PatternFamily::Chase, PageSize::K4, 1 << log2_pages, 1).words(1);
        for log2_sets in 6..=17 {
            let mut lines = vec![0u64; 1 << log2_sets];
            words.iter().for_each(|&word| lines[(u64::from(word) * WORD / 64) as usize % (1 << log2_sets)] += 1);
            let share = (words.len() as u64).div_ceil(1 << log2_sets);
            assert!(lines.iter().all(|&lines| lines <= share), "{log2_pages}, {log2_sets}");
        }
    }
}

#[test]
fn walks_ascend_by_lines_and_cover_all() {
    for size in [PageSize::K4, PageSize::M2] {
        let bytes = 4u64 << 20;
        let one = pattern(PatternFamily::Sequential, size, bytes / size.bytes(), 1).words(1);
        assert!(one.windows(2).all(|pair| pair[1] == pair[0] + 8));
        assert_eq!(one.len() as u64, bytes / 64);
        let two = pattern(PatternFamily::Streams, size, bytes / size.bytes(), 1).words(1);
        assert_eq!(two.iter().collect::<HashSet<_>>(), one.iter().collect::<HashSet<_>>());
        let half = (bytes / WORD / 2) as u32;
        assert!(two.chunks(2).all(|pair| pair[0] < half && pair[1] >= half));
    }
}

#[test]
fn popular_pages_are_drawn_more_often() {
    let zipf = pattern(PatternFamily::Zipf, PageSize::K4, 1 << 10, 1);
    let mut times: HashMap<u64, u64> = HashMap::new();
    let words = zipf.words(5);
    for page in pages(&words, PageSize::K4) {
        *times.entry(page).or_default() += 1;
    }
    // Shares of ranks 1 and 2 of 1024 at exponent 0.99: 1/h and 2^-0.99/h, h = sum of k^-0.99.
    let h: f64 = (1..=1024).map(|k| f64::from(k).powf(-0.99)).sum();
    let mut counts: Vec<u64> = times.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    for (rank, count) in [(1.0f64, counts[0]), (2.0, counts[1])] {
        let expected = words.len() as f64 * rank.powf(-0.99) / h;
        assert!((count as f64 - expected).abs() < 5.0 * expected.sqrt(), "rank {rank}: {count}, expected {expected}");
    }
}

#[test]
fn the_fixed_set_is_what_the_issue_names_and_fits_its_lists() {
    let all = patterns(false);
    let has = |family, size, pages: u64, stride: u64| all.contains(&pattern(family, size, pages, stride));
    for log2 in 4..=18 {
        assert!(has(PatternFamily::Chase, PageSize::K4, 1 << log2, 1), "chase of 2^{log2} pages");
    }
    assert!(has(PatternFamily::Chase, PageSize::M2, 16, 1));
    for pages in [2, 40] {
        assert!(
            has(PatternFamily::Stride, PageSize::K4, pages, 1)
                && has(PatternFamily::Stride, PageSize::K4, pages, 1 << 16)
        );
    }
    for size in [PageSize::K4, PageSize::M2] {
        for bytes in [64u64 << 20, 8 << 30] {
            assert!(has(PatternFamily::Gups, size, bytes / size.bytes(), 1));
        }
    }
    for beside_stream in [false, true] {
        for order in [AccessOrder::Dependent, AccessOrder::Independent] {
            let reads = pattern(PatternFamily::Random, PageSize::K4, (256 << 20) / 4096, 1);
            assert!(all.contains(&AccessPattern { order, beside_stream, ..reads }), "{order:?}, {beside_stream}");
        }
    }
    for pattern in &all {
        assert!(pattern.span_pages * pattern.page_size.bytes() <= WORD << 32, "{}: beyond 32 bits", pattern.name());
        assert!(pattern.family == PatternFamily::Stride || pattern.pages() == pattern.span_pages);
    }
    let names: HashSet<String> = all.iter().map(AccessPattern::name).collect();
    assert_eq!(names.len(), all.len());
    let quick = patterns(true);
    assert!(quick.len() < all.len() && quick.iter().all(|pattern| all.contains(pattern)));
}

#[test]
fn quick_gups_stays_within_its_table() {
    let gups = pattern(PatternFamily::Gups, PageSize::K4, (64 << 20) / 4096, 1);
    let words = gups.words(3);
    assert!(words.iter().all(|&word| u64::from(word) * WORD < gups.bytes()));
    let touched: HashSet<u64> = pages(&words, PageSize::K4).into_iter().collect();
    // 2^20 draws over 2^14 pages leave a page out with probability e^-64.
    assert_eq!(touched.len() as u64, gups.pages());
}
