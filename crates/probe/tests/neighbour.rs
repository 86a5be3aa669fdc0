//! A neighbour on the same core that takes entries all through the passes that confirm a geometry, and then goes: what was
//! confirmed with it is taken back.

mod sim;

use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{probe, Chain, Finding, Metal, MetalError, Options, Step};
use sim::{Array, Costs, Noise, Sim};

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

    fn chase(&mut self, chain: &Chain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        self.now().chase(chain, rounds, samples)
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }

    fn note(&mut self, text: &str) {
        self.is_there &= text != "last looks";
    }
}

/// What is said of a first level of 72 entries of which a neighbour takes `taken`, until the end or for ever.
fn found(taken: u32, goes: bool, seed: u64) -> Finding<lookaside_probe::Geometry> {
    let array = |ways| [Array { sets: 1, ways, masks: Vec::new(), replacement: Replacement::Lru }];
    let costs = Costs { hit: 4.0, second: 7.0, walk: 35.0 };
    let noise = Noise { sigma: 0.005, bias: 0.002, outliers: 0.03, interrupts: 0.01, grain: 26.0 };
    let sim = |ways| Sim::new(&array(ways), 20, costs, noise, seed);
    let without = if goes { sim(72) } else { sim(72 - taken) };
    let mut metal = Neighbour { with: sim(72 - taken), without, is_there: true };
    let options = Options { only: Some(Step::L1), seed, ..Options::default() };
    let mut report = probe(&mut metal, &options, &|| None, &mut |_| ());
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
