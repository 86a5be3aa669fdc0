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
    /// There is no level, or R is more than M, or so many runs do not exist, as where R is no multiple of the pages
    /// that the level coalesces; then the nearest R for which they do is named.
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

#[cfg(test)]
mod tests {
    use lookaside_machine::IndexFn;

    use super::*;

    fn level(name: &str, sets: u32, ways: u32) -> ColorLevel {
        ColorLevel { name: name.into(), sets, ways, index: IndexFn::Linear }
    }

    fn share(level: &str, sets: &[u32], ways: Option<u32>) -> Share {
        Share { level: level.into(), sets: sets.to_vec(), ways }
    }

    fn partition(name: &str, shares: Vec<Share>) -> Partition {
        Partition { name: name.into(), pages: Some(1), contiguous_pages: 1, shares }
    }

    fn file(levels: Vec<ColorLevel>, partitions: Vec<Partition>) -> Partitions {
        Partitions { machine: "m".into(), page_size: PageSize::K4, levels, partitions }
    }

    /// Of four sets of four ways one has two of them left, one none, and two all.
    #[test]
    fn the_rest_of_a_level_is_a_share_for_each_number_of_ways_that_is_left() {
        let all = [
            partition("a", vec![share("l1", &[0, 1], Some(2)), share("l2", &[2], None)]),
            partition("b", vec![share("l1", &[1], None)]),
        ];
        let of = |ways: u32, sets: &[u32]| share("l1", sets, Some(ways));
        assert_eq!(left(&all, &level("l1", 4, 4)), [of(0, &[1]), of(2, &[0]), of(4, &[2, 3])]);
        assert_eq!(left(&[], &level("l1", 4, 4)), [of(4, &[0, 1, 2, 3])]);
    }

    #[test]
    fn the_heap_itself_is_bound_where_all_partitions_are() {
        let both = |ways| vec![share("l1", &[0], Some(1)), share("all", &[0], Some(ways))];
        let bound = |partitions: Vec<Partition>| {
            let levels = vec![level("l1", 4, 4), level("all", 1, 8), level("l2", 16, 4)];
            let own = HeapOptions::of(&file(levels, partitions)).bookkeeping;
            own.map(|own| own.shares.into_iter().map(|share| (share.level, share.sets, share.ways)).collect::<Vec<_>>())
        };
        let l1 = [("l1".to_string(), vec![0], Some(2)), ("l1".to_string(), vec![1, 2, 3], Some(4))];
        let one = |ways| ("all".to_string(), vec![0], Some(ways));
        // A level of one set, as far as it is not promised to more than it holds; never one that one of them is not
        // bound by.
        assert_eq!(bound(vec![partition("a", both(4)), partition("b", both(3))]), Some([&l1[..], &[one(1)]].concat()));
        assert_eq!(bound(vec![partition("a", both(4)), partition("b", both(5))]), Some(l1.to_vec()));
        assert_eq!(bound(vec![partition("a", both(4)), partition("b", vec![share("l2", &[3], None)])]), None);
        // Its own partition counts, whatever it has, and is no colour.
        let own = partition(BOOKKEEPING, vec![share("l1", &[3], None)]);
        let file = file(vec![level("l1", 4, 4)], vec![own.clone(), partition("a", vec![share("l1", &[0], Some(4))])]);
        let options = HeapOptions::of(&file);
        assert_eq!((options.bookkeeping, options.colors), (Some(own), file.partitions[1..].to_vec()));
    }

    #[test]
    fn the_papers_colours_are_sets_first_then_rows() {
        let paper = |reserved| HeapOptions::paper(PageSize::K4, vec![level("l1", 4, 2)], reserved).expect("colours");
        let options = paper(2);
        let of = |options: &HeapOptions| {
            let color = |color: &Partition| (color.name.clone(), color.pages, color.contiguous_pages);
            options.colors.iter().map(color).collect::<Vec<_>>()
        };
        let color = |name: &str, pages, contiguous| (name.to_string(), Some(pages), contiguous);
        let expected = [color("set 2", 2, 1), color("set 3", 2, 1), color("row 0", 2, 2), color("row 1", 2, 2)];
        assert_eq!(of(&options), expected);
        assert_eq!(options.colors[0].shares, [share("l1", &[2], Some(2))]);
        assert_eq!(options.colors[2].shares, [share("l1", &[0, 1], Some(1))]);
        let own = |options: HeapOptions| options.bookkeeping.expect("its own").shares;
        assert_eq!(own(options), [share("l1", &[0], None)]);
        // No rows without reserved sets, and no sets where all are.
        assert_eq!(of(&paper(0)).len(), 4);
        assert_eq!(own(paper(0)), [share("l1", &[3], None)]);
        assert_eq!(of(&paper(4)), [color("row 0", 4, 4), color("row 1", 4, 4)]);
        let none = HeapOptions::paper(PageSize::K4, Vec::new(), 1).expect_err("no level");
        assert_eq!(none, HeapError::Asked("there is no level to colour".into()));
    }
}
