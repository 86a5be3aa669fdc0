//! Code that was put on huge pages, process by process.

use std::collections::BTreeMap;

use lookaside_report::{num, text};
use lookaside_runtime::hugepages::{CodeObstacle, ProcessCode, WINDOW_BYTES};

/// Programs that are named; the others are counted.
const PROGRAMS: usize = 8;

/// Processes of one program.
#[derive(Default)]
struct SameProgram {
    processes: u32,
    windows: u32,
    made: u32,
    by_file: u32,
    code_bytes: u64,
    outside_bytes: u64,
    longest_nanos: u64,
    obstacles: BTreeMap<(CodeObstacle, i32), u32>,
}

impl SameProgram {
    fn add(&mut self, process: &ProcessCode) {
        self.processes += 1;
        // Where the programs' places differ from process to process, so do their windows: the last counts.
        (self.windows, self.made, self.by_file) = (process.windows, process.made(), process.by_file);
        (self.code_bytes, self.outside_bytes) = (process.code_bytes, process.outside_bytes);
        self.longest_nanos = self.longest_nanos.max(process.nanos);
        if let Some(obstacle) = process.obstacle {
            *self.obstacles.entry((obstacle, process.errno)).or_default() += 1;
        }
    }

    fn line(&self, name: &str) -> String {
        let times = if self.processes > 1 {
            format!(" ({} processes)", num::grouped(self.processes.into()))
        } else {
            String::new()
        };
        let ways = match (self.by_file, self.made) {
            (0, _) => "",
            (files, made) if files == made => " in the file's own pages",
            _ => " partly in the file's own pages",
        };
        format!(
            "{}{times}: {} of {} windows{ways} ({}) in {}; {} of {} of code lies outside whole windows",
            text::clean(name),
            self.made,
            self.windows,
            num::bytes(u64::from(self.made) * WINDOW_BYTES),
            num::seconds(self.longest_nanos as f64 / 1e9),
            num::bytes(self.outside_bytes),
            num::bytes(self.code_bytes),
        )
    }
}

/// What became of the code of a program and of all that it started: a line for each program that has whole windows, and
/// one for each obstacle.
pub fn summary(processes: &[ProcessCode]) -> String {
    let mut programs: BTreeMap<&str, SameProgram> = BTreeMap::new();
    let small = processes.iter().filter(|process| process.windows == 0).count();
    for process in processes.iter().filter(|process| process.windows > 0) {
        programs.entry(&process.program).or_default().add(process);
    }
    let mut lines = Vec::new();
    match (processes.len(), programs.is_empty()) {
        (0, _) => lines
            .push("no process reported: one that is static, setuid, another user's or was killed does not".to_string()),
        (_, true) => lines.push("no mapping of code has a whole window of 2 MiB".to_string()),
        _ => {}
    }
    let mut by_size: Vec<(&str, &SameProgram)> = programs.iter().map(|(name, program)| (*name, program)).collect();
    by_size.sort_by_key(|(_, program)| std::cmp::Reverse((program.made, program.windows)));
    let (shown, rest) = by_size.split_at(by_size.len().min(PROGRAMS));
    lines.extend(shown.iter().map(|(name, program)| program.line(name)));
    if !rest.is_empty() {
        lines.push(format!("and {}", num::counted(rest.len(), "other program")));
    }
    if small > 0 && !programs.is_empty() {
        let others = if small == 1 { "other process has" } else { "other processes have" };
        lines.push(format!("{} {others} no whole window", num::grouped(small as u64)));
    }
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        text += &format!("lookaside: {}{line}\n", if at == 0 { "code on huge pages: " } else { "  " });
    }
    for (name, program) in shown {
        for ((obstacle, errno), count) in &program.obstacles {
            let code = if *errno == 0 { String::new() } else { format!(" (error {errno})") };
            let count =
                if *count > 1 { format!(" in {} of them", num::grouped((*count).into())) } else { String::new() };
            text +=
                &format!("lookaside:   {}: code left alone{count}: {}{code}\n", text::clean(name), obstacle.words());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(program: &str, windows: u32, by_file: u32, by_copy: u32) -> ProcessCode {
        let (code_bytes, nanos) = (u64::from(windows) * WINDOW_BYTES + (1 << 20), 2_000_000 + u64::from(by_copy));
        let program = program.to_string();
        ProcessCode {
            program,
            windows,
            by_file,
            by_copy,
            code_bytes,
            outside_bytes: 1 << 20,
            nanos,
            ..Default::default()
        }
    }

    #[test]
    fn each_program_has_a_line_and_those_without_windows_are_counted() {
        let blocked =
            ProcessCode { obstacle: Some(CodeObstacle::NotCollapsed), errno: 12, ..process("as\u{1b}[1m", 2, 0, 0) };
        let all =
            [process("sh", 0, 0, 0), process("cc1", 8, 0, 8), process("cc1", 8, 0, 8), blocked, process("tm", 2, 1, 1)];
        let said = summary(&all).replace('\u{a0}', " ");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(
            lines[0],
            "lookaside: code on huge pages: cc1 (2 processes): 8 of 8 windows (16 MiB) in 2.00 ms; 1 MiB of 17 MiB of code \
             lies outside whole windows"
        );
        assert!(
            lines[1].starts_with("lookaside:   tm: 2 of 2 windows partly in the file's own pages (4 MiB)"),
            "{said}"
        );
        assert!(lines[2].contains("0 of 2 windows") && !lines[2].contains('\u{1b}'), "{said}");
        assert_eq!(lines[3], "lookaside:   1 other process has no whole window");
        assert!(lines[4].contains("code left alone: the kernel makes no huge page of it"), "{said}");
        assert!(lines[4].ends_with("(error 12)") && lines.len() == 5, "{said}");
        let files = summary(&[process("x", 3, 3, 0), process("y", 0, 0, 0), process("z", 0, 0, 0)]);
        assert!(
            files.contains("x: 3 of 3 windows in the file's own pages") && files.contains("2 other processes have")
        );
    }

    #[test]
    fn nothing_done_is_said_too() {
        assert!(summary(&[]).starts_with("lookaside: code on huge pages: no process reported"));
        let small = summary(&[process("sh", 0, 0, 0)]);
        assert_eq!(small, "lookaside: code on huge pages: no mapping of code has a whole window of 2 MiB\n");
        let many: Vec<ProcessCode> = (0..12).map(|n| process(&format!("p{n:02}"), 1, 0, 1)).collect();
        assert!(summary(&many).contains("\nlookaside:   and 4 other programs\n"));
    }
}
