//! Says of each group of a description's values where it is from: what was found is measured, the rest is the base's,
//! or assumed.

use lookaside_machine::{Cache, Machine, Origin, PageSize, Serves, Stage, Tlb, WalkCache};

use crate::description::arrays::serves;
use crate::report::levels::LevelReport;
use crate::report::walks::PteLocation;
use crate::report::ProbeReport;

/// Of a description that `report` was put into, over `base`, whose origins it has so far.
pub(super) fn put_origins(report: &ProbeReport, base: &Machine, machine: &mut Machine) {
    let of_base = |machine: &mut Machine, path: &str, other: &str| {
        let origin = base.origins.of(other);
        machine.origins.set(path, origin);
    };
    if report.ns_a_cycle().is_some() {
        machine.origins.set("clock_mhz", Origin::Measured);
    }
    for tlb in machine.tlbs.clone() {
        let path = format!("tlb.{}", tlb.name);
        let known = tlb.name.strip_suffix("-other-sizes").unwrap_or(&tlb.name);
        of_base(machine, &path, &format!("tlb.{known}"));
        put_tlb(report, base, &tlb, &path, machine);
    }
    for cache in machine.walk_caches.clone() {
        put_walk_cache(report, base, &cache, machine);
    }
    for cache in machine.caches.clone().iter().filter(|cache| cache.serves.contains(&Serves::Load)) {
        put_cache(report, base, cache, machine);
    }
    put_costs(report, machine);
    if report.timing.as_ref().is_some_and(|found| found.costs.value().is_some()) {
        machine.origins.set("timing", Origin::Measured);
    }
}

fn put_tlb(report: &ProbeReport, base: &Machine, tlb: &Tlb, path: &str, machine: &mut Machine) {
    let of_small = serves(tlb, tlb.level) && tlb.page_sizes == [PageSize::K4];
    let of_level = |levels: &[LevelReport]| levels.iter().find(|level| level.level == tlb.level).cloned();
    let found = match tlb.page_sizes.as_slice() {
        _ if of_small => of_level(&report.levels),
        [PageSize::M2] => report.large.as_ref().and_then(|found| of_level(&found.levels)),
        [PageSize::G1] => report.gigantic.as_ref().and_then(|found| of_level(&found.levels)),
        _ => None,
    };
    let stores = report.effects.as_ref().is_some_and(|effects| effects.store_level.value().is_some());
    let is_measured = found.as_ref().is_some_and(|level| level.geometry.value().is_some());
    if !(is_measured || stores && tlb.name == "l1-stores") {
        return;
    }
    let rest = base.origins.of(&base
        .tlbs
        .iter()
        .find(|other| other.level == tlb.level)
        .map_or_else(|| path.to_string(), |other| format!("tlb.{}", other.name)));
    machine.origins.set(path, Origin::Measured);
    for key in ["serves", "tags", "shared_by"] {
        machine.origins.set(&format!("{path}.{key}"), rest);
    }
    let mut say = |key: &str, is_measured: bool, else_from: Origin| {
        machine.origins.set(&format!("{path}.{key}"), if is_measured { Origin::Measured } else { else_from });
    };
    let Some(level) = found.filter(|_| of_small) else {
        say("replacement", false, rest);
        say("hit_cycles", false, rest);
        return;
    };
    say("replacement", level.modelled_replacement().is_some(), Origin::Assumed);
    let covers = report.covers.iter().flat_map(|covers| &covers.levels).find(|covers| covers.level == tlb.level);
    say("coalesce_pages", covers.is_some_and(|covers| covers.small.value() == Some(&1)), Origin::Assumed);
    if tlb.level > 1 {
        let before = report.levels.iter().find(|before| before.level + 1 == tlb.level);
        let by_walks = report.walks.as_ref().is_some_and(|walks| walks.second_level_cycles.value().is_some());
        let by_misses = before.is_some_and(|before| before.miss_cycles.value().is_some());
        say("hit_cycles", by_misses || tlb.level == 2 && by_walks, rest);
        let directory = report.walk_caches.iter().flat_map(|found| &found.levels).find(|found| found.table_level == 2);
        say("directory_entries", directory.is_some_and(|found| found.entries.value().is_some()), rest);
    }
}

