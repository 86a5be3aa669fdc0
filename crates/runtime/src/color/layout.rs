//! Which pages each colour of a heap gets, and which the heap's bookkeeping.

use lookaside_machine::{ColorLevel, Partition, BOOKKEEPING};

use super::bins::MAX_RUN;
use super::error::HeapError;
use super::options::HeapOptions;
use super::pick::Picker;
use super::pool::ColorPool;
use super::reserved_pages::{ReservedPages, LEAST_PAGES, MOST_PAGES};

/// Most colours of a heap: the first page holds a pointer for each.
pub(crate) const MAX_COLORS: usize = 256;
/// Most runs of contiguous pages.
pub(crate) const MAX_RUNS: usize = 1 << 15;
/// Bytes that the table of runs has for each.
pub(crate) const RUN_BYTES: usize = 16;

/// Contiguous pages of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColorRun {
    pub(crate) vpn: u64,
    pub(crate) pages: u64,
    /// Number of the colour; the bookkeeping's is that behind the last.
    pub(crate) color: usize,
}

/// An area, and the runs in it.
#[derive(Debug)]
pub(crate) struct PoolLayout {
    pub(crate) area: ReservedPages,
    /// In the order of addresses.
    pub(crate) runs: Vec<ColorRun>,
    /// The bookkeeping's pages, in the order in which they are used.
    pub(crate) control: Vec<u64>,
}

/// Finds pages for all.
pub(crate) fn lay_out(options: &HeapOptions, bookkeeping: &Partition) -> Result<PoolLayout, HeapError> {
    let HeapOptions { page_size, levels, colors, .. } = options;
    if colors.is_empty() || colors.len() > MAX_COLORS {
        return Err(HeapError::Asked(format!("{} colours; a heap has 1 to {MAX_COLORS}", colors.len())));
    }
    let period = Picker::new(levels, &every_level(levels)).period();
    // Beyond some size an area can't begin at a multiple of the period; pages are picked by their numbers all the same.
    let align = period.min(LEAST_PAGES);
    let mut pages = LEAST_PAGES;
    loop {
        let area = ReservedPages::reserve(pages, page_size.shift(), align)?;
        match pick_all(&area, options, bookkeeping, period) {
            Ok((runs, control)) => return Ok(PoolLayout { area, runs, control }),
            Err(Short::Never(why)) => return Err(HeapError::Asked(why)),
            Err(Short::Here(why)) if pages >= MOST_PAGES => return Err(HeapError::Asked(why)),
            Err(Short::Here(_)) => pages *= 16,
        }
    }
}

/// All sets of all levels.
fn every_level(levels: &[ColorLevel]) -> Partition {
    let share = |level: &ColorLevel| lookaside_machine::Share {
        level: level.name.clone(),
        sets: (0..level.sets).collect(),
        ways: None,
    };
    Partition { shares: levels.iter().map(share).collect(), contiguous_pages: 1, ..Partition::default() }
}

/// Why pages are not found.
enum Short {
    /// A larger area may have them.
    Here(String),
    /// None has.
    Never(String),
}

type Picked = (Vec<ColorRun>, Vec<u64>);

fn pick_all(
    area: &ReservedPages,
    options: &HeapOptions,
    bookkeeping: &Partition,
    period: u64,
) -> Result<Picked, Short> {
    let HeapOptions { levels, colors, .. } = options;
    let mut picks = Picks { from: area.first_vpn(), taken: vec![false; area.pages as usize], period };
    let mut runs: Vec<ColorRun> = Vec::new();
    let mut pool_bytes = Vec::new();
    let longest_run = (MAX_RUN >> area.shift) as u64;
    for (color, partition) in colors.iter().enumerate() {
        let mut vpns = picks.of(levels, partition)?;
        vpns.sort_unstable();
        let asked = if options.runs_as_asked { partition.contiguous_pages } else { u64::MAX };
        let longest_run = longest_run.min(asked);
        let first = runs.len();
        for vpn in vpns {
            match runs[first..].last_mut() {
                Some(run) if run.vpn + run.pages == vpn && run.pages < longest_run => run.pages += 1,
                _ => runs.push(ColorRun { vpn, pages: 1, color }),
            }
        }
        let longest = runs[first..].iter().map(|run| run.pages).max().unwrap_or(0);
        pool_bytes.push(ColorPool::bytes((longest << area.shift) as usize));
    }
    if runs.len() > MAX_RUNS {
        return Err(Short::Never(format!("{} runs of contiguous pages; a heap has at most {MAX_RUNS}", runs.len())));
    }
    let page = 1usize << area.shift;
    let tables = (runs.len() * RUN_BYTES).div_ceil(page);
    let need = 1 + tables + pages_of(&pool_bytes, page);
    let wanted = Partition { pages: Some(need as u64), contiguous_pages: 1, ..bookkeeping.clone() };
    let hint = |why: String| {
        format!("{why}; leave {need} pages to the heap itself, or give it a partition called {BOOKKEEPING}")
    };
    let control = picks.of(levels, &wanted).map_err(|short| match short {
        Short::Here(why) => Short::Here(hint(why)),
        Short::Never(why) => Short::Never(hint(why)),
    })?;
    runs.sort_unstable_by_key(|run| run.vpn);
    Ok((runs, control))
}

