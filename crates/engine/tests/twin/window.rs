//! Machines that a window of the pages used last is exact for.

use lookaside_engine::{Setup, WalkModel};
use lookaside_machine::{Full, IndexFn, PageSize, Replacement, Serves, Ways};

/// Lets the machine's first level be what windows are exact for: a small LRU array for data and one for fetches. There
/// are no data caches, which see every access.
pub fn suited(mut setup: Setup, entries: u32) -> Setup {
    let machine = &mut setup.machine;
    let mut first = machine.tlbs[0].clone();
    if !first.page_sizes.contains(&PageSize::K4) {
        first.page_sizes.insert(0, PageSize::K4);
    }
    first.serves = vec![Serves::Load, Serves::Store];
    (first.entries, first.ways, first.index) = (entries, Ways::Full(Full::Full), IndexFn::Linear);
    (first.replacement, first.coalesce_pages) = (Replacement::Lru, 1);
    let fetch = lookaside_machine::Tlb { name: "fetch".into(), serves: vec![Serves::Fetch], ..first.clone() };
    let beyond = machine.tlbs.drain(..).filter(|tlb| tlb.level > 1).collect::<Vec<_>>();
    machine.tlbs = [first, fetch].into_iter().chain(beyond).collect();
    machine.caches.clear();
    machine.walker.first_cache_level = 1;
    setup.locks.retain(|lock| setup.machine.tlbs.iter().any(|tlb| tlb.name == lock.tlb));
    if matches!(setup.walks, WalkModel::AlwaysAt(_)) {
        setup.walks = WalkModel::Full;
    }
    setup
}
