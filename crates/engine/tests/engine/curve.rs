//! The miss curve against brute force: a simulation of every size and every geometry.

use crate::recorder;
use lookaside_engine::curve::{estimate_from_samples, CurveBuilder, MAX_SETS, MAX_WAYS};
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Event, Kind, WINDOW_PAGES};
use proptest::prelude::*;

/// A set-associative LRU array of pages: misses of the stream.
fn simulate(stream: &[(u32, u64)], sets: u64, ways: usize) -> u64 {
    let mut stacks = vec![Vec::new(); sets as usize];
    let mut misses = 0;
    for &(process, page) in stream {
        let stack: &mut Vec<(u32, u64)> = &mut stacks[(page % sets) as usize];
        match stack.iter().position(|&other| other == (process, page)) {
            Some(at) => {
                stack.remove(at);
            }
            None => misses += 1,
        }
        stack.insert(0, (process, page));
        stack.truncate(ways);
    }
    misses
}

fn check(blocks: &[Block], stream: &[(u32, u64)]) -> Result<(), TestCaseError> {
    let mut builder = CurveBuilder::new();
    blocks.iter().for_each(|block| builder.run(block));
    let curve = builder.finish();
    let pages: std::collections::BTreeSet<_> = stream.iter().collect();
    prop_assert_eq!(curve.cold_misses, pages.len() as u64);
    prop_assert!(!curve.estimate);
    for entries in 1..=pages.len() + 2 {
        let misses = simulate(stream, 1, entries);
        prop_assert_eq!(builder.fully_associative_misses(entries as u64), misses, "{} entries", entries);
        if let Some((_, listed)) = curve.fully_associative.iter().find(|point| point.0 == entries as u64) {
            prop_assert_eq!(*listed, misses, "{} entries, as listed", entries);
        }
    }
    let last = curve.fully_associative.last().map(|point| point.1);
    prop_assert_eq!(last.unwrap_or(curve.cold_misses), curve.cold_misses);
    prop_assert_eq!(curve.set_associative.len() as u32, MAX_SETS.ilog2() + 1);
    for (shift, set_curve) in curve.set_associative.iter().enumerate() {
        prop_assert_eq!(set_curve.sets, 1 << shift);
        prop_assert_eq!(set_curve.misses_by_ways.len(), MAX_WAYS);
        for (i, &misses) in set_curve.misses_by_ways.iter().enumerate() {
            let expected = simulate(stream, u64::from(set_curve.sets), i + 1);
            prop_assert_eq!(misses, expected, "{} sets of {} ways", set_curve.sets, i + 1);
        }
    }
    Ok(())
}