/// Pages that pools take, each whole in a page, one after another.
pub(crate) fn pages_of(pool_bytes: &[usize], page: usize) -> usize {
    let mut left = 0;
    let mut pages = 0;
    for bytes in pool_bytes {
        if *bytes > left {
            pages += 1;
            left = page;
        }
        left -= bytes;
    }
    pages
}

struct Picks {
    from: u64,
    taken: Vec<bool>,
    period: u64,
}

impl Picks {
    /// The pages of a partition, taken from now on.
    fn of(&mut self, levels: &[ColorLevel], partition: &Partition) -> Result<Vec<u64>, Short> {
        let name = &partition.name;
        let mut picker = Picker::new(levels, partition);
        if partition.pages.is_none() && picker.is_unbounded() {
            return Err(Short::Never(format!("{name}: has sets without a number of ways: say how many pages it has")));
        }
        let to = self.from + self.taken.len() as u64;
        let mut vpns = Vec::new();
        let contiguous = partition.contiguous_pages;
        let taken = |vpn: u64| self.taken[(vpn - self.from) as usize];
        let Some(start) = picker.run(self.from, to, contiguous, taken) else {
            let why = format!("{name}: no {contiguous} contiguous pages lie in its sets");
            // Sets come again after a period; beyond it only what others took may be in the way.
            let seen = self.taken.len() as u64 > 2 * self.period.saturating_add(contiguous);
            return Err(if seen && !self.taken.contains(&true) { Short::Never(why) } else { Short::Here(why) });
        };
        self.keep(start..start + contiguous, &mut vpns);
        let wanted = partition.pages.unwrap_or(u64::MAX);
        // Sets come again after a period: two without a page that fits, and there is none.
        let patience = self.period.saturating_mul(2);
        let mut idle = 0;
        for vpn in self.from..to {
            if vpns.len() as u64 >= wanted || idle > patience {
                break;
            }
            if !picker.fits(vpn) {
                idle += 1;
                continue;
            }
            idle = 0;
            // What another took may be free a period further.
            if !self.taken[(vpn - self.from) as usize] {
                picker.take(vpn);
                self.keep(vpn..vpn + 1, &mut vpns);
            }
        }
        match partition.pages {
            Some(wanted) if (vpns.len() as u64) < wanted => {
                let why = format!("{name}: {} of {wanted} pages lie in its sets", vpns.len());
                Err(if idle > patience { Short::Never(why) } else { Short::Here(why) })
            }
            _ => Ok(vpns),
        }
    }

    fn keep(&mut self, range: std::ops::Range<u64>, vpns: &mut Vec<u64>) {
        for vpn in range {
            self.taken[(vpn - self.from) as usize] = true;
            vpns.push(vpn);
        }
    }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{IndexFn, PageSize, Share};

    use super::*;

    /// Four sets of four ways, one page after the other.
    fn level() -> ColorLevel {
        ColorLevel { name: "l1".into(), sets: 4, ways: 4, index: IndexFn::Linear }
    }

    fn partition(pages: Option<u64>, contiguous_pages: u64, sets: &[u32], ways: Option<u32>) -> Partition {
        let shares = vec![Share { level: "l1".into(), sets: sets.to_vec(), ways }];
        Partition { name: "a".into(), pages, contiguous_pages, shares }
    }

    fn options(colors: Vec<Partition>) -> HeapOptions {
        HeapOptions {
            page_size: PageSize::K4,
            levels: vec![level()],
            colors,
            bookkeeping: None,
            checked: false,
            locked: false,
            runs_as_asked: false,
        }
    }

    fn any_pages() -> Partition {
        Partition { name: "own".into(), contiguous_pages: 1, ..Partition::default() }
    }

    #[test]
    fn a_heap_has_1_to_256_colours() {
        for colors in [0, 257] {
            let many = options(vec![partition(Some(1), 1, &[1], Some(4)); colors]);
            let refused = lay_out(&many, &any_pages()).expect_err("no such heap");
            assert_eq!(refused, HeapError::Asked(format!("{colors} colours; a heap has 1 to 256")));
        }
        let most = lay_out(&options(vec![partition(Some(1), 1, &[1], None); 256]), &any_pages()).expect("a layout");
        assert_eq!(most.runs.iter().map(|run| run.color).collect::<Vec<_>>(), (0..256).collect::<Vec<_>>());
    }

    #[test]
    fn pools_lie_whole_in_pages_one_after_another() {
        let pages = |pool_bytes: &[usize]| pages_of(pool_bytes, 4096);
        assert_eq!(pages(&[]), 0);
        assert_eq!(pages(&[1]), 1);
        assert_eq!(pages(&[2048, 2048]), 1, "to the last byte");
        assert_eq!(pages(&[2048, 2049]), 2);
        assert_eq!(pages(&[1, 1, 4096, 1]), 3, "nothing goes back to a page that was left");
        assert_eq!(pages(&[1000; 9]), 3);
    }

