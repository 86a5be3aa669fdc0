//! How much a recorder may leave out without changing what the model says.
//!
//! A recorder that drops an access to the page it saw last *in the same class of pages* (class =
//! `vpn & (2^k - 1)`) drops a hit of the first TLB level that changes no replacement state, as long as
//! every set of every first-level array lies within one class: the page is then the most recent of
//! its set. With k = 0 only direct repeats are dropped, which is exact for every machine.
//!
//! Where each first-level array keeps the pages used last, a recorder may drop all accesses to those in a *window*
//! ([`lookaside_trace::TraceInfo::filter_window`]): these are hits whose order matters only
//!
//! - in a fully associative array under LRU: when one of the pages is no more in the window. The recorder says so then
//!   ([`lookaside_trace::WindowChange::Leave`]), and the engine puts the page's entry in its place behind those of the
//!   others.
//! - in a set: when another page comes into it. Before one of the class does, the recorder says which pages of the
//!   class were used since, in order ([`lookaside_trace::WindowChange::Touch`]). The last uses alone, in order, make what
//!   LRU and tree-PLRU know of a set.
//!
//! A set under LRU keeps as many pages of those used last as it has ways. Under tree-PLRU it keeps log2(ways) + 1, or,
//! where these are no power of two, one more than the nodes above the way that has the fewest: an
//! access to another page turns one node of a page's path towards it, that where their paths part, and those above away
//! from it; so that all point to it only after as many others, in other subtrees each, and the next may take its place.

use lookaside_machine::{tree_least_depth, Machine, PageSize, Replacement, Serves, Tlb, Ways};
use lookaside_trace::{FilterWindow, TraceInfo};

use crate::{PagePolicy, Setup};

/// What a recorder may do for a set of model runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// log2 of the classes within which a repeat of the last page may be left out.
    pub log2_classes: u32,
    /// Pages, those used last, of which all repeats may be left out. Decided by the arrays that base pages ask, where
    /// there are no others.
    pub window: FilterWindow,
    /// Loads and stores must be filtered apart: some first-level array serves only one of them.
    pub stores_apart: bool,
    /// One filter for data and fetches: some first-level array serves both.
    pub unified: bool,
}

impl Filter {
    /// The coarsest filter that is exact for all of these runs, on machines where each kind of access that the TLBs
    /// serve has a first-level array for base pages, and where first-level arrays serve loads and stores together or
    /// apart, not some so and some so.
    ///
    /// ```
    /// # use lookaside_engine::{Filter, Setup};
    /// let none: &[Setup] = &[];
    /// assert_eq!(Filter::exact_for(none).log2_classes, 4);
    /// ```
    pub fn exact_for(setups: &[Setup]) -> Self {
        let window = FilterWindow::default();
        let mut filter = Self { log2_classes: MOST_LOG2_CLASSES, window, stores_apart: false, unified: false };
        for setup in setups {
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
        let limits = setups.iter().map(FilterLimits::of).reduce(FilterLimits::both);
        filter.window = limits.map(FilterLimits::coarsest).unwrap_or_default();
        if setups.len() > 1 {
            // A window is of one array, for all of the runs.
            let tables = |one: &Self| (one.stores_apart, one.unified);
            let alone = |setup| tables(&Self::exact_for(std::slice::from_ref(setup)));
            if setups.iter().any(|setup| alone(setup) != tables(&filter)) {
                filter.window = FilterWindow::default();
            }
        }
        filter
    }

    /// Whether a trace that was recorded with a filter is exact for a run; the reason if it isn't.
    ///
    /// # Errors
    /// One sentence that says what was left out that this machine would have noticed.
    pub fn check(info: &TraceInfo, setup: &Setup) -> Result<(), String> {
        let exact = Self::exact_for(std::slice::from_ref(setup));
        if info.window().is_none() && info.filter_log2_classes > exact.log2_classes {
            return Err(format!(
                "the trace leaves out repeats within 2^{} classes of pages; machine {} tells such accesses apart \
                 beyond 2^{}: counts are approximate",
                info.filter_log2_classes, setup.machine.name, exact.log2_classes
            ));
        }
        if let Some(window) = info.window().filter(|window| !FilterLimits::of(setup).allow(window)) {
            return Err(format!(
                "the trace leaves out repeats of the {} pages used last ({} of each of 2^{} classes); the first TLB \
                 level of machine {} does not keep them all: counts are approximate",
                window.pages,
                window.class_pages.min(window.pages),
                window.log2_classes,
                setup.machine.name
            ));
        }
        if exact.stores_apart != info.filter_stores_apart && info.granularity != Default::default() {
            let (how, has) = match info.filter_stores_apart {
                true => ("of loads and of stores apart", "one first-level TLB for both"),
                false => ("over loads and stores together", "a first-level TLB for each"),
            };
            return Err(format!(
                "repeats were left out {how}, and machine {name} has {has}: which of two pages was used last may be \
                 mistaken, counts are approximate (`record --machine {name}` is exact)",
                name = setup.machine.name
            ));
        }
        Ok(())
    }
}

/// More classes than this save nothing: recorders keep so many slots.
const MOST_LOG2_CLASSES: u32 = 4;

/// Recorders have room for so many pages.
const MOST_WINDOW: u32 = 64;

/// What windows may hold that a first level keeps.
#[derive(Clone, Copy, Debug)]
struct FilterLimits {
    /// In all; 0 = no windows.
    pages: u32,
    /// Where arrays have sets: log2 of the classes, and of one class.
    sets: Option<(u32, u32)>,
}

impl FilterLimits {
    fn of(setup: &Setup) -> Self {
        let machine = &setup.machine;
        let first = match setup.os.pages {
            PagePolicy::Base => first_for_base_pages(machine),
            _ => machine.tlbs.iter().filter(|tlb| tlb.level == 1).collect(),
        };
        // Of several arrays that can hold a page, one has it, and which one depends on the past.
        let alone = first.iter().enumerate().all(|(i, a)| first[..i].iter().all(|b| are_apart(a, b)));
        let base_is_4k = machine.page_table.format.page_sizes().first() == Some(&PageSize::K4);
        let pages = first.iter().all(|tlb| {
            tlb.level == 1 && tlb.coalesce_pages == 1 && tlb.page_sizes.contains(&PageSize::K4) && base_is_4k
        });
        let is_asked = |kind| {
            let serves = |tlb: &&Tlb| tlb.serves.contains(&kind);
            first.iter().copied().any(|tlb| serves(&tlb)) || !machine.tlbs.iter().any(|tlb| serves(&tlb))
        };
        // One table of a recorder is of one array.
        let is_unified = first.iter().any(|tlb| tlb.serves.contains(&Serves::Fetch) && tlb.serves.len() > 1);
        let none = Self { pages: 0, sets: None };
        if !(alone && pages && KINDS.into_iter().all(is_asked)) || is_unified && first.len() > 1 {
            return none;
        }
        let of_first = first.iter().map(|tlb| Self::of_array(tlb, setup));
        of_first.reduce(Self::both).unwrap_or(none)
    }

