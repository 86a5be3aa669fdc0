//! Pages in chosen regions of a table of leaf entries, that miss the second-level TLB whatever the regions are: they
//! crowd few of its sets, and the lines of all their table entries fit the first-level data cache side by side.

use std::collections::BTreeMap;

use crate::gf2;
use crate::hierarchy::known_levels::KnownLevels;
use crate::metal::SPARSE_STEP;
use lookaside_stats::SplitMix64;

/// Bytes of a page-table entry, and entries of a table, on every port.
pub(super) const ENTRY: u64 = 8;
/// See [`ENTRY`].
pub(super) const TABLE: u64 = 512;
/// Small pages from one offset of a sparse area to the next.
const PAGES_A_STEP: u64 = SPARSE_STEP >> 12;
/// So many times as many pages as ways crowd a set at least: walked in a circle, most of them miss under every policy.
const LEAST: (u64, u64) = (3, 2);
/// So many times as many pages as the first-level TLB has entries put one another out of it, nearly always.
const FLOOD: u64 = 2;
/// Ways of each set of the data cache that are left for other lines: at least, and where there is a choice.
const OTHERS: (u64, u64) = (2, 3);
/// Regions among which some like others are looked for.
const NEAR: u64 = 4096;
/// Levels of tables above the leaf whose lines are counted.
const UPPER: u32 = 3;
/// Largest part of the first-level data cache that leaf entries take: what times them needs lines too.
const PART: u64 = 2;

/// Chooses such pages.
#[derive(Clone, Debug)]
pub(super) struct StlbThrasher {
    /// Index of the second-level TLB.
    masks: Vec<u64>,
    /// Lines of leaf entries that crowd a set together, and the most for which the data cache has room.
    crowd: (u64, u64),
    /// Pages that put one another out of the first-level TLB.
    flood: u64,
    /// Lines of a table of leaf entries.
    lines: u64,
    /// Numbers of lines whose pages are of the same set as those of line 0.
    same: Vec<u64>,
    /// One line for each set that lines of a table reach.
    sets: Vec<u64>,
    /// Sets and ways of the first-level data cache, in so far as the offset in a page chooses among them.
    cache: (u64, u64),
}

/// How regions crowd sets: of each class of regions, whose pages reach the same sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThrashPlan(BTreeMap<u64, ClassShare>);

/// Sets that a class crowds, and its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClassShare {
    sets: u64,
    pages: u64,
}

/// A region's set, as far as no choice of a line in it can change it, and the line that stands in for line 0.
fn reach(masks: &[u64], lines: u64, region: u64) -> (u64, u64) {
    let own = gf2::apply(masks, region * TABLE);
    let at = |line: u64| own ^ gf2::apply(masks, line * PAGES_A_STEP);
    (0..lines).map(|line| (at(line), line)).min().unwrap_or((own, 0))
}

impl StlbThrasher {
    /// For these levels; else why not.
    pub(super) fn new(known: KnownLevels<'_>) -> Result<Self, String> {
        let line = known.caches.line_bytes.value().copied().ok_or("the line size is not known")?;
        let shape = known.caches.levels.first().and_then(|level| level.shape.value());
        let shape = shape.ok_or("the shape of the first-level data cache is not known")?;
        if line != PAGES_A_STEP * ENTRY {
            return Err(format!("needs cache lines of {} bytes, not {line}", PAGES_A_STEP * ENTRY));
        }
        let masks = gf2::reduce(&known.second.masks);
        let lines = TABLE / PAGES_A_STEP;
        let image = |line: u64| gf2::apply(&masks, line * PAGES_A_STEP);
        let same: Vec<u64> = (0..lines).filter(|&line| image(line) == 0).collect();
        let mut sets: Vec<u64> = Vec::new();
        for line in 0..lines {
            if sets.iter().all(|&other| image(other) != image(line)) {
                sets.push(line);
            }
        }
        let ways = u64::from(known.second.ways);
        let cache = (u64::from(shape.sets).min(lines), u64::from(shape.ways));
        let room = |others| same.len() as u64 * cache.1.saturating_sub(others);
        let crowd = ((2 * ways).min(room(OTHERS.1)), room(OTHERS.0));
        if crowd.0 * LEAST.1 < ways * LEAST.0 {
            return Err("entries of pages that crowd a set of the TLB do not fit the first-level data cache".into());
        }
        let flood = FLOOD * u64::from(known.first.entries);
        Ok(Self { masks, crowd, flood, lines, same, sets, cache })
    }

