//! Puts the TLB levels that were found into a machine description.

use lookaside_machine::{Full, IndexFn, Machine, PageSize, Replacement, Serves, Tlb, Ways, MAX_UNEVEN_TREE_WAYS};

use crate::description::arrays::{drop_empty, serves};
use crate::report::levels::LevelReport;
use crate::report::page_sizes::GiganticPages;
use crate::tlb::geometry::Geometry;
use crate::tlb::policy::tree_shape::is_modelled_tree;
use crate::tlb::policy::trial::TlbPolicy;

impl LevelReport {
    pub(super) fn put(&self, machine: &mut Machine, from: &str) {
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
            machine.tlbs[at].directory_entries = false; // the array for 4 KiB pages keeps them
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
    /// Puts arrays of their own; where an entry covers a part of a page, pages take entries of the array for such
    /// parts.
    pub(super) fn put(&self, machine: &mut Machine, from: &str) {
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

impl LevelReport {
    /// Puts an array of its own for pages of this size, which no other array has then.
    pub(super) fn put_large(&self, machine: &mut Machine, from: &str) {
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

    /// The policy that was found, where the model has it.
    pub(super) fn modelled_replacement(&self) -> Option<Replacement> {
        self.geometry.value().and_then(|geometry| self.replacement(geometry).ok())
    }

    /// The policy that was found, or why the model cannot have it.
    fn replacement(&self, geometry: &Geometry) -> Result<Replacement, String> {
        match self.policy.value() {
            Some(TlbPolicy::Lru) => Ok(Replacement::Lru),
            Some(TlbPolicy::Fifo) => Ok(Replacement::Fifo),
            Some(TlbPolicy::Random) => Ok(Replacement::Random),
            Some(TlbPolicy::TreePlru) if geometry.ways.is_power_of_two() => Ok(Replacement::TreePlru),
            Some(TlbPolicy::TreePlru) if geometry.ways > MAX_UNEVEN_TREE_WAYS => {
                Err(format!("found tree-PLRU over {} ways, which the model does not have", geometry.ways))
            }
            Some(TlbPolicy::TreePlru) => is_modelled_tree(&self.trials, geometry.ways).map(|()| Replacement::TreePlru),
            Some(TlbPolicy::NoneOfThese) => Err("found none of LRU, FIFO, random and tree-PLRU".to_string()),
            None => Err(self.policy.reason().unwrap_or_default().to_string()),
        }
    }
}
