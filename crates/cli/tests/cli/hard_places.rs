//! The probe where it is hard: interrupted, confined to a CPU, short of memory. What it finds is whatever it is; that
//! it ends with reasons is asserted, and no time.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{kill_process, test_kill_process_group, Pid, Signal};
use rustix::thread::{sched_getaffinity, CpuSet};
use serde_json::Value;

use crate::common::{assert_bad_input, json, lookaside, run, stderr};

/// The report of a run that ended in order; `None` where this machine cannot be probed at all, which one line says.
fn report(output: &Output) -> Option<Value> {
    if output.status.code() == Some(2) {
        assert_bad_input(output, &[]);
        return None;
    }
    Some(json(output))
}

/// Every level has a value or a reason.
fn assert_sound(report: &Value) {
    let levels = report["levels"].as_array().expect("a list");
    assert!(!levels.is_empty());
    for level in levels {
        let geometry = &level["geometry"];
        let reason = geometry["reason"].as_str().unwrap_or_default();
        assert!(geometry["state"] == "confirmed" || !reason.is_empty(), "{geometry}");
    }
}

/// Interrupts a run in its middle.
fn interrupted(signal: Signal, code: i32) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("text path").to_string();
    let (evidence, machine) = (at("evidence"), at("machine.toml"));
    let child = lookaside()
        .args(["machine", "probe", "--json", "--evidence", &evidence, "-o", &machine])
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let pid = Pid::from_child(&child);
    // The samples begin when the machine is about to be measured.
    let samples = Path::new(&evidence).join("samples.jsonl.zst");
    for _ in 0..500 {
        if samples.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(100));
    let _ = kill_process(pid, signal); // it may have refused the machine already
    let output = child.wait_with_output().expect("it ends");
    let Some(report) = report(&output) else { return };
    assert_sound(&report);
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    assert_eq!(report["halted"], "interrupted");
    // What is known by then is written too, whole.
    assert!(Path::new(&evidence).join("report.json").exists());
    assert_eq!(run(&["machine", "check", &machine]).status.code(), Some(0));
    // Nobody of its process group is left; who was killed may wait for init to notice.
    let gone = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        test_kill_process_group(pid).is_err()
    });
    assert!(gone, "a process of the probe is left");
}

#[test]
fn interrupted_by_a_user_it_says_what_it_knows() {
    interrupted(Signal::INT, 130);
}

#[test]
fn interrupted_by_the_system_it_says_what_it_knows() {
    interrupted(Signal::TERM, 143);
}

/// Runs a short probe under this shell command, which ends in `"$@"`.
fn under(shell: &str) -> Output {
    let mut command = Command::new("sh");
    command.arg("-c").arg(shell).arg("sh").arg(assert_cmd::cargo::cargo_bin("lookaside"));
    command.args(["machine", "probe", "--only", "l1", "--time", "4", "--json"]);
    command.output().expect("there is a shell")
}

#[test]
fn it_stays_on_the_cpus_that_it_is_given() {
    let mine = sched_getaffinity(None).expect("a set of CPUs");
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| mine.is_set(cpu)).expect("a CPU");
    let Some(report) = report(&under(&format!("exec taskset -c {last} \"$@\""))) else { return };
    assert_eq!(report["cpu"], last);
    assert_sound(&report);
}

#[test]
fn few_addresses_are_remarked_on() {
    // 384 MiB of addresses, program and all.
    let Some(report) = report(&under("ulimit -v 393216 && exec \"$@\"")) else { return };
    assert_sound(&report);
    let remarks = report["remarks"].to_string();
    assert!(remarks.contains("address space is limited"), "{remarks}");
}

#[test]
fn too_few_addresses_are_one_clear_line() {
    assert_bad_input(&under("ulimit -v 65536 && exec \"$@\""), &["no memory for"]);
}
