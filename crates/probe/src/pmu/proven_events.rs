//! Hardware counters, where there are some: each is opened, then proven on chains whose misses are known, and only then
//! asked about what timing found.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bench::{ChainBench, Halt};
use crate::finding::Finding;
use crate::gf2;
use crate::metal::MetalError;
use crate::pmu::events::CountedMisses;
use crate::pmu::events::PmuEvent;
use crate::tlb::geometry::Geometry;
use crate::tlb::level_meter::LevelMeter;
use crate::tlb::near_vectors::random_vectors;

/// Accesses that a count is taken over, at least.
const ACCESSES: usize = 1 << 16;
/// Pages of the chain that nothing can hold, where the second level is not known: four times the largest that is known.
const FAR_PAGES: usize = 1 << 15;
/// A chain of so many times the entries misses on three of four accesses at least, whatever the policy: a circle of n
/// pages keeps at most as many as there are entries.
const CROWD: usize = 4;
/// Counts of a thousand accesses that stand for "none": interrupts and the first round miss.
const NONE_PER_KILO_ACCESS: f64 = 20.0;
/// The same for "nearly all": the bound of [`CROWD`], and some more than one an access, since walks are done again.
const ALL_PER_KILO_ACCESS: (f64, f64) = (730.0, 1100.0);
/// Of pages that fit a set, and of one more: a policy that is not LRU, or a foreign page, may cost a miss at times.
const FITS_PER_ROUND: f64 = 0.25;
/// See [`FITS_PER_ROUND`].
const OVERFLOWS_PER_ROUND: f64 = 0.75;

/// An event that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TriedEvent {
    /// Which.
    #[serde(flatten)]
    pub event: PmuEvent,
    /// What it counted on the three chains, if that is what it should.
    pub proof: Finding<CountProof>,
    /// What it counts on sets that timing found, as further evidence.
    pub sets: Vec<CountedSet>,
}

/// Counts for a thousand accesses of chains whose misses are known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CountProof {
    /// Two pages: no misses.
    pub near_per_kilo_access: f64,
    /// Pages that miss the first level and fit the second; `None` where the levels are not known.
    pub middle_per_kilo_access: Option<f64>,
    /// Pages that miss both.
    pub far_per_kilo_access: f64,
}

/// A set as a counter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CountedSet {
    /// 1 or 2.
    pub level: u32,
    /// Ways that timing found.
    pub ways: u32,
    /// Misses of a round through so many pages of one set.
    pub fitting_per_round: f64,
    /// Misses of a round through one page more.
    pub overflowing_per_round: f64,
}

impl CountedSet {
    /// Whether the counter sees what timing saw.
    pub fn confirms(&self) -> bool {
        self.fitting_per_round <= FITS_PER_ROUND && self.overflowing_per_round >= OVERFLOWS_PER_ROUND
    }
}

/// A level that timing found.
pub type MeteredLevel<'a> = Option<(&'a Geometry, &'a LevelMeter)>;

/// Tries all events. Nothing is asked of one that fails its proof.
///
/// # Errors
/// The work is to end.
pub fn try_events(
    bench: &mut ChainBench<'_>,
    events: &[PmuEvent],
    first: MeteredLevel<'_>,
    second: MeteredLevel<'_>,
) -> Result<Vec<TriedEvent>, Halt> {
    let chains = KnownChains::new(bench, first, second);
    let mut tried = Vec::new();
    for event in events {
        bench.check()?;
        let proof = chains.prove(bench, event);
        let mut sets = Vec::new();
        if proof.value().is_some() {
            let (level, known) = if event.counts == CountedMisses::Walks { (2, second) } else { (1, first) };
            if let Some((geometry, found)) = known {
                sets.extend(set(bench, event, level, geometry, found).ok());
            }
        }
        tried.push(TriedEvent { event: *event, proof, sets });
    }
    Ok(tried)
}

/// Those that count what they should, or why there are none. Whatever else was tried is its evidence.
pub fn usable_events(tried: Vec<TriedEvent>) -> Finding<Vec<TriedEvent>> {
    let (good, bad): (Vec<TriedEvent>, Vec<TriedEvent>) =
        tried.into_iter().partition(|tried| tried.proof.value().is_some());
    // Most machines refuse all of them for one and the same reason.
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for counted in &bad {
        let name = format!("{} (r{:x})", counted.event.name, counted.event.code);
        reasons.entry(counted.proof.reason().unwrap_or_default()).or_default().push(name);
    }
    if let (true, 1, Some(reason)) = (good.is_empty(), reasons.len(), reasons.keys().next()) {
        return Finding::not_determined(format!("none of {} can be used: {reason}", bad.len()));
    }
    let evidence: Vec<String> =
        reasons.into_iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))).collect();
    if good.is_empty() {
        return Finding::not_determined(format!("none of {} can be used: {}", bad.len(), evidence.join("; ")));
    }
    Finding::confirmed(good, evidence)
}

/// Chains whose misses are known.
struct KnownChains {
    near: Vec<u64>,
    middle: Option<Vec<u64>>,
    far: Option<Vec<u64>>,
}