/// Page numbers of a few kinds of program: pages near each other, strides that fall into one set, far pages.
fn page(kind: u8, word: u16) -> u64 {
    match kind % 4 {
        0 => u64::from(word % 40),
        1 => u64::from(word % 40) << (word / 40 % 13),
        2 => 0xf_ffff_ff00 + u64::from(word % 300),
        _ => u64::from(word % 8) << 36,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn equals_simulation_at_every_size(
        words in prop::collection::vec((any::<u8>(), any::<u16>()), 0..1500),
        processes in 1..3u32,
        direct in 0..4u8,
    ) {
        let mut stream = Vec::new();
        let mut blocks: Vec<Block> = Vec::new();
        for (kind, word) in words {
            let process = u32::from(word >> 8) % processes;
            if blocks.last().is_none_or(|b| b.process != process || word % 64 == 0) {
                blocks.push(Block { process, ..Block::default() });
            }
            let Some(block) = blocks.last_mut() else { continue };
            let page = page(if direct == 0 { 0 } else { kind }, word);
            let address = page << 12 | u64::from(word % 4096);
            if kind >= 240 {
                block.push(Kind::Fetch, address);
                block.repeat.push(7);
                continue;
            }
            let repeat = u32::from(kind >> 5) % 3;
            block.push(if kind % 2 == 0 { Kind::Load } else { Kind::Store }, address);
            block.repeat.push(repeat);
            stream.extend(std::iter::repeat_n((process, page), 1 + repeat as usize));
        }
        check(&blocks, &stream)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Behind a recorder's window: equal at every size from the window's on, wherever blocks are cut.
    #[test]
    fn a_window_hides_small_sizes_only(
        words in prop::collection::vec((any::<u8>(), any::<u16>()), 0..1500),
        pages in 1..12u32,
        threads in 1..4u32,
        length in 1..500usize,
        part in 1..20usize,
        plain in any::<u8>(),
    ) {
        let (mut full, mut windowed) = (CurveBuilder::new(), CurveBuilder::beyond(pages));
        for words in words.chunks(length) {
            let thread = u32::from(words[0].0) % threads;
            let mut block = Block { process: thread / 2, thread, ..Block::default() };
            for &(kind, word) in words {
                let access = if kind >= 240 { Kind::Fetch } else { [Kind::Load, Kind::Store][usize::from(kind % 2)] };
                block.push(access, page(kind, word) << 12);
            }
            full.run(&block);
            if block.len() > WINDOW_PAGES && words[0].0 % 4 < plain % 4 {
                windowed.run(&block);
                continue;
            }
            let mut rest = recorder::recorded(&block, recorder::RecorderOptions::pages(pages as usize));
            while rest.len() > part {
                let (first, after) = recorder::cut(rest, part);
                windowed.run(&first);
                rest = after;
            }
            windowed.run(&rest);
        }
        for entries in u64::from(pages)..1000 {
            let misses = full.fully_associative_misses(entries);
            prop_assert_eq!(windowed.fully_associative_misses(entries), misses, "{} entries", entries);
        }
        let (full, windowed) = (full.finish(), windowed.finish());
        let mut listed = full.fully_associative;
        listed.retain(|point| point.0 >= pages.into());
        if listed.is_empty() && full.cold_misses > 0 {
            listed.push((pages.into(), full.cold_misses)); // a window has room for all pages
        }
        prop_assert_eq!(&windowed.fully_associative, &listed);
        prop_assert_eq!((windowed.accesses, windowed.cold_misses), (full.accesses, full.cold_misses));
        prop_assert_eq!(windowed.set_associative, vec![]);
    }
}

/// The timeline is compacted several times, and has more than one line of counts on top.
#[test]
fn long_streams_are_exact_too() {
    let mut rng = SplitMix64::new(7);
    let mut block = Block::default();
    let mut stack: Vec<u64> = Vec::new();
    let mut distances = std::collections::BTreeMap::<usize, u64>::new();
    let mut cold = 0;
    for i in 0..700_000u64 {
        // Half of all visits go to 100 pages; the rest sweep over 200,000, which pushes live pages past one line.
        let page = if rng.next_u64().is_multiple_of(2) { rng.next_u64() % 100 } else { 1000 + i % 200_000 };
        block.push(Kind::Load, page << 12);
    }
    let mut builder = CurveBuilder::new();
    builder.run(&block);
    // A brute-force stack of 200,000 pages would take hours: keep its first 300 places only.
    for addr in &block.addr {
        let page = addr >> 12;
        match stack.iter().position(|&other| other == page) {
            Some(at) => {
                *distances.entry(at).or_default() += 1;
                stack.remove(at);
            }
            None => cold += 1,
        }
        stack.insert(0, page);
        stack.truncate(300);
    }
    for entries in 1..=300 {
        let farther: u64 = distances.range(entries..).map(|(_, n)| n).sum();
        assert_eq!(builder.fully_associative_misses(entries as u64), cold + farther, "{entries} entries");
    }
}

/// A cyclic sweep over n pages misses always below n entries, and never from n on.
#[test]
fn a_sweep_is_a_step() {
    let pages = 150_000u64;
    let mut block = Block::default();
    for i in 0..4 * pages {
        block.push(Kind::Store, (i % pages) << 12);
    }
    let mut builder = CurveBuilder::new();
    builder.run(&block);
    assert_eq!(builder.fully_associative_misses(pages - 1), 4 * pages);
    assert_eq!(builder.fully_associative_misses(pages), pages);
    assert_eq!(builder.finish().fully_associative.last(), Some(&(pages, pages)));
}

/// Uniform random over P pages hits E entries E / P of the time.
#[test]
fn uniform_random_hits_in_proportion() {
    let (pages, accesses) = (4096u64, 1_000_000u64);
    let mut rng = SplitMix64::new(1);
    let mut block = Block::default();
    for _ in 0..accesses {
        block.push(Kind::Load, (rng.next_u64() % pages) << 12);
    }
    let mut builder = CurveBuilder::new();
    builder.run(&block);
    for entries in [1u64, 64, 1000, 3000] {
        let expected = 1.0 - entries as f64 / pages as f64;
        let got = builder.fully_associative_misses(entries) as f64 / accesses as f64;
        // Four standard deviations of a count of a million.
        assert!((got - expected).abs() < 0.002 + pages as f64 / accesses as f64, "{entries}: {got} {expected}");
    }
}

#[test]
fn repeats_that_come_as_events_hit() {
    let mut block = Block::default();
    block.push(Kind::Load, 0x1000);
    block.push_event(Event::Repeats { addr: 0x1000, kind: Kind::Store, count: 9 });
    block.push_event(Event::Repeats { addr: 0x1000, kind: Kind::Fetch, count: 5 });
    let mut builder = CurveBuilder::new();
    builder.run(&block);
    let curve = builder.finish();
    assert_eq!((curve.accesses, curve.cold_misses), (10, 1));
    assert_eq!(builder.fully_associative_misses(0), 10);
    assert_eq!(curve.fully_associative, [(1, 1)]);
}

/// Che's approximation against a stream that is what it assumes, with Zipf weights.
#[test]
fn the_estimate_holds_for_independent_references() {
    let pages = 3000usize;
    let weights: Vec<u64> = (0..pages).map(|i| 10_000_000 / (i as u64 + 1)).collect();
    let total: u64 = weights.iter().sum();
    let bounds: Vec<u64> = weights
        .iter()
        .scan(0, |sum, w| {
            *sum += w;
            Some(*sum)
        })
        .collect();
    let mut rng = SplitMix64::new(3);
    let mut block = Block::default();
    let accesses = 2_000_000;
    for _ in 0..accesses {
        let at = rng.next_u64() % total;
        let page = bounds.partition_point(|&bound| bound <= at);
        block.push(Kind::Load, (page as u64) << 12);
    }
    let mut builder = CurveBuilder::new();
    builder.run(&block);
    let estimate = estimate_from_samples(weights);
    assert!(estimate.estimate);
    assert_eq!(estimate.accesses, total);
    assert!(estimate.fully_associative.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 >= w[1].1));
    for entries in [1, 16, 64, 512, 1536] {
        let (_, misses) = estimate.fully_associative.iter().find(|p| p.0 == entries).expect("listed");
        let estimated = *misses as f64 / total as f64;
        let simulated = builder.fully_associative_misses(entries) as f64 / accesses as f64;
        // The approximation is within a percent or two here (Fricker, Robert and Roberts 2012).
        assert!((estimated - simulated).abs() < 0.01, "{entries}: {estimated} {simulated}");
    }
}

#[test]
fn nothing_gives_an_empty_curve() {
    let curve = CurveBuilder::new().finish();
    assert_eq!((curve.accesses, curve.cold_misses, curve.fully_associative.len()), (0, 0, 0));
    let estimate = estimate_from_samples([0, 0]);
    assert_eq!((estimate.accesses, estimate.fully_associative.len()), (0, 0));
    // One page, always: less than one of five samples would miss anywhere.
    assert_eq!(estimate_from_samples([5]).fully_associative, []);
}

/// 1,000 samples of 65,536 pages, at random: nearly each is of a page of its own.
#[test]
fn samples_say_nothing_below_one_in_their_number() {
    let mut rng = SplitMix64::new(5);
    let mut weights = vec![0; 65_536];
    (0..1000).for_each(|_| weights[(rng.next_u64() % 65_536) as usize] += 1);
    let estimate = estimate_from_samples(weights.iter().copied());
    assert!(estimate.fully_associative.iter().all(|(_, misses)| *misses >= 1));
    // A TLB of as many entries as pages were sampled still misses nearly always: it is not the end of the curve.
    let seen = weights.iter().filter(|weight| **weight > 0).count() as u64;
    let at = estimate.fully_associative.iter().rfind(|(entries, _)| *entries <= seen).expect("listed");
    assert!(at.1 > 900, "{at:?}");
    let hot = estimate_from_samples((0..2000).map(|_| 100));
    assert_eq!(hot.fully_associative.iter().rfind(|(entries, _)| *entries < 1000).expect("listed").1 / 10_000, 10);
    assert!(hot.fully_associative.iter().all(|(entries, _)| *entries < 2000));
}
