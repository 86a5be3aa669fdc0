//! Puts what reads, page faults and streams take into a machine description.

use lookaside_machine::Machine;

use crate::report::timing::TimingReport;

/// The table as it was measured; what of it is not there is named.
pub(super) fn put_timing(found: Option<&TimingReport>, machine: &mut Machine) {
    machine.timing = found.and_then(|found| found.costs.value().cloned());
    let Some(found) = found else {
        machine.not_determined.push("timing: not looked at".into());
        return;
    };
    machine.not_determined.extend(found.costs.reason().map(|reason| format!("timing: {reason}")));
    machine.not_determined.extend(found.absent.iter().map(|absent| format!("timing, {}: {}", absent.what, absent.why)));
}