    /// Lines in an order in which those of one set of the TLB come together.
    pub(super) fn lines_by_set(&self) -> Vec<u64> {
        self.sets.iter().flat_map(|set| self.same.iter().map(move |same| set ^ same)).collect()
    }

    /// How these regions crowd sets with as few pages as that takes, each with as many pages as the others if that can
    /// be.
    pub(super) fn plan(&self, regions: &[u64]) -> ThrashPlan {
        let classes = self.classes(regions);
        let (least, most) = self.crowd;
        let flood = self.flood.div_ceil(least * classes.len().max(1) as u64);
        let share = |of: &Vec<(u64, u64)>| {
            let count = of.len() as u64;
            let sets = count.div_ceil(most).max(flood);
            // As many of each region, of the lines that it has in these sets.
            let each = (sets * least).div_ceil(count);
            let even = each <= sets * self.same.len() as u64 && each * count <= sets * most;
            ClassShare { sets, pages: if even { each * count } else { sets * least } }
        };
        ThrashPlan(classes.iter().map(|(&class, of)| (class, share(of))).collect())
    }

    /// The fewest regions, from this one on, that can be walked by that plan.
    pub(super) fn fewest(&self, plan: &ThrashPlan, from: u64) -> Vec<u64> {
        let mut regions = Vec::new();
        for (&class, share) in &plan.0 {
            let each = share.pages.div_ceil(share.sets * self.same.len() as u64);
            let of_class = |region: &u64| reach(&self.masks, self.lines, *region).0 == class;
            regions.extend((from..from + NEAR).filter(of_class).take(each as usize));
        }
        regions
    }

    fn classes(&self, regions: &[u64]) -> BTreeMap<u64, Vec<(u64, u64)>> {
        let mut classes: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for &region in regions {
            let (class, line) = reach(&self.masks, self.lines, region);
            classes.entry(class).or_default().push((region, line));
        }
        classes
    }

    /// Offsets in a sparse area that go round these regions (numbers of leaf tables) in order, by a plan for regions of
    /// their kind. `None` = these regions have no such pages.
    pub(super) fn circle(&self, regions: &[u64], plan: &ThrashPlan, rng: &mut SplitMix64) -> Option<Vec<u64>> {
        let classes = self.classes(regions);
        let pages: u64 = plan.0.values().map(|share| share.pages).sum();
        if pages > self.cache.0 * self.cache.1 / PART {
            return None;
        }
        let mut load = self.upper_lines(regions);
        let mut chosen: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut free = self.sets.clone();
        rng.shuffle(&mut free);
        for (class, members) in &classes {
            // By a plan for other regions there may be too few pages for each of these to have one.
            let share = plan.0.get(class).filter(|share| share.pages >= members.len() as u64)?;
            let mut sets = Vec::new();
            for _ in 0..share.sets {
                // Where there are fewest other lines.
                let others = |set: u64| {
                    let of_first = self.same.iter().map(|same| (set ^ same ^ members[0].1) % self.cache.0);
                    of_first.map(|at| load[at as usize]).max()
                };
                let (i, _) = free.iter().enumerate().min_by_key(|(_, &set)| others(set))?;
                sets.push(free.swap_remove(i));
            }
            for number in 0..share.pages {
                let (round, i) = (number / members.len() as u64, number as usize % members.len());
                let (region, stand_in) = members[i];
                // Each round of the regions begins at another set, so that every region comes to all of them.
                let set = sets[((round + i as u64) % share.sets) as usize];
                let own = chosen.entry(region).or_default();
                let candidates = self.same.iter().map(|same| set ^ same ^ stand_in);
                let line = candidates
                    .filter(|line| !own.contains(line))
                    .min_by_key(|line| load[(line % self.cache.0) as usize])?;
                load[(line % self.cache.0) as usize] += 1;
                own.push(line);
            }
        }
        let crowded = |line: &u64| load[(line % self.cache.0) as usize] >= self.cache.1;
        if chosen.values().flatten().any(crowded) {
            return None;
        }
        for own in chosen.values_mut() {
            rng.shuffle(own);
        }
        let place = |region: u64, line: u64| (region * TABLE / PAGES_A_STEP + line) * SPARSE_STEP;
        let rounds = chosen.values().map(Vec::len).max().unwrap_or(0);
        let mut offsets = Vec::with_capacity(pages as usize);
        for round in 0..rounds {
            for region in regions {
                offsets.extend(chosen[region].get(round).map(|&line| place(*region, line)));
            }
        }
        Some(offsets)
    }

