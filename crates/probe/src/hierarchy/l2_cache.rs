//! Ways of the second-level cache: pages that use the same of its sets, found by group testing, are added until their
//! lines do not fit.
//!
//! The sets of a page's lines are a matter of its frame, which nobody tells. If the index is linear, or a sum
//! (exclusive or) of one part from the line's place in its page and one from the frame, two pages use the same sets
//! (are of one colour) or have none in common; so whole pages are walked. Pages that crowd some sets are reduced to the
//! least number that does (threshold group testing: Vila, Köpf, Morales, "Theory and Practice of Finding Eviction
//! Sets", 2019); what crowds in place of one of those is of their colour.

use crate::agreed_range::MeasuredRange;
use crate::bench::Halt;
use crate::finding::Finding;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::hierarchy::latency_curve::{PAGE, WINDOW};
use crate::metal::MemoryArea;
use crate::report::caches::{CacheReport, CacheShape, UNEVEN};
use lookaside_stats::median;

/// The second-level cache as it is known before.
#[derive(Clone, Copy, Debug)]
struct L2Cache {
    /// Bytes of a line.
    line: u64,
    /// The first-level cache, which hides what fits it.
    first: CacheShape,
    /// Bytes of a circle of whose steps half miss: what it holds, and a little more.
    bytes: u64,
    /// Cycles of a hit.
    hit: f64,
    /// Cycles that a miss takes longer, at least.
    miss: f64,
}

/// What was found of it.
#[derive(Clone, Debug)]
struct L2Ways {
    /// Ways of a set.
    ways: Finding<u32>,
    /// One of so many pages is of a colour: sets are so many times a page's lines. `None` where the ways are not known.
    colours: Option<f64>,
}

/// Pages are so many times what the cache holds: a colour has so many times its ways.
const POOL: u64 = 2;
/// Most pages to choose from: for second levels of some 7 MiB.
const MOST_PAGES: u64 = 8192;
/// Most pages that these are drawn from, anew for each colour: all are touched, and more would only take time.
const MOST_ROOM: u64 = 8 * MOST_PAGES;
/// Fillers are so many times what the first level holds: even of random replacement they put all but 2 in 100 out of
/// it.
const FLOOD: u64 = 4;
/// Pages' worth of misses a round that crowd: one page too many is one at least, whatever the policy. And more by this
/// share of the pages, since steps of the same kind are not all alike.
const CROWDS: (f64, f64) = (0.6, 0.008);
/// Times that pages are seen to crowd before they are said to: whatever disturbs makes steps longer.
const SURELY: usize = 3;
/// Choices of some pages of the pool: the one that crowds most is reduced, since misses of one colour are a small part
/// of many pages' steps.
const STARTS: usize = 12;
/// Pages of such choices, as parts of what the cache holds; the fewest that crowd well beyond noise.
const START_PARTS: [f64; 6] = [0.35, 0.45, 0.55, 0.7, 0.85, 1.1];
/// Times [`CROWDS`] that this is.
const WELL: f64 = 3.0;
/// Times that pages are reduced, as long as they are too many.
const REDUCTIONS: usize = 3;
/// Rounds before it is timed: under random replacement it takes some until all that fits is in.
const WARM: u64 = 6;
/// Draws of fillers, until some do not crowd by themselves.
const DRAWS: usize = 10;
/// Others go to a colour at a time when members are looked for.
const GROUP: usize = 4;
/// Choices of members that fit and do not fit at the end.
const CHOICES: usize = 3;
/// Most ways that are believed: more than any second level has.
const MOST_WAYS: usize = 32;
/// Colours that are tried, at most; so many have to be alike, and more than twice as many as others.
const LOOKS: usize = 10;
/// See [`LOOKS`].
const ALIKE: usize = 3;
/// Colours that are tried in vain before no more are.
const IN_VAIN: usize = 6;
/// Chains that are measured for a colour, at most: some 500 are where nothing disturbs.
const MOST_CHAINS: u64 = 1500;
/// A miss of the second level takes this many times a hit longer, or more: third levels take 35 to 80 cycles, second
/// levels 10 to 17.
const MISS: f64 = 2.0;
/// Fillers that do not crowd take a hit of this level at most so many times.
const HIT: f64 = 1.15;

/// A power of two of sets lies within this many octaves of what the share of pages says that are of a colour: by some
/// 16 pages a look that is off by 0.3 or so.
const OCTAVES: f64 = 0.4;
/// A cache of few colours may hold so many times what its size by latency is at most: random frames fill few colours
/// unevenly.
const ABOUT: f64 = 1.2;

