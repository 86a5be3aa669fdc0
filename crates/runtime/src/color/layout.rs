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
