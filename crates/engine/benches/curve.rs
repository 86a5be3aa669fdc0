#![allow(missing_docs)] // criterion_group makes an undocumented function.
//! Speed of the whole miss curve: fully associative and 12 numbers of sets, in one pass.

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use lookaside_engine::curve::CurveBuilder;
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Kind};

const ACCESSES: u64 = 4_000_000;

fn blocks(mut page: impl FnMut(u64) -> u64) -> Vec<Block> {
    let mut blocks = Vec::new();
    for start in (0..ACCESSES).step_by(65_536) {
        let mut block = Block::default();
        for i in start..(start + 65_536).min(ACCESSES) {
            block.push(Kind::Load, page(i));
        }
        blocks.push(block);
    }
    blocks
}

fn curve(c: &mut Criterion) {
    let mut group = c.benchmark_group("curve");
    group.throughput(Throughput::Elements(ACCESSES)).sample_size(10);
    let mut rng = SplitMix64::new(1);
    let uniform = blocks(|_| (rng.next_u64() >> 48) << 12);
    let mut rng = SplitMix64::new(2);
    // Log-uniform over a million pages: much like zipf of exponent 1.
    let skewed = blocks(|_| ((rng.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0 * 20.0).exp2() as u64 * 4096);
    let stride = blocks(|i| i * 64);
    for (name, blocks) in
        [("uniform 65,536 pages", uniform), ("log-uniform 1 M pages", skewed), ("64-byte stride", stride)]
    {
        // The pages are known and the timeline is in its steady state before the clock starts.
        let mut warm = CurveBuilder::new();
        blocks.iter().for_each(|block| warm.run(block));
        group.bench_function(name, |b| {
            b.iter(|| blocks.iter().for_each(|block| warm.run(block)));
        });
    }
    group.finish();
}

criterion_group!(benches, curve);
criterion_main!(benches);
