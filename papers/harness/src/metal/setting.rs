//! The machine that is measured, in words.

use std::time::Duration;

use lookaside_host::{kernel_release, CpuInfo, CpuTopology};
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
        let machine = format!("{}; Linux {}; CPU {cpu}", processor(&CpuInfo::here()), kernel_release());
        let core = CpuTopology::here().siblings(cpu).unwrap_or_default();
        let siblings = core.into_iter().filter(|&other| other != cpu).collect();
        Self { machine, siblings, seed, given: None, search: Duration::MAX }
    }
}

/// Model, family, stepping, and whether a hypervisor is below, from a `/proc/cpuinfo` text.
fn processor(cpu: &CpuInfo) -> String {
    let name = cpu.value("model name").map(|name| format!("{name}, ")).unwrap_or_default();
    let stepping = cpu.value("stepping").map(|stepping| format!(" stepping {stepping}")).unwrap_or_default();
    let hypervisor = match cpu.has_flag("hypervisor") {
        Some(true) => ", virtual machine",
        Some(false) => ", no hypervisor seen",
        None => "",
    };
    format!("{name}{}{stepping}{hypervisor}", CpuId::from_cpuinfo(cpu.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_in_words() {
        let text =
            "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n\
            flags\t\t: fpu hypervisor lm\n";
        let processor = |text: &str| processor(&CpuInfo::of_text(text.into()));
        assert_eq!(processor(text), "AMD EPYC, AMD family 25 model 17 stepping 1, virtual machine");
        assert!(processor(&text.replace("hypervisor ", "")).ends_with("no hypervisor seen"));
        assert_eq!(processor(""), "this CPU");
    }
}