    fn of_array(tlb: &Tlb, setup: &Setup) -> Self {
        let none = Self { pages: 0, sets: None };
        let ways = tlb.ways.count(tlb.entries);
        if tlb.sets() == 1 {
            return Self { pages: if tlb.replacement == Replacement::Lru { ways } else { 0 }, sets: None };
        }
        let kept = match tlb.replacement {
            Replacement::Lru => ways,
            Replacement::TreePlru => tree_least_depth(ways) + 1,
            _ => return none,
        };
        match (&setup.os.pages, classes_of(tlb, &setup.machine)) {
            (PagePolicy::Base, log2_classes @ 1..) => Self { pages: u32::MAX, sets: Some((log2_classes, kept)) },
            _ => none,
        }
    }

    fn both(self, other: Self) -> Self {
        let sets = match (self.sets, other.sets) {
            (Some((classes, kept)), Some((others, its))) => Some((classes.min(others), kept.min(its))),
            (sets, others) => sets.or(others),
        };
        Self { pages: self.pages.min(other.pages), sets }
    }

    /// The largest window.
    fn coarsest(self) -> FilterWindow {
        let most = self.pages.min(MOST_WINDOW);
        let (log2_classes, class_pages) = self.sets.unwrap_or((0, most));
        let class_pages = class_pages.min(most);
        let pages = most.min(class_pages << log2_classes);
        if pages == 0 {
            return FilterWindow::default();
        }
        FilterWindow { pages, log2_classes, class_pages }
    }

