//! `top`: shares of translation, why memory is in small pages, control groups, OpenMetrics; and `analyze` of processes
//! that run already.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{assert_bad_input, compile, json, run, stderr, stdout};

/// Reads at random, or in order, in memory for which it refuses huge pages.
const READS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	uint64_t bytes = strtoull(argv[1], 0, 0) << 20, state = 1, sum = 0, at = 0;
	int random = argc > 2;
	char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	alarm(120);
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	memset(memory, 1, bytes);
	puts("ready");
	fflush(stdout);
	for (;;) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		at = random ? (state >> 33) % bytes : (at + 64) % bytes;
		sum += ((volatile char *)memory)[at];
	}
}
"#;

/// A program that runs until the test has ended.
struct Running(Child);

impl Running {
    fn start(program: &Path, arguments: &[&str]) -> Self {
        let mut child =
            Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().expect("it can be started");
        let mut line = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut line).expect("it says that it is ready");
        Self(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn row(report: &Value, pid: u32) -> Value {
    let rows = report["processes"].as_array().expect("a list");
    rows.iter().find(|row| row["pid"] == pid).expect("the program").clone()
}

#[test]
fn random_reads_spend_time_in_translation_and_reads_in_order_hardly_any() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "reads", READS, &["-O2"]) else { return };
    let (random, ordered) = (Running::start(&program, &["256", "random"]), Running::start(&program, &["64"]));
    let metrics = folder.path().join("metrics.prom");
    let openmetrics = format!("--openmetrics={}", metrics.display());
    let output = run(&["top", "--json", "--cgroups", "--interval", "4", &openmetrics]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    let of_random = row(&report, random.pid());
    // The program excluded nearly all of its memory.
    let most = &of_random["small_pages"][0];
    assert_eq!((most["reason"].as_str(), most["bytes"].as_u64() > Some(255 << 20)), (Some("excluded"), true));
    let groups = report["control_groups"].as_array().expect("a list");
    let processes: u64 = groups.iter().map(|group| group["processes"].as_u64().expect("a number")).sum();
    assert_eq!(processes as usize, report["processes"].as_array().expect("a list").len());
    let text = std::fs::read_to_string(&metrics).expect("written");
    let pid = format!("lookaside_process_resident_bytes{{pid=\"{}\",comm=\"reads\"", random.pid());
    assert!(text.contains(&pid) && text.ends_with("# EOF\n"), "{text}");
    let shares = [&random, &ordered].map(|one| row(&report, one.pid())["translation"].clone());
    let [Some(of_random), Some(of_ordered)] = shares.each_ref().map(|share| share["share"].as_f64()) else {
        return eprintln!("LEFT OUT: no samples here: {}", report["notes"]);
    };
    // Most of the time is a wait for memory, and what part of it is a walk the machine's description says.
    assert!(of_random > 0.03 && of_random > 3.0 * of_ordered, "{shares:?}");
    assert!(
        shares[0]["low"].as_f64() <= Some(of_random) && shares[0]["high"].as_f64() >= Some(of_random),
        "{shares:?}"
    );
    assert!(text.contains(&format!("lookaside_process_translation_ratio{{pid=\"{}\"", random.pid())), "{text}");
    assert!(report["machine"].is_string(), "{}", report["machine"]);
}

#[test]
fn openmetrics_is_printed_in_place_of_the_table_and_json_has_to_go_elsewhere() {
    let output = run(&["top", "--openmetrics", "--no-samples", "--interval", "1"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(text.starts_with("# HELP lookaside_") && text.ends_with("# EOF\n"), "{text}");
    assert!(
        text.contains("lookaside_process_page_tables_bytes{pid=") && !text.contains("translation_ratio{"),
        "{text}"
    );
    assert_bad_input(&run(&["top", "--openmetrics", "--json"]), &["--openmetrics, --json", "--json=FILE"]);
    assert_bad_input(&run(&["top", "--openmetrics=/no/such/folder/file"]), &["/no/such/folder"]);
}

#[test]
fn a_running_process_is_analysed_for_a_while_and_the_hint_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "reads", READS, &["-O2"]) else { return };
    let running = Running::start(&program, &["64", "random"]);
    let pid = running.pid().to_string();
    let file = folder.path().join("report.json");
    let written = format!("--json={}", file.display());
    let output = run(&["analyze", "--no-probe", "--pid", &pid, "--seconds", "2", &written]);
    if stderr(&output).contains("perf_event_open is refused") {
        return eprintln!("LEFT OUT: {}", stderr(&output));
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let report: Value = serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    let curve = report["curve"]["fully_associative"].as_array().expect("a curve");
    assert!(curve.iter().all(|point| point[1].as_u64() > Some(0)), "{curve:?}");
    let hint = text.lines().find_map(|line| line.split_once("lookaside analyze --every")).expect("a hint").1;
    let hint: Vec<&str> = hint.split_whitespace().map(|word| if word == "60s" { "2s" } else { word }).collect();
    let again = run(&[&["analyze", "--no-probe", "--every"], &hint[..]].concat());
    assert_eq!(again.status.code(), Some(0), "{hint:?}: {}", stderr(&again));
    assert!(stdout(&again).contains("of the modelled cycles"), "{}", stdout(&again));
}

#[test]
fn a_control_group_is_analysed_and_what_is_none_is_refused() {
    for (arguments, words) in [
        (&["analyze", "--cgroup", "/no/such"][..], "no such control group"),
        (&["analyze", "--cgroup", "../x"], "path of a control group"),
        (&["analyze", "--cgroup", "/", "--every", "1s"], "--every: intervals are of one process"),
    ] {
        assert_bad_input(&run(&[arguments, &["--no-probe"]].concat()), &[words]);
    }
    assert_eq!(run(&["analyze", "--seconds", "3", "true"]).status.code(), Some(2));
    let group = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = group.lines().find_map(|line| line.rsplit_once(":/").map(|(_, path)| format!("/{path}")));
    let Some(path) = path else { return eprintln!("LEFT OUT: this system has no control groups") };
    let output = run(&["analyze", "--no-probe", "--cgroup", &path, "--seconds", "1"]);
    match output.status.code() {
        Some(0) => assert!(stdout(&output).contains("control group"), "{}", stdout(&output)),
        _ => eprintln!("LEFT OUT: {}", stderr(&output)),
    }
}
