//! Where nothing was measured: what CPUID says of a TLB or a data cache, beside what the preset has.

use lookaside_machine::{Cache, Machine, Origin, PageSize, Serves, Ways};

use crate::claims::claim::{Claim, HardwarePart};
use crate::description::arrays::serves;
use crate::report::ProbeReport;

/// Takes what CPUID says of data caches that were not measured, and names where it is at one with the preset on a TLB.
/// Where the two differ on a TLB the preset stays: a hypervisor that hides the unit of such a figure lets the figure
/// through (Zen 5's 128 for 4096, 8000_0021, EAX bit 14).
pub(super) fn put_cpuid(report: &ProbeReport, machine: &mut Machine) {
    let unmeasured = report.claims.iter().filter(|claim| claim.measured.is_none());
    for Claim { source, part, shape, arrays } in unmeasured.map(|claim| &claim.stated) {
        let exact = shape.ways.filter(|(least, most)| least == most && *arrays == 1 && shape.amount == shape.most);
        let (Some((ways, _)), true) = (exact, source.starts_with("CPUID")) else { continue };
        match *part {
            HardwarePart::DataTlb { level, page_size: PageSize::K4 } => {
                put_tlb(source, level, shape.amount, ways, machine)
            }
            HardwarePart::DataTlb { .. } => {}
            HardwarePart::DataCache { level } => put_cache(source, level, shape.amount, ways, machine),
        }
    }
}

fn put_tlb(source: &str, level: u32, entries: u64, ways: u32, machine: &mut Machine) {
    let Some(tlb) = machine.tlbs.iter().find(|tlb| serves(tlb, level)) else { return };
    let path = format!("tlb.{}", tlb.name);
    if machine.origins.of(&format!("{path}.entries")) == Origin::Measured {
        return;
    }
    if (u64::from(tlb.entries), tlb.ways.count(tlb.entries)) == (entries, ways) {
        for key in ["entries", "ways"] {
            machine.origins.set(&format!("{path}.{key}"), Origin::Cpuid);
        }
        return;
    }
    machine
        .not_determined
        .push(format!("{path}: {source} says {entries} entries of {ways} ways; the preset's stand in"));
}

fn put_cache(source: &str, level: u32, bytes: u64, ways: u32, machine: &mut Machine) {
    let is_it = |cache: &&mut Cache| cache.level == level && cache.serves.contains(&Serves::Load);
    let Some(cache) = machine.caches.iter_mut().find(is_it) else { return };
    let path = format!("cache.{}", cache.name);
    if machine.origins.of(&format!("{path}.size")) == Origin::Measured {
        return;
    }
    let set_bytes = u64::from(ways) * u64::from(cache.line_bytes);
    if set_bytes == 0 || !bytes.is_multiple_of(set_bytes) || !(bytes / set_bytes).is_power_of_two() {
        machine.not_determined.push(format!("{path}: {source} says {bytes} bytes of {ways} ways, which no cache has"));
        return;
    }
    cache.set_shape(bytes, Ways::Count(ways));
    for key in ["size", "ways"] {
        machine.origins.set(&format!("{path}.{key}"), Origin::Cpuid);
    }
}