/// Where the base has a value from; what it does not have is assumed.
fn of_known(base: &Machine, path: &str, is_known: bool) -> Origin {
    if is_known {
        base.origins.of(path)
    } else {
        Origin::Assumed
    }
}

fn put_walk_cache(report: &ProbeReport, base: &Machine, cache: &WalkCache, machine: &mut Machine) {
    let path = format!("walk_cache.{}", cache.name);
    if cache.stage == Stage::Host && !base.walk_caches.contains(cache) {
        machine.origins.set(&path, Origin::Assumed);
        return;
    }
    let of_level = |found: &&crate::report::walk_caches::WalkCacheReport| found.table_level == cache.table_level;
    let found = report.walk_caches.iter().flat_map(|found| &found.levels).find(of_level);
    let Some(held) = found.and_then(|found| found.entries.value()).filter(|_| cache.stage == Stage::Guest) else {
        return;
    };
    let rest = of_known(base, &path, base.walk_caches.iter().any(|known| known.name == cache.name));
    machine.origins.set(&path, Origin::Measured);
    if held.shape.is_none() {
        machine.origins.set(&format!("{path}.ways"), Origin::Assumed);
    }
    for key in ["replacement", "shared_by"] {
        machine.origins.set(&format!("{path}.{key}"), rest);
    }
}

fn put_cache(report: &ProbeReport, base: &Machine, cache: &Cache, machine: &mut Machine) {
    let path = format!("cache.{}", cache.name);
    let caches = report.caches.as_ref();
    let found = caches.and_then(|found| found.levels.iter().find(|found| found.level == cache.level));
    let Some(found) = found.filter(|found| found.cycles.value().is_some()) else { return };
    let rest = of_known(base, &path, base.caches.iter().any(|known| known.name == cache.name));
    machine.origins.set(&path, Origin::Measured);
    let mut say = |key: &str, origin: Origin| machine.origins.set(&format!("{path}.{key}"), origin);
    for key in ["serves", "replacement", "shared_by"] {
        say(key, rest);
    }
    if caches.is_some_and(|caches| caches.line_bytes.value().is_none()) {
        say("line_bytes", rest);
    }
    if found.shape.value().is_none() {
        // As the size needs.
        say("ways", Origin::Assumed);
        if found.bytes.value().is_none() {
            say("size", rest);
            say("ways", rest);
        }
    }
}

