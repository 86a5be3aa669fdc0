//! The command line: every command by name, with its arguments in a file of its own.

pub mod analyze;
pub mod autopilot;
pub mod bake;
#[cfg(test)]
mod book;
pub mod cc;
pub mod color;
pub mod compare;
pub mod hugepages;
pub mod intervals;
pub mod lab;
pub mod lock;
pub mod machine;
pub mod model;
pub mod plan;
pub mod probe;
pub mod record;
pub mod recording;
pub mod simulate;
pub mod top;
pub mod trace;
pub mod trial;
pub mod validate;
pub mod workload;

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Measure what address translation (TLB misses, page-table walks) costs a program, and what would help.
#[derive(Parser)]
#[command(name = "lookaside", version, max_term_width = 100, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct CommandLine {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 success; 1 finished with problems (such as a damaged trace); 2 bad input; \
    125 recording failed; 126 program not executable; 127 program not found. \
    analyze and record exit with the program's own code (128 + signal if it was killed).";

/// The commands in `--help`, by what they are for.
const GROUPS: [(&str, &[&str]); 5] = [
    ("See what translation costs", &["analyze", "top"]),
    ("Change it", &["hugepages", "bake", "color", "lock"]),
    ("Measure whether it helped", &["trial", "undo", "autopilot", "compare"]),
    ("Model", &["record", "cc", "simulate", "trace", "machine"]),
    ("More", &["lab", "completions"]),
];

impl CommandLine {
    /// The command with its help in groups.
    pub fn grouped() -> clap::Command {
        let command = Self::command();
        let mut list = String::new();
        for (group, names) in GROUPS {
            list += &format!("{group}:\n");
            for name in names {
                let about = command.find_subcommand(name).and_then(clap::Command::get_about);
                list += &format!("  {name:<12} {}\n", about.map(ToString::to_string).unwrap_or_default());
            }
            list.push('\n');
        }
        command.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
        ))
    }

    /// What was asked for. A mistake ends the process with exit code 2, help with 0.
    pub fn read() -> Self {
        Self::from_arg_matches(&Self::grouped().get_matches()).unwrap_or_else(|e| e.exit())
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Show what address translation costs a program, where, and what would help
    #[command(after_help = "Examples: lookaside analyze --html report.html sort big.txt\n          \
        lookaside analyze --measure ./join orders.csv\n\n\
        Exit codes: the program's own, 128 + signal if it was killed; 1 a --measure run failed or the trace is damaged; \
        2 bad input; 125 recording failed; 128 + signal if interrupted")]
    Analyze(analyze::AnalyzeArgs),
    /// Show processes by their likely translation cost, live, and which of them are baked
    #[command(after_help = "Example: lookaside top --once\n\nKeys: q quits, up and down scroll")]
    Top(top::TopArgs),
    /// Choose memory for huge pages, and promote it
    #[command(subcommand, after_help = "Example: lookaside hugepages run --budget 64 ./join")]
    Hugepages(hugepages::HugepagesCommand),
    /// Keep page tables in the CPU caches
    #[command(subcommand, after_help = "Example: lookaside bake run ./server --port 80")]
    Bake(bake::BakeCommand),
    /// Divide the TLB among tasks
    #[command(subcommand, after_help = "Example: lookaside color plan tasks.toml --machine xeon-e5-2650")]
    Color(color::ColorCommand),
    /// Hold pages in lockable TLB entries
    #[command(subcommand, after_help = "Example: lookaside lock plan --entries 4 ./control")]
    Lock(lock::LockCommand),
    /// Try huge pages or baking on a running process in turns, measure whether it helps, and keep only what does
    #[command(after_help = "Examples: lookaside trial --pid 4711\n          \
        lookaside trial --pid 4711 --for 5m --statistic p99 --metric './latency-probe --each'\n          \
        lookaside trial --what bake --pid 4711 --metric cpu\n\n\
        Exit codes: 0 success, whatever was found; 1 not all could be taken back, or it ended early; 2 bad input, no \
        permission, or nothing to try or measure; 128 + signal if interrupted (all is taken back). With CMD: the \
        program's own")]
    Trial(Box<trial::TrialArgs>),
    /// Take back what a trial kept, or what a killed one left over
    #[command(after_help = "Examples: lookaside undo\n          lookaside undo --list\n\n\
        Exit codes: 0 nothing is left; 1 something could not be taken back; 2 bad input or no permission")]
    Undo(trial::UndoArgs),
    /// Try huge pages on the processes that translation is likely to cost most, and keep those that help
    #[command(after_help = "Example: lookaside autopilot --once\n\n\
        A line for each decision, with its evidence. What was kept, lookaside undo takes back.\n\n\
        Exit codes: 0 nothing is left to try (--once); 2 bad input or no permission; 128 + signal if interrupted (the \
        trial that is going on is taken back)")]
    Autopilot(autopilot::AutopilotArgs),
    /// Run a program with small pages, huge pages and baking in turns, and test the differences
    #[command(after_help = "Example: lookaside compare --variants base,thp,bake:scan --runs 10 ./gups 8G\n\n\
        Exit codes: 0 success; 1 a run failed; 2 bad input; 126 program not executable; 127 program not found; \
        128 + signal if interrupted")]
    Compare(compare::CompareArgs),
    /// Record a program's memory accesses as a trace
    #[command(after_help = "Examples: lookaside record -o sort.lkt sort big.txt\n          \
        lookaside record --every 10s --for 100ms -o service.lkt --pid 4711\n          \
        lookaside record --every 10ms --start call:malloc -o phase.lkt sort big.txt")]
    Record(record::RecordArgs),
    /// Compile a program so that it records itself, without Valgrind
    #[command(after_help = "Example: lookaside cc gcc -O2 -o sum sum.c\n\n\
        Then: lookaside analyze ./sum. In a build: make CC=\"lookaside cc gcc\", or lookaside cc cargo build.\n\n\
        Exit codes: the compiler's own; 2 bad input; 126 compiler not executable; 127 compiler not found")]
    Cc(cc::CcArgs),
    /// Simulate a trace on one or more machines
    #[command(
        after_help = "Examples: lookaside simulate sort.lkt --machine skylake --set memory.cycles=400\n          \
        lookaside simulate gups.lkt --machine ryzen-5900x --bake prefetch,sleep=100us"
    )]
    Simulate(simulate::SimulateArgs),
    /// Inspect, convert and check traces
    #[command(subcommand, after_help = "Example: lookaside trace info sort.lkt")]
    Trace(trace::TraceCommand),
    /// List, show, check and measure machine descriptions
    #[command(subcommand, after_help = "Example: lookaside machine show ryzen-5900x")]
    Machine(machine::MachineCommand),
    /// Reproduce the papers' results, and run their experiments and programs
    #[command(subcommand, after_help = "Example: lookaside lab reproduce pt-baker")]
    Lab(lab::LabArgs),
    /// Print a shell completion script
    #[command(after_help = "Example: lookaside completions bash > /etc/bash_completion.d/lookaside")]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages to a directory
    #[command(hide = true, after_help = "Example: lookaside man /usr/local/share/man/man1")]
    Man {
        /// Directory (must exist)
        folder: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_visible_command_is_in_one_group() {
        let command = CommandLine::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut names: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, names);
    }
}
