//! Walk caches: how many entries above the leaf's are at hand, and what a walk takes longer that has to read one.
//!
//! Pages that miss the second-level TLB lie in a growing number of regions of a leaf table each; the lines of all table
//! entries fit the first-level data cache side by side ([`super::thrasher`]), so that nothing else changes with it.

use crate::agreed_range::{agreed_range, SAME_CYCLES};
use crate::bench::Halt;
use crate::finding::Finding;
use crate::hierarchy::capacity_step::{bound, search, CapacityStep};
use crate::hierarchy::known_levels::KnownLevels;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::hierarchy::latency_curve::PAGE;
use crate::hierarchy::stlb_thrash::{StlbThrasher, ThrashPlan, TABLE};
use crate::metal::MemoryArea;
use crate::report::walk_caches::CountCost;
use crate::report::walk_caches::WalkCacheReport;
use crate::report::walk_caches::WalkCacheSize;
use crate::report::walk_caches::WalkCaches;
use lookaside_stats::SplitMix64;

/// Passes at most; two have to agree.
const PASSES: usize = 4;
/// A cost is the middle one of so many pairs of measurements, each through other pages.
const PAIRS: (usize, usize) = (3, 1);
/// And of regions that may fill a set to its last way the lowest of so many: where others hold a way of the set, they
/// do not fit, but each pair has a set of its own. (On Zen 4 the sets hold small pages' translations too.)
const PAIRS_OF_A_SET: (usize, usize) = (6, 0);
/// log2 of the distance of regions that no index is expected to tell apart by lower bits; and another, to see that none
/// does by higher ones.
const APART: [u32; 2] = [13, 17];
/// Regions of one set that are tried at most.
const MOST_WAYS: u32 = 40;
/// Regions that are tried at most: their lines and those of their entries, one each, are half of a small first-level
/// cache.
const MOST: u32 = 256;
/// Regions of one set that differ in one bit besides fit if they take at most this part of a miss; more than the
/// second, and they do not.
const TOLD: (f64, f64) = (0.25, 0.5);
/// Entries that share a line: bits of an index by which lines, and so sets of data caches, are not told apart.
const A_LINE: u32 = 3;
/// Entries of the leaf tables' level miss all the time if that costs at least this part of what it can.
const SURELY: f64 = 0.6;
/// Groups of regions of one set each, at most.
const MOST_GROUPS: u32 = 16;
/// Two passes agree on a number within this part of it, or one.
const SAME_COUNT: f64 = 0.1;
/// Regions that all regions of one measurement lie within.
const FAR: u64 = (MOST_WAYS as u64 + 1) << APART[1];
/// Regions start at multiples of so many: those of a table two levels above the leaf's.
const ALIGNED: u64 = TABLE * TABLE;

/// Finds them.
pub fn walk_caches(bench: &mut LatencyBench<'_>, known: KnownLevels<'_>) -> Result<WalkCaches, Halt> {
    let thrasher = match StlbThrasher::new(known) {
        Ok(thrasher) => thrasher,
        Err(reason) => return Ok(WalkCaches::nothing(&reason)),
    };
    let room = bench.metal().area_bytes(MemoryArea::Sparse) / PAGE / TABLE;
    if room < FAR + ALIGNED {
        return Ok(WalkCaches::nothing("needs more addresses for pages that share a frame"));
    }
    let mut passes: Vec<WalkCachePass> = Vec::new();
    let mut found = WalkCaches::nothing("no pass was made");
    for _ in 0..PASSES {
        passes.push(WalkCachePass::make(bench, &thrasher, room)?);
        found = agreed(&passes);
        if passes.len() > 1 && found.levels.iter().all(|level| settled(level, &passes)) {
            break;
        }
    }
    Ok(found)
}

/// What the passes agree on.
fn agreed(passes: &[WalkCachePass]) -> WalkCaches {
    let directory = passes.iter().map(|pass| (pass.directory(), vec![pass.run.1.clone(), pass.rows[0].1.clone()]));
    let above = passes.iter().map(|pass| (pass.above(), vec![pass.above.1.clone()]));
    WalkCaches { levels: vec![level(2, directory.collect()), level(3, above.collect())] }
}

