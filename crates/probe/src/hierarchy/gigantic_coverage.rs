//! How much of a 1 GiB page one TLB entry covers: all of it, 2 MiB, or a small page. A core may have no entries for
//! such pages in a level, and a host may have smaller pages behind them.
//!
//! Places are walked that lie so far apart that each needs an entry of its own if entries cover no more than that;
//! there are more of them than the level has entries. Two chains of as many lines stand beside it: one packed side by
//! side, which hits, and one in the same number of next larger parts, but side by side in each: what this misses is for
//! want of entries for those.

use lookaside_machine::PageSize;
use lookaside_stats::SplitMix64;

use crate::bench::Halt;
use crate::finding::Finding;
use crate::hierarchy::entry_coverage::{hit_and_walk, or_refused, BEYOND, HITS, PASSES};
use crate::hierarchy::latency_bench::LatencyBench;
use crate::metal::MemoryArea;
use crate::report::walks::WalkCosts;

/// Parts that entries may cover (16 small pages, as many as are ever coalesced; 2 MiB), those around them, and how many
/// places are walked for each entry that there is for small pages: of 2 MiB there might be more (none is known that
/// has).
const PARTS: [(PageSize, PageSize, f64); 2] =
    [(PageSize::K64, PageSize::M2, BEYOND), (PageSize::M2, PageSize::G1, 4.0)];

/// Bytes from one place to the next: a line of nearly all cores. Where lines are larger, neighbours share one, which is
/// no harm.
const LINE: u64 = 64;

/// What is known of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelEntries {
    /// 1 or 2.
    pub level: u32,
    /// Entries for small pages.
    pub small: u32,
    /// 1 GiB pages that put one another out of the level above, where that holds such; else 1.
    pub pages: u64,
}

/// The part of a 1 GiB page that an entry covers: of 1 GiB, of 2 MiB, or of a small page (or as many as are coalesced).
/// Costs of misses are what `walks` says.
pub(crate) fn part(
    bench: &mut LatencyBench<'_>,
    entries: LevelEntries,
    walks: &WalkCosts,
) -> Result<Finding<PageSize>, Halt> {
    // Cycles from which on a step has missed the level.
    let limit = match (entries.level, hit_and_walk(walks)) {
        (1, (Some(hit), _)) if hit > 0.0 => HITS * hit,
        (2, (Some(hit), Some(walk))) if walk > hit => hit + HITS * (walk - hit),
        _ => return Ok(Finding::not_determined("what a miss costs is not known")),
    };
    or_refused(passes(bench, entries, limit))
}

fn passes(bench: &mut LatencyBench<'_>, entries: LevelEntries, limit: f64) -> Result<Finding<PageSize>, Halt> {
    let mut evidence = Vec::new();
    let mut seen: Vec<Result<PageSize, String>> = Vec::new();
    for _ in 0..PASSES {
        seen.push(look(bench, entries, limit, &mut evidence)?);
    }
    let reason = match &seen[0] {
        Ok(part) if seen.iter().all(|other| other == &seen[0]) => return Ok(Finding::confirmed(*part, evidence)),
        Err(reason) if seen.iter().all(Result::is_err) => reason.clone(),
        _ => "passes do not agree".into(),
    };
    Ok(Finding::NotDetermined { reason, evidence, asked: true })
}

/// What one look says, or why it says nothing.
fn look(
    bench: &mut LatencyBench<'_>,
    entries: LevelEntries,
    limit: f64,
    evidence: &mut Vec<String>,
) -> Result<Result<PageSize, String>, Halt> {
    for (part, around, times) in PARTS {
        let Some(places) = GiganticOffsets::new(part, around, times, entries) else {
            return Ok(Err(format!("{} entries are too many to be tried", entries.small)));
        };
        let order = places.order(&mut bench.rng);
        let mut cycles = |place: fn(&GiganticOffsets, u64) -> u64| {
            let offsets: Vec<u64> = order.iter().map(|&i| place(&places, i)).collect();
            bench.cycles(MemoryArea::Gigantic, &offsets)
        };
        let (apart, beside, packed) =
            (cycles(GiganticOffsets::apart)?, cycles(GiganticOffsets::beside)?, cycles(GiganticOffsets::packed)?);
        evidence.push(format!(
            "{} places in {} pages, {part} apart: {:.1} cycles more a step than side by side; in as many parts of {around}: {:.1}",
            places.count,
            places.pages,
            apart - packed,
            beside - packed
        ));
        if apart - packed > limit {
            return Ok(if beside - packed > limit {
                Err(format!("{} parts of {around} miss already", places.parts()))
            } else {
                Ok(if part == PageSize::K64 { PageSize::K4 } else { part })
            });
        }
    }
    Ok(Ok(PageSize::G1))
}

