//! Code on huge pages: what the preloaded library is asked for, and what it says that it did in each process.
//!
//! The library puts whole aligned windows of 2 MiB of a program's code, and of the code of its libraries, on huge pages
//! before `main`: those of the file itself where the kernel can, else copies in private memory at the same addresses.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use lookaside_host::{kernel_version, TransparentHugePages};
use serde::{Deserialize, Serialize};

use super::error::HugePageError;

/// Variable that has the preloaded library put code on huge pages: `all`, or at most so many windows.
pub const CODE_VARIABLE: &str = "LOOKASIDE_CODE";
/// Variable with the path of the weights of a plan ([`code_weights_line`]): the windows that weigh most come first, and
/// those that weigh nothing stay as they are.
pub const CODE_WEIGHTS_VARIABLE: &str = "LOOKASIDE_CODE_WEIGHTS";
/// Variable with the path of a file that gets a line of JSON ([`ProcessCode`]) for each process.
pub const CODE_REPORT_VARIABLE: &str = "LOOKASIDE_CODE_REPORT";
/// Variable with the number of seccomp filters that let the library's calls through ([`super::harmless_filters`]); under
/// other filters code stays as it is.
pub const CODE_FILTERS_VARIABLE: &str = "LOOKASIDE_CODE_FILTERS";

/// How many windows of 2 MiB of code may lie on huge pages in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeBudget {
    /// All that there are.
    All,
    /// So many at most: those that weigh most by a plan, else those of the largest mappings.
    AtMost(u32),
}

impl CodeBudget {
    /// Windows at most.
    pub fn windows(self) -> usize {
        match self {
            Self::All => usize::MAX,
            Self::AtMost(windows) => windows as usize,
        }
    }
}

impl FromStr for CodeBudget {
    type Err = HugePageError;

    fn from_str(text: &str) -> Result<Self, HugePageError> {
        let number = || text.parse().ok().filter(|&windows| windows > 0).map(Self::AtMost);
        let budget = if text == "all" { Some(Self::All) } else { number() };
        budget.ok_or_else(|| HugePageError::Bad(format!("`{text}`: want all, or a number of windows of 2 MiB")))
    }
}

impl fmt::Display for CodeBudget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => out.write_str("all"),
            Self::AtMost(windows) => windows.fmt(out),
        }
    }
}

/// What stood in the way of code on huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CodeObstacle {
    /// The program had other threads already.
    Threads,
    /// A seccomp filter is on, which might end the program for a system call.
    Seccomp,
    /// Huge pages are off for this process (`PR_SET_THP_DISABLE`).
    SwitchedOff,
    /// More would take too much of the memory limit of the control group.
    MemoryLimit,
    /// Pages of the code were changed in memory: by a debugger, by probes, by relocations.
    Changed,
    /// The file can't be read to its end.
    Unreadable,
    /// No memory for the copy.
    NoCopy,
    /// The system makes no huge page of the copy.
    NotCollapsed,
    /// The system lets nobody execute the copy.
    NotExecutable,
    /// The copy can't be put in the place of the code.
    NotMoved,
}

impl CodeObstacle {
    /// As it stands in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Seccomp => "seccomp",
            Self::SwitchedOff => "switched-off",
            Self::MemoryLimit => "memory-limit",
            Self::Changed => "changed",
            Self::Unreadable => "unreadable",
            Self::NoCopy => "no-copy",
            Self::NotCollapsed => "not-collapsed",
            Self::NotExecutable => "not-executable",
            Self::NotMoved => "not-moved",
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Threads => "it had other threads before main",
            Self::Seccomp => "a seccomp filter is on, which might end it for a system call",
            Self::SwitchedOff => "huge pages are switched off for it (PR_SET_THP_DISABLE)",
            Self::MemoryLimit => "more would take over a sixteenth of its control group's memory limit",
            Self::Changed => "code was changed in memory (by a debugger, probes or relocations)",
            Self::Unreadable => "the file can't be read",
            Self::NoCopy => "no memory for a copy (a limit on memory, such as ulimit -v)",
            Self::NotCollapsed => "the kernel makes no huge page of it (needs Linux 6.1 and 2 MiB in one piece)",
            Self::NotExecutable => "the system forbids to execute copied code",
            Self::NotMoved => "the system forbids to replace the code (sealed memory)",
        }
    }
}

/// What was done in a process, as the library reports it: a line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProcessCode {
    /// Number of the process.
    pub pid: u32,
    /// Name of its program, as `/proc/PID/comm` has it.
    pub program: String,
    /// Whole windows of 2 MiB of code that it had.
    pub windows: u32,
    /// Windows put on huge pages of the file itself.
    pub by_file: u32,
    /// Windows put on huge pages of private memory, as copies.
    pub by_copy: u32,
    /// Bytes of code that were mapped from files.
    pub code_bytes: u64,
    /// Of these, bytes outside whole windows.
    pub outside_bytes: u64,
    /// Nanoseconds that it took.
    pub nanos: u64,
    /// What stood in the way of some window.
    pub obstacle: Option<CodeObstacle>,
    /// The system's error number then; 0 = none.
    pub errno: i32,
    /// Address and bytes of what are copies now; the first of many.
    pub moved: Vec<(u64, u64)>,
}

impl ProcessCode {
    /// Windows on huge pages.
    pub fn made(&self) -> u32 {
        self.by_file.saturating_add(self.by_copy)
    }
}