impl KnownChains {
    fn new(bench: &mut ChainBench<'_>, first: MeteredLevel<'_>, second: MeteredLevel<'_>) -> Self {
        let entries = |known: MeteredLevel<'_>| known.map(|(geometry, _)| geometry.entries as usize);
        let near = neighbours(bench, 2);
        let middle = entries(first).zip(entries(second)).and_then(|(first, second)| {
            let pages = (CROWD * first).next_power_of_two();
            (2 * pages <= second).then(|| neighbours(bench, pages))
        });
        let pages = entries(second).map_or(FAR_PAGES, |entries| (CROWD * entries).next_power_of_two());
        let far = (pages <= bench.max_pages()).then(|| neighbours(bench, pages));
        Self { near, middle, far }
    }

    fn prove(&self, bench: &mut ChainBench<'_>, event: &PmuEvent) -> Finding<CountProof> {
        let Some(far) = &self.far else {
            return Finding::not_determined("too little memory for pages that no TLB holds");
        };
        let counted = (|| {
            let mut count = |pages: &[u64]| per_kilo_access(bench, event, pages);
            Ok::<_, MetalError>(CountProof {
                near_per_kilo_access: count(&self.near)?,
                middle_per_kilo_access: self.middle.as_deref().map(&mut count).transpose()?,
                far_per_kilo_access: count(far)?,
            })
        })();
        match counted {
            Ok(proof) => judge(event, proof),
            Err(error) => Finding::not_determined(error.to_string()),
        }
    }
}

/// Whether the counts are those of the event's name.
fn judge(event: &PmuEvent, proof: CountProof) -> Finding<CountProof> {
    let none = |count: f64| count <= NONE_PER_KILO_ACCESS;
    let all = |count: f64| (ALL_PER_KILO_ACCESS.0..=ALL_PER_KILO_ACCESS.1).contains(&count);
    let most = |count: f64| count <= ALL_PER_KILO_ACCESS.1;
    let CountProof { near_per_kilo_access: near, middle_per_kilo_access: middle, far_per_kilo_access: far } = proof;
    if near == 0.0 && middle.is_none_or(|count| count == 0.0) && far == 0.0 {
        return Finding::not_determined("opens, but does not count");
    }
    let right = none(near)
        && match event.counts {
            CountedMisses::FirstMisses => middle.is_none_or(all) && all(far),
            CountedMisses::Walks => middle.is_none_or(none) && all(far),
            // Without a chain that hits there it cannot be told from an event that counts nothing of ours.
            CountedMisses::SecondHits => middle.is_some_and(all) && most(far) && far < ALL_PER_KILO_ACCESS.0,
        };
    let counts = |count: Option<f64>| count.map_or("–".to_string(), |count| format!("{count:.0}"));
    if right {
        return Finding::confirmed(proof, vec!["counts on chains of known misses".into()]);
    }
    Finding::not_determined(format!(
        "opens, but counts something else: {near:.0}, {} and {far:.0} of a thousand accesses to 2 pages, to pages that \
         miss the first level, and to pages that miss both",
        counts(middle)
    ))
}

/// What it counts of a thousand accesses.
fn per_kilo_access(bench: &mut ChainBench<'_>, event: &PmuEvent, pages: &[u64]) -> Result<f64, MetalError> {
    let rounds = ACCESSES.div_ceil(pages.len());
    let count = bench.count(event, pages, rounds as u32)?;
    Ok(count as f64 * 1000.0 / (rounds * pages.len()) as f64)
}

/// A set's pages, and one more.
fn set(
    bench: &mut ChainBench<'_>,
    event: &PmuEvent,
    number: u32,
    geometry: &Geometry,
    level: &LevelMeter,
) -> Result<CountedSet, MetalError> {
    let kernel = gf2::null_space(&geometry.masks, bench.bits());
    let start = bench.page();
    let more: Vec<u64> =
        random_vectors(bench, &kernel, geometry.ways as usize + 1).into_iter().map(|v| v ^ start).collect();
    let mut per_round = |pages: &[u64]| {
        let fillers = level.above.as_ref().map_or(Vec::new(), |above| above.fillers(pages, bench));
        let round: Vec<u64> = pages.iter().chain(&fillers).copied().collect();
        let rounds = ACCESSES.div_ceil(round.len());
        Ok::<_, MetalError>(bench.count(event, &round, rounds as u32)? as f64 / rounds as f64)
    };
    Ok(CountedSet {
        level: number,
        ways: geometry.ways,
        fitting_per_round: per_round(&more[1..])?,
        overflowing_per_round: per_round(&more)?,
    })
}

/// So many neighbouring pages (a power of two) somewhere, in random order.
fn neighbours(bench: &mut ChainBench<'_>, count: usize) -> Vec<u64> {
    let start = bench.page();
    let mut pages: Vec<u64> = (0..count as u64).map(|page| page ^ start).collect();
    bench.rng.shuffle(&mut pages);
    pages
}
