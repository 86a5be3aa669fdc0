//! The machine, as far as it matters to what a switch costs.

use lookaside_host::{kernel_release, vulnerabilities, CpuInfo};
use schemars::JsonSchema;
use serde::Serialize;

/// Protection keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySupport {
    /// The processor has none.
    None,
    /// It has, and the system does not switch them on.
    Off,
    /// Programs may use them.
    On,
}

/// What is known of the machine.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct MachineFacts {
    /// What the processor calls itself; empty where it does not say.
    pub processor: String,
    /// The kernel.
    pub kernel: String,
    /// It says that it is a virtual machine; `None` where processors don't say.
    pub is_guest: Option<bool>,
    /// TLB entries name their address space, and the kernel uses that (x86's PCID); `None` where this is not known.
    pub pcid: Option<bool>,
    /// Protection keys, by CPUID.
    pub keys: KeySupport,
    /// Kernel and programs have page tables of their own (page-table isolation); `None` where the kernel does not say.
    pub isolates_tables: Option<bool>,
    /// What the kernel says of the processor's vulnerabilities, where it is affected: name, state.
    pub vulnerabilities: Vec<(String, String)>,
}

impl MachineFacts {
    /// Of this machine.
    pub(super) fn here() -> Self {
        let cpu = CpuInfo::here();
        let vulnerabilities = vulnerabilities();
        let meltdown = vulnerabilities.iter().find(|(name, _)| name == "meltdown");
        Self {
            processor: cpu.value("model name").unwrap_or_default().into(),
            kernel: kernel_release(),
            is_guest: is_guest(),
            // The kernel takes the flag back where it does not use it (nopcid).
            pcid: cpu.has_flag("pcid"),
            keys: keys(),
            isolates_tables: meltdown.map(|(_, state)| state.contains("PTI")),
            vulnerabilities: vulnerabilities.into_iter().filter(|(_, state)| state != "Not affected").collect(),
        }
    }
}

/// Leaf 7, ECX: bit 3 the processor has protection keys for user pages (PKU), bit 4 the system has switched them on
/// (OSPKE) (Intel SDM 2, CPUID; AMD64 Architecture Programmer's Manual 3, E.3.6).
#[cfg(target_arch = "x86_64")]
fn keys() -> KeySupport {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    if __cpuid(0).eax < 7 {
        return KeySupport::None;
    }
    let bits = __cpuid_count(7, 0).ecx;
    match (bits >> 3 & 1, bits >> 4 & 1) {
        (_, 1) => KeySupport::On,
        (1, _) => KeySupport::Off,
        _ => KeySupport::None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn keys() -> KeySupport {
    KeySupport::None
}

/// Leaf 1, ECX bit 31: no processor sets it, hypervisors do (AMD64 Architecture Programmer's Manual 3, E.3.2).
#[cfg(target_arch = "x86_64")]
fn is_guest() -> Option<bool> {
    Some(std::arch::x86_64::__cpuid(1).ecx >> 31 == 1)
}

#[cfg(not(target_arch = "x86_64"))]
fn is_guest() -> Option<bool> {
    None
}