    /// Does the first level keep all that is in such a window?
    fn allow(self, window: &FilterWindow) -> bool {
        let keeps_sets = |(log2_classes, kept): (u32, u32)| {
            (1..=log2_classes).contains(&window.log2_classes) && (1..=kept).contains(&window.class_pages)
        };
        window.pages <= self.pages && self.sets.is_none_or(keeps_sets)
    }
}

const KINDS: [Serves; 3] = [Serves::Load, Serves::Store, Serves::Fetch];

/// No access asks both arrays.
fn are_apart(a: &Tlb, b: &Tlb) -> bool {
    !a.serves.iter().any(|kind| b.serves.contains(kind)) || !a.page_sizes.iter().any(|size| b.page_sizes.contains(size))
}

/// The arrays that accesses to base pages ask first, by whatever kind of access.
fn first_for_base_pages(machine: &Machine) -> Vec<&Tlb> {
    let base = machine.page_table.format.page_sizes().first().copied();
    let holds = |tlb: &&Tlb, kind| tlb.serves.contains(kind) && tlb.page_sizes.first() <= base.as_ref();
    let is_first = |tlb: &&Tlb, kind| {
        let level = machine.tlbs.iter().filter(|tlb| holds(tlb, kind)).map(|tlb| tlb.level).min();
        holds(tlb, kind) && Some(tlb.level) == level
    };
    machine.tlbs.iter().filter(|tlb| KINDS.iter().any(|kind| is_first(tlb, kind))).collect()
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
            let window = (filter.window.pages, filter.window.log2_classes, filter.window.class_pages);
            (filter.log2_classes, window, filter.stores_apart)
        };
        assert_eq!(of("ryzen-5900x"), (0, (64, 0, 64), false)); // fully associative, 64 entries
        assert_eq!(of("zen4"), (0, (64, 0, 64), false)); // fully associative, 72 entries
        assert_eq!(of("zen5"), (0, (64, 0, 64), false)); // fully associative, 96 entries
        assert_eq!(of("neoverse-n1"), (0, (48, 0, 48), false)); // fully associative, 48 entries
        assert_eq!(of("skylake"), (4, (48, 4, 3), false)); // 16 sets for data, and for fetches; trees of 4 and 8 ways
        assert_eq!(of("xeon-e5-2650"), (4, (64, 4, 4), false)); // 16 sets of 4 ways for data, 32 for fetches
        assert_eq!(of("golden-cove"), (0, (16, 4, 6), true)); // 16 sets of 6 ways for loads, 16 entries for stores
        assert_eq!(of("sa1100"), (0, (0, 0, 0), false)); // round robin
    }

    #[test]
    fn windows_are_of_what_runs_have_in_common() {
        let setup = |name: &str| Setup::new(lookaside_machine::preset(name).expect("a preset"));
        let window = |setups: &[Setup]| {
            let window = Filter::exact_for(setups).window;
            (window.pages, window.log2_classes, window.class_pages)
        };
        assert_eq!(window(&[setup("ryzen-5900x"), setup("xeon-e5-2650")]), (64, 4, 4));
        assert_eq!(window(&[setup("neoverse-n1"), setup("skylake")]), (48, 4, 3));
        // Loads and stores in one array here, not there.
        assert_eq!(window(&[setup("skylake"), setup("golden-cove")]), (0, 0, 0));
        assert_eq!(window(&[]), (0, 0, 0));
        // Of sets only where all pages are of one size.
        let huge = |name| {
            let mut setup = setup(name);
            setup.os.pages = PagePolicy::Thp;
            window(&[setup])
        };
        assert_eq!((huge("ryzen-5900x"), huge("skylake")), ((64, 0, 64), (0, 0, 0)));
        // First levels that keep nothing for sure, or have sets that classes don't tell apart.
        let with = |change: fn(&mut Tlb)| {
            let mut setup = setup("xeon-e5-2650");
            setup.machine.tlbs.iter_mut().filter(|tlb| tlb.name == "l1d-4k").for_each(change);
            window(&[setup])
        };
        assert_eq!(with(|tlb| tlb.replacement = Replacement::Fifo), (0, 0, 0));
        assert_eq!(with(|tlb| tlb.replacement = Replacement::Random), (0, 0, 0));
        assert_eq!(with(|tlb| tlb.coalesce_pages = 4), (0, 0, 0));
        assert_eq!(with(|tlb| tlb.index = lookaside_machine::IndexFn::Masks(vec![0x11, 0x22, 0x44, 0x88])), (0, 0, 0));
        assert_eq!(with(|tlb| tlb.index = lookaside_machine::IndexFn::Masks(vec![0x1, 0x22, 0x44, 0x88])), (8, 1, 4));
        assert_eq!(with(|tlb| tlb.replacement = Replacement::TreePlru), (48, 4, 3));
        assert_eq!(with(|tlb| (tlb.entries, tlb.ways) = (4, Ways::Count(4))), (4, 4, 4));
    }

    #[test]
    fn a_trace_is_checked_against_the_machine() {
        let setup = |name: &str| Setup::new(lookaside_machine::preset(name).expect("a preset"));
        let page = TraceInfo { granularity: lookaside_trace::Granularity::Page, ..TraceInfo::default() };
        let apart = TraceInfo { filter_stores_apart: true, ..page.clone() };
        let window = TraceInfo { filter_window: 64, filter_class_pages: 64, ..page.clone() };
        let sets = TraceInfo { filter_window: 48, filter_log2_classes: 4, filter_class_pages: 3, ..page.clone() };
        let classes = TraceInfo { filter_log2_classes: 3, ..page.clone() };
        let exact = |info: &TraceInfo, name: &str| Filter::check(info, &setup(name)).is_ok();
        let all = |name: &str| [&page, &apart, &window, &sets, &classes].map(|info| exact(info, name));
        assert_eq!(all("skylake"), [true, false, false, true, true]);
        assert_eq!(all("xeon-e5-2650"), [true, false, false, true, true]);
        assert_eq!(all("ryzen-5900x"), [true, false, true, true, false]);
        assert_eq!(all("neoverse-n1"), [true, false, false, true, false]);
        let more = TraceInfo { filter_class_pages: 4, ..sets.clone() };
        let finer = TraceInfo { filter_log2_classes: 5, ..sets.clone() };
        assert_eq!([more, finer].map(|info| exact(&info, "skylake")), [false, false]);
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
