//! PT-Baker's TLB microbenchmark (Chatzopoulos 2024, sections 4.4.3 and 4.4.5.1) on preset `ryzen-5900x`.

use lookaside_engine::{Detail, Engine, FrameLayout, Setup, WalkModel};
use lookaside_harness::{ModelFindings, ModelResult, Ours, PaperCurve, RowFinding};
use lookaside_machine::{preset, Machine, Ways};
use lookaside_trace::{Block, Source};
use lookaside_workloads::{PatternStream, TlbThrash};

/// Misses begin where this part of the array accesses misses in the steady state. One set of the L2 DTLB that
/// thrashes on its own is 17 of 2049.
const BEGINS: f64 = 0.001;
/// Thrashed: this part misses.
const THRASHED: f64 = 0.99;
/// Walks over the array before counting, so that first touches don't count, and while counting.
const WARM_ROUNDS: u64 = 3;
const ROUNDS: u64 = 4;
/// Largest array of the curves, pages: beyond the last knee of the figure.
const MOST_PLOTTED: u64 = 3072;
/// Largest array that is searched for a knee: all that the L2 DTLB holds with every entry coalesced fourfold, and half
/// more.
const MOST_SEARCHED: u64 = 2048 * 4 * 3 / 2;

pub(super) fn run() -> ModelResult<ModelFindings> {
    let machine = preset("ryzen-5900x")?;
    let alone = ThrashSweep { machine: machine.clone(), frames: FrameLayout::Random, stack: false };
    let stack = ThrashSweep { stack: true, ..alone.clone() };
    let pairs = ThrashSweep { frames: FrameLayout::Fragmented { run_pages: 2 }, ..alone.clone() };
    let contiguous = ThrashSweep { frames: FrameLayout::Contiguous, ..alone.clone() };
    let plain = ThrashSweep { machine: machine.with_overrides(&["tlb.l2d.coalesce_pages=1".into()])?, ..alone.clone() };

    let points = alone.points()?;
    let l1 = alone.first(|p| p.l1 >= THRASHED)?;
    let l1_stack = stack.first(|p| p.l1 >= THRASHED)?;
    let begin = alone.first(|p| p.l2 >= BEGINS)?;
    let full = alone.first(|p| p.l2 >= THRASHED)?;
    let plain_full = plain.first(|p| p.l2 >= THRASHED)?;
    let pairs_begin = pairs.first(|p| p.l2 >= BEGINS)?;
    let contiguous_begin = contiguous.first(|p| p.l2 >= BEGINS)?;
    let (one, two) = (hardware_threads(&machine, 1)?, hardware_threads(&machine, 2)?);

    let value = |pages: u64, note: String| RowFinding { ours: Ours::Value(pages as f64), note };
    let claim = |holds, found: String, note: &str| RowFinding { ours: Ours::Claim { found, holds }, note: note.into() };
    let findings = vec![
        ("table-5.1-l1", entries(&machine, "l1d")?),
        ("table-5.1-l2", entries(&machine, "l2d")?),
        (
            "fig-4.2-l1",
            value(l1, format!("{} pages fit in as many entries exactly; one more makes LRU miss every time", l1 - 1)),
        ),
        (
            "fig-4.2-l1-stack",
            value(l1_stack, "compiled without optimisation the loop keeps its variables on the stack: one entry less".into()),
        ),
        (
            "fig-4.2-l2-begin",
            value(
                begin,
                format!("with runs of 2 contiguous frames it would be {pairs_begin}, with contiguous frames {contiguous_begin}"),
            ),
        ),
        (
            "fig-4.2-l2-full",
            value(
                full,
                "the index skips the 2 page bits within a 16K block, so sets overflow 4 pages at a time: 2048 + 128 sets × 4".into(),
            ),
        ),
        (
            "coalescing-is-why",
            claim(
                plain_full < full && within(full, 2560),
                format!("thrashed in full at {full} pages with coalescing, at {plain_full} without"),
                "",
            ),
        ),
        (
            "coalescing-maps-more",
            claim(
                begin > 2048 + 128 && pairs_begin <= 2560,
                format!("no page is coalesced in the run that fits; contiguous runs of 2 would begin at {pairs_begin} pages"),
                "the set index of a coalescing TLB explains the distance without any contiguity",
            ),
        ),
        (
            "fig-4.6",
            claim(
                two >= 2.0 * one,
                format!("{one:.3} L2 DTLB misses an access by one thread, {two:.3} by two"),
                "",
            ),
        ),
    ];
    let curve = |name: &str, y: fn(&ArrayMisses) -> f64| PaperCurve {
        name: name.into(),
        x: "array, pages of 4 KiB".into(),
        y: "misses per array access".into(),
        points: points.iter().map(|p| (p.pages as f64, y(p))).collect(),
        intervals: Vec::new(),
        labels: Vec::new(),
    };
    Ok(ModelFindings {
        machine: machine.name.clone(),
        assumptions: vec![
            "frames are scattered: no two neighbouring pages have neighbouring frames (fitted on the row where L2 misses begin)"
                .into(),
            "set index of the L2 DTLB: linear over 16K blocks; replacement LRU (preset: AMD publishes neither)".into(),
            format!(
                "steady state: {ROUNDS} walks over the array counted after {WARM_ROUNDS}; misses begin at {BEGINS}, \
                 are complete at {THRASHED} an array access"
            ),
        ],
        findings,
        series: vec![curve("L1 DTLB", |p| p.l1), curve("L2 DTLB", |p| p.l2)],
    })
}

