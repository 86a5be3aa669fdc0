//! Rows for another machine: a larger TLB, walks that always hit the last cache, locked pages, no virtual machine.

use lookaside_engine::{LockedPage, Outcome, Setup, WalkModel};
use lookaside_machine::{Serves, Stage, Tlb, Ways};

use super::variant::RemedyVariant;
use crate::RemedyKind;

/// Pages that the lock row locks where the machine has no lockable entries: as many as a Cortex-A9 has.
const LOCKS_OTHERWISE: u32 = 4;

/// One stage of translation; `None` where there is only one.
pub(super) fn without_host(base: &Setup) -> Option<RemedyVariant> {
    base.machine.page_table.host.as_ref()?;
    let mut setup = base.clone();
    setup.machine.page_table.host = None;
    setup.machine.walk_caches.retain(|c| c.stage == Stage::Guest);
    Some(RemedyVariant {
        kind: RemedyKind::OneStage,
        what: "no virtual machine (one stage of translation)".into(),
        setup,
        how: "run on the host".into(),
        caveat: String::new(),
        bloat_bytes: None,
    })
}

/// Twice the entries of the arrays that serve data at the last level.
pub(super) fn twice_the_last_level(base: &Setup) -> Option<RemedyVariant> {
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

/// Walk references that cost a hit in the last data cache.
pub(super) fn walks_hit_last_cache(base: &Setup) -> Option<RemedyVariant> {
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

/// The pages whose walks cost most held in lockable entries.
pub(super) fn lock_best_pages(base: &Setup, outcome: &Outcome) -> Option<RemedyVariant> {
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

/// The arrays of the last level that serve data.
fn last_level(tlbs: &mut [Tlb]) -> impl Iterator<Item = &mut Tlb> {
    let last = tlbs.iter().filter(|t| t.serves.contains(&Serves::Load)).map(|t| t.level).max().unwrap_or(0);
    tlbs.iter_mut().filter(move |t| t.level == last && t.serves.contains(&Serves::Load))
}
