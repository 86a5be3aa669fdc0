//! A plan in another run of the program: which aligned windows of that run's regions to make huge.
//!
//! Two runs differ in where a region starts modulo 2 MiB, so a plan holds by region and byte range. Whoever applies it
//! finds the region ([`find_region`]), the planned bytes in it ([`planned_range`]), and the windows that mostly hold
//! them ([`aligned_windows`]).

use std::ops::Range;

use lookaside_trace::{MapSource, Region};

use super::plan::{PlannedWindow, WindowRegion};
use super::WINDOW_BYTES;
use crate::lock::maps::ListedMapping;

/// A window of another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// First byte, a multiple of [`WINDOW_BYTES`].
    pub addr: u64,
    /// Bytes of it that are planned: at least half.
    pub planned_bytes: u64,
    /// Which of the planned ranges has most of it; of equal ones the first.
    pub range: usize,
}

/// The aligned windows that lie wholly in a region and at least half in planned ranges (which may lie anywhere and
/// overlap), in order of address. Where the region lies half a window off, a run of n planned windows gives n + 1.
///
/// ```
/// use lookaside_techniques::hugepages::apply::aligned_windows;
/// const M: u64 = 1 << 20;
/// // A region that starts half a MiB behind a border; its third and fourth MiB are planned.
/// let found = aligned_windows(&[M / 2 + 2 * M..M / 2 + 4 * M], M / 2..16 * M);
/// assert_eq!((found.len(), found[0].addr, found[0].planned_bytes), (1, 2 * M, M + M / 2));
/// ```
pub fn aligned_windows(planned: &[Range<u64>], region: Range<u64>) -> Vec<Aligned> {
    let inside = |range: &Range<u64>| range.start.max(region.start)..range.end.min(region.end);
    let mut starts: Vec<u64> = Vec::new();
    for range in planned.iter().map(inside).filter(|range| range.start < range.end) {
        let first = range.start - range.start % WINDOW_BYTES;
        let wholly = |start: &u64| {
            *start >= region.start && start.checked_add(WINDOW_BYTES).is_some_and(|end| end <= region.end)
        };
        starts.extend((first..range.end).step_by(WINDOW_BYTES as usize).filter(wholly));
    }
    starts.sort_unstable();
    starts.dedup();
    let mut by_start: Vec<(usize, &Range<u64>)> = planned.iter().enumerate().collect();
    by_start.sort_by_key(|(_, range)| range.start);
    let longest = planned.iter().map(|range| range.end.saturating_sub(range.start)).max().unwrap_or(0);
    let aligned = starts.into_iter().map(|addr| {
        let end = addr + WINDOW_BYTES;
        let near = by_start.partition_point(|(_, range)| range.start.saturating_add(longest) <= addr);
        let near = by_start[near..].iter().take_while(|(_, range)| range.start < end);
        let (mut covered_to, mut planned_bytes, mut most) = (addr, 0, (0, usize::MAX));
        for (i, range) in near {
            let stop = range.end.min(end);
            planned_bytes += stop.saturating_sub(range.start.max(covered_to));
            covered_to = covered_to.max(stop);
            let own = stop.saturating_sub(range.start.max(addr));
            if own > most.0 || own == most.0 && *i < most.1 {
                most = (own, *i);
            }
        }
        Aligned { addr, planned_bytes, range: most.1 }
    });
    aligned.filter(|window| window.planned_bytes >= WINDOW_BYTES / 2).collect()
}

/// Where a planned window's bytes lie in a region of another run: as far from its start; in a stack, which grows
/// downwards, from its end. `None` where that is no place in it, or the plan knows no region.
pub fn planned_range(window: &PlannedWindow, actual: Range<u64>) -> Option<Range<u64>> {
    range_in(&window.region.as_ref()?.mapping, window.address, window.bytes, actual)
}

/// The same of bytes at an address of the recorded run, in a mapping of it.
pub fn range_in(mapping: &ListedMapping, address: u64, bytes: u64, actual: Range<u64>) -> Option<Range<u64>> {
    let start = match mapping.source {
        MapSource::Stack => actual.end.checked_sub(mapping.end.checked_sub(address)?)?,
        _ => actual.start.checked_add(address.checked_sub(mapping.start)?)?,
    };
    let range = start..start.checked_add(bytes)?;
    (range.start < actual.end && range.end > actual.start).then_some(range)
}

/// The region of another run that is a plan's, out of that run's `/proc/PID/maps` ([`lookaside_trace::parse_maps`]):
/// the heap, the stack, or memory of its size and protection, and of several the one made in the same place of the
/// order. The kernel puts what is made later lower. Names of memory are not told apart: few kernels keep them.
///
/// # Errors
/// There is none, or more or fewer of them; one line.
pub fn find_region<'a>(planned: &WindowRegion, listed: &'a [Region]) -> Result<&'a Region, String> {
    let (mapping, name) = (&planned.mapping, &planned.name);
    let same_kind = |region: &&Region| region.source.is_like(&mapping.source);
    if matches!(mapping.source, MapSource::Heap | MapSource::Stack) {
        return listed.iter().find(same_kind).ok_or_else(|| format!("{name}: the program has none"));
    }
    let bytes = mapping.end.saturating_sub(mapping.start);
    let is_equal = |region: &&Region| same_kind(region) && region.prot == mapping.prot && region.bytes() == bytes;
    let equals: Vec<&Region> = listed.iter().filter(is_equal).collect();
    if equals.len() != planned.equals as usize {
        let kib = bytes >> 10;
        let (found, planned) = (equals.len(), planned.equals);
        return Err(format!("{name} of {kib} KiB: the program has {found} regions of that size and protection, planned for were {planned}"));
    }
    let at = equals.len().checked_sub(planned.nth as usize + 1);
    at.and_then(|at| equals.get(at).copied()).ok_or_else(|| format!("{name}: no such region in the plan's order"))
}
