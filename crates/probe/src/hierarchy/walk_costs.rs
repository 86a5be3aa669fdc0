//! What translations cost by where their table entries lie, with data that are always hot: pages that share one frame.

use std::collections::BTreeMap;

use crate::agreed_range::{agreed_range, MeasuredRange, SAME_CYCLES};
use crate::bench::Halt;
use crate::finding::Finding;
use crate::gf2;
use crate::hierarchy::known_levels::KnownLevels;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::metal::MemoryArea;
use crate::report::caches::{CacheReports, UNEVEN};
use crate::report::walks::PteLocation;
use crate::report::walks::WalkCosts;
use crate::report::walks::WalkReport;

/// log2 of the bytes of a small page.
const PAGE_SHIFT: u32 = 12;
/// Bytes of a page-table entry.
const ENTRY: u64 = 8;
/// Entries of a table of leaf entries.
const TABLE: u64 = 512;
/// Tables of a window: their leaf entries are walked in random order before the next window's, so that the entries
/// above them are always at hand.
const WINDOW: u64 = 16;
/// Times as many pages as entries put out all of them, whatever the policy: of random replacement, 2 in 100 stay.
const FLOOD: u64 = 4;
/// Times as many pages as entries put out nearly all of the first level, with lines that its data cache still holds.
const SPREAD: u64 = 3;
/// Pages of which one is walked: more than any TLB is known to coalesce.
const APART: u64 = 32;
/// Pages whose translations are always hot.
const HOT: u64 = 8;
/// Pages of a stretch out of which the one is taken whose set in the second level has fewest.
const CHOICE: usize = 4;
/// Pages beside each other whose entries share lines, in the chain that crowds few sets: two lines of eight entries.
const BESIDE: u64 = 16;
/// Table lines in a circle miss a cache if they are so many times the bytes of which half miss, and hit one
/// if they are at most this part of the bytes that surely fit.
const BEYOND: f64 = 1.6;
/// See [`BEYOND`].
const WITHIN: f64 = 0.9;
/// An entry is in a cache if reading it takes at most so many times the cache's latency.
const TWICE: f64 = 2.0;
/// Pages that crowd a set less take at least this part of what more of them take, if none stays.
const STAY: f64 = 0.93;
/// Passes at most; two have to agree.
const PASSES: usize = 4;
/// Table lines in memory are so many times the least footprint that memory served: others may take less of the last
/// cache for a while.
const FAR: u64 = 2;

/// Measures them.
pub fn walks(bench: &mut LatencyBench<'_>, known: KnownLevels<'_>) -> Result<WalkCosts, Halt> {
    let (first, second) = (u64::from(known.first.entries), u64::from(known.second.entries));
    if bench.metal().area_bytes(MemoryArea::Shared) < (2 * FLOOD * second) << PAGE_SHIFT {
        return Ok(WalkCosts::nothing(
            "needs more addresses for pages that share a frame, or more memory for their tables",
        ));
    }
    let (pages, line) = (SPREAD * first, line(known));
    let held = known.caches.levels.first().and_then(|level| level.bytes.value()).map(|bytes| bytes.low);
    let second_level_cycles = if 2 * pages > second {
        Finding::not_determined("the second level is too small beside the first")
    } else if held.is_some_and(|held| (pages * line) as f64 > held) {
        Finding::not_determined(format!("lines of {pages} pages may not fit the first-level data cache"))
    } else {
        passes(bench, |bench| second_level(bench, pages, line, &known.second.masks))?
    };
    let mut walks = Vec::new();
    for (place, bytes) in places(bench, known) {
        let lines = bytes / line;
        let cycles = match place {
            PteLocation::Cache(1) => crowd(bench, known)?,
            _ => added(bench, |bench| far(bench, lines, FLOOD * second, line))?,
        };
        walks.push(WalkReport { place, table_bytes: bytes, cycles });
    }
    let (base_cycles, first_cache_level) = model(&walks, known.caches);
    for walk in &mut walks {
        implausible(walk, &base_cycles, known.caches);
    }
    Ok(WalkCosts { second_level_cycles, walks, base_cycles, first_cache_level })
}

fn line(known: KnownLevels<'_>) -> u64 {
    known.caches.line_bytes.value().copied().unwrap_or(crate::hierarchy::latency_curve::LINE)
}

