//! Effects as parts of a machine description.

use lookaside_machine::{Disturbance, Machine, PageSize, Serves, SwitchAction, Tag};

use super::{Effects, SetEvictions, Stores};
use crate::finding::Finding;

/// Shares of the second level's entries lost by a switch, up to which they are kept and from which on they are flushed.
const KEPT: f64 = 0.25;
/// See [`KEPT`].
const FLUSHED: f64 = 0.9;

impl Effects {
    /// Puts what was found into a machine whose arrays for 4 KiB loads are known.
    pub(crate) fn describe(&self, machine: &mut Machine) {
        self.switches(machine);
        if self.stores.value() == Some(&Stores::Apart) {
            let line =
                "tlb: stores have entries of their own in the first level, which loads cannot show; they share here";
            machine.not_determined.push(line.into());
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
            machine.disturbances.push(disturbance);
        }
    }

    /// Whether a switch of address space flushes: by what the second level keeps, since the first is too small for what
    /// the kernel itself uses.
    fn switches(&self, machine: &mut Machine) {
        let reason = match self.process_switch.value().map(|kept| kept.stlb.share()) {
            Some(share) if share <= KEPT => {
                machine.context_switch.action = SwitchAction::Nothing;
                for tlb in machine.tlbs.iter_mut().filter(|tlb| !tlb.tags.contains(&Tag::Asid)) {
                    tlb.tags.push(Tag::Asid);
                }
                return;
            }
            Some(share) if share >= FLUSHED => {
                machine.context_switch.action = SwitchAction::FlushTlb;
                return;
            }
            Some(share) => format!("a switch loses {:.0} % of the second level's entries", 100.0 * share),
            None => self.process_switch.reason().unwrap_or_default().to_string(),
        };
        machine.not_determined.push(format!("context_switch.action: {reason}; the preset's stands in"));
    }
}

/// To hundredths: more digits mean nothing.
fn rounded(count: f64) -> f64 {
    (count * 100.0).round() / 100.0
}