/// Finds the second level's ways and shape, where there are two levels.
pub(super) fn second(
    bench: &mut LatencyBench<'_>,
    line: u64,
    levels: &mut [CacheReport],
    memory: &Finding<MeasuredRange>,
) -> Result<(), Halt> {
    let [first, second, rest @ ..] = levels else { return Ok(()) };
    let middle = |finding: &Finding<MeasuredRange>| finding.value().map(|seen| (seen.low + seen.high) / 2.0);
    let next = rest.first().map_or(memory, |level| &level.cycles);
    let known = (first.shape.value(), second.bytes.value(), middle(&second.cycles));
    let (Some(&first), Some(&bytes), Some(hit)) = known else {
        let reason = "needs the first level's shape, and this one's size";
        second.ways = Finding::not_determined(reason);
        second.shape = Finding::not_determined(reason);
        return Ok(());
    };
    let half = bytes.high / UNEVEN;
    // Where others have the next level for a while, a miss takes longer.
    let miss = middle(next).map_or(f64::MAX, |next| next - hit).min(MISS * hit);
    let found = match second_ways(bench, L2Cache { line, first, bytes: half as u64, hit, miss }) {
        // What is known of the others is known all the same.
        Err(halt @ (Halt::ShareUp(_) | Halt::Metal(_))) => {
            L2Ways { ways: Finding::not_determined(halt.to_string()), colours: None }
        }
        found => found?,
    };
    second.shape = match (found.ways.value(), found.colours) {
        (Some(&ways), Some(colours)) => shape(ways, colours, &bytes, line),
        _ => Finding::not_determined("its ways are not known"),
    };
    second.ways = found.ways;
    Ok(())
}

/// The power of two of sets that the share of pages says that are of one colour, if latency by footprint bears it out.
fn shape(ways: u32, colours: f64, size: &MeasuredRange, line: u64) -> Finding<CacheShape> {
    let by_colours = colours * (PAGE / line) as f64;
    let octave = by_colours.max(1.0).log2();
    let sets = 1u64 << (octave.round() as u32).min(31);
    let bytes = sets * u64::from(ways) * line;
    let evidence = vec![format!("{by_colours:.0} sets by the share of pages that are of a colour")];
    let (low, high) = (size.low / 1024.0, size.high / 1024.0);
    if (octave - octave.round()).abs() < OCTAVES && (size.low..=ABOUT * size.high).contains(&(bytes as f64)) {
        return Finding::confirmed(CacheShape { bytes, ways, sets: sets as u32 }, evidence);
    }
    let reason = format!(
        "about {by_colours:.0} sets by pages that meet do not make the {low:.0} to {high:.0} KiB that latency shows"
    );
    Finding::NotDetermined { reason, evidence, asked: true }
}

/// Looks for them.
fn second_ways(bench: &mut LatencyBench<'_>, cache: L2Cache) -> Result<L2Ways, Halt> {
    let none = |reason: String| Ok(L2Ways { ways: Finding::not_determined(reason), colours: None });
    let count = POOL * cache.bytes / PAGE;
    let flood = FLOOD * cache.first.bytes / PAGE;
    let room = (bench.metal().area_bytes(MemoryArea::Own { bytes: 0, huge: true }) / PAGE).min(MOST_ROOM);
    let wanted = 2 * (count + flood);
    let mib = (wanted * PAGE).div_ceil(1 << 20);
    if wanted > MOST_PAGES {
        return none(format!("{mib} MiB of pages to choose from are more than are tried"));
    }
    if wanted > room {
        // An area has half of the memory that may be used.
        return none(format!("needs {} MiB (--memory)", 2 * mib));
    }
    let mut looks: Vec<ColourResult> = Vec::new();
    while looks.len() < LOOKS && !(looks.len() >= IN_VAIN && looks.iter().all(|look| look.is_err())) {
        let area = MemoryArea::Own { bytes: room * PAGE, huge: true };
        let end = bench.measurements() + MOST_CHAINS;
        let mut crowd = ColourSearch { bench, cache, area, base: f64::MAX, control: Vec::new(), end };
        looks.push(crowd.colour(room, count as usize, flood as usize)?);
        if let Some(ways) = agreed(&looks) {
            let like = looks.iter().flatten().filter(|look| look.0 == ways);
            // Each is pages a page of the colour; what is averaged is how many are.
            let shares: Vec<f64> = like.map(|look| 1.0 / look.1).collect();
            let colours = shares.len() as f64 / shares.iter().sum::<f64>();
            return Ok(L2Ways { ways: Finding::confirmed(ways, said(&looks)), colours: Some(colours) });
        }
    }
    let reason = "pages found by group testing do not show one number of ways".into();
    Ok(L2Ways { ways: Finding::NotDetermined { reason, evidence: said(&looks), asked: true }, colours: None })
}

