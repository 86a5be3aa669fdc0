//! Trying everything, on machines and task sets that are small enough.

use lookaside_machine::ColorLevel;

/// Pages and contiguous pages of each task.
pub type Needs = [(usize, usize)];

/// Calls `f` with the pages of each task, for all placements that differ in the sets of some run or in the number of
/// single pages of some sets, until it gives true; gives whether it did. `period`: pages after which sets repeat.
pub fn any_placement(
    levels: &[ColorLevel],
    period: usize,
    needs: &Needs,
    f: &mut dyn FnMut(&[Vec<usize>]) -> bool,
) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    let classes: Vec<usize> = (0..period).filter(|&page| seen.insert(sets_of(levels, page))).collect();
    tasks(&classes, period, needs, &mut Vec::new(), f)
}

/// The sets of a page.
pub fn sets_of(levels: &[ColorLevel], page: usize) -> Vec<u32> {
    levels.iter().map(|level| level.set_of(page as u64)).collect()
}

fn tasks(
    classes: &[usize],
    period: usize,
    needs: &Needs,
    laid: &mut Vec<Vec<usize>>,
    f: &mut dyn FnMut(&[Vec<usize>]) -> bool,
) -> bool {
    let Some(&(pages, run)) = needs.get(laid.len()) else { return f(laid) };
    let starts = if run > 1 { (0..period).collect() } else { vec![0] };
    for start in starts {
        laid.push(if run > 1 { (start..start + run).collect() } else { Vec::new() });
        if singles(classes, 0, period, pages, needs, laid, f) {
            return true;
        }
        laid.pop();
    }
    false
}

/// Adds single pages to the last task, of classes from the `from`-th on, then goes on to the next task.
fn singles(
    classes: &[usize],
    from: usize,
    period: usize,
    pages: usize,
    needs: &Needs,
    laid: &mut Vec<Vec<usize>>,
    f: &mut dyn FnMut(&[Vec<usize>]) -> bool,
) -> bool {
    let last = laid.len() - 1;
    if laid[last].len() == pages {
        return tasks(classes, period, needs, laid, f);
    }
    for class in from..classes.len() {
        laid[last].push(classes[class]);
        if singles(classes, class, period, pages, needs, laid, f) {
            return true;
        }
        laid[last].pop();
    }
    false
}