/// What was done in a program and all that it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CodeTotals {
    /// Processes that reported.
    pub processes: u32,
    /// Of these, those with code on huge pages.
    pub helped: u32,
    /// Whole windows of 2 MiB of code in all of them.
    pub windows: u32,
    /// Windows put on huge pages of the file itself.
    pub by_file: u32,
    /// Windows put on huge pages of private memory.
    pub by_copy: u32,
    /// Nanoseconds that it took in all.
    pub nanos: u64,
    /// What stood in the way, in words, and in how many processes.
    pub obstacles: BTreeMap<String, u32>,
}

impl CodeTotals {
    /// The sum of what processes reported; `None` of none.
    pub fn of(processes: &[ProcessCode]) -> Option<Self> {
        processes.first()?;
        let sum = |of: fn(&ProcessCode) -> u32| processes.iter().map(of).fold(0, u32::saturating_add);
        let mut obstacles = BTreeMap::new();
        for obstacle in processes.iter().filter_map(|process| process.obstacle) {
            *obstacles.entry(obstacle.words().to_string()).or_default() += 1;
        }
        Some(Self {
            processes: sum(|_| 1),
            helped: sum(|process| u32::from(process.made() > 0)),
            windows: sum(|process| process.windows),
            by_file: sum(|process| process.by_file),
            by_copy: sum(|process| process.by_copy),
            nanos: processes.iter().map(|process| process.nanos).fold(0, u64::saturating_add),
            obstacles,
        })
    }

    /// Windows on huge pages.
    pub fn made(&self) -> u32 {
        self.by_file.saturating_add(self.by_copy)
    }
}

/// Whether code can be put on huge pages here, as far as this is known before.
///
/// # Errors
/// What the kernel lacks, and what to do.
pub fn check_code() -> Result<(), HugePageError> {
    check_code_in(&TransparentHugePages::here(), kernel_version())
}

fn check_code_in(settings: &TransparentHugePages, kernel: Option<(u32, u32)>) -> Result<(), HugePageError> {
    let lacks = |what: &str| Err(HugePageError::Bad(format!("code on huge pages: {what}")));
    if !settings.are_there() {
        return lacks("this kernel has no transparent huge pages; use one built with CONFIG_TRANSPARENT_HUGEPAGE");
    }
    match kernel {
        Some(version) if version < (6, 1) => lacks("needs Linux 6.1 or later (MADV_COLLAPSE)"),
        _ if cfg!(not(target_arch = "x86_64")) => lacks("needs an x86-64 CPU"),
        _ => Ok(()),
    }
}

/// A line of the weights of a plan: so much weighs the code in these bytes of a file.
pub fn code_weights_line(weight: u64, offset: u64, bytes: u64, path: &str) -> String {
    format!("{weight:x} {offset:x} {bytes:x} {path}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_all_or_a_number() {
        for (text, windows) in [("all", usize::MAX), ("1", 1), ("64", 64)] {
            let budget: CodeBudget = text.parse().expect(text);
            assert_eq!((budget.windows(), budget.to_string().as_str()), (windows, text));
        }
        for text in ["", "0", "-1", "ALL", "4294967296", "1.5", "all "] {
            let error = text.parse::<CodeBudget>().expect_err(text).to_string();
            assert!(error.contains("want all, or a number"), "{error}");
        }
    }

    #[test]
    fn obstacles_are_written_by_the_library_as_they_are_read_here() {
        use CodeObstacle::*;
        let all = [
            Threads,
            Seccomp,
            SwitchedOff,
            MemoryLimit,
            Changed,
            Unreadable,
            NoCopy,
            NotCollapsed,
            NotExecutable,
            NotMoved,
        ];
        for obstacle in all {
            assert_eq!(serde_json::to_string(&obstacle).expect("text"), format!("\"{}\"", obstacle.name()));
            assert!(obstacle.words().len() > 10);
        }
    }

    #[test]
    fn what_the_kernel_lacks_is_said_before_a_program_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let there = TransparentHugePages::in_folder(folder.path());
        let said = |settings: &TransparentHugePages, kernel| check_code_in(settings, kernel).map_err(|e| e.to_string());
        assert!(said(&there, Some((6, 0))).expect_err("too old").contains("Linux 6.1"));
        let absent = TransparentHugePages::in_folder(folder.path().join("none"));
        assert!(said(&absent, Some((6, 18))).expect_err("none").contains("no transparent huge pages"));
        assert_eq!(said(&there, Some((6, 1))).is_ok(), cfg!(target_arch = "x86_64"));
    }

    #[test]
    fn processes_are_added_up() {
        assert_eq!(CodeTotals::of(&[]), None);
        let of = |by_file, by_copy, obstacle| ProcessCode {
            by_file,
            by_copy,
            obstacle,
            windows: 9,
            nanos: 5,
            ..ProcessCode::default()
        };
        let blocked = Some(CodeObstacle::Seccomp);
        let sum = CodeTotals::of(&[of(1, 2, None), of(0, 0, blocked), of(0, 0, blocked)]).expect("some");
        assert_eq!((sum.processes, sum.helped, sum.windows, sum.made(), sum.nanos), (3, 1, 27, 3, 15));
        assert_eq!(sum.obstacles, BTreeMap::from([(CodeObstacle::Seccomp.words().to_string(), 2)]));
    }

    #[test]
    fn weights_are_written_in_hexadecimal_with_the_path_last() {
        assert_eq!(code_weights_line(255, 4096, 16, "/a b"), "ff 1000 10 /a b\n");
    }
}
