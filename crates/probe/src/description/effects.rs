//! Puts what prefetches, stores and context switches do to the TLBs into a machine description.

use lookaside_machine::{Disturbance, Full, IndexFn, Machine, Origin, PageSize, Serves, SwitchAction, Tag, Tlb, Ways};

use crate::description::arrays::drop_empty;
use crate::finding::Finding;
use crate::report::effects::{SetEvictions, StoreEntries, TlbEffects};
use crate::tlb::geometry::Geometry;

/// Shares of the second level's entries lost by a switch, up to which they are kept and from which on they are flushed.
const KEPT: f64 = 0.25;
/// See [`KEPT`].
const FLUSHED: f64 = 0.9;

impl TlbEffects {
    /// Puts what was found into a machine whose arrays for 4 KiB loads are known.
    pub(super) fn describe(&self, machine: &mut Machine) {
        self.switches(machine);
        match (self.stores.value(), self.store_level.value()) {
            (Some(StoreEntries::Apart), Some(found)) => put_stores(found, machine),
            (Some(StoreEntries::Apart), None) => machine.not_determined.push(format!(
                "tlb: stores have entries of their own in the first level, they share here: {}",
                self.store_level.reason().unwrap_or_default()
            )),
            _ => {}
        }
        for level in &self.disturbed {
            let found = machine.tlbs.iter().find(|tlb| {
                tlb.level == level.level && tlb.serves.contains(&Serves::Load) && tlb.page_sizes == [PageSize::K4]
            });
            let Some(tlb) = found else { continue };
            let (name, sets) = (tlb.name.clone(), tlb.sets() as usize);
            let mut measured = |finding: &Finding<SetEvictions>, key: &str| match finding.value() {
                Some(found) if found.by_set.len() == sets => found.by_set.iter().map(|&count| rounded(count)).collect(),
                _ => {
                    let reason = finding.reason().unwrap_or("it is of another array");
                    machine.not_determined.push(format!("disturbance.{name}.{key}: {reason}"));
                    Vec::new()
                }
            };
            let disturbance = Disturbance {
                evictions_per_second: measured(&level.per_second, "evictions_per_second"),
                evictions_per_system_call: measured(&level.per_system_call, "evictions_per_system_call"),
                evictions_per_context_switch: measured(&level.per_context_switch, "evictions_per_context_switch"),
                tlb: name,
            };
            machine.origins.set(&format!("disturbance.{}", disturbance.tlb), Origin::Measured);
            machine.disturbances.push(disturbance);
        }
    }

    /// Whether a switch of address space flushes: by what the second level keeps, since the first is too small for what
    /// the kernel itself uses.
    fn switches(&self, machine: &mut Machine) {
        let reason = match self.process_switch.value().map(|kept| kept.stlb.share()) {
            Some(share) if share <= KEPT => {
                machine.context_switch.action = SwitchAction::Nothing;
                machine.origins.set("context_switch.action", Origin::Measured);
                for tlb in machine.tlbs.iter_mut().filter(|tlb| !tlb.tags.contains(&Tag::Asid)) {
                    tlb.tags.push(Tag::Asid);
                }
                return;
            }
            Some(share) if share >= FLUSHED => {
                machine.context_switch.action = SwitchAction::FlushTlb;
                machine.origins.set("context_switch.action", Origin::Measured);
                return;
            }
            Some(share) => format!("a switch loses {:.0} % of the second level's entries", 100.0 * share),
            None => self.process_switch.reason().unwrap_or_default().to_string(),
        };
        machine.not_determined.push(format!("context_switch.action: {reason}; the preset's stands in"));
    }
}

/// Gives stores to 4 KiB pages an array of their own in the first level.
fn put_stores(found: &Geometry, machine: &mut Machine) {
    let takes =
        |tlb: &Tlb| tlb.level == 1 && tlb.serves.contains(&Serves::Store) && tlb.page_sizes.contains(&PageSize::K4);
    let Some(at) = machine.tlbs.iter().position(takes) else { return };
    let mut own = machine.tlbs[at].clone();
    for other in machine.tlbs.iter_mut().filter(|tlb| takes(tlb)) {
        if other.serves == [Serves::Store] {
            other.page_sizes.retain(|&size| size != PageSize::K4);
        } else {
            other.serves.retain(|&serves| serves != Serves::Store);
        }
    }
    drop_empty(machine);
    own.name = "l1-stores".into();
    own.serves = vec![Serves::Store];
    own.page_sizes = vec![PageSize::K4];
    own.entries = found.entries;
    own.ways = if found.sets == 1 { Ways::Full(Full::Full) } else { Ways::Count(found.ways) };
    own.index = IndexFn::Masks(found.masks.clone());
    own.coalesce_pages = 1;
    machine.not_determined.push("tlb.l1-stores: replacement, tags and shared_by: those of the array of loads".into());
    machine.tlbs.push(own);
}

/// To hundredths: more digits mean nothing.
fn rounded(count: f64) -> f64 {
    (count * 100.0).round() / 100.0
}
