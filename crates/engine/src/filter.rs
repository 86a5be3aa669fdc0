//! How much a recorder may leave out without changing what the model says.
//!
//! A recorder that drops an access to the page it saw last *in the same class of pages* (class =
//! `vpn & (2^k - 1)`) drops a hit of the first TLB level that changes no replacement state, as long as
//! every set of every first-level array lies within one class: the page is then the most recent of
//! its set. With k = 0 only direct repeats are dropped, which is exact for every machine.
//!
//! Where each first-level array is fully associative under LRU, a recorder may drop all accesses to the `w` pages that it
//! saw last, `w` being at most the array's entries: these are hits whose order matters only when one of the pages is no
//! more among the last `w`. The recorder says so then ([`lookaside_trace::Event::Leave`]), and the engine puts the page's
//! entry in its place behind those of the others.

use lookaside_machine::{Machine, PageSize, Replacement, Serves, Tlb, Ways};
use lookaside_trace::TraceInfo;

use crate::lru::MAX_WAYS;
use crate::{PagePolicy, Setup};

/// What a recorder may do for a set of model runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// log2 of the classes within which a repeat of the last page may be left out.
    pub log2_classes: u32,
    /// Pages, those used last, of which all repeats may be left out; 0 = none.
    pub window: u32,
    /// Loads and stores must be filtered apart: some first-level array serves only one of them.
    pub stores_apart: bool,
    /// One filter for data and fetches: some first-level array serves both.
    pub unified: bool,
}

impl Filter {
    /// The coarsest filter that is exact for all of these runs, on machines where each kind of access that the TLBs serve has
    /// a first-level array for base pages, and where first-level arrays serve loads and stores together or apart, not some so
    /// and some so.
    ///
    /// ```
    /// # use lookaside_engine::{Filter, Setup};
    /// let none: &[Setup] = &[];
    /// assert_eq!(Filter::exact_for(none).log2_classes, 4);
    /// ```
    pub fn exact_for(setups: &[Setup]) -> Self {
        let window = if setups.is_empty() { 0 } else { MOST_WINDOW };
        let mut filter = Self { log2_classes: MOST_LOG2_CLASSES, window, stores_apart: false, unified: false };
        for setup in setups {
            filter.window = filter.window.min(window_of(&setup.machine));
            let of_base = first_for_base_pages(&setup.machine);
            let only_base = setup.os.pages == PagePolicy::Base;
            let first = setup.machine.tlbs.iter().filter(|tlb| tlb.level == 1 && !only_base);
            for tlb in first.chain(of_base.iter().copied()) {
                let serves = |kind| tlb.serves.contains(&kind);
                let data = serves(Serves::Load) || serves(Serves::Store);
                filter.stores_apart |= serves(Serves::Load) != serves(Serves::Store) && data;
                filter.unified |= data && serves(Serves::Fetch);
            }
            let classes = of_base.iter().map(|tlb| if only_base { classes_of(tlb, &setup.machine) } else { 0 });
            filter.log2_classes = classes.fold(filter.log2_classes, u32::min);
        }
        filter
    }

    /// Whether a trace that was recorded with a filter is exact for a run; the reason if it isn't.
    ///
    /// # Errors
    /// One sentence that says what was left out that this machine would have noticed.
    pub fn check(info: &TraceInfo, setup: &Setup) -> Result<(), String> {
        let exact = Self::exact_for(std::slice::from_ref(setup));
        if info.filter_log2_classes > exact.log2_classes {
            return Err(format!(
                "the trace leaves out repeats within 2^{} classes of pages; machine {} tells such accesses apart \
                 beyond 2^{}: counts are approximate",
                info.filter_log2_classes, setup.machine.name, exact.log2_classes
            ));
        }
        if info.filter_window > exact.window {
            return Err(format!(
                "the trace leaves out repeats of the {} pages used last; that is exact where the first TLB level is fully \
                 associative, LRU and of as many entries, and machine {}'s is not: counts are approximate",
                info.filter_window, setup.machine.name
            ));
        }
        if exact.stores_apart != info.filter_stores_apart && info.granularity != Default::default() {
            let (how, has) = match info.filter_stores_apart {
                true => ("of loads and of stores apart", "one first-level TLB for both"),
                false => ("over loads and stores together", "a first-level TLB for each"),
            };
            return Err(format!(
                "repeats were left out {how}, and machine {} has {has}: which of two pages was used last may be \
                 mistaken, counts are approximate (`record --filter-stores-apart` or not, as the machine wants it)",
                setup.machine.name
            ));
        }
        Ok(())
    }
}

/// More classes than this save nothing: recorders keep so many slots.
const MOST_LOG2_CLASSES: u32 = 4;

/// Recorders have room for so many pages.
const MOST_WINDOW: u32 = 64;