type SizeProposal = Result<(WalkCacheSize, f64), String>;

fn level(table_level: u32, passes: Vec<(SizeProposal, Vec<Vec<CountCost>>)>) -> WalkCacheReport {
    let said: Vec<String> = passes
        .iter()
        .map(|(proposal, _)| match proposal {
            Ok((held, cycles)) => format!("pass: {}, {cycles:.1} cycles a miss", held),
            Err(reason) => format!("pass: {reason}"),
        })
        .collect();
    let proposals: Vec<(WalkCacheSize, f64)> =
        passes.iter().filter_map(|(proposal, _)| proposal.clone().ok()).collect();
    let pairs = proposals.iter().enumerate().flat_map(|(i, a)| proposals[..i].iter().map(move |b| (a, b)));
    let both = pairs.filter_map(|(a, b)| a.0.like(&b.0)).next();
    let curves = passes.iter().flat_map(|(_, curves)| curves.clone()).collect();
    let Some(held) = both else {
        let last = passes.last().and_then(|(proposal, _)| proposal.as_ref().err());
        let reason = match last {
            Some(reason) if proposals.is_empty() => reason.clone(),
            _ => "no two passes agree".to_string(),
        };
        let entries = Finding::NotDetermined { reason: reason.clone(), evidence: said, asked: true };
        let (miss_cycles, passes_differ) = (Finding::not_determined(reason), !proposals.is_empty());
        return WalkCacheReport { table_level, entries, miss_cycles, passes_differ, curves };
    };
    let like = proposals.iter().filter(|(other, _)| other.like(&held).is_some());
    let cycles: Vec<f64> = like.map(|(_, cycles)| *cycles).collect();
    let miss_cycles = match agreed_range(&cycles, SAME_CYCLES) {
        Some(seen) => Finding::confirmed(seen, vec![format!("{cycles:.1?} cycles by pass")]),
        None => Finding::not_determined(format!("no two passes agree: {cycles:.1?} cycles")),
    };
    let entries = Finding::confirmed(held, said);
    WalkCacheReport { table_level, entries, miss_cycles, passes_differ: false, curves }
}

/// Whether more passes would say no more.
fn settled(level: &WalkCacheReport, passes: &[WalkCachePass]) -> bool {
    let none =
        |pass: &WalkCachePass| if level.table_level == 2 { pass.directory().is_err() } else { pass.above().is_err() };
    level.entries.value().is_some() && level.miss_cycles.value().is_some() || passes.iter().all(none)
}

impl WalkCacheSize {
    /// The wider of the two, if they say the same.
    fn like(&self, other: &Self) -> Option<Self> {
        let (low, high) = (self.at_least.min(other.at_least), self.at_least.max(other.at_least));
        let near = f64::from(high - low) <= (SAME_COUNT * f64::from(low)).max(1.0);
        let overlap = self.at_least <= other.at_most && other.at_least <= self.at_most;
        let same = near && overlap && self.shape == other.shape;
        same.then_some(Self { at_least: low, at_most: self.at_most.max(other.at_most), shape: self.shape })
    }
}

/// Why entries above those that point to leaf tables were not looked for, or their step.
type UpperEntries = (Result<Option<CapacityStep>, String>, Vec<CountCost>);

/// One look, with pages of its own.
struct WalkCachePass {
    /// Neighbouring regions: their entries lie side by side.
    run: (Option<CapacityStep>, Vec<CountCost>),
    /// Regions of one set, by the two distances.
    rows: [(Option<CapacityStep>, Vec<CountCost>); 2],
    /// For each bit of a region's number whether entries that differ in it are of different sets; empty = no row was
    /// found.
    bits: Vec<Option<bool>>,
    /// Entries above: why they were not looked for, or the step.
    above: UpperEntries,
}

