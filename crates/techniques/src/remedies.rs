//! "What would help": the model run again with one thing changed.
//!
//! Each row is a [`Setup`] of its own, run over the same accesses as the base. Nothing is scaled or
//! guessed: a row is what the model counted.

use lookaside_engine::{Filter, LockedPage, Outcome, PagePolicy, ProcessRange, RegionRow, Setup, WalkModel};
use lookaside_machine::{PageSize, Serves, Tlb, Ways};
use lookaside_trace::{MapSource, TraceInfo};

use crate::allocator::{Allocator, ALWAYS};
use crate::names::region_name;
use crate::visits::HugeWindows;
use crate::{Namer, Remedy, RemedyKind};

/// Regions that the "N hottest" row makes huge.
const HOT_REGIONS: usize = 3;
/// Pages that the lock row locks where the machine has no lockable entries: as many as a Cortex-A9 has.
const LOCKS_OTHERWISE: u32 = 4;

/// One thing to change.
#[derive(Clone, Debug, PartialEq)]
pub struct RemedyVariant {
    /// What kind of change.
    pub kind: RemedyKind,
    /// What, in words.
    pub what: String,
    /// The changed run.
    pub setup: Setup,
    /// How to get it; empty = not by a setting.
    pub how: String,
    /// What the row does not say.
    pub caveat: String,
    /// Bytes that it adds to the resident memory; `None` = none, or not known.
    pub bloat_bytes: Option<u64>,
}

/// What the variants are made from, beside the base run's setup.
#[derive(Clone, Copy)]
pub struct RemedyContext<'a> {
    /// The base run's outcome.
    pub outcome: &'a Outcome,
    /// Names who made a mapping.
    pub namer: &'a dyn Namer,
    /// Also what nobody can do on the machine at hand: other hardware.
    pub what_if: bool,
}

