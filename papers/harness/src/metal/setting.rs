//! The machine that is measured, in words.

use std::time::Duration;

use lookaside_machine::{CpuId, Machine};

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The machine in words.
    pub machine: String,
    /// Other hardware threads of the core that is measured.
    pub siblings: Vec<usize>,
    /// Chooses pages and orders.
    pub seed: u64,
    /// What its TLBs are; none: they are looked for.
    pub given: Option<Machine>,
    /// The longest that they are looked for.
    pub search: Duration,
}

impl Setting {
    /// This machine, measured on this CPU. Its TLBs are looked for as long as it takes.
    pub fn of_cpu(cpu: usize, seed: u64) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let kernel = read("/proc/sys/kernel/osrelease");
        let machine = format!("{}; Linux {}; CPU {cpu}", processor(&read("/proc/cpuinfo")), kernel.trim());
        let list = read(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
        let siblings = cpus(&list).into_iter().filter(|&other| other != cpu).collect();
        Self { machine, siblings, seed, given: None, search: Duration::MAX }
    }
}

/// Model, family, stepping, and whether a hypervisor is below, from a `/proc/cpuinfo` text.
fn processor(cpuinfo: &str) -> String {
    let value = |key: &str| {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.map(|(k, v)| (k.trim(), v.trim())).find(|(k, _)| *k == key).map(|(_, v)| v)
    };
    let name = value("model name").map(|name| format!("{name}, ")).unwrap_or_default();
    let stepping = value("stepping").map(|stepping| format!(" stepping {stepping}")).unwrap_or_default();
    let hypervisor = match value("flags") {
        Some(flags) if flags.split_whitespace().any(|flag| flag == "hypervisor") => ", virtual machine",
        Some(_) => ", no hypervisor seen",
        None => "",
    };
    format!("{name}{}{stepping}{hypervisor}", CpuId::from_cpuinfo(cpuinfo))
}

/// The numbers of a list as sysfs writes it: `0-3,8`.
fn cpus(list: &str) -> Vec<usize> {
    let mut all = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            all.extend((first..=last).take(1 << 16)); // a broken list makes no endless one
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_lists() {
        let text =
            "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n\
            flags\t\t: fpu hypervisor lm\n";
        assert_eq!(processor(text), "AMD EPYC, AMD family 25 model 17 stepping 1, virtual machine");
        assert!(processor(&text.replace("hypervisor ", "")).ends_with("no hypervisor seen"));
        assert_eq!(processor(""), "this CPU");
        assert_eq!(cpus("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(cpus(""), Vec::<usize>::new());
        assert_eq!(cpus("x,3-1,7"), [7]);
    }
}
