//! Accesses a second through the engine: patterns × machines, from decoded blocks in memory.

#![allow(missing_docs)] // criterion_group! makes a public function without docs.

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use lookaside_engine::{Detail, Engine, Setup, WalkModel};
use lookaside_machine::{parse, Machine};
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Kind};

/// Accesses a pass: enough that the structures are warm for nearly all of them.
const ACCESSES: usize = 1 << 20;
/// As the native trace's reader gives them.
const BLOCK: usize = 1 << 16;
/// More than the engine gathers before it works: it takes as many as it would by itself.
const USUAL_BATCH: usize = usize::MAX;

/// Two levels as the bare C loop that the issue compares with: 64 entries of 4 ways, 1536 of 12.
const TWO_LEVELS: &str = r#"
name = "two-levels"
clock_mhz = 1000.0
[page_table]
format = "x86-64-4level"
[[tlb]]
name = "l1"
level = 1
serves = ["load", "store"]
page_sizes = ["4K"]
entries = 64
ways = 4
replacement = "lru"
tags = ["asid"]
hit_cycles = 0.0
[[tlb]]
name = "l2"
level = 2
serves = ["load", "store"]
page_sizes = ["4K"]
entries = 1536
ways = 12
replacement = "lru"
tags = ["asid"]
hit_cycles = 7.0
[memory]
cycles = 200.0
"#;

/// Walk caches and data caches of Skylake's sizes.
const WALKS: &str = r#"
[[walk_cache]]
name = "pde"
table_level = 2
entries = 32
ways = 4
replacement = "lru"
[[walk_cache]]
name = "pdpte"
table_level = 3
entries = 4
ways = "full"
replacement = "lru"
[[walk_cache]]
name = "pml4e"
table_level = 4
entries = 2
ways = "full"
replacement = "lru"
[[cache]]
name = "l1d"
level = 1
serves = ["load", "store"]
size = "32K"
ways = 8
hit_cycles = 4.0
[[cache]]
name = "l2c"
level = 2
serves = ["load", "store"]
size = "256K"
ways = 4
hit_cycles = 12.0
[[cache]]
name = "l3c"
level = 3
serves = ["load", "store"]
size = "8M"
ways = 16
hit_cycles = 40.0
"#;

fn machine(text: &str) -> Machine {
    parse(text, "bench").expect("a good machine")
}

/// The machines, each with its walk model.
fn machines() -> Vec<(&'static str, Machine, WalkModel)> {
    let full = TWO_LEVELS.replacen("ways = 4", "ways = \"full\"", 1);
    vec![
        ("two-levels", machine(TWO_LEVELS), WalkModel::CountOnly),
        ("full-first-level", machine(&full), WalkModel::CountOnly),
        ("walks", machine(&format!("{TWO_LEVELS}{WALKS}")), WalkModel::Full),
    ]
}

/// The patterns' addresses.
fn patterns() -> Vec<(&'static str, Vec<u64>)> {
    let mut rng = SplitMix64::new(1);
    let mut page_below = |pages: u64| ((u128::from(rng.next_u64()) * u128::from(pages)) >> 64) as u64;
    let uniform = (0..ACCESSES).map(|_| page_below(65_536) << 12 | page_below(64) << 6).collect();
    let zipf_pages = zipf(1 << 20, 0.99);
    let zipf = (0..ACCESSES).map(|_| zipf_pages(page_below(u64::MAX)) << 12 | page_below(64) << 6).collect();
    let stride = (0..ACCESSES as u64).map(|i| i << 6).collect();
    // Runs of accesses to a few near pages, as compiled code makes: stack, heap, tables.
    let mut at = [1u64 << 20, 1 << 21, 1 << 22, 1 << 23];
    let mixed = (0..ACCESSES)
        .map(|_| {
            let stream = page_below(4) as usize;
            at[stream] += if page_below(256) == 0 { page_below(512) << 12 } else { 8 };
            at[stream] & ((1 << 30) - 1)
        })
        .collect();
    vec![("uniform-64Ki-pages", uniform), ("zipf-0.99-1Mi-pages", zipf), ("stride-64B", stride), ("local", mixed)]
}

/// Ranks by Zipf's law, scattered over the pages: by inverting the distribution's integral (continuous, so
/// close to, not exactly, the discrete law), from 64 random bits.
fn zipf(pages: u64, exponent: f64) -> impl Fn(u64) -> u64 {
    let power = 1.0 - exponent;
    let whole = ((pages + 1) as f64).powf(power) - 1.0;
    move |random| {
        let uniform = random as f64 / u64::MAX as f64;
        let rank = (1.0 + uniform * whole).powf(1.0 / power) as u64 - 1;
        // An odd multiplier permutes the page numbers below a power of two.
        rank.min(pages - 1).wrapping_mul(0x9e37_79b1) & (pages - 1)
    }
}

fn blocks(addresses: &[u64]) -> Vec<Block> {
    let block = |chunk: &[u64]| Block {
        process: 1,
        thread: 1,
        addr: chunk.iter().map(|a| a + (1 << 40)).collect(),
        kind: vec![Kind::Load; chunk.len()],
        ..Block::default()
    };
    addresses.chunks(BLOCK).map(block).collect()
}

fn engine(c: &mut Criterion) {
    for (pattern, addresses) in patterns() {
        let blocks = blocks(&addresses);
        let mut group = c.benchmark_group(pattern);
        group.throughput(Throughput::Elements(ACCESSES as u64));
        for (name, machine, walks) in machines() {
            let ways = [
                ("totals", Detail::Totals, false),
                ("rows", Detail::Rows, false),
                // As on a processor without AVX-512.
                ("totals-plain", Detail::Totals, true),
            ];
            for (word, detail, plainly) in ways {
                let setup = Setup { walks: walks.clone(), detail, ..Setup::new(machine.clone()) };
                let mut engine = Engine::new(setup).expect("a good setup");
                engine.in_batches_of(USUAL_BATCH, plainly);
                blocks.iter().for_each(|block| engine.run(block));
                group.bench_function(format!("{name}/{word}"), |b| {
                    b.iter(|| blocks.iter().for_each(|block| engine.run(block)));
                });
                assert!(engine.outcome().data.accesses > 0);
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = engine
}
criterion_main!(benches);
