//! The colours of a heap, and what its pages are.

use lookaside_machine::{ColorLevel, PageSize, Partition, Partitions, Share, BOOKKEEPING};

use super::error::HeapError;
use super::rows::rows;

/// What a heap is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct HeapOptions {
    /// Size of its pages.
    pub page_size: PageSize,
    /// Levels of the TLB that pages are chosen by.
    pub levels: Vec<ColorLevel>,
    /// The colours, by number: 1 to 256. Each needs `pages`, or a number of ways in each of its shares.
    pub colors: Vec<Partition>,
    /// What the heap's own pages may use; `None`: any.
    pub bookkeeping: Option<Partition>,
    /// Headers carry seals, so that pointers that were never given out, or freed before, and overruns are told.
    /// Without, only what is outside of the heap and most of what was freed before is.
    pub checked: bool,
    /// Pages are locked in memory (`mlock`).
    pub locked: bool,
    /// Pages that happen to follow each other are kept apart beyond what a colour asks for: each run of
    /// [`Partition::contiguous_pages`] can then be taken whole. Else they make longer runs, for longer requests.
    pub runs_as_asked: bool,
}

impl HeapOptions {
    /// The colours of the paper's chapter 3, of the first of `levels`, with M sets and N ways: numbers 0 to M − R − 1
    /// have one set each, of those from R on, and N pages (Equation 3.2: M − R colours); the N from M − R on have R
    /// contiguous pages in the sets below R (Equation 3.1, Corollary 1): one in each, or, where the level coalesces,
    /// neighbours in the same. The bookkeeping lies in set 0; with R = 0 in the last, beside that colour.
    ///
    /// # Errors
    /// There is no level, or R is more than M, or so many runs do not exist, as where R is no multiple of the pages that
    /// the level coalesces; then the nearest R for which they do is named.
    pub fn paper(page_size: PageSize, levels: Vec<ColorLevel>, reserved_sets: u32) -> Result<Self, HeapError> {
        let Some(level) = levels.first() else { return Err(HeapError::Asked("there is no level to colour".into())) };
        let (sets, ways) = (level.sets, level.ways);
        if reserved_sets > sets {
            return Err(HeapError::Asked(format!(
                "{reserved_sets} reserved sets are more than the {sets} of {}",
                level.name
            )));
        }
        let of = |name: String, pages: u32, contiguous: u32, shares: Vec<Share>| Partition {
            name,
            pages: Some(u64::from(pages)),
            contiguous_pages: u64::from(contiguous),
            shares,
        };
        let one = |set| vec![Share { level: level.name.clone(), sets: vec![set], ways: Some(ways) }];
        let small = (reserved_sets..sets).map(|set| of(format!("set {set}"), ways, 1, one(set)));
        let rows = if reserved_sets == 0 { Vec::new() } else { rows(level, reserved_sets)? };
        let large = rows
            .into_iter()
            .enumerate()
            .map(|(way, shares)| of(format!("row {way}"), reserved_sets, reserved_sets, shares));
        let own = if reserved_sets == 0 { sets - 1 } else { 0 };
        let bookkeeping = Partition {
            name: "bookkeeping".into(),
            pages: None,
            contiguous_pages: 1,
            shares: vec![Share { level: level.name.clone(), sets: vec![own], ways: None }],
        };
        Ok(Self {
            page_size,
            colors: small.chain(large).collect(),
            levels,
            bookkeeping: Some(bookkeeping),
            checked: false,
            locked: false,
            runs_as_asked: true,
        })
    }

    /// The partitions of a file, all of them, in its order; one that is called `bookkeeping` is the heap's own. Without
    /// one the heap's own pages lie in what the others leave: at each level that all of these are bound by, the sets
    /// and ways that none of them has.
    pub fn of(partitions: &Partitions) -> Self {
        let is_own = |partition: &&Partition| partition.name == BOOKKEEPING;
        Self {
            page_size: partitions.page_size,
            levels: partitions.levels.clone(),
            colors: partitions.partitions.iter().filter(|partition| !is_own(partition)).cloned().collect(),
            bookkeeping: partitions.partitions.iter().find(is_own).cloned().or_else(|| rest(partitions)),
            checked: false,
            locked: false,
            runs_as_asked: false,
        }
    }
}

/// What the partitions of a file leave; `None`: there is no level that all are bound by.
fn rest(partitions: &Partitions) -> Option<Partition> {
    let all = &partitions.partitions;
    let named = |level: &ColorLevel| all.iter().all(|p| p.shares.iter().any(|share| share.level == level.name));
    // In a level of one set that is promised to more than it holds nobody has a place apart.
    let bound = |level: &&ColorLevel| named(level) && (level.sets > 1 || partitions.oversubscribed(level).is_empty());
    let shares: Vec<Share> = partitions.levels.iter().filter(bound).flat_map(|level| left(all, level)).collect();
    (!shares.is_empty()).then(|| Partition { name: BOOKKEEPING.into(), shares, contiguous_pages: 1, pages: None })
}

/// What they leave of a level: a share for each number of ways. Where they leave nothing, one set without any.
fn left(all: &[Partition], level: &ColorLevel) -> Vec<Share> {
    let mut sets: Vec<Vec<u32>> = vec![Vec::new(); level.ways as usize + 1];
    for set in 0..level.sets {
        let shares = all.iter().flat_map(|partition| &partition.shares);
        let here = shares.filter(|share| share.level == level.name && share.sets.contains(&set));
        let promised: u64 = here.map(|share| u64::from(share.ways.unwrap_or(level.ways))).sum();
        sets[u64::from(level.ways).saturating_sub(promised) as usize].push(set);
    }
    let share = |(ways, sets): (usize, Vec<u32>)| Share { level: level.name.clone(), sets, ways: Some(ways as u32) };
    // A share of no ways keeps the level bound where nothing is left.
    sets.into_iter().enumerate().filter(|(_, sets)| !sets.is_empty()).map(share).collect()
}
