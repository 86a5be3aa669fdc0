//! Turns a report into a machine description: what was measured replaces the preset's values, the rest is named as not
//! determined.

use lookaside_machine::Machine;

use crate::description::costs::describe_costs;
use crate::description::cpuid::put_cpuid;
use crate::description::origins::put_origins;
use crate::description::timing::put_timing;
use crate::report::ProbeReport;

/// What no step looks for.
const NEVER: [&str; 3] = ["topology", "TLBs and caches of fetches", "how data caches replace and who shares them"];

impl ProbeReport {
    /// What was not looked for: by no step, or by none of those that were asked for.
    pub fn not_looked_for(&self) -> Vec<String> {
        let steps = [
            ("replacement policies", self.levels.iter().all(|level| level.policy.is_unasked())),
            ("data caches and memory", self.caches.is_none()),
            ("walks", self.walks.is_none()),
            ("what entries cover", self.covers.is_none()),
            ("what else fills and empties the levels", self.effects.is_none()),
            ("loads far apart and in a row", self.spread.is_none()),
            ("what reads and page faults take", self.timing.is_none()),
            ("TLBs of 2M pages", self.large.is_none()),
            ("TLBs of 1G pages", self.gigantic.as_ref().is_none_or(|found| found.lacks.is_some())),
        ];
        let mut list: Vec<String> = NEVER.map(String::from).to_vec();
        list.extend(steps.iter().filter(|(_, left_out)| *left_out).map(|(what, _)| what.to_string()));
        let levels = self.caches.iter().flat_map(|caches| &caches.levels);
        let ways = levels.filter(|level| level.ways.is_unasked());
        list.extend(ways.map(|level| format!("ways of data cache {}", level.level)));
        list
    }