/// Entries that are surely there, by what misses cost: of so many that take turns, those are at most as many as
/// entries.
fn at_least(rise: &CapacityStep, costs: &[CountCost]) -> u32 {
    let fitting = costs.iter().filter(|cost| cost.count <= rise.fit);
    let hits = fitting.map(|cost| f64::from(cost.count) * (1.0 - (cost.cycles / rise.cycles).max(0.0)));
    hits.fold(0.0, f64::max).round() as u32
}

impl WalkCachePass {
    fn make(bench: &mut LatencyBench<'_>, thrasher: &StlbThrasher, room: u64) -> Result<Self, Halt> {
        let base = bench.rng.below((room - FAR) / ALIGNED) * ALIGNED;
        let near = TableRows { thrasher, base };
        let plan = thrasher.plan(&[base]);
        let fewest = thrasher.fewest(&plan, base).len() as u32;
        let run = search(fewest, MOST, |count| near.cost(bench, PAIRS, count, |rng| row(base, count, 0, rng)))?;
        let mut rows = Vec::new();
        for apart in APART {
            let set = |count, rng: &mut SplitMix64| row(base + rng.below(TABLE), count, apart, rng);
            let cost = |count| near.cost(bench, PAIRS_OF_A_SET, count, |rng| set(count, rng));
            rows.push(search(fewest, MOST_WAYS, cost)?);
        }
        let [one, other] = [rows.remove(0), rows.remove(0)];
        let mut pass = Self { run, rows: [one, other], bits: Vec::new(), above: (Err(String::new()), Vec::new()) };
        if let Some((ways, rise)) = pass.ways() {
            for bit in 0..APART[0] {
                pass.bits.push(bit_selects_set(bench, &near, ways, rise, bit)?);
            }
        }
        pass.above = pass.look_above(bench, &near)?;
        Ok(pass)
    }

    /// Ways, if regions of one set are seen to crowd it, at both distances alike; and what misses cost.
    fn ways(&self) -> Option<(u32, CapacityStep)> {
        let [one, other] = &self.rows;
        let of = |(rise, costs): &(Option<CapacityStep>, Vec<CountCost>)| rise.map(|rise| at_least(&rise, costs));
        let (ways, rise) = (of(one)?, one.0?);
        (ways > 0 && of(other) == Some(ways)).then_some((ways, rise))
    }

    /// Sets, if it is known of each bit whether it tells sets apart.
    fn sets(&self) -> Option<u32> {
        let told: Option<Vec<bool>> = self.bits.iter().copied().collect();
        Some(told.filter(|told| !told.is_empty())?.iter().fold(1, |sets, &tells| if tells { 2 * sets } else { sets }))
    }

    /// What this look says of entries that point to leaf tables.
    fn directory(&self) -> SizeProposal {
        let (run, costs) = &self.run;
        let most = costs.last().map_or(0, |cost| cost.count);
        let (ways, sets) = (self.ways(), self.sets());
        if let Some(run) = run {
            let (low, high) = (at_least(run, costs), run.miss.saturating_sub(1));
            if low == 0 {
                return Err(format!("fewer than {}: fewer regions cannot be walked", run.miss));
            }
            let shaped = |shape| WalkCacheSize { at_least: low, at_most: high, shape };
            let held = match (ways, sets) {
                (Some((ways, _)), _) if ways >= low && ways <= high => shaped(Some((ways, 1))),
                (Some((ways, _)), Some(sets)) if (low..=high).contains(&(ways * sets)) => {
                    WalkCacheSize { at_least: ways * sets, at_most: ways * sets, shape: Some((ways, sets)) }
                }
                _ => shaped(None),
            };
            return Ok((held, run.cycles));
        }
        let seen = format!(
            "a walk costs the same from {} to {most} neighbouring regions of a leaf table each, or differs by less than {:.1} cycles",
            costs.first().map_or(0, |cost| cost.count),
            bound(costs)
        );
        // Regions whose entries' lines meet in a set of the data cache are told apart by bits beyond the line's only.
        let (Some((ways, rise)), Some(sets)) = (ways, sets) else { return Err(seen) };
        let by_entry = self.bits.iter().take(A_LINE as usize).all(|&bit| bit == Some(true));
        let entries = ways * sets;
        if !by_entry || entries < most {
            return Err(seen);
        }
        Ok((WalkCacheSize { at_least: entries, at_most: entries, shape: Some((ways, sets)) }, rise.cycles))
    }

