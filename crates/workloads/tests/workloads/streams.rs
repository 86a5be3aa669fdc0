//! What every stream promises: the same to the bit, the length asked for, inside its mapping; and what each is for.

use std::collections::{HashMap, HashSet};

use lookaside_trace::{Block, Event, Kind, Source};
use lookaside_workloads::*;
use proptest::prelude::*;

fn collect<P: Pattern>(pattern: P, steps: u64) -> (Vec<(Kind, u64)>, Vec<Event>) {
    let mut source = PatternStream::new(pattern, steps);
    let (mut block, mut accesses, mut events) = (Block::default(), Vec::new(), Vec::new());
    while source.next_block(&mut block).unwrap() {
        accesses.extend(block.kind.iter().copied().zip(block.addr.iter().copied()));
        events.extend(block.events.drain(..).map(|(_, e)| e));
    }
    assert!(!source.next_block(&mut block).unwrap() && block.is_empty(), "the end stays the end");
    (accesses, events)
}

fn pages(accesses: &[(Kind, u64)]) -> HashSet<u64> {
    accesses.iter().map(|a| a.1 / PAGE_BYTES).collect()
}

fn check<P: Pattern + Clone>(pattern: P, steps: u64, per_step: u64) -> Result<(), TestCaseError> {
    let (accesses, events) = collect(pattern.clone(), steps);
    prop_assert_eq!(accesses.len() as u64, steps * per_step);
    let [Event::Map { addr, len, .. }] = events[..] else { panic!("one mapping: {events:?}") };
    prop_assert_eq!(addr, BASE);
    prop_assert!(accesses.iter().all(|a| (addr..addr + len).contains(&a.1)));
    prop_assert_eq!(collect(pattern, steps).0, accesses);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn streams_are_deterministic_and_inside(n in 0u64..5000, steps in 0u64..40_000, seed: u64, s in 0.0f64..3.0, stride in 0u64..20_000) {
        check(UniformPages::new(n, seed), steps, 1)?;
        check(ZipfPages::new(n, s, seed), steps, 1)?;
        check(Strided::new(n * 64, stride), steps, 1)?;
        check(PointerChase::new(n, seed), steps, 1)?;
        check(Gups::new(n * 64, seed), steps, 2)?;
        check(TlbThrash::new(n, stride), steps, 1)?;
    }
}

#[test]
fn uniform_draws_every_page_about_equally() {
    let (accesses, _) = collect(UniformPages::new(100, 5), 100_000);
    let mut counts = HashMap::new();
    for (_, addr) in accesses {
        *counts.entry(addr).or_insert(0u64) += 1;
    }
    // 1000 each; 6 standard deviations are 190.
    assert!(counts.len() == 100 && counts.values().all(|&c| c.abs_diff(1000) < 190));
}

#[test]
fn zipf_scatters_its_hot_pages() {
    let (accesses, _) = collect(ZipfPages::new(1 << 20, 0.99, 1), 100_000);
    let mut counts: HashMap<u64, u64> = HashMap::new();
    for (_, addr) in accesses {
        *counts.entry(addr / PAGE_BYTES).or_default() += 1;
    }
    let mut by_count: Vec<(u64, u64)> = counts.into_iter().map(|(p, c)| (c, p)).collect();
    by_count.sort_unstable_by(|a, b| b.cmp(a));
    // Harmonic number of order 0.99 over 2^20 ranks is 15.4: the first rank has 6.5 % of all.
    assert!((6000..7000).contains(&by_count[0].0), "{:?}", by_count[0]);
    assert!(by_count[..8].windows(2).all(|w| w[0].1.abs_diff(w[1].1) > 1));
}

#[test]
fn stride_wraps_where_no_more_fits() {
    let (accesses, _) = collect(Strided::new(200, 64), 5);
    let offsets: Vec<u64> = accesses.iter().map(|a| a.1 - BASE).collect();
    assert_eq!(offsets, [0, 64, 128, 0, 64]);
}

#[test]
fn chase_visits_every_page_once_a_round() {
    for n in [1, 2, 3, 1000] {
        let (accesses, _) = collect(PointerChase::new(n, 9), 2 * n);
        let (first, second) = accesses.split_at(n as usize);
        assert_eq!(pages(first).len() as u64, n);
        assert_eq!(first, second);
    }
}

#[test]
fn gups_loads_and_stores_the_same_word_in_hpcc_order() {
    let (accesses, _) = collect(Gups::new(1 << 20, 1), 1000);
    for pair in accesses.chunks(2) {
        assert_eq!((pair[0].0, pair[1].0, pair[0].1), (Kind::Load, Kind::Store, pair[1].1));
    }
    // Two successive words of the sequence: the next index is the last shifted by one, but for the low three bits.
    let word = |i: usize| (accesses[2 * i].1 - BASE) / 8;
    for i in 0..998 {
        assert_eq!(word(i + 1) >> 3, (word(i) << 1 & ((1 << 17) - 1)) >> 3);
    }
}

#[test]
fn algorithm_5_line_by_line() {
    // page_step 3 over 5 pages: 0, 3, 6 mod 5 = 1, 4, 7 mod 5 = 2, 0 …
    let (accesses, _) = collect(TlbThrash::new(5, 3), 6);
    let order: Vec<u64> = accesses.iter().map(|a| (a.1 - BASE) / PAGE_BYTES).collect();
    assert_eq!(order, [0, 3, 1, 4, 2, 0]);

    let (accesses, _) = collect(TlbThrash::new(5, 1).with_stack(), 6);
    assert_eq!(accesses.len(), 12);
    assert_eq!(pages(&accesses).len(), 6);
    assert!(accesses.chunks(2).all(|w| w[0].0 == Kind::Load && w[1] == (Kind::Store, BASE + (1 << 30))));
}

#[test]
fn steps_beyond_the_bounds_count_as_the_nearest() {
    assert_eq!(collect(TlbThrash::new(u64::MAX, u64::MAX), 3).0.len(), 3);
    assert_eq!(collect(Strided::new(u64::MAX, u64::MAX), 3).0.len(), 3);
}
