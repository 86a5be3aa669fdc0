//! "What would help": the model run again with one thing changed.
//!
//! Each row is a [`Setup`] of its own, run over the same accesses as the base. Nothing is scaled or
//! guessed: a row is what the model counted.

use lookaside_engine::{Filter, LockedPage, Outcome, PagePolicy, ProcessRange, RegionRow, Setup, WalkModel};
use lookaside_machine::{PageSize, Serves, Tlb, Ways};
use lookaside_trace::{MapSource, TraceInfo};

use crate::{Remedy, RemedyKind};

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
}

/// The variants worth running for a base run and its outcome. Variants that can't differ from the
/// base (no mapping of a huge page's size, no data cache, …) are left out.
pub fn variants(base: &Setup, outcome: &Outcome) -> Vec<RemedyVariant> {
    let huge = huge_page(base);
    [
        huge.and_then(|size| huge_everywhere(base, size)),
        huge.and_then(|size| huge_where_hot(base, outcome, size)),
        twice_the_last_level(base),
        walks_hit_last_cache(base),
        lock_best_pages(base, outcome),
        without_host(base),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What a recorder may leave out: exact for the base and, but for windows, for any later [`variants`] of it.
pub fn filter(base: &Setup) -> Filter {
    let mut setups = vec![base.clone()];
    setups.extend(huge_page(base).and_then(|size| huge_everywhere(base, size)).map(|v| v.setup));
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

fn huge_everywhere(base: &Setup, size: PageSize) -> Option<RemedyVariant> {
    if base.os.pages == PagePolicy::Thp {
        return None;
    }
    let mut setup = base.clone();
    setup.os.pages = PagePolicy::Thp;
    Some(RemedyVariant {
        kind: RemedyKind::HugeEverywhere,
        what: format!("huge pages ({size}) everywhere"),
        setup,
        how: "THP: echo always > /sys/kernel/mm/transparent_hugepage/enabled; or, for malloc only, \
              GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
            .into(),
        caveat: "zeroing at first touch and memory bloat are not counted".into(),
    })
}

fn huge_where_hot(base: &Setup, outcome: &Outcome, size: PageSize) -> Option<RemedyVariant> {
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
    let names: Vec<String> = hot.iter().map(|r| format!("{:#x}", r.start)).collect();
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
        how: format!("madvise(MADV_HUGEPAGE) on the mappings at {}", names.join(", ")),
        caveat: "zeroing at first touch and memory bloat are not counted".into(),
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
    })
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
    })
}