/// Pages that are hits of the first level, whatever else it holds.
fn window_of(machine: &Machine) -> u32 {
    let first: Vec<&Tlb> = machine.tlbs.iter().filter(|tlb| tlb.level == 1).collect();
    let beside = |a: &Tlb, b: &Tlb| {
        a.serves.iter().any(|kind| b.serves.contains(kind))
            && a.page_sizes.iter().any(|size| b.page_sizes.contains(size))
    };
    // Of several arrays that can hold a page, one has it, and which one depends on the past.
    let alone = first.iter().enumerate().all(|(i, a)| first[..i].iter().all(|b| !beside(a, b)));
    let base_is_4k = machine.page_table.format.page_sizes().first() == Some(&PageSize::K4);
    let entries = first.iter().map(|tlb| match tlb.ways {
        Ways::Full(_) if tlb.replacement == Replacement::Lru && tlb.entries as usize <= MAX_WAYS => tlb.entries,
        _ => 0,
    });
    let pages = first.iter().all(|tlb| tlb.coalesce_pages == 1 && tlb.page_sizes.contains(&PageSize::K4));
    let kinds = [Serves::Load, Serves::Store, Serves::Fetch];
    let serves = |tlb: &Tlb, kind| tlb.serves.contains(kind);
    let asked = kinds
        .iter()
        .all(|kind| first.iter().any(|tlb| serves(tlb, kind)) || !machine.tlbs.iter().any(|tlb| serves(tlb, kind)));
    entries.min().filter(|_| alone && asked && pages && base_is_4k).unwrap_or(0).min(MOST_WINDOW)
}

/// The arrays that accesses to base pages ask first, by whatever kind of access.
fn first_for_base_pages(machine: &Machine) -> Vec<&Tlb> {
    let base = machine.page_table.format.page_sizes().first().copied();
    let holds = |tlb: &&Tlb, kind| tlb.serves.contains(kind) && tlb.page_sizes.first() <= base.as_ref();
    let mut first = Vec::new();
    for kind in &[Serves::Load, Serves::Store, Serves::Fetch] {
        let level = machine.tlbs.iter().filter(|tlb| holds(tlb, kind)).map(|tlb| tlb.level).min();
        first.extend(machine.tlbs.iter().filter(|tlb| holds(tlb, kind) && Some(tlb.level) == level));
    }
    first
}

/// Low page-number bits that the set number of `tlb` determines, when only base pages are used.
fn classes_of(tlb: &Tlb, machine: &Machine) -> u32 {
    // A coalesced entry spans classes.
    let base_is_4k = machine.page_table.format.page_sizes().first() == Some(&PageSize::K4);
    let ways = match tlb.ways {
        Ways::Count(ways) if tlb.coalesce_pages == 1 && base_is_4k => ways.max(1),
        _ => return 0,
    };
    let masks = tlb.index.masks((tlb.entries / ways).max(1));
    (0..MOST_LOG2_CLASSES).take_while(|&bit| in_span(&masks, 1 << bit)).count() as u32
}

/// Whether `vector` is a sum over GF(2) of some of `rows`.
fn in_span(rows: &[u64], mut vector: u64) -> bool {
    let mut basis: Vec<u64> = Vec::new();
    for &row in rows {
        let reduced = basis.iter().fold(row, |r, b| r.min(r ^ b));
        if reduced != 0 {
            basis.push(reduced);
            basis.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
    for b in &basis {
        vector = vector.min(vector ^ b);
    }
    vector == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_get_the_coarsest_exact_filter() {
        let of = |name: &str| {
            let filter = Filter::exact_for(&[Setup::new(lookaside_machine::preset(name).expect("a preset"))]);
            (filter.log2_classes, filter.window, filter.stores_apart)
        };
        assert_eq!(of("ryzen-5900x"), (0, 64, false)); // fully associative, 64 entries
        assert_eq!(of("neoverse-n1"), (0, 48, false)); // fully associative, 48 entries
        assert_eq!(of("skylake"), (4, 0, false)); // 16 sets for data, and for fetches
        assert_eq!(of("sa1100"), (0, 0, false)); // round robin
        assert!(of("golden-cove").2);
    }

    #[test]
    fn a_trace_is_checked_against_the_machine() {
        let setup = |name: &str| Setup::new(lookaside_machine::preset(name).expect("a preset"));
        let page = TraceInfo { granularity: lookaside_trace::Granularity::Page, ..TraceInfo::default() };
        let apart = TraceInfo { filter_stores_apart: true, ..page.clone() };
        let window = TraceInfo { filter_window: 64, ..page.clone() };
        let classes = TraceInfo { filter_log2_classes: 3, ..page.clone() };
        let exact = |info: &TraceInfo, name: &str| Filter::check(info, &setup(name)).is_ok();
        assert_eq!([&page, &apart, &window, &classes].map(|info| exact(info, "skylake")), [true, false, false, true]);
        assert_eq!(
            [&page, &apart, &window, &classes].map(|info| exact(info, "ryzen-5900x")),
            [true, false, true, false]
        );
        assert_eq!([&page, &apart].map(|info| exact(info, "golden-cove")), [false, true]);
    }

    #[test]
    fn span_over_gf2() {
        assert!(in_span(&[0b0001, 0b0010], 0b0011));
        assert!(in_span(&[0b1001, 0b1000], 0b0001));
        assert!(!in_span(&[0b1001, 0b0010], 0b0001));
        assert!(!in_span(&[], 1));
        assert!(in_span(&[0b110, 0b011, 0b101], 0b110));
        assert!(!in_span(&[0b110, 0b011, 0b101], 0b001));
    }
}