/// The pages of a colour that fit, and one of how many pages is of it; or why there is nothing certain.
type ColourResult = Result<(u32, f64), String>;

/// The ways of most colours, if enough are alike.
fn agreed(looks: &[ColourResult]) -> Option<u32> {
    let count = |ways: u32| looks.iter().flatten().filter(|look| look.0 == ways).count();
    let found = looks.iter().flatten().count();
    let ways = looks.iter().flatten().map(|look| look.0).max_by_key(|&ways| count(ways))?;
    (count(ways) >= ALIKE && count(ways) > 2 * (found - count(ways))).then_some(ways)
}

fn said(looks: &[ColourResult]) -> Vec<String> {
    let words = |look: &ColourResult| match look {
        Ok((ways, colours)) => format!("{ways} pages of a colour fit, of which one in {colours:.1} pages is"),
        Err(reason) => format!("rejected look: {reason}"),
    };
    looks.iter().map(words).collect()
}

/// Pages all of whose lines are walked.
struct ColourSearch<'a, 'm> {
    bench: &'a mut LatencyBench<'m>,
    cache: L2Cache,
    area: MemoryArea,
    /// Cycles of a step where nothing is crowded.
    base: f64,
    /// Fillers, which crowd nothing: measured again beside what seems to crowd, since others come and go.
    control: Vec<u64>,
    /// Number of the last measurement: what takes longer is too much disturbed.
    end: u64,
}

impl ColourSearch<'_, '_> {
    /// One colour, among `count` pages, of `room` that there are.
    fn colour(&mut self, room: u64, count: usize, flood: usize) -> Result<ColourResult, Halt> {
        let mut all: Vec<u64> = (0..room).collect();
        self.bench.rng.shuffle(&mut all);
        let (pool, rest) = all.split_at(count);
        let (fresh, rest) = rest.split_at(count);
        let Some(filler) = self.filler(rest, flood)? else {
            return Ok(Err(format!("{DRAWS} times {flood} pages at random crowd sets by themselves")));
        };
        let Some(start) = self.start(pool)? else {
            return Ok(Err(format!("no part of {count} pages crowds sets, or too few")));
        };
        let mut least = start;
        for _ in 0..REDUCTIONS {
            if least.len() > MOST_WAYS + 1 {
                self.bench.rng.shuffle(&mut least);
                least = self.reduce(least, &filler)?;
            }
        }
        if least.len() > MOST_WAYS + 1 || least.len() < 2 {
            return Ok(Err(format!("{} pages are the least that were seen to crowd sets", least.len())));
        }
        // All but one of them: a page crowds beside these exactly if it is of their colour.
        let base = &least[1..];
        if self.crowds(base, &filler)? {
            return Ok(Err("what should be the least number of pages that crowd sets is not".into()));
        }
        let (mut members, mut foreign) = (least.clone(), Vec::new());
        for group in fresh.chunks(GROUP) {
            if self.bench.measurements() > self.end {
                return Ok(Err(format!("not settled after {MOST_CHAINS} chains")));
            }
            if !self.crowds(&[base, group].concat(), &filler)? {
                foreign.extend_from_slice(group);
                continue;
            }
            for &page in group {
                let one = self.crowds(&[base, &[page]].concat(), &filler)?;
                if one { &mut members } else { &mut foreign }.push(page);
            }
        }
        let colours = count as f64 / (members.len() - least.len()).max(1) as f64;
        // Some of the fillers may have been of the colour: from here on none is.
        let Some(filler) = self.filler(&foreign, flood)? else {
            return Ok(Err("too few pages that are of other colours".into()));
        };
        for fit in base.len()..members.len().min(MOST_WAYS + 1) {
            if !self.choice(&members, fit + 1, &filler)? {
                continue;
            }
            for _ in 0..CHOICES {
                if self.choice(&members, fit, &filler)? || !self.choice(&members, fit + 1, &filler)? {
                    return Ok(Err(format!("{fit} pages of a colour fit now, now they do not")));
                }
            }
            return Ok(Ok((fit as u32, colours)));
        }
        Ok(Err(format!("{} pages of a colour fit, and no more were found", members.len())))
    }