    /// What it says of the entries above those.
    fn above(&self) -> SizeProposal {
        let (found, costs) = &self.above;
        match found.as_ref().map_err(Clone::clone)? {
            Some(rise) if at_least(rise, costs) > 0 => {
                let held = WalkCacheSize {
                    at_least: at_least(rise, costs),
                    at_most: rise.miss.saturating_sub(1),
                    shape: None,
                };
                Ok((held, rise.cycles))
            }
            _ => Err(format!(
                "a walk costs the same from {} to {} regions of a table each, or differs by less than {:.1} cycles",
                costs.first().map_or(0, |cost| cost.count),
                costs.last().map_or(0, |cost| cost.count),
                bound(costs)
            )),
        }
    }

    /// As many regions and lines in a growing number of tables of the level above, entries that point to leaf tables
    /// missing all the time.
    fn look_above(&self, bench: &mut LatencyBench<'_>, near: &TableRows<'_>) -> Result<UpperEntries, Halt> {
        let no = |reason: String| Ok((Err(reason), Vec::new()));
        let Ok((held, cycles)) = self.directory() else {
            return no("needs entries that point to leaf tables to miss".into());
        };
        // Groups of regions of one set, twice as many as it has ways; or twice as many as there are entries.
        let (members, groups) = match (held.shape, &self.run.0) {
            (Some((ways, sets)), _) if sets > 1 => (2 * ways, (MOST * 3 / 4 / (2 * ways)).min(MOST_GROUPS)),
            (_, Some(run)) => (1, 2 * run.miss),
            _ => return no("needs entries that point to leaf tables to miss".into()),
        };
        let all = members * groups;
        if groups == 0 || all > MOST {
            return no(format!("needs {all} regions to make entries that point to leaf tables miss: too many"));
        }
        let lines = near.thrasher.lines_by_set();
        let regions = |tables: u32, rng: &mut SplitMix64| {
            let mut order: Vec<u64> = (0..u64::from(tables)).collect();
            rng.shuffle(&mut order);
            let spread = (TABLE / u64::from(all)).max(1);
            let region = |n: u32| {
                let place = match members {
                    1 => u64::from(n) * spread % TABLE,
                    _ => lines[(n / members) as usize % lines.len()] << A_LINE,
                };
                near.base + order[(n % tables) as usize] * TABLE + place
            };
            (0..all).map(region).collect::<Vec<u64>>()
        };
        let surely = near.cost(bench, PAIRS, members, |rng| regions(members, rng))?;
        if surely.is_none_or(|cost| cost.cycles < SURELY * cycles) {
            return no("entries that point to leaf tables do not miss all the time".into());
        }
        let found = search(members, all, |tables| {
            cost(bench, PAIRS, near.thrasher, tables, |rng| regions(tables, rng), |_, rng| regions(members, rng))
        })?;
        Ok((Ok(found.0), found.1))
    }
}

/// `count` regions, `1 << apart` from one to the next, in random order.
fn row(first: u64, count: u32, apart: u32, rng: &mut SplitMix64) -> Vec<u64> {
    let mut regions: Vec<u64> = (0..u64::from(count)).map(|i| first + (i << apart)).collect();
    rng.shuffle(&mut regions);
    regions
}

/// Regions beside few neighbouring ones.
struct TableRows<'a> {
    thrasher: &'a StlbThrasher,
    base: u64,
}

impl TableRows<'_> {
    /// What walks through these regions cost more than through the fewest neighbours, in core cycles a step.
    fn cost(
        &self,
        bench: &mut LatencyBench<'_>,
        pairs: (usize, usize),
        count: u32,
        regions: impl Fn(&mut SplitMix64) -> Vec<u64>,
    ) -> Result<Option<CountCost>, Halt> {
        let fewest = |plan: &ThrashPlan, _: &mut SplitMix64| self.thrasher.fewest(plan, self.base);
        cost(bench, pairs, self.thrasher, count, regions, fewest)
    }
}