/// Memory, walks, ascending walks and the host's stage.
fn put_costs(report: &ProbeReport, machine: &mut Machine) {
    let known = |finding: Option<bool>| finding == Some(true);
    let origins = &mut machine.origins;
    let near = report.caches.as_ref().map(|caches| caches.memory_cycles.value().is_some());
    let far = report.spread.as_ref().map(|spread| spread.random_memory_cycles.value().is_some());
    if known(near) || known(far) {
        origins.set("memory", Origin::Measured);
    }
    if let Some(walks) = &report.walks {
        if walks.base_cycles.value().is_some() {
            origins.set("walker.base_cycles", Origin::Measured);
            let in_memory = walks.walks.iter().find(|walk| walk.place == PteLocation::Memory);
            if in_memory.is_some_and(|walk| walk.cycles.value().is_some()) && machine.walker.memory_cycles.is_some() {
                origins.set("walker.memory_cycles", Origin::Measured);
            }
        }
        if walks.first_cache_level.value() == Some(&machine.walker.first_cache_level) {
            origins.set("walker.first_cache_level", Origin::Measured);
        }
    }
    if let Some(spread) = &report.spread {
        if spread.stream_memory_cycles.value().is_some() {
            origins.set("stream", Origin::Measured);
            if spread.stream_cache_cycles.value().is_none() {
                origins.set("stream.cache_cycles", Origin::Assumed);
            }
        }
        if spread.huge_pages_are_whole.value() == Some(&false) {
            origins.set("page_table.host", Origin::Measured);
            origins.set("page_table.host.format", Origin::Assumed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreed_range::MeasuredRange;
    use crate::claims::claim::{CheckedClaim, Claim, HardwarePart, PartSize};
    use crate::finding::Finding;
    use crate::tlb::geometry::Geometry;
    use lookaside_machine::preset;

    fn claim(part: HardwarePart, amount: u64, ways: u32) -> CheckedClaim {
        let stated = Claim { source: "CPUID 4".into(), part, shape: PartSize::new(amount, ways), arrays: 1 };
        CheckedClaim::new(stated, None)
    }

    /// A report of a machine whose first level was found, and whose second was not.
    fn report() -> ProbeReport {
        let level = |level, geometry| LevelReport {
            level,
            page_size: PageSize::K4,
            geometry,
            miss_cycles: Finding::confirmed(MeasuredRange { low: 7.0, high: 8.0, passes: 2 }, Vec::new()),
            policy: Finding::not_asked(),
            trials: Vec::new(),
        };
        let first = Geometry { entries: 72, ways: 72, sets: 1, masks: Vec::new() };
        let levels = vec![
            level(1, Finding::confirmed(first, Vec::new())),
            level(2, Finding::not_determined("stopped at its time limit")),
        ];
        ProbeReport { cycles_per_tick: 1.0, levels, ..ProbeReport::default() }
    }

    #[test]
    fn what_was_found_is_measured_and_the_rest_is_the_preset_s() {
        let machine = report().machine(&preset("zen4").expect("a preset"));
        let of = |path: &str| machine.origins.of(path);
        assert_eq!(of("tlb.l1d.entries"), Origin::Measured);
        assert_eq!(of("tlb.l1d.replacement"), Origin::Assumed);
        assert_eq!(of("tlb.l1d.shared_by"), Origin::Preset);
        for path in ["tlb.l1d-other-sizes", "tlb.l2d", "walk_cache.pdc3", "cache.l3", "memory", "walker", "clock_mhz"] {
            assert_eq!(of(path), Origin::Preset, "{path}");
        }
        assert!(machine.origins.any_measured());
    }

    #[test]
    fn where_nothing_was_found_nothing_calls_itself_measured() {
        let machine = ProbeReport::default().machine(&preset("zen4").expect("a preset"));
        assert!(!machine.origins.any_measured());
        assert!(
            machine.description.starts_with("No level of this machine's TLBs was found"),
            "{}",
            machine.description
        );
    }

    #[test]
    fn cpuid_stands_in_for_caches_and_agrees_on_tlbs() {
        let tlb = |level| HardwarePart::DataTlb { level, page_size: PageSize::K4 };
        let claims = vec![
            claim(HardwarePart::DataCache { level: 3 }, 16 << 20, 16),
            claim(HardwarePart::DataCache { level: 2 }, 1000, 3),
            claim(tlb(1), 64, 64),
            claim(tlb(2), 3072, 12),
        ];
        let machine = ProbeReport { claims, ..report() }.machine(&preset("zen4").expect("a preset"));
        machine.check().expect("a possible machine");
        let last = machine.caches.iter().find(|cache| cache.name == "l3").expect("a third");
        assert_eq!((last.size, machine.origins.of("cache.l3.size")), (16 << 20, Origin::Cpuid));
        assert_eq!(machine.origins.of("cache.l3.hit_cycles"), Origin::Preset);
        assert_eq!(machine.origins.of("cache.l2.size"), Origin::Preset);
        assert_eq!(machine.origins.of("tlb.l2d.entries"), Origin::Cpuid);
        // What was measured stands, whatever is said of it.
        assert_eq!(machine.origins.of("tlb.l1d.entries"), Origin::Measured);
        let differing = vec![claim(tlb(2), 128, 12)];
        let machine = ProbeReport { claims: differing, ..report() }.machine(&preset("zen4").expect("a preset"));
        assert_eq!(machine.origins.of("tlb.l2d.entries"), Origin::Preset);
        assert!(machine.not_determined.iter().any(|line| line.starts_with("tlb.l2d: CPUID 4 says 128 entries")));
    }
}