fn within(value: u64, of: u64) -> bool {
    value.abs_diff(of) * 100 <= of
}

/// Algorithm 5 over growing arrays.
#[derive(Clone)]
struct ThrashSweep {
    machine: Machine,
    frames: FrameLayout,
    stack: bool,
}

/// Steady-state misses an array access.
#[derive(Clone, Copy)]
struct ArrayMisses {
    pages: u64,
    l1: f64,
    l2: f64,
}

impl ThrashSweep {
    /// The plotted sizes: every one up to 128 pages, then every 32nd.
    fn points(&self) -> ModelResult<Vec<ArrayMisses>> {
        (1..=MOST_PLOTTED).filter(|p| *p <= 128 || p % 32 == 0).map(|p| self.point(p)).collect()
    }

    fn point(&self, pages: u64) -> ModelResult<ArrayMisses> {
        let thrash = TlbThrash::new(pages, 1);
        let thrash = if self.stack { thrash.with_stack() } else { thrash };
        let mut engine = engine(&self.machine, self.frames)?;
        let mut source = PatternStream::new(thrash, (WARM_ROUNDS + ROUNDS) * pages);
        let mut counts = Vec::new();
        let (mut block, mut steps) = (Block::default(), 0);
        while source.next_block(&mut block)? {
            // The warm-up ends inside a block: cut it there.
            let per_step = if self.stack { 2 } else { 1 };
            let warm = (WARM_ROUNDS * pages).saturating_sub(steps).min(block.len() as u64 / per_step);
            let rest = split(&mut block, (warm * per_step) as usize);
            steps += warm + rest.len() as u64 / per_step;
            engine.run(&block);
            if counts.is_empty() && steps >= WARM_ROUNDS * pages {
                counts.push(engine.outcome());
            }
            engine.run(&rest);
        }
        let (before, after) = (counts.pop().ok_or("the stream is shorter than its warm-up")?, engine.outcome());
        let accesses = (ROUNDS * pages) as f64;
        Ok(ArrayMisses {
            pages,
            l1: (after.data.cost.l1_misses - before.data.cost.l1_misses) as f64 / accesses,
            l2: (after.data.cost.walks - before.data.cost.walks) as f64 / accesses,
        })
    }

    /// The smallest array at which it holds, to the page; bisected, since a larger array never misses less under LRU.
    fn first(&self, holds: impl Fn(&ArrayMisses) -> bool) -> ModelResult<u64> {
        let (mut below, mut at) = (0, MOST_SEARCHED);
        if !holds(&self.point(at)?) {
            return Err(format!("no knee up to {at} pages").into());
        }
        while at - below > 1 {
            let middle = (below + at) / 2;
            if holds(&self.point(middle)?) {
                at = middle;
            } else {
                below = middle;
            }
        }
        Ok(at)
    }
}

fn engine(machine: &Machine, frames: FrameLayout) -> ModelResult<Engine> {
    let mut setup = Setup::new(machine.clone());
    setup.os.frames = frames;
    // Only misses are asked for.
    setup.walks = WalkModel::CountOnly;
    setup.detail = Detail::Totals;
    Ok(Engine::new(setup)?)
}

/// Cuts a block of loads and stores without further columns after `at` accesses; its events stay with the first part.
fn split(block: &mut Block, at: usize) -> Block {
    Block {
        process: block.process,
        thread: block.thread,
        addr: block.addr.split_off(at),
        kind: block.kind.split_off(at),
        ..Block::default()
    }
}

/// Section 4.4.5.1: L2 DTLB misses an access, where `threads` hardware threads of a core walk over the same 2112 pages
/// in turns of 16 accesses.
fn hardware_threads(machine: &Machine, threads: u32) -> ModelResult<f64> {
    const PAGES: u64 = 2048 + 64;
    let mut engine = engine(machine, FrameLayout::Random)?;
    let mut all = Block::default();
    PatternStream::new(TlbThrash::new(PAGES, 1), PAGES).next_block(&mut all)?;
    let mut before = None;
    for round in 0..WARM_ROUNDS + ROUNDS {
        if round == WARM_ROUNDS {
            before = Some(engine.outcome());
        }
        let accesses: Vec<_> = all.kind.iter().copied().zip(all.addr.iter().copied()).collect();
        for turn in accesses.chunks(16) {
            for thread in 1..=threads {
                let mut block = Block { process: 1, thread, ..Block::default() };
                turn.iter().for_each(|&(kind, addr)| block.push(kind, addr));
                engine.run(&block);
            }
        }
    }
    let (before, after) = (before.ok_or("no round was counted")?, engine.outcome());
    let accesses = (ROUNDS * PAGES * u64::from(threads)) as f64;
    Ok((after.data.cost.walks - before.data.cost.walks) as f64 / accesses)
}

fn entries(machine: &Machine, name: &str) -> ModelResult<RowFinding> {
    let tlb = machine.tlbs.iter().find(|t| t.name == name).ok_or("the preset has lost a TLB")?;
    let ways = match tlb.ways {
        Ways::Count(n) => format!("{n} ways"),
        Ways::Full(_) => "fully associative".into(),
    };
    Ok(RowFinding { ours: Ours::Value(f64::from(tlb.entries)), note: ways })
}