/// The variants worth running. Those that can't differ from the base (no mapping of a huge page's size, no data cache,
/// …) are left out.
pub fn variants(base: &Setup, context: RemedyContext) -> Vec<RemedyVariant> {
    let RemedyContext { outcome, what_if, .. } = context;
    let huge = huge_page(base);
    let lockable = base.machine.tlbs.iter().any(|tlb| tlb.lockable_entries > 0);
    [
        huge.and_then(|size| huge_everywhere(base, outcome, size)),
        huge.and_then(|size| huge_where_hot(base, context, size)),
        huge_on_the_host(base, outcome),
        without_host(base),
        (what_if || lockable).then(|| lock_best_pages(base, outcome)).flatten(),
        what_if.then(|| twice_the_last_level(base)).flatten(),
        what_if.then(|| walks_hit_last_cache(base)).flatten(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What a recorder may leave out: exact for the base and, but for windows, for any later [`variants`] of it.
pub fn filter(base: &Setup) -> Filter {
    let mut setups = vec![base.clone()];
    setups.extend(huge_page(base).and_then(|_| with_huge_pages(base)));
    setups.extend(twice_the_last_level(base).map(|v| v.setup));
    let (own, all) = (Filter::exact_for(&setups[..1]), Filter::exact_for(&setups));
    // Windows are worth it though huge pages may be asked for elsewhere, in another order.
    let same_tables = (own.stores_apart, own.unified) == (all.stores_apart, all.unified);
    Filter { window: if same_tables { own.window } else { all.window }, ..all }
}

/// Puts a variant's outcome beside the base's, both over the same accesses of a trace.
pub fn compare(
    variant: &RemedyVariant,
    base: &Outcome,
    with: &Outcome,
    accesses_share: f64,
    info: &TraceInfo,
) -> Remedy {
    let walk_cycles = |outcome: &Outcome| outcome.data.cost.walk_cycles + outcome.fetch.cost.walk_cycles;
    Remedy {
        kind: variant.kind,
        what: variant.what.clone(),
        translation_cycles: with.translation_cycles(),
        base_translation_cycles: base.translation_cycles(),
        walk_cycles: walk_cycles(with),
        base_walk_cycles: walk_cycles(base),
        walks: with.data.cost.walks + with.fetch.cost.walks,
        base_walks: base.data.cost.walks + base.fetch.cost.walks,
        base_modelled_cycles: base.modelled_cycles(),
        accesses: base.data.accesses + base.fetch.accesses,
        accesses_share,
        approximate: Filter::check(info, &variant.setup).is_err(),
        how: variant.how.clone(),
        caveat: variant.caveat.clone(),
        bloat_bytes: variant.bloat_bytes,
    }
}

/// Most saved first; ties in the order of the variants.
pub fn rank(remedies: &mut [Remedy]) {
    remedies.sort_by(|a, b| a.translation_cycles.total_cmp(&b.translation_cycles));
}

/// The huge page that the OS model would use, if the format has one.
fn huge_page(base: &Setup) -> Option<PageSize> {
    let sizes = base.machine.page_table.format.page_sizes();
    base.os.huge_page.or_else(|| sizes.into_iter().find(|size| *size >= PageSize::M1))
}

fn with_huge_pages(base: &Setup) -> Option<Setup> {
    let mut setup = base.clone();
    setup.os.pages = PagePolicy::Thp;
    (base.os.pages != PagePolicy::Thp).then_some(setup)
}

fn huge_everywhere(base: &Setup, outcome: &Outcome, size: PageSize) -> Option<RemedyVariant> {
    let setup = with_huge_pages(base)?;
    let switch = Allocator::of(&outcome.regions).and_then(Allocator::switch);
    Some(RemedyVariant {
        kind: RemedyKind::HugeEverywhere,
        what: format!("huge pages ({size}) everywhere"),
        setup,
        how: switch.map_or(ALWAYS.into(), |switch| format!("{switch}; or {ALWAYS}")),
        caveat: NOT_COUNTED.into(),
        bloat_bytes: bloat(outcome, size, &|_| true),
    })
}

/// Said of each row for huge pages.
const NOT_COUNTED: &str = "zeroing at first touch is not counted";

/// Bytes that huge pages in these mappings add to what is resident; `None` where they are not of 2 MiB.
fn bloat(outcome: &Outcome, size: PageSize, of: &dyn Fn(&RegionRow) -> bool) -> Option<u64> {
    if size != PageSize::M2 {
        return None;
    }
    let (pages, windows) = HugeWindows::new(&outcome.regions, of).touched(outcome);
    Some((windows * PageSize::M2.bytes()).saturating_sub(pages * PageSize::K4.bytes()))
}

fn huge_where_hot(base: &Setup, context: RemedyContext, size: PageSize) -> Option<RemedyVariant> {
    let outcome = context.outcome;
    let mut hot: Vec<&RegionRow> = outcome
        .regions
        .iter()
        .filter(|r| !r.source.is_file() && r.source != MapSource::Stack && holds_huge(r, size))
        .filter(|r| r.cost.walk_cycles > 0.0)
        .collect();
    if hot.len() < 2 || base.os.pages != PagePolicy::Base {
        return None; // with one such region this row says the same as "everywhere"
    }
    hot.sort_by(|a, b| b.cost.walk_cycles.total_cmp(&a.cost.walk_cycles).then(a.start.cmp(&b.start)));
    hot.truncate(HOT_REGIONS.min(hot.len() - 1));
    let bytes: u64 = hot.iter().map(|r| r.end - r.start).sum();
    let name = |region: &&RegionRow| {
        format!("{} ({} MiB)", region_name(region, context.namer), (region.end - region.start) >> 20)
    };
    let names: Vec<String> = hot.iter().map(name).collect();
    let starts: Vec<(u32, u64)> = hot.iter().map(|region| (region.process, region.start)).collect();
    let windows = bytes.div_ceil(size.bytes());
    let ranges =
        hot.iter().map(|r| ProcessRange { process: Some(r.process), start: r.start, end: r.end }).collect::<Vec<_>>();
    let mut setup = base.clone();
    setup.os.pages = PagePolicy::Selective(ranges);
    Some(RemedyVariant {
        kind: RemedyKind::HugeWhereHot,
        what: match hot.len() {
            1 => format!("huge pages for the hottest region ({} MiB)", bytes >> 20),
            n => format!("huge pages for the {n} hottest regions ({} MiB)", bytes >> 20),
        },
        setup,
        how: format!(
            "lookaside run --hugepages=auto:{windows} -- CMD; or madvise(MADV_HUGEPAGE) on {}",
            names.join(", ")
        ),
        caveat: NOT_COUNTED.into(),
        bloat_bytes: bloat(outcome, size, &|region| starts.contains(&(region.process, region.start))),
    })
}

/// Whether an aligned huge page fits in the region.
fn holds_huge(region: &RegionRow, size: PageSize) -> bool {
    let first = region.start.div_ceil(size.bytes()).saturating_mul(size.bytes());
    first.checked_add(size.bytes()).is_some_and(|end| end <= region.end)
}

/// The arrays of the last level that serve data.
fn last_level(tlbs: &mut [Tlb]) -> impl Iterator<Item = &mut Tlb> {
    let last = tlbs.iter().filter(|t| t.serves.contains(&Serves::Load)).map(|t| t.level).max().unwrap_or(0);
    tlbs.iter_mut().filter(move |t| t.level == last && t.serves.contains(&Serves::Load))
}

fn twice_the_last_level(base: &Setup) -> Option<RemedyVariant> {
    let mut setup = base.clone();
    let mut changes = Vec::new();
    for tlb in last_level(&mut setup.machine.tlbs) {
        // More ways rather than more sets: the index function stays what it is.
        if let Ways::Count(ways) = tlb.ways {
            tlb.ways = Ways::Count(ways * 2);
        }
        changes.push(format!("{}: {} → {} entries", tlb.name, tlb.entries, tlb.entries * 2));
        tlb.entries *= 2;
    }
    (!changes.is_empty()).then(|| RemedyVariant {
        kind: RemedyKind::LargerTlb,
        what: format!("twice the last-level TLB ({})", changes.join(", ")),
        setup,
        how: String::new(),
        caveat: "another processor; same latency assumed".into(),
        bloat_bytes: None,
    })
}

fn walks_hit_last_cache(base: &Setup) -> Option<RemedyVariant> {
    if base.walks != WalkModel::Full {
        return None;
    }
    let llc = base.machine.caches.iter().filter(|c| c.serves.contains(&Serves::Load)).max_by_key(|c| c.level)?;
    let mut setup = base.clone();
    setup.walks = WalkModel::AlwaysAt(llc.name.clone());
    Some(RemedyVariant {
        kind: RemedyKind::WalksHitLastCache,
        what: format!("every walk reference served by {}", llc.name),
        setup,
        how: "the aim of baking: a helper on another core keeps page-table lines in the shared cache".into(),
        caveat: format!(
            "each reference costs {} cycles, also those that a nearer cache would have served; the helper's own \
             cost is not counted",
            llc.hit_cycles
        ),
        bloat_bytes: None,
    })
}

fn lock_best_pages(base: &Setup, outcome: &Outcome) -> Option<RemedyVariant> {
    let mut setup = base.clone();
    let (tlb, own, places) = {
        let array = last_level(&mut setup.machine.tlbs).next()?;
        let own = array.lockable_entries;
        let places = if own == 0 { LOCKS_OTHERWISE } else { own };
        array.lockable_entries = places;
        (array.name.clone(), own, places)
    };
    let mut pages: Vec<_> = outcome.pages.iter().filter(|p| p.cost.walk_cycles > 0.0).collect();
    pages.sort_by(|a, b| {
        b.cost.walk_cycles.total_cmp(&a.cost.walk_cycles).then((a.process, a.addr).cmp(&(b.process, b.addr)))
    });
    pages.truncate(places as usize);
    if pages.is_empty() {
        return None;
    }
    setup.locks =
        pages.iter().map(|p| LockedPage { tlb: tlb.clone(), process: Some(p.process), addr: p.addr }).collect();
    Some(RemedyVariant {
        kind: RemedyKind::LockedPages,
        what: format!("the {} best pages locked in {tlb}", pages.len()),
        setup,
        how: String::new(),
        caveat: if own == 0 {
            format!("this machine has no lockable entries; {places} are assumed")
        } else {
            "pages chosen by walk cycles of this very run".into()
        },
        bloat_bytes: None,
    })
}

/// Huge pages here, and on a host that has smaller ones: where it has, no entry of the TLB holds a whole huge page.
fn huge_on_the_host(base: &Setup, outcome: &Outcome) -> Option<RemedyVariant> {
    let host = base.machine.page_table.host.as_ref()?;
    let here = huge_everywhere(base, outcome, PageSize::M2)?;
    if host.page_size >= PageSize::M2 || !host.format.page_sizes().contains(&PageSize::M2) {
        return None;
    }
    let small = host.page_size;
    let mut setup = here.setup.clone();
    setup.machine.page_table.host.as_mut()?.page_size = PageSize::M2;
    let assumed = entries_hold_huge_pages(&mut setup.machine.tlbs);
    let assumption = if assumed { "; that a TLB entry holds a whole 2M page then is assumed" } else { "" };
    Some(RemedyVariant {
        caveat: format!("{NOT_COUNTED}{assumption}"),
        kind: RemedyKind::HugeOnHost,
        what: "huge pages (2M) here and on the host".into(),
        setup,
        how: format!(
            "the host backs this VM by {small} pages: ask there for transparent or hugetlb pages of 2M; here: {}",
            here.how
        ),
        ..here
    })
}

/// Where no array of a level holds pages of 2 MiB, since none was seen behind a host with small ones, those for small
/// pages do. Whether there was such a level.
fn entries_hold_huge_pages(tlbs: &mut [Tlb]) -> bool {
    let holds = |tlb: &Tlb, size| tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&size);
    let known: Vec<u32> = tlbs.iter().filter(|tlb| holds(tlb, PageSize::M2)).map(|tlb| tlb.level).collect();
    let mut assumed = false;
    for tlb in tlbs.iter_mut().filter(|tlb| holds(tlb, PageSize::K4) && !known.contains(&tlb.level)) {
        tlb.page_sizes.push(PageSize::M2);
        assumed = true;
    }
    assumed
}

fn without_host(base: &Setup) -> Option<RemedyVariant> {
    base.machine.page_table.host.as_ref()?;
    let mut setup = base.clone();
    setup.machine.page_table.host = None;
    setup.machine.walk_caches.retain(|c| c.stage == lookaside_machine::Stage::Guest);
    Some(RemedyVariant {
        kind: RemedyKind::OneStage,
        what: "no virtual machine (one stage of translation)".into(),
        setup,
        how: "run on the host".into(),
        caveat: String::new(),
        bloat_bytes: None,
    })
}