    /// Pages out of some that put all else out of the first level, and do not crowd this one.
    fn filler(&mut self, from: &[u64], flood: usize) -> Result<Option<Vec<u64>>, Halt> {
        let mut from = from.to_vec();
        let mut draws = Vec::new();
        for _ in 0..DRAWS {
            self.bench.rng.shuffle(&mut from);
            let Some(filler) = from.get(..flood) else { return Ok(None) };
            draws.push((self.cycles(&[], filler)?, filler.to_vec()));
        }
        draws.retain(|(cycles, _)| *cycles < HIT * self.cache.hit);
        draws.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Not the least, which may be so by chance; most draws crowd nothing.
        let Some(base) = median(draws.iter().map(|draw| draw.0)) else { return Ok(None) };
        self.base = base;
        self.control.clear();
        for (_, filler) in draws {
            if !self.crowds(&[], &filler)? {
                self.control.clone_from(&filler);
                return Ok(Some(filler));
            }
        }
        Ok(None)
    }

    /// Pages of the pool that crowd well, as few as are seen to.
    fn start(&mut self, pool: &[u64]) -> Result<Option<Vec<u64>>, Halt> {
        let mut pool = pool.to_vec();
        for part in START_PARTS {
            let count = ((part * self.cache.bytes as f64) as usize / PAGE as usize).min(pool.len());
            let mut most = (0.0, Vec::new());
            for _ in 0..STARTS {
                self.bench.rng.shuffle(&mut pool);
                let cycles = self.cycles(&pool[..count], &[])?;
                if cycles > most.0 {
                    most = (cycles, pool[..count].to_vec());
                }
            }
            if (most.0 - self.base) * count as f64 / self.cache.miss > WELL * self.least(count) {
                return Ok(Some(most.1));
            }
        }
        Ok(None)
    }

    /// Pages' worth of misses of a round through so many pages that is no noise.
    fn least(&self, count: usize) -> f64 {
        CROWDS.0 + CROWDS.1 * count as f64
    }

    /// Whether so many of the members, any, crowd.
    fn choice(&mut self, members: &[u64], count: usize, filler: &[u64]) -> Result<bool, Halt> {
        let mut members = members.to_vec();
        self.bench.rng.shuffle(&mut members);
        self.crowds(&members[..count], filler)
    }

    /// Leaves out what is not needed for sets to be crowded: halves, then ever smaller parts, at last single pages.
    fn reduce(&mut self, mut pages: Vec<u64>, filler: &[u64]) -> Result<Vec<u64>, Halt> {
        let mut part = pages.len().div_ceil(2);
        loop {
            let mut at = 0;
            while at < pages.len() && pages.len() > 1 {
                let end = (at + part).min(pages.len());
                let rest = [&pages[..at], &pages[end..]].concat();
                if self.bench.measurements() > self.end {
                    return Ok(pages);
                }
                // As long as they are many they put each other out of the first level.
                let beside = if rest.len() > filler.len() { &[] } else { filler };
                if self.crowds(&rest, beside)? {
                    pages = rest;
                } else {
                    at = end;
                }
            }
            if part == 1 {
                return Ok(pages);
            }
            part = part.div_ceil(2);
        }
    }

    /// Whether these pages, and then the fillers, crowd sets.
    fn crowds(&mut self, pages: &[u64], filler: &[u64]) -> Result<bool, Halt> {
        let count = pages.len() + filler.len();
        let mut base = self.base;
        for _ in 0..SURELY {
            let cycles = self.cycles(pages, filler)?;
            let (least, miss) = (self.least(count), self.cache.miss);
            let crowd = |base: f64| (cycles - base) * count as f64 / miss >= least;
            if !crowd(base) {
                return Ok(false);
            }
            if !self.control.is_empty() {
                let control = self.control.clone();
                base = self.base.max(self.cycles(&control, &[])?);
                if !crowd(base) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Cycles of a step through all lines of these pages, and then of the fillers: after them, so that what an
    /// exclusive cache gave to the first level is there again.
    fn cycles(&mut self, pages: &[u64], filler: &[u64]) -> Result<f64, Halt> {
        let mut offsets = Vec::with_capacity((pages.len() + filler.len()) * (PAGE / self.cache.line) as usize);
        for pages in [pages, filler] {
            let mut pages = pages.to_vec();
            self.bench.rng.shuffle(&mut pages);
            for window in pages.chunks(WINDOW as usize) {
                let from = offsets.len();
                offsets.extend(
                    window
                        .iter()
                        .flat_map(|page| (0..PAGE).step_by(self.cache.line as usize).map(move |at| page * PAGE + at)),
                );
                self.bench.rng.shuffle(&mut offsets[from..]);
            }
        }
        self.bench.cycles_warmed(self.area, &offsets, WARM)
    }
}
