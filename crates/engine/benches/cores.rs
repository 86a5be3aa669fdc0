//! Accesses a second of one, two and four simulated cores in all, each with a thread and TLBs of its own, from decoded
//! blocks in memory.

#![allow(missing_docs)] // criterion_group! makes a public function without docs.

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use lookaside_engine::{Detail, Engine, Setup, WalkModel};
use lookaside_machine::preset;
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Kind};

/// Accesses of a pass, of all cores together.
const ACCESSES: usize = 1 << 20;
/// Accesses of a core before the next one's turn: as a recorder's frames have them, and finely.
const TURNS: [usize; 2] = [1 << 16, 1 << 12];
const CORES: [u32; 3] = [1, 2, 4];

/// Each core's accesses: to all of 4,096 pages alike, or along a few streams that now and then jump, as compiled
/// code's.
fn addresses(pattern: &str, core: usize, count: usize) -> Vec<u64> {
    let mut rng = SplitMix64::new(core as u64 + 1);
    let mut below = move |bound: u64| ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64;
    let mut at = [1u64 << 20, 1 << 21, 1 << 22, 1 << 23];
    let mut next = move || match pattern {
        "uniform-4Ki-pages" => below(4096) << 12 | below(64) << 6,
        _ => {
            let stream = below(4) as usize;
            at[stream] += if below(256) == 0 { below(512) << 12 } else { 8 };
            at[stream] & ((1 << 30) - 1)
        }
    };
    (0..count).map(|_| next() + (1 << 40)).collect()
}

/// The cores' accesses in turns.
fn blocks(pattern: &str, cores: usize, turn: usize) -> Vec<Block> {
    let each: Vec<Vec<u64>> = (0..cores).map(|core| addresses(pattern, core, ACCESSES / cores)).collect();
    let block = |core: usize, addr: &[u64]| Block {
        process: 1,
        thread: core as u32 + 1,
        addr: addr.to_vec(),
        kind: vec![Kind::Load; addr.len()],
        ..Block::default()
    };
    let starts = (0..ACCESSES / cores).step_by(turn);
    let of = |start: usize| {
        let end = (start + turn).min(ACCESSES / cores);
        each.iter().enumerate().map(move |(core, addr)| block(core, &addr[start..end])).collect::<Vec<_>>()
    };
    starts.flat_map(of).collect()
}

fn cores(c: &mut Criterion) {
    for (machine, walks, word) in
        [("skylake", WalkModel::CountOnly, "no walks"), ("skylake", WalkModel::Full, "walks and caches")]
    {
        for pattern in ["uniform-4Ki-pages", "local"] {
            for turn in TURNS {
                let mut group = c.benchmark_group(format!("{machine}, {word}, {pattern}, turns of {turn}"));
                group.throughput(Throughput::Elements(ACCESSES as u64));
                for cores in CORES {
                    let mut machine = preset(machine).expect("a preset");
                    (machine.topology.sockets, machine.topology.cores_per_socket) = (1, cores);
                    machine.topology.threads_per_core = 1;
                    let setup = Setup { walks: walks.clone(), detail: Detail::Totals, ..Setup::new(machine) };
                    let mut engine = Engine::new(setup).expect("a good setup");
                    let blocks = blocks(pattern, cores as usize, turn);
                    blocks.iter().for_each(|block| engine.run(block));
                    group.bench_function(format!("{cores} cores"), |b| {
                        b.iter(|| blocks.iter().for_each(|block| engine.run(block)));
                    });
                    assert!(engine.outcome().data.accesses > 0);
                }
                group.finish();
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = cores
}
criterion_main!(benches);
