//! The kernel and the processor, as `/proc` and `/sys` name them.

use std::path::PathBuf;

use crate::error::{number, read};
use crate::HostError;

/// What `/proc/cpuinfo` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuInfo {
    text: String,
}

impl CpuInfo {
    /// Of this machine; an empty one where the file cannot be read.
    pub fn here() -> Self {
        Self::of_text(read("/proc/cpuinfo").unwrap_or_default())
    }

    /// Of a text like `/proc/cpuinfo`.
    pub fn of_text(text: String) -> Self {
        Self { text }
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value of a line `name : value` of the first CPU that has it.
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut lines = self.text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    }

    /// Whether the first CPU has a flag (x86), as `hypervisor`; `None`: no flags are listed.
    pub fn has_flag(&self, flag: &str) -> Option<bool> {
        self.value("flags").map(|flags| flags.split_whitespace().any(|one| one == flag))
    }
}

/// The kernel's release, as `uname -r` prints it; empty where it is not said.
pub fn kernel_release() -> String {
    read("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

/// A name that the kernel draws at each start of the system (random(4), `boot_id`); empty where it is not said.
pub fn boot_id() -> String {
    read("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

/// What the firmware calls the machine: maker and product (sysfs-firmware-dmi); empty where it is not said, as in some
/// virtual machines.
pub fn system_product() -> String {
    let said = |file: &str| read(PathBuf::from("/sys/class/dmi/id").join(file)).unwrap_or_default();
    ["sys_vendor", "product_name"].map(|file| said(file).trim().to_string()).join(" ").trim().to_string()
}

/// The kernel's version, as 6 and 18 of `6.18.0-rc1`; `None` where it is not said.
pub fn kernel_version() -> Option<(u32, u32)> {
    version(&kernel_release())
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Seconds since the system started (proc_uptime(5)); `None`: not said.
pub fn uptime_seconds() -> Option<f64> {
    read("/proc/uptime").ok()?.split_whitespace().next()?.parse().ok()
}

/// Ticks a second in which the kernel gives times in `stat` files (`_SC_CLK_TCK`).
pub fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// Who may use perf events: 2 and less lets users measure themselves; `None`: not said.
pub fn perf_event_paranoid() -> Option<i32> {
    read("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// The text of `/proc/loadavg` (proc_loadavg(5)).
///
/// # Errors
/// The file cannot be read.
pub fn load_average() -> Result<Vec<u8>, HostError> {
    let path = "/proc/loadavg";
    std::fs::read(path).map_err(|e| HostError::io(path, e))
}

/// The fewest processes and threads that the system allows at a time, and the file that says so; a control group
/// without a limit does not count. `None`: nothing is said.
pub fn most_tasks() -> Option<(u64, PathBuf)> {
    let files = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max", "/sys/fs/cgroup/pids.max"];
    files.into_iter().filter_map(|file| Some((number(file).ok()?, file.into()))).min_by_key(|(most, _)| *most)
}

/// What the kernel says of the processor's vulnerabilities: name and state, by name.
pub fn vulnerabilities() -> Vec<(String, String)> {
    let files = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities").into_iter().flatten().flatten();
    let state = |file: std::fs::DirEntry| {
        Some((file.file_name().to_string_lossy().into_owned(), read(file.path()).ok()?.trim().to_string()))
    };
    let mut all: Vec<(String, String)> = files.filter_map(state).collect();
    all.sort();
    all
}

/// Time in milliseconds that the host gave to others while this CPU wanted to run, since the start of the system;
/// `None`: not said.
pub fn stolen_ms(cpu: usize) -> Option<f64> {
    Some(stolen_ticks(&read("/proc/stat").ok()?, cpu)? as f64 * 1e3 / ticks_per_second())
}

/// The eighth figure of the CPU's line (proc_stat(5)).
fn stolen_ticks(stat: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&name))?;
    line.split_whitespace().nth(8)?.parse().ok()
}

/// Where the kernel shows the energy that the CPU packages have used (Documentation/power/powercap/powercap.rst).
pub fn powercap_folder() -> PathBuf {
    "/sys/class/powercap".into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_processor_is_read() {
        let text = "vendor_id\t: AuthenticAMD\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor lm\n\
                    model name\t: another\n";
        let cpu = CpuInfo::of_text(text.into());
        assert_eq!(
            (cpu.value("model name"), cpu.value("model"), cpu.value("mode")),
            (Some("AMD EPYC"), Some("17"), None)
        );
        assert_eq!((cpu.has_flag("hypervisor"), cpu.has_flag("hyper")), (Some(true), Some(false)));
        assert_eq!(CpuInfo::default().has_flag("lm"), None);
    }

    #[test]
    fn a_release_begins_with_its_version() {
        assert_eq!((version("6.18.0-rc1"), version("7.2+")), (Some((6, 18)), Some((7, 2))));
        assert_eq!((version("6"), version(""), version("x.6")), (None, None, None));
    }

    #[test]
    fn stolen_time_is_that_of_the_cpu() {
        let stat = "cpu  1 2 3 4 5 6 7 80 9 10\ncpu1 1 2 3 4 5 6 7 11 9 10\ncpu11 1 2 3 4 5 6 7 42 9 10\nintr 1 2\n";
        assert_eq!(stolen_ticks(stat, 1), Some(11));
        assert_eq!(stolen_ticks(stat, 11), Some(42));
        assert_eq!(stolen_ticks(stat, 2), None);
        assert_eq!(stolen_ticks("cpu1 1 2\n", 1), None);
    }

    #[test]
    fn this_system_is_read() {
        assert!(!kernel_release().is_empty() && !CpuInfo::here().text().is_empty());
        assert!(load_average().expect("a file that every Linux has").contains(&b'/'));
        assert!(most_tasks().is_some_and(|(most, file)| most > 0 && file.is_absolute()));
        assert!(vulnerabilities().is_sorted());
        assert!(kernel_version().is_some_and(|version| version >= (2, 6)));
        assert!(uptime_seconds().is_some_and(|seconds| seconds > 0.0) && ticks_per_second() > 0.0);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC*") {
            stolen_ticks(&text, 1);
            version(&text);
            CpuInfo::of_text(text).has_flag("x");
        }
    }
}
