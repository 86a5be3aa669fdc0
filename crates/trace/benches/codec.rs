//! Speed of the native format in accesses a second, and its size in bytes a recorded access
//! (printed once a pattern). One core. Set `LOOKASIDE_BENCH_TRACE` to a `.lkt` file to have that measured too.

use criterion::{Criterion, Throughput};
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Kind, NativeReader, Source, TraceInfo, TraceWriter};

/// Accesses of a made pattern: 64 chunks.
const ACCESSES: usize = 1 << 22;

/// Zipf ranks from 0 by Gray's method ("Quickly generating billion-record synthetic databases", 1994).
struct Zipf {
    n: f64,
    theta: f64,
    zeta_n: f64,
    eta: f64,
}

impl Zipf {
    fn new(n: u64, theta: f64) -> Self {
        let zeta = |k: u64| (1..=k).map(|i| (i as f64).powf(-theta)).sum::<f64>();
        let zeta_n = zeta(n);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - zeta(2) / zeta_n);
        Zipf { n: n as f64, theta, zeta_n, eta }
    }

    fn draw(&self, rng: &mut SplitMix64) -> u64 {
        let u = rng.unit();
        let uz = u * self.zeta_n;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        ((self.n * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - self.theta))) as u64).min(self.n as u64 - 1)
    }
}

fn block(mut access: impl FnMut(usize, &mut SplitMix64) -> u64) -> Block {
    let mut rng = SplitMix64::new(1);
    let mut b = Block { process: 1, thread: 1, ..Block::default() };
    for i in 0..ACCESSES {
        let a = access(i, &mut rng);
        b.push(if rng.below(4) == 0 { Kind::Store } else { Kind::Load }, a);
    }
    b
}

/// Like a program with a stack, a hash table, an array that is streamed over and a list that is
/// followed in a fixed order, with instruction addresses, sizes and left-out repeats.
fn mixed() -> Block {
    let mut rng = SplitMix64::new(2);
    let mut b = Block { process: 1, thread: 1, ..Block::default() };
    let list: Vec<u64> = (0..5000).map(|_| 0x5555_0000_0000 + rng.below(1 << 22) * 16).collect();
    let (mut stream, mut at) = (0u64, 0);
    while b.len() < ACCESSES {
        let round = b.len() as u64;
        let mut access = |kind, addr, site: u64, repeat| {
            b.push(kind, addr);
            b.size.push(8);
            b.ip.push(0x40_1000 + site * 5);
            b.repeat.push(repeat);
        };
        for i in 0..4 {
            access(Kind::Store, 0x7ffc_0000_0000 - i * 8, i, 2);
        }
        access(Kind::Load, 0x7f00_0000_0000 + rng.below(1 << 28) / 8 * 8, 5, 0);
        for _ in 0..rng.below(6) {
            stream += 64;
            access(Kind::Load, 0x7e00_0000_0000 + stream, 6, rng.below(9) as u32);
            access(Kind::Store, 0x7d00_0000_0000 + stream, 7, 7);
        }
        for _ in 0..3 {
            at = (at + 1) % list.len();
            access(Kind::Load, list[at], 8 + round % 2, 1);
        }
    }
    b
}

/// Random loads in a loop, with a fetch of each instruction between them.
fn between_fetches(loop_length: usize) -> Block {
    let mut rng = SplitMix64::new(3);
    let mut b = Block { process: 1, thread: 1, ..Block::default() };
    for i in 0..ACCESSES / 2 {
        let ip = 0x40_1000 + (i % loop_length) as u64 * 5;
        for (kind, addr) in [(Kind::Fetch, ip), (Kind::Load, 0x7f00_0000_0000 + rng.below(1 << 28) / 8 * 8)] {
            b.push(kind, addr);
            b.ip.push(ip);
        }
    }
    b
}

fn write(b: &Block) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = TraceWriter::new(&mut out, &TraceInfo::default()).expect("memory is enough");
    w.write(b).and_then(|()| w.finish()).expect("memory is enough");
    out
}

fn read(file: &[u8]) -> u64 {
    let mut r = NativeReader::new(file, "memory").expect("just written");
    let mut b = Block::default();
    let mut sum = 0;
    while r.next_block(&mut b).expect("just written") {
        sum += b.addr.len() as u64 + b.addr[0];
    }
    sum
}

fn codec(c: &mut Criterion) {
    let zipf = Zipf::new(1 << 20, 0.99);
    // A multiplication by an odd number spreads the ranks over the pages.
    let spread = |rank: u64| rank.wrapping_mul(0x9e37_79b1) & 0xf_ffff;
    let patterns = [
        ("uniform_65536_pages", block(|_, r| 0x7f00_0000_0000 + r.below(65536) * 4096)),
        ("zipf_1m_pages", block(|_, r| 0x7f00_0000_0000 + spread(zipf.draw(r)) * 4096)),
        ("stride_64_bytes", block(|i, _| 0x7f00_0000_0000 + i as u64 * 64)),
        ("mixed", mixed()),
        ("between_fetches", between_fetches(5)),
    ];
    for (name, b) in &patterns {
        let file = write(b);
        println!("{name}: {:.3} bytes an access", file.len() as f64 / b.len() as f64);
        let mut group = c.benchmark_group(*name);
        group.throughput(Throughput::Elements(b.len() as u64)).sample_size(10);
        group.bench_function("decode", |bench| bench.iter(|| read(&file)));
        group.bench_function("encode", |bench| bench.iter(|| write(b)));
        group.finish();
    }
    if let Some(path) = std::env::var_os("LOOKASIDE_BENCH_TRACE") {
        let file = std::fs::read(path).expect("LOOKASIDE_BENCH_TRACE names a readable file");
        let mut r = NativeReader::new(&file[..], "trace").expect("LOOKASIDE_BENCH_TRACE is a native trace");
        let mut b = Block::default();
        let (mut recorded, mut all) = (0, 0);
        while r.next_block(&mut b).expect("readable") {
            recorded += b.len() as u64;
            all += b.accesses();
        }
        let bytes = file.len() as f64;
        println!(
            "trace: {:.3} bytes a recorded access, {:.3} with repeats",
            bytes / recorded as f64,
            bytes / all as f64
        );
        let mut group = c.benchmark_group("trace");
        group.throughput(Throughput::Elements(recorded)).sample_size(10);
        group.bench_function("decode", |bench| bench.iter(|| read(&file)));
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    codec(&mut criterion);
    criterion.final_summary();
}
