//! What the processor and the system say of themselves, held against what was measured.
//!
//! In a virtual machine CPUID is what the hypervisor lets through, and sysfs is derived from it: a claim, no more.

pub(crate) mod claim;
mod compare;
mod cpuid;
mod sysfs;

pub use claim::{CheckedClaim, Claim, HardwarePart, PartSize};
pub use cpuid::{claims as cpuid_claims, CpuidRegisters};
pub use sysfs::claims as sysfs_claims;

use lookaside_host::CpuTopology;

/// What CPUID (on x86-64) and sysfs say about this CPU. To be called on it: cores of one machine can differ.
pub fn claims_of_cpu(cpu: usize) -> Vec<Claim> {
    let mut stated = cpuid::here();
    stated.extend(sysfs::claims(&CpuTopology::here(), cpu));
    stated
}
