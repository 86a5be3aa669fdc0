//! Records what this machine's times of chains are off by, for the made-up machines of the tests.
//!
//! ```console
//! $ cargo run --release -p lookaside-probe --example record_noise > crates/probe/tests/noise/NAME.txt
//! ```
//!
//! The probe is run first. Then chains of four kinds are timed as it times them: of pages that the first level holds,
//! that the second holds, of one set of the second, which all miss, and of so many that few hit. Each time is given in
//! ten-thousandths of what its chain takes undisturbed (the lower quartile of all its times) more than that; and for
//! each chain how far that is from the median of its kind. Then a chain of pages that the second level holds is walked
//! round by round, and a round that takes much longer is taken for an interruption: how many there are in a second of
//! running, and how many walks more the next round needs at most (what else slows it counts as walks too).

use std::time::{Duration, Instant};

use lookaside_machine::PageSize;
use lookaside_probe::{gf2, probe, ChainAccess, HostMachine, Metal, PageChain, ProbeOptions};
use lookaside_stats::{median, quantile, SplitMix64};

/// Steps of a sample, at least; as in the probe.
const STEPS: usize = 4096;
/// Names of the kinds, and pages.
const KINDS: [(&str, usize); 4] = [("first", 32), ("second", 192), ("set", 192), ("many", 8192)];
/// Chains of each kind.
const CHAINS: usize = 12;
/// Times that each chain is come back to.
const VISITS: usize = 3;
/// Samples running.
const SAMPLES: usize = 8;
/// Bits of the page numbers: near pages.
const BITS: u32 = 16;
/// Pages of the chain that is watched for interruptions.
const WATCHED: usize = 1024;
/// How long it is watched.
const WATCH: Duration = Duration::from_secs(2);
/// Interruptions that are written down.
const INTERRUPTIONS: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut host = HostMachine::new(256 << 20)?;
    let mut rng = SplitMix64::new(1);
    let report =
        probe(&mut host, &ProbeOptions { quick: true, seed: 1, ..ProbeOptions::default() }, &|| None, &mut |_| ());
    let second =
        report.levels.get(1).and_then(|level| level.geometry.value()).ok_or("the second level is not known")?;
    let one_set = gf2::near_first(&gf2::null_space(&second.masks, host.page_bits(PageSize::K4)));
    eprintln!("second level: {} entries in {} sets", second.entries, second.sets);
    println!("# Times of chains, recorded by the example record_noise of lookaside-probe; numbers as it describes.");
    let ticks_per_second = host.ticks_per_second().ok_or("the timer's rate is not known")?;
    println!("ticks_per_second {ticks_per_second:.0}");
    let mut grain = u64::MAX;
    let mut steps = Vec::new();
    for (name, pages) in KINDS {
        // Different pages, at random from the nearest.
        let basis = if name == "set" { one_set.clone() } else { (0..BITS).map(|bit| 1 << bit).collect() };
        let near = basis[..(2 * pages).next_power_of_two().ilog2() as usize + 1].to_vec();
        let mut chain = || {
            let mut pages_of = gf2::span(&near);
            rng.shuffle(&mut pages_of);
            pages_of.truncate(pages);
            pages_of
        };
        let chains: Vec<Vec<u64>> = (0..CHAINS).map(|_| chain()).collect();
        let rounds = STEPS.div_ceil(pages) as u32;
        let mut times: Vec<Vec<Vec<f64>>> = vec![Vec::new(); CHAINS];
        for _ in 0..VISITS {
            for (chain, pages) in chains.iter().enumerate() {
                let chain_of = PageChain { size: PageSize::K4, touch: ChainAccess::Load, pages };
                let ticks = host.chase(&chain_of, rounds, SAMPLES)?;
                for ticks in &ticks {
                    grain = common(grain, (ticks * f64::from(rounds)).round() as u64);
                }
                times[chain].push(ticks);
            }
        }
        let calm: Vec<f64> = times.iter().map(|visits| quantile(visits.concat(), 0.25).expect("visits")).collect();
        let middle = median(&calm).expect("chains");
        steps.push(middle / pages as f64 / ticks_per_second * 1e9);
        print_list(&format!("chains {name}"), calm.iter().map(|calm| share(*calm, middle)));
        // In the order of time.
        for visit in 0..VISITS {
            for (visits, calm) in times.iter().zip(&calm) {
                print_list(&format!("times {name}"), visits[visit].iter().map(|ticks| share(*ticks, *calm)));
            }
        }
    }
    println!("grain {}", if grain == u64::MAX { 1 } else { grain });
    let (count, walks) = interruptions(&mut rng, steps[2] - steps[1]);
    println!("interruptions_per_second {:.0}", count as f64 / WATCH.as_secs_f64());
    print_list("lost", walks.into_iter().take(INTERRUPTIONS));
    Ok(())
}

/// Interruptions of a chain, and the walks more in the round after each, at `walk_ns` each.
fn interruptions(rng: &mut SplitMix64, walk_ns: f64) -> (usize, Vec<i64>) {
    // One word in each page, each at another line; a number there names the next.
    let at = |page: usize| page * 512 + page % 64 * 8;
    let mut order: Vec<usize> = (0..WATCHED).collect();
    rng.shuffle(&mut order);
    let mut words = vec![0usize; 512 * (WATCHED + 1)];
    for (i, &page) in order.iter().enumerate() {
        words[at(page)] = at(order[(i + 1) % WATCHED]);
    }
    let mut place = at(order[0]);
    let mut round = || {
        let start = Instant::now();
        for _ in 0..WATCHED {
            place = words[place];
        }
        std::hint::black_box(place);
        start.elapsed().as_nanos() as f64
    };
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < WATCH {
        times.push(round());
    }
    let calm = median(&times).expect("rounds");
    let long = times.windows(2).filter(|two| two[0] > 1.5 * calm);
    let walks: Vec<i64> = long.map(|two| ((two[1] - calm) / walk_ns).round().max(0.0) as i64).collect();
    (walks.len(), walks)
}

fn share(ticks: f64, of: f64) -> i64 {
    ((ticks / of - 1.0) * 1e4).round() as i64
}

/// The greatest common divisor.
fn common(a: u64, b: u64) -> u64 {
    match (a, b) {
        (u64::MAX, b) => b,
        (a, 0) => a,
        (a, b) => common(b, a % b),
    }
}

fn print_list(name: &str, list: impl Iterator<Item = i64>) {
    println!("{name} {}", list.map(|number| number.to_string()).collect::<Vec<_>>().join(" "));
}
