//! What was found, as a machine description.

use lookaside_machine::{Full, IndexFn, Machine, PageSize, Replacement, Serves, Tlb, Ways, MAX_UNEVEN_TREE_WAYS};

use crate::hierarchy;
use crate::run::{LevelReport, Report};
use crate::sizes::GiganticPages;
use crate::tlb::{is_modelled_tree, Geometry, Policy};

/// What no step looks for.
const NEVER: [&str; 3] = ["topology", "TLBs and caches of fetches", "how data caches replace and who shares them"];

impl Report {
    /// What was not looked for: by no step, or by none of those that were asked for.
    pub fn not_looked_for(&self) -> Vec<String> {
        let steps = [
            ("replacement policies", self.levels.iter().all(|level| level.policy.is_unasked())),
            ("data caches and memory", self.caches.is_none()),
            ("walks", self.walks.is_none()),
            ("what entries cover", self.covers.is_none()),
            ("what else fills and empties the levels", self.effects.is_none()),
            ("loads far apart and in a row", self.spread.is_none()),
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
        machine.description = format!("This machine's data TLBs, data caches and walks as measured; the rest {from}");
        machine.sources = vec![format!("lookaside probe, seed {}", self.seed)];
        machine.not_determined = vec![format!("{}: {from}", NEVER.join(", "))];
        // The second first: what a hit there costs is seen at the first, and belongs to the array for 4 KiB pages only.
        for level in self.levels.iter().rev() {
            level.put(&mut machine, &from);
        }
        hierarchy::describe(self, &mut machine, &from);
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
        if let Some(reason) = &self.halted {
            machine.not_determined.push(format!("the probe ended early: {reason}"));
        }
        machine
    }
}

impl LevelReport {
    fn put(&self, machine: &mut Machine, from: &str) {
        let level = self.level;
        let Some(at) = machine.tlbs.iter().position(|tlb| serves(tlb, level)) else { return };
        let name = machine.tlbs[at].name.clone();
        let Some(found) = self.geometry.value() else {
            let reason = self.geometry.reason().unwrap_or_default();
            machine.not_determined.push(format!("tlb.{name}: {reason}; {from}"));
            return;
        };
        // Only 4 KiB pages were looked at: the preset's arrays stay what they are for other sizes.
        let mut tlb = machine.tlbs[at].clone();
        for other in machine.tlbs.iter_mut().filter(|tlb| serves(tlb, level)) {
            other.page_sizes.retain(|&size| size != self.page_size);
        }
        if !machine.tlbs[at].page_sizes.is_empty() {
            machine.tlbs[at].name = format!("{name}-other-sizes");
            machine.tlbs[at].coalesce_pages = 1; // only 4 KiB pages are coalesced
            machine.not_determined.push(format!(
                "tlb.{name}-other-sizes: {from}; an array of its own here, though the preset has one for all sizes"
            ));
        }
        tlb.page_sizes = vec![self.page_size];
        tlb.entries = found.entries;
        tlb.ways = if found.sets == 1 { Ways::Full(Full::Full) } else { Ways::Count(found.ways) };
        tlb.index = IndexFn::Masks(found.masks.clone());
        // The index is one of page numbers: with coalescing the model would apply it to blocks of pages.
        tlb.coalesce_pages = 1;
        machine.not_determined.push(format!("tlb.{name}.coalesce_pages: not measured; 1 stands in"));
        machine
            .not_determined
            .push(format!("tlb.{name}: tags, shared_by and whether it serves other accesses than loads: {from}"));
        tlb.replacement = self.replacement(found).unwrap_or_else(|why| {
            // A policy that these ways cannot have would make the description impossible.
            // Large arrays are no LRU on any core known; random misses as they do where a little too much is used.
            let (policy, word) = if level == 1 { (Replacement::Lru, "LRU") } else { (Replacement::Random, "random") };
            machine.not_determined.push(format!("tlb.{name}.replacement: {why}; {word} stands in"));
            policy
        });
        machine.tlbs.insert(at, tlb);
        machine.tlbs.retain(|tlb| !tlb.page_sizes.is_empty());
        // A miss here costs what the next level's hit adds; an array for other sizes too keeps what it has.
        let next = machine.tlbs.iter_mut().find(|tlb| serves(tlb, level + 1) && tlb.page_sizes == [self.page_size]);
        match (self.miss_cycles.value(), next) {
            (Some(seen), Some(next)) => next.hit_cycles = ((seen.low + seen.high) * 5.0).round() / 10.0,
            (None, Some(next)) => {
                let reason = self.miss_cycles.reason().unwrap_or_default();
                machine.not_determined.push(format!("tlb.{}.hit_cycles: {reason}; {from}", next.name));
            }
            (_, None) => {}
        }
    }
}

impl GiganticPages {
    /// Puts arrays of their own; where an entry covers a part of a page, pages take entries of the array for such parts.
    fn put(&self, machine: &mut Machine, from: &str) {
        for (level, part) in self.levels.iter().zip(&self.parts) {
            if part.value().is_some_and(|&part| part < PageSize::G1) {
                let of_level = |tlb: &&mut Tlb| tlb.level == level.level && tlb.serves.contains(&Serves::Load);
                for tlb in machine.tlbs.iter_mut().filter(of_level) {
                    tlb.page_sizes.retain(|&size| size != PageSize::G1);
                }
                drop_empty(machine);
            }
            level.put_large(machine, from);
        }
    }
}

/// Drops arrays that are for no size any more, and what is said of them.
pub(crate) fn drop_empty(machine: &mut Machine) {
    for gone in machine.tlbs.iter().filter(|tlb| tlb.page_sizes.is_empty()) {
        let line = format!("tlb.{}:", gone.name);
        machine.not_determined.retain(|other| !other.starts_with(&line));
    }
    machine.tlbs.retain(|tlb| !tlb.page_sizes.is_empty());
}

impl LevelReport {
    /// Puts an array of its own for pages of this size, which no other array has then.
    fn put_large(&self, machine: &mut Machine, from: &str) {
        let size = self.page_size;
        let like = |tlb: &&Tlb| tlb.level == self.level && tlb.serves.contains(&Serves::Load);
        let Some(found) = self.geometry.value() else {
            let reason = self.geometry.reason().unwrap_or_default();
            machine.not_determined.push(format!("TLB entries of {size} pages, level {}: {reason}", self.level));
            return;
        };
        let of_size = machine.tlbs.iter().find(|tlb| like(tlb) && tlb.page_sizes.contains(&size));
        let Some(mut tlb) = of_size.or_else(|| machine.tlbs.iter().find(like)).cloned() else { return };
        for other in machine.tlbs.iter_mut().filter(|tlb| like(&&**tlb)) {
            other.page_sizes.retain(|&other| other != size);
        }
        drop_empty(machine);
        tlb.name = format!("l{}-{}", self.level, size.to_string().to_lowercase());
        tlb.page_sizes = vec![size];
        tlb.entries = found.entries;
        tlb.ways = if found.sets == 1 { Ways::Full(Full::Full) } else { Ways::Count(found.ways) };
        tlb.index = IndexFn::Masks(found.masks.clone());
        tlb.coalesce_pages = 1;
        machine.not_determined.push(format!(
            "tlb.{}: replacement, tags, shared_by and hit_cycles: {from}; that it shares no entries with other sizes is assumed",
            tlb.name
        ));
        machine.tlbs.push(tlb);
    }