/// What walks through some regions cost more than through others, in core cycles a step.
fn cost(
    bench: &mut LatencyBench<'_>,
    (pairs, taken): (usize, usize),
    thrasher: &StlbThrasher,
    count: u32,
    regions: impl Fn(&mut SplitMix64) -> Vec<u64>,
    others: impl Fn(&ThrashPlan, &mut SplitMix64) -> Vec<u64>,
) -> Result<Option<CountCost>, Halt> {
    let mut cycles = Vec::new();
    for _ in 0..pairs {
        let regions = regions(&mut bench.rng);
        let plan = thrasher.plan(&regions);
        let others = others(&plan, &mut bench.rng);
        let circles = [regions, others].map(|regions| thrasher.circle(&regions, &plan, &mut bench.rng));
        let [Some(one), Some(other)] = circles else { return Ok(None) };
        cycles.push(bench.cycles(MemoryArea::Sparse, &one)? - bench.cycles(MemoryArea::Sparse, &other)?);
    }
    cycles.sort_by(f64::total_cmp);
    let spread = (cycles[taken + 1] - cycles[taken.saturating_sub(1)]) / 2.0;
    Ok(Some(CountCost { count, cycles: cycles[taken], spread }))
}

/// Whether entries that differ in a bit are of different sets: twice as many regions as fit one, every other with that
/// bit besides.
fn bit_selects_set(
    bench: &mut LatencyBench<'_>,
    near: &TableRows<'_>,
    ways: u32,
    rise: CapacityStep,
    bit: u32,
) -> Result<Option<bool>, Halt> {
    let regions = |rng: &mut SplitMix64| {
        let first = near.base + (rng.below(TABLE) & !(1 << bit));
        let region = |i: u64| first + (i << APART[0]) + ((i & 1) << bit);
        let mut regions: Vec<u64> = (0..2 * u64::from(ways)).map(region).collect();
        rng.shuffle(&mut regions);
        regions
    };
    let cost = near.cost(bench, PAIRS_OF_A_SET, 2 * ways, regions)?;
    Ok(match cost.map(|cost| cost.cycles / rise.cycles) {
        Some(part) if part <= TOLD.0 => Some(true),
        Some(part) if part >= TOLD.1 => Some(false),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_miss_costs_is_asked_of_the_passes_that_agree_on_entries() {
        let pass = |entries, cycles| {
            let held = WalkCacheSize { at_least: entries, at_most: entries, shape: None };
            (Ok((held, cycles)), Vec::new())
        };
        let found = level(3, vec![pass(32, 10.0), pass(60, 30.0), pass(32, 30.0)]);
        assert_eq!(found.entries.value().map(|held| held.at_least), Some(32));
        assert!(found.miss_cycles.value().is_none(), "{found:?}");
        let found = level(3, vec![pass(32, 10.0), pass(60, 30.0), pass(32, 10.2)]);
        assert_eq!(found.miss_cycles.value().map(|seen| (seen.low, seen.high)), Some((10.0, 10.2)));
    }

    #[test]
    fn only_passes_that_found_different_numbers_call_for_another_attempt() {
        let pass =
            |entries| (Ok((WalkCacheSize { at_least: entries, at_most: entries, shape: None }, 10.0)), Vec::new());
        let none = || (Err("a walk costs the same".to_string()), Vec::new());
        let is_whole = |passes| {
            let levels = vec![level(2, passes), level(3, vec![none()])];
            crate::ProbeReport { walk_caches: Some(WalkCaches { levels }), ..crate::ProbeReport::default() }.is_whole()
        };
        assert!(is_whole(vec![pass(32), pass(32)]));
        assert!(is_whole(vec![none(), none()]));
        assert!(!is_whole(vec![pass(32), pass(60)]));
        assert!(!is_whole(vec![pass(32), none()]));
    }
}