    /// Lines of entries above the leaf's, by the set of the first-level data cache.
    fn upper_lines(&self, regions: &[u64]) -> Vec<u64> {
        let mut load = vec![0; self.cache.0 as usize];
        for level in 0..UPPER {
            let mut lines: Vec<u64> =
                regions.iter().map(|region| (region >> (level * TABLE.ilog2())) / PAGES_A_STEP).collect();
            lines.sort_unstable();
            lines.dedup();
            for line in lines {
                load[(line % self.cache.0) as usize] += 1;
            }
        }
        load
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::report::caches::{CacheReport, CacheReports, CacheShape};
    use crate::tlb::geometry::Geometry;

    fn crowd(masks: Vec<u64>, ways: u32) -> Result<StlbThrasher, String> {
        let mut caches = CacheReports::nothing("none");
        caches.line_bytes = Finding::confirmed(64, Vec::new());
        let shape = Finding::confirmed(CacheShape { bytes: 32 << 10, ways: 8, sets: 64 }, Vec::new());
        let (cycles, bytes) = (Finding::not_asked(), Finding::not_asked());
        caches.levels = vec![CacheReport { level: 1, cycles, bytes, shape, ways: Finding::not_asked() }];
        let first = Geometry { entries: 72, ways: 72, sets: 1, masks: Vec::new() };
        let sets = 1 << masks.len();
        let second = Geometry { entries: sets * ways, ways, sets, masks };
        StlbThrasher::new(KnownLevels { first: &first, second: &second, caches: &caches })
    }

    #[test]
    fn every_set_that_is_walked_is_crowded_and_lines_fit_the_data_cache() {
        // Zen 4's; a linear one; one with each low bit summed with one far above.
        let zen: Vec<u64> = (0..7).chain([9]).map(|bit| 1 << bit).collect();
        let linear: Vec<u64> = (0..7).map(|bit| 1 << bit).collect();
        let sums: Vec<u64> = (0..7).map(|bit| 1 << bit | 1 << (bit + 9)).collect();
        let ways = 12;
        for (masks, always) in [(zen, true), (linear, true), (sums, false)] {
            let crowd = crowd(masks.clone(), ways).expect("a crowd");
            let mut rng = SplitMix64::new(1);
            for (count, apart) in [(12, 0), (40, 0), (100, 0), (200, 0), (7, 13), (30, 13), (5, 17)] {
                let base = 3 * TABLE * TABLE;
                let regions: Vec<u64> = (0..count).map(|i| base + (i << apart)).collect();
                let plan = crowd.plan(&regions);
                for regions in [regions, crowd.fewest(&plan, base)] {
                    let what = format!("{masks:x?}, {count} regions, {apart} bits apart");
                    let Some(circle) = crowd.circle(&regions, &plan, &mut rng) else {
                        assert!(!always, "{what}");
                        continue;
                    };
                    let (mut of_set, mut of_line) = (BTreeMap::new(), crowd.upper_lines(&regions));
                    let mut distinct = std::collections::BTreeSet::new();
                    for offset in &circle {
                        assert!(regions.contains(&(offset / (TABLE << 12))), "{what}");
                        distinct.insert(offset);
                        *of_set.entry(gf2::apply(&masks, offset >> 12)).or_insert(0) += 1;
                        of_line[(offset / SPARSE_STEP % 64) as usize] += 1;
                    }
                    assert_eq!(distinct.len(), circle.len(), "{what}");
                    assert!(circle.len() >= 2 * 72, "{what}: {}", circle.len());
                    assert!(of_set.values().all(|&pages| pages * 2 >= 3 * ways), "{what}: {of_set:?}");
                    let leaf = |line: &u64| circle.iter().any(|offset| offset / SPARSE_STEP % 64 == *line);
                    assert!((0..64).filter(leaf).all(|line| of_line[line as usize] <= 8), "{what}: {of_line:?}");
                }
            }
        }
    }

    #[test]
    fn more_regions_than_a_plan_has_pages_for_have_no_circle() {
        let crowd = crowd((0..7).map(|bit| 1 << bit).collect(), 12).expect("a crowd");
        let regions: Vec<u64> = (0..250).collect();
        let plan = crowd.plan(&regions[..1]);
        assert!(crowd.circle(&crowd.fewest(&plan, 0), &plan, &mut SplitMix64::new(1)).is_some());
        assert_eq!(crowd.circle(&regions, &plan, &mut SplitMix64::new(1)), None);
    }

    #[test]
    fn a_tlb_whose_sets_need_more_lines_than_the_data_cache_has_is_refused() {
        assert!(crowd((0..9).map(|bit| 1 << bit).collect(), 8).is_err());
    }
}
