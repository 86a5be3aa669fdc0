//! What the kernel says of a process in one line (`stat`), and in lines with names (`status`).

use std::str::FromStr;

/// The line of a process or thread (proc_pid_stat(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its name: at most 15 bytes of the program's.
    pub comm: String,
    /// The fields from the third on.
    rest: Vec<String>,
}

impl ProcessStat {
    /// Of a text like `/proc/PID/stat`.
    pub fn of_text(text: &str) -> Self {
        // The name can have blanks and brackets.
        let (name, rest) = text.rsplit_once(')').unwrap_or_default();
        let comm = name.split_once('(').map_or("", |(_, comm)| comm).to_string();
        Self { comm, rest: rest.split_whitespace().map(str::to_string).collect() }
    }

    /// A field by its number in proc_pid_stat(5), from 3 on; `None` where it is not there, or is something else.
    pub fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        self.rest.get(number.checked_sub(3)?)?.parse().ok()
    }

    /// Whether it runs no more and only waits to be forgotten (`Z`, `X`).
    pub fn has_ended(&self) -> bool {
        matches!(self.field(3), Some('Z' | 'X'))
    }

    /// The process that started it; 0: not said.
    pub fn parent(&self) -> u32 {
        self.field(4).unwrap_or(0)
    }

    /// CPU time that it used, in [`crate::ticks_per_second`].
    pub fn cpu_ticks(&self) -> u64 {
        self.field::<u64>(14).unwrap_or(0).saturating_add(self.field(15).unwrap_or(0))
    }

    /// Its threads.
    pub fn threads(&self) -> u64 {
        self.field(20).unwrap_or(0)
    }

    /// When it started, in [`crate::ticks_per_second`] since the system did.
    pub fn start_ticks(&self) -> u64 {
        self.field(22).unwrap_or(0)
    }

    /// First address of its program's code; 0 or 1: not said to us.
    pub fn code_start(&self) -> u64 {
        self.field(26).unwrap_or(0)
    }

    /// Where its stack began; 0: not said to us.
    pub fn stack_start(&self) -> u64 {
        self.field(28).unwrap_or(0)
    }

    /// The CPU that it ran on last.
    pub fn last_cpu(&self) -> Option<usize> {
        self.field(39)
    }

    /// Where its heap begins; 0: not said to us.
    pub fn heap_start(&self) -> u64 {
        self.field(47).unwrap_or(0)
    }
}

/// The lines `NAME: text` of a process or thread (proc_pid_status(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStatus(String);

impl ProcessStatus {
    /// Of a text like `/proc/PID/status`.
    pub fn of_text(text: String) -> Self {
        Self(text)
    }

    /// What a line says, as `SigIgn`; `None` where there is no such line.
    pub fn value(&self, name: &str) -> Option<&str> {
        line(&self.0, name)
    }

    /// What a line of sizes says, as `RssAnon`, in bytes; `None` where there is no such line.
    pub fn bytes(&self, name: &str) -> Option<u64> {
        self.value(name).and_then(kib)
    }
}

/// The text behind `NAME:` at the beginning of a line.
pub(crate) fn line<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let value = |line: &'text str| line.strip_prefix(name)?.trim_start().strip_prefix(':');
    text.lines().find_map(value).map(str::trim)
}

/// `N kB` in bytes.
pub(crate) fn kib(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_with_brackets_is_no_field() {
        let stat = ProcessStat::of_text("7 (a (b) R 9) S 1 2 -3 4\n");
        assert_eq!(stat.comm, "a (b) R 9");
        assert_eq!((stat.field(3), stat.parent(), stat.field(5)), (Some('S'), 1, Some(2u64)));
        assert_eq!((stat.field::<u64>(6), stat.field::<i64>(6), stat.field(7)), (None, Some(-3), Some(4u64)));
        assert_eq!((stat.field::<u64>(8), stat.field::<u64>(2), stat.field::<u64>(0)), (None, None, None));
        for text in ["", "7 (no end"] {
            assert_eq!(ProcessStat::of_text(text), ProcessStat::default());
        }
    }

    #[test]
    fn fields_have_the_documented_numbers() {
        let fields: Vec<String> = (4..53).map(|number| number.to_string()).collect();
        let stat = ProcessStat::of_text(&format!("1 (x) Z {}\n", fields.join(" ")));
        assert!(stat.has_ended() && !ProcessStat::of_text("1 (x) S 1").has_ended());
        assert_eq!((stat.parent(), stat.cpu_ticks(), stat.threads(), stat.start_ticks()), (4, 14 + 15, 20, 22));
        assert_eq!((stat.code_start(), stat.stack_start(), stat.heap_start()), (26, 28, 47));
        assert_eq!(stat.last_cpu(), Some(39));
    }

    #[test]
    fn lines_are_found_by_their_whole_name() {
        let text = "VmRSSes: 1 kB\nVmRSS:\t  12 kB\nSigIgn:\t0000000000001000\nflags\t\t: a b\n";
        let status = ProcessStatus::of_text(text.into());
        assert_eq!((status.bytes("VmRSS"), status.value("SigIgn")), (Some(12 << 10), Some("0000000000001000")));
        assert_eq!((status.value("flags"), status.value("Vm"), status.bytes("SigIgn")), (Some("a b"), None, None));
        assert_eq!((kib("12"), kib("x kB"), kib("18446744073709551615 kB")), (None, None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC*", name in "[a-zA-Z]{0,5}", number in 0usize..60) {
            let _ = ProcessStat::of_text(&text).field::<u64>(number);
            ProcessStatus::of_text(text).bytes(&name);
        }
    }
}
