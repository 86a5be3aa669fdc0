//! The examples of every `--help` run: with the files that they name in a folder, places of the system moved there, and
//! a process of the number that they name. What takes longer is interrupted.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::heed_signals;
use crate::common::{lookaside, run, stderr, stdout};

/// A command that still runs after so long has understood what it was told.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The help texts: of the command, and of all below it.
fn helps(words: &[String], all: &mut Vec<String>) {
    let output = lookaside().args(words).arg("--help").output().expect("the command can be started");
    assert_eq!(output.status.code(), Some(0), "{words:?} --help: {}", stderr(&output));
    let help = stdout(&output);
    // The lab's program answers for itself, and says so.
    // The commands stand in groups, or under one heading; the options follow.
    let below = help.split_once("\nUsage: ").map_or("", |(_, rest)| rest);
    let below =
        below.split("\nOptions:\n").next().unwrap_or_default().split("\nArguments:\n").next().unwrap_or_default();
    let names = below.lines().skip(1).filter_map(|line| {
        let is_name = line.starts_with("  ") && !line.starts_with("   ");
        line.split_whitespace().next().filter(|_| is_name).map(String::from)
    });
    for name in names.filter(|name| name != "help") {
        helps(&[words, &[name]].concat(), all);
    }
    all.push(help);
}

/// The command lines after `Example:` or `Examples:`; a line may go on in the next.
fn examples(help: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut lines = help.lines();
    let Some(first) = lines.find_map(|line| line.strip_prefix("Example")?.split_once(": ")) else { return found };
    found.push(first.1.into());
    for line in lines.map(str::trim).take_while(|line| !line.is_empty()) {
        match (line.starts_with("lookaside "), found.last_mut()) {
            (false, Some(last)) => *last = format!("{last} {line}"),
            _ => found.push(line.into()),
        }
    }
    found
}

/// A program with memory, which is ended when it is dropped.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        // One that has ended already is no error.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn busy() -> Busy {
    let mut command = lookaside();
    command.args(["lab", "workload", "gups", "--size", "64M", "--rounds", "1000000", "--pages", "base"]);
    Busy(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command can be started"))
}

const TASKS: &str = "[[task]]\nname = \"T1\"\nperiod = \"2ms\"\nexecution = \"0.4ms\"\npages = 16\n\
    [[task]]\nname = \"T2\"\nphase = \"1ms\"\nperiod = \"16ms\"\nexecution = \"4ms\"\npages = 8\n";

/// What the examples name.
fn lay_out(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    for program in ["server", "control", "join", "gups"] {
        let does = match program {
            // It has a heap of a few pages.
            "control" => ":",
            // A plan of huge pages is carried out for one process.
            "join" => "exec sort -r orders.csv -o joined.csv",
            _ => "seq 3000 | sort -r | tail -n 1",
        };
        write(program, &format!("#!/bin/sh\n{does}\n"));
        std::fs::set_permissions(folder.join(program), std::fs::Permissions::from_mode(0o755)).expect("ours");
    }
    for file in ["big.txt", "orders.csv"] {
        write(file, &(0..3000).map(|n| format!("{}\n", n * 7919 % 3000)).collect::<String>());
    }
    write("tasks.toml", TASKS);
    write("sum.c", "int main(void) { return 0; }\n");
    write("machine.toml", &stdout(&run(&["machine", "show", "skylake", "--toml"])));
    for trace in ["sort.lkt", "gups.lkt", "join.lkt", "control.lkt"] {
        let trace = folder.join(trace).to_string_lossy().into_owned();
        // There has to be something to bake.
        let made = run(&["lab", "workload", "gups", "--size", "8M", "--record", &trace]);
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    }
    for place in ["man", "completions", "node_exporter"] {
        std::fs::create_dir(folder.join(place)).expect("a folder");
    }
    for plan in [
        "color plan tasks.toml --machine xeon-e5-2650 -o partitions.toml",
        "hugepages plan --budget 4 --machine skylake -o plan.toml --trace join.lkt",
    ] {
        let planned = lookaside().args(plan.split(' ')).current_dir(folder).output().expect("started");
        assert_eq!(planned.status.code(), Some(0), "{}", stderr(&planned));
    }
}

/// Exit code, and what was said, of a line in a shell; interrupted where it takes long.
fn outcome(line: &str, folder: &Path) -> (Option<i32>, String) {
    let own = lookaside();
    let path = Path::new(own.get_program()).parent().expect("a folder").display().to_string();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {line}")]).current_dir(folder).process_group(0).stdin(Stdio::null());
    shell.env("PATH", path).env("LOOKASIDE_MACHINE", "skylake").stdout(Stdio::null());
    heed_signals(&mut shell);
    let said = std::fs::File::create(folder.join("said")).expect("a file");
    let mut child = shell.stderr(said).spawn().expect("a shell");
    let group = child.id() as libc::pid_t;
    let begun = Instant::now();
    let mut interrupted = false;
    let code = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status.code().or(status.signal().map(|signal| 128 + signal));
        }
        if begun.elapsed() > 40 * PATIENCE {
            // SAFETY: as below. Not to be interrupted is a fault, and is seen by the code.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        if begun.elapsed() > PATIENCE && !interrupted {
            // SAFETY: a signal to a group whose first process was not waited for.
            unsafe { libc::kill(-group, libc::SIGINT) };
            interrupted = true;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let said = std::fs::read_to_string(folder.join("said")).expect("text");
    // Interrupted it says so by its code; a program that it runs and that goes on is ended.
    let ended = [128 + libc::SIGINT, 128 + libc::SIGTERM];
    (code.filter(|code| !(interrupted && ended.contains(code))).or(Some(0)), said)
}

#[test]
fn all_examples_of_all_helps_run() {
    let own = lookaside();
    if !Path::new(own.get_program()).with_file_name("lookaside-lab").exists() {
        return eprintln!("LEFT OUT: lookaside-lab is not built (cargo build --workspace)");
    }
    let mut all = Vec::new();
    helps(&[], &mut all);
    let lines: BTreeSet<String> = all.iter().flat_map(|help| examples(help)).collect();
    assert!(lines.len() >= 30 && lines.iter().all(|line| line.starts_with("lookaside ")), "{lines:#?}");
    let folder = tempfile::tempdir().expect("a folder");
    lay_out(folder.path());
    let busy = busy();
    let mut wrong = Vec::new();
    for line in &lines {
        let here = line
            .replace("4711", &busy.0.id().to_string())
            .replace("--to 4", "--to 1") // a CPU that is there
            .replace("/etc/bash_completion.d", "completions")
            .replace("/usr/local/share/man/man1", "man")
            .replace("/var/lib/node_exporter", "node_exporter");
        let (code, said) = outcome(&here, folder.path());
        // A kernel without the call can't bake others; a validation may find that the model is off, a machine be too
        // busy for figures: then it is said, with code 1.
        let is_the_kernels =
            code == Some(2) && (said.contains("Linux 6.7") || said.contains("cannot be told apart here"));
        let is_not_clean = code == Some(1) && (line.contains("validate") || line.contains("experiment"));
        if code != Some(0) && !is_the_kernels && !is_not_clean {
            wrong.push(format!("{line}: {code:?}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
