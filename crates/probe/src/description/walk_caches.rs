//! Puts the walk caches that were found into a machine description, and directory entries into the TLB that holds them.

use lookaside_machine::{Full, Machine, Replacement, SharedBy, Stage, Tlb, WalkCache, Ways};

use crate::description::arrays::serves;
use crate::report::walk_caches::{WalkCacheSize, WalkCaches};

/// Sizes of walk caches, as the guest's stage sees them.
pub(super) fn put_walk_caches(found: &WalkCaches, machine: &mut Machine, from: &str, lack: &mut Vec<String>) {
    for level in &found.levels {
        let of_level = |cache: &WalkCache| cache.stage == Stage::Guest && cache.table_level == level.table_level;
        let at = machine.walk_caches.iter().position(of_level);
        let Some(held) = level.entries.value() else {
            let reason = level.entries.reason().unwrap_or_default();
            let within = machine.tlbs.iter().find(|tlb| level.table_level == 2 && tlb.directory_entries);
            lack.push(match (at, within) {
                (Some(at), _) => format!("walk_cache.{}: {reason}; {from}", machine.walk_caches[at].name),
                (None, Some(tlb)) => format!("tlb.{}.directory_entries: {reason}; {from}", tlb.name),
                (None, None) => format!("walk_cache of table level {}: {reason}; none stands in", level.table_level),
            });
            continue;
        };
        let second = machine.tlbs.iter_mut().find(|tlb| serves(tlb, 2));
        if let Some(tlb) = second.filter(|tlb| level.table_level == 2 && is_size_of(held, tlb)) {
            tlb.directory_entries = true;
            lack.push(format!(
                "tlb.{}.directory_entries: {held} measured, as many as it has; that they lie in it, where a page as large as \
                 what one covers would, is inferred",
                tlb.name
            ));
            machine.walk_caches.retain(|cache| !of_level(cache));
            continue;
        }
        if level.table_level == 2 {
            machine.tlbs.iter_mut().for_each(|tlb| tlb.directory_entries = false);
            // the preset's
        }
        let at = at.unwrap_or_else(|| {
            machine.walk_caches.push(WalkCache {
                name: format!("level-{}", level.table_level),
                table_level: level.table_level,
                entries: 0,
                ways: Ways::Full(Full::Full),
                replacement: Replacement::Lru,
                hit_cycles: 0.0,
                stage: Stage::Guest,
                shared_by: SharedBy::Core,
            });
            machine.walk_caches.len() - 1
        });
        let cache = &mut machine.walk_caches[at];
        cache.entries = held.at_least;
        cache.ways = match held.shape {
            Some((ways, sets)) if sets > 1 => Ways::Count(ways),
            _ => Ways::Full(Full::Full),
        };
        let name = &cache.name;
        if held.at_most > held.at_least {
            lack.push(format!("walk_cache.{name}.entries: {held} measured, {} stands in", held.at_least));
        }
        if held.shape.is_none() {
            lack.push(format!("walk_cache.{name}.ways: not determined; full stands in"));
        }
        lack.push(format!("walk_cache.{name}: replacement and shared_by: {from}"));
    }
    for cache in machine.walk_caches.iter().filter(|cache| cache.stage == Stage::Guest) {
        if found.levels.iter().all(|level| level.table_level != cache.table_level) {
            lack.push(format!("walk_cache.{}: not looked for; {from}", cache.name));
        }
    }
}

/// As many as the array has entries? Sets and ways may be others: on Zen 4 those of directories show 512 sets of 6 ways
/// where pages show 256 of 12.
fn is_size_of(held: &WalkCacheSize, tlb: &Tlb) -> bool {
    (held.at_least..=held.at_most).contains(&tlb.entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreed_range::MeasuredRange;
    use crate::finding::Finding;
    use crate::report::walk_caches::WalkCacheReport;
    use crate::report::ProbeReport;
    use lookaside_machine::preset;

    #[test]
    fn walk_caches_are_those_found_and_the_others_are_named() {
        let held =
            |at_least, at_most, shape| Finding::confirmed(WalkCacheSize { at_least, at_most, shape }, Vec::new());
        let level = |table_level, entries| WalkCacheReport {
            table_level,
            entries,
            miss_cycles: Finding::confirmed(MeasuredRange { low: 5.0, high: 6.0, passes: 2 }, Vec::new()),
            passes_differ: false,
            curves: Vec::new(),
        };
        let base = preset("ryzen-5900x").expect("a preset");
        let beside = |levels, base| {
            let report = ProbeReport { walk_caches: Some(WalkCaches { levels }), ..ProbeReport::default() };
            let machine = report.machine(base);
            machine.check().expect("a possible machine");
            machine
        };
        let machine = |levels| beside(levels, &base);
        let both = machine(vec![level(2, held(32, 32, Some((4, 8)))), level(3, held(57, 60, None))]);
        let of = |machine: &Machine, table_level| {
            let cache = machine.walk_caches.iter().find(|cache| cache.table_level == table_level).expect("a cache");
            (cache.entries, cache.ways)
        };
        assert_eq!(of(&both, 2), (32, Ways::Count(4)));
        assert_eq!(of(&both, 3), (57, Ways::Full(Full::Full)));
        let names = |machine: &Machine, line: &str| machine.not_determined.iter().any(|other| other.starts_with(line));
        assert!(names(&both, "walk_cache.pdc3.entries: 57 to 60 entries measured"));
        assert!(names(&both, "walk_cache.pdc4: not looked for"));
        let entries = both.tlbs.iter().find(|tlb| tlb.level == 2).expect("a second level").entries;
        let within = machine(vec![level(2, held(entries - 10, entries + 10, None))]);
        assert!(within.tlbs.iter().any(|tlb| tlb.directory_entries && tlb.level == 2));
        assert!(within.walk_caches.iter().all(|cache| cache.table_level != 2));
        assert!(names(&within, "tlb.l2d.directory_entries: "));
        let more = machine(vec![level(2, held(entries + 1, 2 * entries, None))]);
        assert!(!more.tlbs.iter().any(|tlb| tlb.directory_entries));
        let none =
            machine(vec![level(2, Finding::not_determined("a walk costs the same")), level(3, held(8, 8, None))]);
        assert_eq!(of(&none, 2), (64, Ways::Full(Full::Full)));
        assert!(names(&none, "walk_cache.pde: a walk costs the same; from preset"));
        // A preset that has them in the TLB already.
        let base = preset("zen4").expect("a preset");
        let holds = |machine: &Machine| machine.tlbs.iter().filter(|tlb| tlb.directory_entries).count();
        let within = beside(vec![level(2, held(3072, 3072, Some((6, 512))))], &base);
        assert_eq!((holds(&within), within.walk_caches.iter().any(|cache| cache.table_level == 2)), (1, false));
        let apart = beside(vec![level(2, held(32, 32, None))], &base);
        assert_eq!((holds(&apart), of(&apart, 2)), (0, (32, Ways::Full(Full::Full))));
        let none = beside(vec![level(2, Finding::not_determined("a walk costs the same"))], &base);
        assert_eq!(holds(&none), 1);
        assert!(names(&none, "tlb.l2d.directory_entries: a walk costs the same; from preset"));
    }
}