    /// `base` with what was found put into it, and a list of what was not. What was not measured is `base`'s.
    pub fn machine(&self, base: &Machine) -> Machine {
        let mut machine = base.clone();
        let from = format!("from preset {}, not measured", base.name);
        machine.name = "probed".into();
        machine.description = match self.measured_a_level() {
            true => format!("This machine's data TLBs, data caches and walks as measured; the rest {from}"),
            false => format!("No level of this machine's TLBs was found: they are {from}"),
        };
        machine.sources = vec![format!("lookaside machine probe, seed {}", self.seed)];
        machine.not_determined = vec![format!("{}: {from}", NEVER.join(", "))];
        // The second first: what a hit there costs is seen at the first, and belongs to the array for 4 KiB pages only.
        for level in self.levels.iter().rev() {
            level.put(&mut machine, &from);
        }
        describe_costs(self, &mut machine, &from);
        for level in self.large.iter().flat_map(|large| &large.levels) {
            level.put_large(&mut machine, &from);
        }
        match &self.gigantic {
            Some(gigantic) if gigantic.lacks.is_none() => gigantic.put(&mut machine, &from),
            _ => machine.not_determined.push(format!("TLBs of 1G pages: {from}")),
        }
        if let Some(effects) = &self.effects {
            effects.describe(&mut machine);
        }
        put_timing(self.timing.as_ref(), &mut machine);
        put_origins(self, base, &mut machine);
        put_cpuid(self, &mut machine);
        if let Some(reason) = &self.halted {
            machine.not_determined.push(format!("the probe ended early: {reason}"));
        }
        machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreed_range::MeasuredRange;
    use crate::description::arrays::serves;
    use crate::finding::Finding;
    use crate::report::levels::LevelReport;
    use crate::report::page_sizes::GiganticPages;
    use crate::report::page_sizes::LargePages;
    use crate::tlb::geometry::Geometry;
    use crate::tlb::policy::trial::TlbPolicy;
    use lookaside_machine::preset;
    use lookaside_machine::{PageSize, Replacement, Serves, Tlb};

    /// A geometry that no preset has.
    fn level(level: u32) -> LevelReport {
        let masks = vec![0b1001, 0b10];
        LevelReport {
            level,
            page_size: PageSize::K4,
            geometry: Finding::confirmed(Geometry { entries: 12, ways: 3, sets: 4, masks }, Vec::new()),
            miss_cycles: Finding::confirmed(MeasuredRange { low: 7.0, high: 8.0, passes: 2 }, Vec::new()),
            policy: Finding::not_asked(),
            trials: Vec::new(),
        }
    }

    #[test]
    fn what_was_found_for_small_pages_is_said_of_them_only() {
        let base = preset("ryzen-5900x").expect("a preset");
        let levels = vec![level(1), level(2)];
        let report = ProbeReport { seed: 1, cycles_per_tick: 1.0, levels, ..ProbeReport::default() };
        let machine = report.machine(&base);
        machine.check().expect("a possible machine");
        for level in [1, 2] {
            let found: Vec<&Tlb> = machine.tlbs.iter().filter(|tlb| serves(tlb, level)).collect();
            assert_eq!(found.len(), 1);
            assert_eq!((found[0].entries, &found[0].page_sizes), (12, &vec![PageSize::K4]));
            assert_eq!(found[0].hit_cycles, if level == 1 { 0.0 } else { 7.5 });
            let before = base.tlbs.iter().find(|tlb| serves(tlb, level)).expect("a data TLB");
            let name = format!("{}-other-sizes", before.name);
            let other = machine.tlbs.iter().find(|tlb| tlb.name == name).expect("the preset's");
            assert_eq!((other.entries, &other.ways, &other.index), (before.entries, &before.ways, &before.index));
            assert_eq!((other.hit_cycles, other.page_sizes.contains(&PageSize::K4)), (before.hit_cycles, false));
            for what in [format!("tlb.{name}:"), format!("tlb.{}.coalesce_pages:", before.name)] {
                assert!(machine.not_determined.iter().any(|line| line.starts_with(&what)), "{what}");
            }
        }
    }

    #[test]
    fn directory_entries_of_the_preset_stay_with_small_pages() {
        let base = preset("zen4").expect("a preset");
        let report = ProbeReport { cycles_per_tick: 1.0, levels: vec![level(2)], ..ProbeReport::default() };
        let machine = report.machine(&base);
        machine.check().expect("a possible machine");
        let holds: Vec<&Tlb> = machine.tlbs.iter().filter(|tlb| tlb.directory_entries).collect();
        assert_eq!(
            holds.iter().map(|tlb| (tlb.entries, &tlb.page_sizes)).collect::<Vec<_>>(),
            [(12, &vec![PageSize::K4])]
        );
        assert!(machine.tlbs.iter().any(|tlb| tlb.name == "l2d-other-sizes"));
    }

    /// What the trials do not say is not in the description: here there are none.
    #[test]
    fn a_tree_of_a_shape_that_nothing_shows_is_not_determined() {
        let base = preset("ryzen-5900x").expect("a preset");
        for (ways, known) in [(4, true), (12, false), (65, false)] {
            let mut second = level(2);
            let geometry = Geometry { entries: 4 * ways, ways, sets: 4, masks: vec![1, 2] };
            second.geometry = Finding::confirmed(geometry, Vec::new());
            second.policy = Finding::confirmed(TlbPolicy::TreePlru, Vec::new());
            let report = ProbeReport { cycles_per_tick: 1.0, levels: vec![level(1), second], ..ProbeReport::default() };
            let machine = report.machine(&base);
            machine.check().expect("a possible machine");
            let found = machine.tlbs.iter().find(|tlb| serves(tlb, 2)).expect("a level");
            assert_eq!(found.replacement == Replacement::TreePlru, known, "{ways}");
            let said = format!("tlb.{}.replacement: found tree-PLRU over {ways} ways, ", found.name);
            assert_eq!(machine.not_determined.iter().any(|line| line.starts_with(&said)), !known, "{ways}");
        }
    }

    #[test]
    fn pages_of_1g_whose_entries_cover_parts_take_those_of_the_parts() {
        let base = preset("ryzen-5900x").expect("a preset");
        let of_1g = |machine: &Machine, level: u32| {
            let serves = |tlb: &&Tlb| tlb.level == level && tlb.serves.contains(&Serves::Load);
            let of_size = |tlb: &&Tlb| tlb.page_sizes.contains(&PageSize::G1);
            machine.tlbs.iter().filter(serves).filter(of_size).cloned().collect::<Vec<Tlb>>()
        };
        let mut whole = level(1);
        whole.page_size = PageSize::G1;
        let mut second = level(2);
        (second.page_size, second.geometry) = (PageSize::G1, Finding::not_determined("why").unasked());
        let parts = vec![Finding::confirmed(PageSize::G1, vec![]), Finding::confirmed(PageSize::M2, vec![])];
        let mut found = GiganticPages { lacks: None, parts, levels: vec![whole, second] };
        let report = |found: &GiganticPages| {
            let (levels, gigantic) = (vec![level(1), level(2)], Some(found.clone()));
            ProbeReport { cycles_per_tick: 1.0, levels, gigantic, ..ProbeReport::default() }
        };
        let machine = report(&found).machine(&base);
        machine.check().expect("a possible machine");
        let first = of_1g(&machine, 1);
        assert_eq!((first.len(), first[0].name.as_str(), first[0].entries), (1, "l1-1g", 12));
        assert!(of_1g(&machine, 2).is_empty());
        assert!(machine.not_determined.iter().any(|line| line == "TLB entries of 1G pages, level 2: why"));
        // Where there is none, the preset's stay.
        found.lacks = Some("none".into());
        let machine = report(&found).machine(&base);
        assert_eq!(of_1g(&machine, 1).len(), of_1g(&base, 1).len());
        assert!(machine.not_determined.iter().any(|line| line.starts_with("TLBs of 1G pages: from preset")));
        assert!(report(&found).not_looked_for().iter().any(|what| what == "TLBs of 1G pages"));
    }

    #[test]
    fn entries_of_2m_pages_are_an_array_of_their_own() {
        let base = preset("ryzen-5900x").expect("a preset");
        let large = |mut level: LevelReport| {
            level.page_size = PageSize::M2;
            level
        };
        let mut second = large(level(2));
        second.geometry = Finding::not_determined("why").unasked();
        let found = LargePages { page_size: PageSize::M2, pages: 128, levels: vec![large(level(1)), second] };
        let levels = vec![level(1), level(2)];
        let report = ProbeReport { cycles_per_tick: 1.0, levels, large: Some(found), ..ProbeReport::default() };
        let machine = report.machine(&base);
        machine.check().expect("a possible machine");
        let of = |level: u32, size: PageSize| {
            let serves = |tlb: &&Tlb| tlb.level == level && tlb.serves.contains(&Serves::Load);
            machine.tlbs.iter().filter(serves).filter(|tlb| tlb.page_sizes.contains(&size)).collect::<Vec<&Tlb>>()
        };
        assert_eq!(of(1, PageSize::M2).len(), 1);
        assert_eq!((of(1, PageSize::M2)[0].entries, &of(1, PageSize::M2)[0].page_sizes), (12, &vec![PageSize::M2]));
        assert_eq!(of(1, PageSize::K4).len(), 1);
        assert!(machine.not_determined.iter().any(|line| line == "TLB entries of 2M pages, level 2: why"));
    }
}