    /// The policy that was found, or why the model cannot have it.
    fn replacement(&self, geometry: &Geometry) -> Result<Replacement, String> {
        match self.policy.value() {
            Some(Policy::Lru) => Ok(Replacement::Lru),
            Some(Policy::Fifo) => Ok(Replacement::Fifo),
            Some(Policy::Random) => Ok(Replacement::Random),
            Some(Policy::TreePlru) if geometry.ways.is_power_of_two() => Ok(Replacement::TreePlru),
            Some(Policy::TreePlru) if geometry.ways > MAX_UNEVEN_TREE_WAYS => {
                Err(format!("found tree-PLRU over {} ways, which the model does not have", geometry.ways))
            }
            Some(Policy::TreePlru) => is_modelled_tree(&self.trials, geometry.ways).map(|()| Replacement::TreePlru),
            Some(Policy::NoneOfThese) => Err("found none of LRU, FIFO, random and tree-PLRU".to_string()),
            None => Err(self.policy.reason().unwrap_or_default().to_string()),
        }
    }
}

/// Whether an array is of this level and takes loads of 4 KiB pages.
pub(crate) fn serves(tlb: &Tlb, level: u32) -> bool {
    tlb.level == level && tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&PageSize::K4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::run::Seen;
    use crate::sizes::LargePages;
    use crate::tlb::Geometry;
    use lookaside_machine::preset;

    /// A geometry that no preset has.
    fn level(level: u32) -> LevelReport {
        let masks = vec![0b1001, 0b10];
        LevelReport {
            level,
            page_size: PageSize::K4,
            geometry: Finding::confirmed(Geometry { entries: 12, ways: 3, sets: 4, masks }, Vec::new()),
            miss_cycles: Finding::confirmed(Seen { low: 7.0, high: 8.0, passes: 2 }, Vec::new()),
            policy: Finding::not_asked(),
            trials: Vec::new(),
        }
    }

    #[test]
    fn what_was_found_for_small_pages_is_said_of_them_only() {
        let base = preset("ryzen-5900x").expect("a preset");
        let levels = vec![level(1), level(2)];
        let report = Report { seed: 1, cycles_per_tick: 1.0, levels, ..Report::default() };
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

    /// What the trials do not say is not in the description: here there are none.
    #[test]
    fn a_tree_of_a_shape_that_nothing_shows_is_not_determined() {
        let base = preset("ryzen-5900x").expect("a preset");
        for (ways, known) in [(4, true), (12, false), (65, false)] {
            let mut second = level(2);
            let geometry = Geometry { entries: 4 * ways, ways, sets: 4, masks: vec![1, 2] };
            second.geometry = Finding::confirmed(geometry, Vec::new());
            second.policy = Finding::confirmed(Policy::TreePlru, Vec::new());
            let report = Report { cycles_per_tick: 1.0, levels: vec![level(1), second], ..Report::default() };
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
            Report { cycles_per_tick: 1.0, levels, gigantic, ..Report::default() }
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
        let report = Report { cycles_per_tick: 1.0, levels, large: Some(found), ..Report::default() };
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