    /// Every fourth page is a run of its own: they are found in the second area that is tried, of 2^18 pages. For their
    /// table the heap needs 128 pages, one for its pool and one for the rest.
    #[test]
    fn a_heap_has_up_to_32768_runs() {
        let of = |pages| lay_out(&options(vec![partition(Some(pages), 1, &[2], None)]), &any_pages());
        let most = of(1 << 15).expect("as many as there may be");
        assert_eq!((most.runs.len(), most.control.len(), most.area.pages), (1 << 15, 130, 1 << 18));
        assert!(most.runs.iter().all(|run| (run.pages, run.color, run.vpn % 4) == (1, 0, 2)));
        assert!(most.runs.windows(2).all(|pair| pair[0].vpn + 4 == pair[1].vpn));
        let refused = of((1 << 15) + 1).expect_err("one more");
        let why = "32769 runs of contiguous pages; a heap has at most 32768";
        assert_eq!(refused, HeapError::Asked(why.into()));
    }

    /// Four pages that follow each other, of two colours: two runs.
    #[test]
    fn contiguous_pages_of_a_colour_are_one_run() {
        let halves = [[0, 1], [2, 3]].map(|sets| partition(Some(2), 2, &sets, Some(1)));
        let found = lay_out(&options(halves.to_vec()), &any_pages()).expect("a layout");
        let first = found.area.first_vpn();
        let run = |vpn, color| ColorRun { vpn, pages: 2, color };
        assert_eq!(found.runs, [run(first, 0), run(first + 2, 1)]);
        // Four rows of a page follow each other: one run, or as they were asked for.
        let rows = |runs_as_asked| {
            let all = options(vec![partition(Some(4), 1, &[0, 1, 2, 3], Some(1))]);
            let found = lay_out(&HeapOptions { runs_as_asked, ..all }, &any_pages()).expect("a layout");
            found.runs.iter().map(|run| run.pages).collect::<Vec<u64>>()
        };
        assert_eq!((rows(false), rows(true)), (vec![4], vec![1; 4]));
    }

    /// Pages picked of an area of so many, from page 100 on, of which some are taken already; whether an error is for
    /// good.
    fn picked(pages: usize, taken: &[usize], wanted: &Partition) -> Result<Vec<u64>, (bool, String)> {
        let mut picks = Picks { from: 100, taken: vec![false; pages], period: 4 };
        taken.iter().for_each(|&page| picks.taken[page] = true);
        let found = picks.of(&[level()], wanted);
        if let Ok(vpns) = &found {
            let of_all = (0..pages).filter(|page| picks.taken[*page] && !taken.contains(page));
            assert!(vpns.iter().map(|vpn| *vpn as usize - 100).eq(of_all), "what is picked is taken");
        }
        found.map_err(|short| match short {
            Short::Never(why) => (true, why),
            Short::Here(why) => (false, why),
        })
    }

    #[test]
    fn a_run_that_lies_in_no_two_periods_lies_nowhere() {
        let wanted = partition(Some(2), 2, &[0, 2], Some(4));
        let refused = |for_good| Err((for_good, "a: no 2 contiguous pages lie in its sets".to_string()));
        assert_eq!(picked(12, &[], &wanted), refused(false), "two periods and twice the run");
        assert_eq!(picked(13, &[], &wanted), refused(true));
        assert_eq!(picked(13, &[5], &wanted), refused(false), "another colour may be in the way");
    }

    /// Page 100 lies in set 0, as each fourth after it; a set gives no more pages than its ways.
    #[test]
    fn pages_are_looked_for_until_two_periods_have_none() {
        let wanted = partition(Some(5), 1, &[0], Some(4));
        let refused = |for_good| Err((for_good, "a: 4 of 5 pages lie in its sets".to_string()));
        assert_eq!(picked(21, &[], &wanted), refused(false), "8 pages after the last");
        assert_eq!(picked(22, &[], &wanted), refused(true));
        assert_eq!(picked(40, &[], &wanted), refused(true));
        let four = |pages| picked(pages, &[], &partition(Some(4), 1, &[0], Some(4)));
        assert_eq!((four(13), four(40)), (Ok(vec![100, 104, 108, 112]), Ok(vec![100, 104, 108, 112])));
        assert_eq!(four(12), Err((false, "a: 3 of 4 pages lie in its sets".into())));
        // What another has is no reason to give up.
        let taken: Vec<usize> = (0..40).step_by(4).collect();
        assert_eq!(picked(48, &taken, &partition(Some(2), 1, &[0], Some(4))), Ok(vec![140, 144]));
        assert_eq!(picked(48, &[], &partition(None, 1, &[1], Some(2))), Ok(vec![101, 105]), "all that there are");
        assert_eq!(
            picked(48, &[], &partition(None, 1, &[1], None)),
            Err((true, "a: has sets without a number of ways: say how many pages it has".into()))
        );
        assert_eq!(picked(48, &[], &partition(Some(3), 2, &[1, 2], None)), Ok(vec![101, 102, 105]));
    }
}
