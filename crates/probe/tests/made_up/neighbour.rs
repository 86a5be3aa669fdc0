//! A neighbour on the same core that takes entries all through the passes that confirm a geometry, and then goes: what
//! was confirmed with it is taken back.

use std::convert::Infallible;
use std::time::Duration;

use crate::sim::{Array, Costs, Noise, Sim};
use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{
    probe, probe_with_retries, Finding, Metal, MetalError, PageChain, ProbeOptions, ProbeReport, ProbeStep, RetryLimits,
};

/// With the neighbour, and without.
struct Neighbour {
    with: Sim,
    without: Sim,
    is_there: bool,
}

impl Neighbour {
    fn now(&mut self) -> &mut Sim {
        if self.is_there {
            &mut self.with
        } else {
            &mut self.without
        }
    }
}

impl Metal for Neighbour {
    fn page_bits(&self, size: PageSize) -> u32 {
        self.without.page_bits(size)
    }

    fn max_pages(&self, size: PageSize) -> usize {
        self.without.max_pages(size)
    }

    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        self.now().chase(chain, rounds, samples)
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }

    fn note(&mut self, text: &str) {
        self.is_there &= text != "last looks";
    }
}

/// 72 entries, of which a neighbour takes `taken` until the last looks, or for ever.
fn machine(taken: u32, goes: bool, seed: u64) -> Neighbour {
    let array = |ways| [Array { sets: 1, ways, masks: Vec::new(), replacement: Replacement::Lru }];
    let costs = Costs { hit: 4.0, second: 7.0, walk: 35.0 };
    let noise = Noise { sigma: 0.005, bias: 0.002, outliers: 0.03, interrupts: 0.01, grain: 26.0 };
    let sim = |ways| Sim::new(&array(ways), 20, costs, noise, seed);
    let without = if goes { sim(72) } else { sim(72 - taken) };
    Neighbour { with: sim(72 - taken), without, is_there: true }
}

fn options(seed: u64) -> ProbeOptions {
    ProbeOptions { only: Some(ProbeStep::L1), seed, ..ProbeOptions::default() }
}

/// What is said of the first level.
fn found(taken: u32, goes: bool, seed: u64) -> Finding<lookaside_probe::Geometry> {
    let mut metal = machine(taken, goes, seed);
    let mut report = probe(&mut metal, &options(seed), &|| None, &mut |_| ());
    report.levels.remove(0).geometry
}

#[test]
fn what_a_neighbour_left_is_taken_back_when_it_goes() {
    for seed in 0..4 {
        let reason = found(3, true, seed).reason().map(str::to_string);
        assert!(reason.is_some_and(|reason| reason.starts_with("69 entries were confirmed at first")), "seed {seed}");
        // Nobody came or went.
        assert_eq!(found(0, true, seed).value().map(|geometry| geometry.entries), Some(72), "seed {seed}");
        // Who stays cannot be told from a smaller TLB.
        assert_eq!(found(3, false, seed).value().map(|geometry| geometry.entries), Some(69), "seed {seed}");
    }
}

#[test]
fn once_more_finds_what_the_neighbour_hid() {
    for seed in 0..4 {
        let mut metal = machine(3, true, seed);
        let (report, wholes) = found_again(&mut metal, seed, RetryLimits { most: 3, time: None });
        assert_eq!(report.levels[0].geometry.value().map(|geometry| geometry.entries), Some(72), "seed {seed}");
        assert_eq!((report.is_whole(), report.seed), (true, seed + 1));
        assert_eq!(wholes, [false, true]);
    }
    // One attempt is one; no more than is worth while are made.
    let minute = Some(Duration::from_secs(60));
    for attempts in [RetryLimits { most: 1, time: None }, RetryLimits { most: 3, time: minute.map(|time| time / 3) }] {
        let (report, wholes) = found_again(&mut machine(3, true, 0), 0, attempts);
        assert_eq!((report.is_whole(), report.seed, wholes), (false, 0, vec![false]));
    }
}

/// And of each attempt whether it found all.
fn found_again(metal: &mut Neighbour, seed: u64, attempts: RetryLimits) -> (ProbeReport, Vec<bool>) {
    let mut wholes = Vec::new();
    let mut attempt = |options: &ProbeOptions| {
        let report = probe(metal, options, &|| None, &mut |_| ());
        wholes.push(report.is_whole());
        Ok(report)
    };
    let options = ProbeOptions { time: Some(Duration::from_secs(60)), ..options(seed) };
    let report: Result<_, Infallible> = probe_with_retries(&options, attempts, &|| false, &mut attempt);
    (report.unwrap(), wholes)
}