/// Places in pages of 1 GiB, numbered, as many in each page as in the others; each is another line of the frame, and
/// the lines of all kinds are spread alike over the sets of data caches, as far as lower bits of the address choose
/// these.
#[derive(Clone, Copy, Debug)]
struct GiganticOffsets {
    count: u64,
    pages: u64,
    part: u64,
    around: u64,
}

impl GiganticOffsets {
    /// So many times as many as there are entries, if the frame has room for them.
    fn new(part: PageSize, around: PageSize, times: f64, entries: LevelEntries) -> Option<Self> {
        let (part, around, gigantic) = (part.bytes(), around.bytes(), PageSize::G1.bytes());
        let count = (f64::from(entries.small) * times).ceil() as u64;
        let pages = (count * part).div_ceil(gigantic).max(entries.pages);
        let places = Self { count: count.next_multiple_of(pages), pages, part, around };
        // Places of one part, in different pages, are of different lines; and all lines fit a part of 2 MiB.
        (pages * LINE <= part && places.count * LINE <= PageSize::M2.bytes()).then_some(places)
    }

    fn a_page(&self) -> u64 {
        self.count / self.pages
    }

    /// The numbers in an order that goes round the pages, so that each is out of the level above when it comes again;
    /// at random otherwise.
    fn order(&self, rng: &mut SplitMix64) -> Vec<u64> {
        let mut pages: Vec<Vec<u64>> = Vec::new();
        for page in 0..self.pages {
            let mut of_page: Vec<u64> = (0..self.a_page()).map(|i| page * self.a_page() + i).collect();
            rng.shuffle(&mut of_page);
            pages.push(of_page);
        }
        rng.shuffle(&mut pages);
        (0..self.a_page() as usize).flat_map(|i| pages.iter().map(move |of_page| of_page[i])).collect()
    }

    /// Parts that lie around the places.
    fn parts(&self) -> u64 {
        self.pages * (self.a_page() * self.part).div_ceil(self.around)
    }

    /// Each place in a part of its own.
    fn apart(&self, i: u64) -> u64 {
        let (page, of_page) = (i / self.a_page(), i % self.a_page());
        let lines = self.part / LINE;
        let line = (page * self.a_page().min(lines / self.pages) + of_page) % lines;
        page * PageSize::G1.bytes() + of_page * self.part + line * LINE
    }

    /// Those of each part around them side by side.
    fn beside(&self, i: u64) -> u64 {
        let (page, of_page) = (i / self.a_page(), i % self.a_page());
        page * PageSize::G1.bytes() + of_page * self.part / self.around * self.around + self.packed(i)
    }

    /// All side by side.
    fn packed(&self, i: u64) -> u64 {
        i * LINE
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn places_are_lines_of_their_own_in_parts_of_their_own() {
        for (part, around, times) in PARTS {
            for (small, pages) in [(64, 1), (72, 1), (1536, 1), (3072, 1), (4096, 8), (3072, 144), (1024, 200)] {
                let places = GiganticOffsets::new(part, around, times, LevelEntries { level: 2, small, pages });
                let places = places.expect("room");
                let mut order = places.order(&mut SplitMix64::new(1));
                assert!(order
                    .iter()
                    .zip(&order[places.pages as usize..])
                    .all(|(a, b)| a / places.a_page() == b / places.a_page()));
                order.sort_unstable();
                assert!(order.into_iter().eq(0..places.count), "{places:?}");
                let of = |place: fn(&GiganticOffsets, u64) -> u64| (0..places.count).map(move |i| place(&places, i));
                for place in [GiganticOffsets::apart, GiganticOffsets::beside, GiganticOffsets::packed] {
                    let words: HashSet<u64> = of(place).map(|at| at % PageSize::G1.bytes()).collect();
                    assert_eq!(words.len() as u64, places.count, "{places:?}");
                }
                let parts = |place, bytes: u64| of(place).map(|at| at / bytes).collect::<HashSet<_>>().len() as u64;
                assert_eq!(parts(GiganticOffsets::apart, part.bytes()), places.count, "{places:?}");
                assert!(places.count as f64 >= f64::from(small) * times, "{places:?}");
                assert_eq!(
                    parts(GiganticOffsets::apart, around.bytes()),
                    parts(GiganticOffsets::beside, around.bytes()),
                    "{places:?}"
                );
                assert!(parts(GiganticOffsets::beside, part.bytes()) <= 2 * places.parts(), "{places:?}");
                assert_eq!(parts(GiganticOffsets::beside, around.bytes()), places.parts(), "{places:?}");
                assert_eq!(parts(GiganticOffsets::apart, PageSize::G1.bytes()), places.pages, "{places:?}");
                assert!(places.pages >= pages && parts(GiganticOffsets::packed, around.bytes()) == 1, "{places:?}");
            }
        }
        assert!(GiganticOffsets::new(
            PageSize::M2,
            PageSize::G1,
            4.0,
            LevelEntries { level: 2, small: 1 << 16, pages: 1 }
        )
        .is_none());
    }
}