/// Bytes of table lines for each place that can be had: well beyond the cache before, and well within its own.
fn places(bench: &mut LatencyBench<'_>, known: KnownLevels<'_>) -> Vec<(PteLocation, u64)> {
    let line = line(known);
    let mut places = Vec::new();
    if let Some(shape) = known.caches.levels.first().and_then(|level| level.shape.value()) {
        let lines = crowd_ways(known, shape.ways) * BESIDE * ENTRY / line;
        places.push((PteLocation::Cache(1), lines * line));
    }
    // Every page misses the second level, even if all entries of a line are used in turn.
    let least = FLOOD * u64::from(known.second.entries) * ENTRY;
    for pair in known.caches.levels.windows(2) {
        let (Some(before), Some(own)) = (pair[0].bytes.value(), pair[1].bytes.value()) else { continue };
        // Walked in a circle, so much more than the cache before holds misses it, and so much less than this one fits.
        let (low, high) = (BEYOND / UNEVEN * before.high, WITHIN * own.low);
        let bytes = ((low * high).sqrt() as u64).max(least) / line * line;
        if bytes as f64 >= low && bytes as f64 <= high {
            places.push((PteLocation::Cache(pair[1].level), bytes));
        }
    }
    // A table has this many lines.
    let lines = TABLE * ENTRY / line;
    let most = (bench.metal().area_bytes(MemoryArea::Shared) >> PAGE_SHIFT) / TABLE * lines * line;
    let memory = known.caches.memory_cycles.value().and(known.caches.memory_from);
    if let Some(far) = memory.map(|from| (FAR * from).max(least) / line * line).filter(|&far| far <= most) {
        places.push((PteLocation::Memory, far));
    }
    places
}

