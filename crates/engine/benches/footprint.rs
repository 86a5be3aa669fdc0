//! Accesses a second over growing footprints: uniform over 4, 16 and 64 GiB of small pages, and over as many 2 MiB
//! ranges with one page of each.

#![allow(missing_docs)] // criterion_group! makes a public function without docs.

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use lookaside_engine::{Detail, Engine, Setup, WalkModel};
use lookaside_machine::preset;
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Kind};

/// Accesses of a pass.
const ACCESSES: usize = 1 << 20;
/// As the native trace's reader gives them.
const BLOCK: usize = 1 << 14;

/// Accesses to pages `1 << page_shift` apart, of `gib` GiB.
fn blocks(gib: u64, page_shift: u32) -> Vec<Block> {
    let mut rng = SplitMix64::new(gib);
    let pages = gib << (30 - page_shift);
    let mut next = || {
        let page = ((u128::from(rng.next_u64()) * u128::from(pages)) >> 64) as u64;
        (1 << 40) + (page << page_shift) + (rng.next_u64() & 0xfc0)
    };
    let mut block = || Block {
        process: 1,
        thread: 1,
        addr: (0..BLOCK).map(|_| next()).collect(),
        kind: vec![Kind::Load; BLOCK],
        ..Block::default()
    };
    (0..ACCESSES / BLOCK).map(|_| block()).collect()
}

fn footprint(c: &mut Criterion) {
    for (walks, name) in [(WalkModel::CountOnly, "count-only"), (WalkModel::Full, "walks")] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(ACCESSES as u64)).sample_size(10);
        for (pattern, page_shift) in [("dense", 12), ("one-page-of-2MiB", 21)] {
            for gib in [4, 16, 64] {
                let blocks = blocks(gib, page_shift);
                let machine = preset("skylake").expect("a preset");
                let setup = Setup { walks: walks.clone(), detail: Detail::Totals, ..Setup::new(machine) };
                let mut engine = Engine::new(setup).expect("a good setup");
                blocks.iter().for_each(|block| engine.run(block));
                group.bench_function(format!("{pattern}/{gib}GiB"), |b| {
                    b.iter(|| blocks.iter().for_each(|block| engine.run(block)));
                });
            }
        }
    }
}

criterion_group!(benches, footprint);
criterion_main!(benches);
