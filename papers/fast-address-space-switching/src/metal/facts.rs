//! The machine, as far as it matters to what a switch costs.

use std::fs;

use serde::Serialize;

/// Protection keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keys {
    /// The processor has none.
    None,
    /// It has, and the system does not switch them on.
    Off,
    /// Programs may use them.
    On,
}

/// What is known of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// What the processor calls itself; empty where it does not say.
    pub processor: String,
    /// The kernel.
    pub kernel: String,
    /// It says that it is a virtual machine; `None` where processors don't say.
    pub is_guest: Option<bool>,
    /// TLB entries name their address space, and the kernel uses that (x86's PCID); `None` where this is not known.
    pub pcid: Option<bool>,
    /// Protection keys, by CPUID.
    pub keys: Keys,
    /// Kernel and programs have page tables of their own (page-table isolation); `None` where the kernel does not say.
    pub isolates_tables: Option<bool>,
    /// What the kernel says of the processor's vulnerabilities, where it is affected: name, state.
    pub vulnerabilities: Vec<(String, String)>,
}

/// One file a vulnerability.
const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities";

impl Facts {
    /// Of this machine.
    pub(super) fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let vulnerabilities = vulnerabilities();
        let meltdown = vulnerabilities.iter().find(|(name, _)| name == "meltdown");
        Self {
            processor: field(&cpuinfo, "model name").unwrap_or_default().into(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
            is_guest: is_guest(),
            // The kernel takes the flag back where it does not use it (nopcid).
            pcid: field(&cpuinfo, "flags").map(|flags| flags.split_whitespace().any(|flag| flag == "pcid")),
            keys: keys(),
            isolates_tables: meltdown.map(|(_, state)| state.contains("PTI")),
            vulnerabilities: vulnerabilities.into_iter().filter(|(_, state)| state != "Not affected").collect(),
        }
    }
}

/// The value of the first line `name : value`.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// All of them, by name.
fn vulnerabilities() -> Vec<(String, String)> {
    let Ok(files) = fs::read_dir(VULNERABILITIES) else { return Vec::new() };
    let mut all: Vec<(String, String)> = files
        .flatten()
        .filter_map(|file| {
            let state = fs::read_to_string(file.path()).ok()?;
            Some((file.file_name().to_string_lossy().into_owned(), state.trim().to_string()))
        })
        .collect();
    all.sort();
    all
}

/// Leaf 7, ECX: bit 3 the processor has protection keys for user pages (PKU), bit 4 the system has switched them on (OSPKE) (Intel SDM 2, CPUID;
/// AMD64 Architecture Programmer's Manual 3, E.3.6).
#[cfg(target_arch = "x86_64")]
fn keys() -> Keys {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    if __cpuid(0).eax < 7 {
        return Keys::None;
    }
    let bits = __cpuid_count(7, 0).ecx;
    match (bits >> 3 & 1, bits >> 4 & 1) {
        (_, 1) => Keys::On,
        (1, _) => Keys::Off,
        _ => Keys::None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn keys() -> Keys {
    Keys::None
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

/// Time that the host gave to others while this CPU wanted to run, since the start of the system.
pub(super) fn stolen_ms(cpu: usize) -> Option<f64> {
    /// Ticks a second in /proc/stat, on all that Linux runs on.
    const USER_HZ: f64 = 100.0;
    let text = fs::read_to_string("/proc/stat").ok()?;
    Some(stolen_ticks(&text, cpu)? as f64 * 1e3 / USER_HZ)
}

/// The eighth figure of the CPU's line (proc_stat(5)).
fn stolen_ticks(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
    line.split_whitespace().nth(8)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_that_of_the_cpu() {
        let stat = "cpu  1 2 3 4 5 6 7 80 9 10\ncpu1 1 2 3 4 5 6 7 11 9 10\ncpu11 1 2 3 4 5 6 7 42 9 10\nintr 1 2\n";
        assert_eq!(stolen_ticks(stat, 1), Some(11));
        assert_eq!(stolen_ticks(stat, 11), Some(42));
        assert_eq!(stolen_ticks(stat, 2), None);
        assert_eq!(stolen_ticks("cpu1 1 2\n", 1), None);
    }

    #[test]
    fn fields_of_cpuinfo_are_found_by_their_whole_name() {
        let text = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nflags\t\t: fpu pcid\nmodel name\t: other\n";
        assert_eq!(field(text, "model name"), Some("AMD EPYC"));
        assert_eq!(field(text, "flags"), Some("fpu pcid"));
        assert_eq!(field(text, "name"), None);
    }
}