/// Cycles that a chain takes longer a step than one of translations that are always hot, by passes that agree.
fn added(
    bench: &mut LatencyBench<'_>,
    chain: impl Fn(&mut LatencyBench<'_>) -> Vec<u64>,
) -> Result<Finding<MeasuredRange>, Halt> {
    passes(bench, |bench| {
        let start = start(bench);
        let pages = chain(bench);
        let hot: Vec<u64> = (0..HOT).map(|page| (start + page) << PAGE_SHIFT).collect();
        let offsets: Vec<u64> = pages.iter().map(|page| page << PAGE_SHIFT).collect();
        let cycles = bench.cycles(MemoryArea::Shared, &offsets)?;
        Ok(cycles - bench.cycles(MemoryArea::Shared, &hot)?)
    })
}

/// What two passes agree on.
fn passes(
    bench: &mut LatencyBench<'_>,
    pass: impl Fn(&mut LatencyBench<'_>) -> Result<f64, Halt>,
) -> Result<Finding<MeasuredRange>, Halt> {
    let mut seen = Vec::new();
    for _ in 0..PASSES {
        seen.push(pass(bench)?);
        if let Some(span) = agreed_range(&seen, SAME_CYCLES) {
            return Ok(Finding::confirmed(span, vec![format!("{seen:.1?} cycles by pass")]));
        }
    }
    Ok(Finding::NotDetermined {
        reason: "no two passes agree".into(),
        evidence: vec![format!("{seen:.1?} cycles by pass")],
        asked: true,
    })
}

/// A page number at the start of a table.
fn start(bench: &mut LatencyBench<'_>) -> u64 {
    let tables = (bench.metal().area_bytes(MemoryArea::Shared) >> PAGE_SHIFT) / TABLE;
    bench.rng.below(tables) * TABLE
}

/// Cycles that a load takes longer in a walk through so many pages with frames of their own than in one through a few.
fn second_level(bench: &mut LatencyBench<'_>, count: u64, line: u64, masks: &[u64]) -> Result<f64, Halt> {
    let area = MemoryArea::Own { bytes: (count * APART) << PAGE_SHIFT, huge: false };
    let lines = (1 << PAGE_SHIFT) / line;
    let mut offsets = Vec::new();
    let mut load: BTreeMap<u64, u32> = BTreeMap::new();
    for i in 0..count {
        // Not so many in one set that some would miss.
        let draws = [(); CHOICE].map(|()| i * APART + bench.rng.below(APART));
        let set = |page: u64| gf2::apply(masks, page);
        let page = draws.into_iter().min_by_key(|&page| load.get(&set(page)).copied().unwrap_or(0)).unwrap_or(draws[0]);
        *load.entry(set(page)).or_default() += 1;
        offsets.push((page << PAGE_SHIFT) + i % lines * line);
    }
    bench.rng.shuffle(&mut offsets);
    let cycles = bench.cycles(area, &offsets)?;
    let few = offsets.len().min(HOT as usize);
    Ok(cycles - bench.cycles(area, &offsets[..few])?)
}

/// At least `least` pages, whose leaf entries lie in `lines` lines that each come again only after all others.
fn far(bench: &mut LatencyBench<'_>, lines: u64, least: u64, line: u64) -> Vec<u64> {
    let a_line = line / ENTRY;
    let a_table = TABLE / a_line;
    let mut tables: Vec<u64> = (0..lines.div_ceil(a_table)).collect();
    bench.rng.shuffle(&mut tables);
    let mut order = Vec::with_capacity(lines as usize);
    for window in tables.chunks(WINDOW as usize) {
        let from = order.len();
        order.extend(window.iter().flat_map(|table| (0..a_table).map(move |i| (table * a_table + i) * a_line)));
        bench.rng.shuffle(&mut order[from..]);
    }
    order.truncate(lines as usize);
    let rounds = least.div_ceil(lines).clamp(1, a_line);
    (0..rounds).flat_map(|round| order.iter().map(move |page| page + round)).collect()
}

/// Pages of a second-level set that crowd it, as far as lines of their entries fit a set of the first-level cache
/// besides others: a set of the TLB has leaf entries in a quarter of the lines of a table, or fewer.
fn crowd_ways(known: KnownLevels<'_>, cache_ways: u32) -> u64 {
    let ways = u64::from(known.second.ways);
    let lines = TABLE * ENTRY / line(known);
    let index = gf2::reduce(&known.second.masks);
    // Bits of the line's number in its table that pages of one set can differ in.
    let kernel = gf2::null_space(&index, 20);
    let reach: Vec<u64> = kernel.iter().map(|v| v / (line(known) / ENTRY) % lines).collect();
    let sets = 1u64 << gf2::reduce(&reach).len().min(lines.ilog2() as usize);
    (2 * ways).min(sets * u64::from(cache_ways.saturating_sub(2).max(1)))
}

/// Walks whose leaf entries lie in the first-level cache: pages that crowd a few sets of the second-level TLB.
///
/// Of random replacement a fifth of twice as many pages as ways stays, and three in ten of five thirds as many: such
/// walks are mixed with hits, and are not determined. Where the order of use decides nothing stays (of tree-PLRU from
/// some number of pages on), and both take the same.
fn crowd(bench: &mut LatencyBench<'_>, known: KnownLevels<'_>) -> Result<Finding<MeasuredRange>, Halt> {
    let Some(shape) = known.caches.levels.first().and_then(|level| level.shape.value()) else {
        return Ok(Finding::not_determined("the first-level cache is not known"));
    };
    let ways = crowd_ways(known, shape.ways);
    if ways < u64::from(known.second.ways) * 3 / 2 {
        return Ok(Finding::not_determined("entries of pages that crowd a set of the TLB do not fit the cache"));
    }
    let all = crowded(bench, known, ways)?;
    if ways >= FLOOD * u64::from(known.second.ways) {
        return Ok(all);
    }
    let fewer = ways * 5 / 6;
    let some = crowded(bench, known, fewer)?;
    Ok(match (all.value(), some.value()) {
        (Some(seen), Some(other)) if (seen.low + seen.high) * STAY > other.low + other.high => {
            let (seen, other) = ((seen.low + seen.high) / 2.0, (other.low + other.high) / 2.0);
            Finding::not_determined(format!(
                "pages of a crowded set of the second-level TLB stay: {ways} take {seen:.1} cycles each, {fewer} take {other:.1}"
            ))
        }
        (Some(_), None) => some,
        _ => all,
    })
}

/// What pages take of which so many crowd each set.
fn crowded(bench: &mut LatencyBench<'_>, known: KnownLevels<'_>, ways: u64) -> Result<Finding<MeasuredRange>, Halt> {
    let bits = (bench.metal().area_bytes(MemoryArea::Shared) >> PAGE_SHIFT).max(2).ilog2();
    let (line, second) = (line(known), known.second);
    added(bench, |bench| {
        let kernel = gf2::near_first(&gf2::null_space(&second.masks, bits));
        let start = bench.rng.next_u64() & ((1 << bits) - 1) & !(BESIDE - 1);
        // Lines of entries, spread over the lines of their tables: each next one where fewest are.
        let mut load = vec![0u32; (TABLE * ENTRY / line) as usize];
        let at = |v: u64| ((v ^ start) * ENTRY / line) as usize % (TABLE * ENTRY / line) as usize;
        let mut chosen: Vec<u64> = Vec::new();
        let near = kernel.len().min(ways.max(2).ilog2() as usize + 4);
        let mut all = gf2::span(&kernel[..near]);
        bench.rng.shuffle(&mut all);
        for _ in 0..ways {
            let free = all.iter().enumerate().filter(|(_, v)| chosen.iter().all(|c| (*v ^ c) / BESIDE != 0));
            let Some((i, _)) = free.min_by_key(|(_, v)| load[at(**v)]) else { break };
            let v = all.swap_remove(i);
            load[at(v)] += 1;
            chosen.push(v);
        }
        let mut pages: Vec<u64> =
            chosen.iter().flat_map(|v| (0..BESIDE).map(move |beside| v ^ start ^ beside)).collect();
        bench.rng.shuffle(&mut pages);
        pages
    })
}

/// A walk whose entries should be in a shared cache, and that takes far longer than that, is none: others took the
/// cache meanwhile.
fn implausible(walk: &mut WalkReport, base: &Finding<MeasuredRange>, caches: &CacheReports) {
    let PteLocation::Cache(level) = walk.place else { return };
    let latency = caches.levels.get(level as usize - 1).and_then(|level| level.cycles.value());
    let (Some(seen), Some(base), Some(latency)) = (walk.cycles.value(), base.value(), latency) else { return };
    let most = base.high + TWICE * latency.high;
    if seen.high > most {
        let reason = format!(
            "{:.1} cycles is more than entries there take, {most:.1} at most: others took the cache meanwhile",
            seen.high
        );
        walk.cycles = Finding::not_determined(reason);
    }
}

/// What the model says a walk costs: a base, and the leaf entry's latency where it lies, from some level on.
fn model(walks: &[WalkReport], caches: &CacheReports) -> (Finding<MeasuredRange>, Finding<u32>) {
    let middle = |seen: &MeasuredRange| (seen.low + seen.high) / 2.0;
    let walk = |place| walks.iter().find(|walk| walk.place == place).and_then(|walk| walk.cycles.value()).map(middle);
    let latency = |level: u32| caches.levels.get(level as usize - 1).and_then(|level| level.cycles.value()).map(middle);
    let (Some(second), Some(hit)) = (walk(PteLocation::Cache(2)), latency(2)) else {
        let reason = "needs walks with entries in the second-level cache";
        return (Finding::not_determined(reason), Finding::not_determined(reason));
    };
    let base = second - hit;
    let mut bases = vec![base];
    let near = |a: f64, b: f64| (a - b).abs() <= 0.3 * hit;
    let level = match (walk(PteLocation::Cache(1)), latency(1)) {
        (Some(first), Some(fast)) if near(first, base + fast) => {
            bases.push(first - fast);
            Finding::confirmed(1, vec![format!("{first:.1} cycles with entries in the first level, {second:.1} in the second")])
        }
        (Some(first), Some(_)) if near(first, second) => {
            bases.push(first - hit);
            Finding::confirmed(2, vec![format!("{first:.1} cycles with few entries, {second:.1} with more than the first level holds")])
        }
        (Some(first), _) => Finding::not_determined(format!(
            "{first:.1} cycles with entries that the first level holds, {second:.1} with more, is neither reading through the first level nor past it"
        )),
        (None, _) => Finding::not_determined("needs walks with entries in the first-level cache"),
    };
    // What entries further away say of the base is evidence, no more: there the host's tables come to it.
    let others = [(PteLocation::Cache(3), latency(3)), (PteLocation::Memory, caches.memory_cycles.value().map(middle))];
    let mut evidence = vec![format!("{base:.1} by entries in the second-level cache")];
    for (place, latency) in others {
        if let (Some(walk), Some(latency)) = (walk(place), latency) {
            evidence.push(format!("{:.1} by entries in {place}", walk - latency));
        }
    }
    // Where the first level says nothing, bare metal's walks with entries further away bear it out.
    let third = walk(PteLocation::Cache(3)).zip(latency(3)).map(|(walk, latency)| walk - latency);
    bases.extend(third.filter(|&third| bases.len() < 2 && near(third, base)));
    let span = bases.iter().fold(MeasuredRange { low: f64::MAX, high: 0.0, passes: bases.len() }, |span, &base| {
        MeasuredRange { low: span.low.min(base), high: span.high.max(base), ..span }
    });
    if bases.len() < 2 {
        let reason = "entries in the second-level cache alone say so, and those in no other cache";
        return (Finding::NotDetermined { reason: reason.into(), evidence, asked: true }, level);
    }
    if base <= 0.0 {
        return (
            Finding::not_determined(format!("a walk takes {second:.1} cycles, no more than its cache does")),
            level,
        );
    }
    (Finding::confirmed(span, evidence), level)
}
