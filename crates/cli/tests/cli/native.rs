//! The native run of `lookaside analyze`: what it reads, when there is none, and what is said then. No time is
//! asserted.

use std::io::Write;
use std::process::Stdio;

use crate::common::{compile, have_valgrind, lookaside, run, stderr, stdout, valid_json};
use serde_json::Value;

/// The analysis that comes after the program's own output.
fn json(text: &str) -> Value {
    let start = text.find("{\n").unwrap_or_else(|| panic!("no JSON in {text:?}"));
    valid_json(&text[start..])
}

/// Why there is no answer.
fn why(found: &Value) -> String {
    assert_eq!(found["huge_gain"]["verdict"]["kind"], "unknown", "{}", found["huge_gain"]);
    found["huge_gain"]["verdict"]["why"].as_str().expect("a reason").to_string()
}

#[test]
fn both_runs_read_what_came_through_a_pipe() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let seen = folder.path().join("seen");
    let script = r#"read line; read other; echo "$line $other" >> "$0"; echo out"#;
    let mut child = lookaside()
        .args(["analyze", "--machine", "skylake", "--json", "--", "sh", "-c", script])
        .arg(&seen)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"first\nsecond\n").expect("written");
    // It stays open: a program that reads no further is not waited for.
    let output = child.wait_with_output().expect("ended");
    drop(input);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&seen).expect("written by the program"), "first second\nfirst second\n");
    let text = stdout(&output);
    assert_eq!(text.matches("out\n").count(), 1, "the native run's output is thrown away: {text}");
    assert!(json(&text)["native"]["minor_faults"].as_u64().expect("a count") > 0);
}

#[test]
fn both_runs_read_a_file_from_where_it_stood() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let (seen, input) = (folder.path().join("seen"), folder.path().join("input"));
    std::fs::write(&input, "first\nsecond\n").expect("written");
    let output = lookaside()
        .args(["analyze", "--machine", "skylake", "--", "sh", "-c", r#"cat >> "$0""#])
        .arg(&seen)
        .stdin(std::fs::File::open(&input).expect("opened"))
        .output()
        .expect("started");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&seen).expect("written"), "first\nsecond\nfirst\nsecond\n");
}

#[test]
fn a_program_that_must_not_run_twice_runs_once() {
    if !have_valgrind() {
        return;
    }
    for once in ["--once", "--no-native"] {
        let folder = tempfile::tempdir().expect("temporary folder");
        let runs = folder.path().join("runs");
        let script = r#"echo >> "$0""#;
        let arguments = ["analyze", "--machine", "skylake", once, "--json", "--", "sh", "-c", script];
        let output = lookaside().args(arguments).arg(&runs).output().expect("started");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(&runs).expect("written"), "\n");
        let found = json(&stdout(&output));
        assert!(why(&found).contains("--once") && found["native"].is_null(), "{}", found["huge_gain"]);
        assert_eq!(found["huge_gain"]["faults"], Value::Null);
    }
}

#[test]
fn a_program_that_does_not_repeat_itself_gets_no_answer() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let mark = folder.path().join("mark");
    let script = r#"[ -e "$0" ] && exit 4; : > "$0""#;
    let arguments = ["analyze", "--machine", "skylake", "--json", "--", "sh", "-c", script];
    let output = lookaside().args(arguments).arg(&mark).output().expect("started");
    assert_eq!(output.status.code(), Some(0), "the recorded run's code: {}", stderr(&output));
    assert!(why(&json(&stdout(&output))).contains("runs differ"));
}

#[test]
fn a_trace_has_no_seconds() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = folder.path().join("t.lkt");
    let trace = trace.to_str().expect("text path");
    assert_eq!(run(&["record", "--backend", "valgrind", "-o", trace, "--", "true"]).status.code(), Some(0));
    let output = run(&["analyze", "--machine", "skylake", "--json", "--trace", trace]);
    assert!(why(&json(&stdout(&output))).contains("a trace has no run time"));
}

#[test]
fn the_first_line_is_the_verdict() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = "int main(void) { volatile int n = 0; while (n < 1000000) n++; return 0; }";
    let Some(program) = compile(folder.path(), "loop", source, &[]) else { return };
    if !have_valgrind() {
        return;
    }
    let output = run(&["analyze", "--machine", "skylake", "--", program.to_str().expect("text path")]);
    let text = stdout(&output);
    let mut lines = text.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("Translation cost: ")), "{text}");
    assert!(lines.next().is_some_and(|line| line.starts_with("Huge pages: ")), "{text}");
    assert!(text.contains("\nnatively  "), "{text}");
}

#[test]
fn our_own_programs_run_under_the_recorder() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = folder.path().join("w.lkt");
    let workload = [env!("CARGO_BIN_EXE_lookaside"), "lab", "workload", "hashjoin", "--size", "1M", "--pages", "asis"];
    let record = ["record", "--backend", "valgrind", "-o", trace.to_str().expect("text path"), "--"];
    let output = run(&[&record[..], &workload[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("checksum"), "{}", stdout(&output));
}

/// Random reads of 16 MiB, each at a place that the one before tells, or none.
const READS: &str = r#"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	int chained = !strcmp(argv[1], "chained");
	uint64_t bytes = 16 << 20, state = 1, sum = 0;
	volatile char *a = calloc(bytes, 1);
	for (uint64_t i = 0; i < 200000; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		if (chained)
			sum += a[((state >> 33) + (sum & 1)) % bytes];
		else
			sum += a[(state >> 33) % bytes];
	}
	return sum != 0;
}
"#;

#[test]
fn what_waits_is_told_where_the_recorder_sees_it_and_baking_has_a_row() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "waits", READS, &[]) else { return };
    if !have_valgrind() {
        return;
    }
    let program = program.to_str().expect("text path");
    let analyze = |granularity: &str, way: &str| {
        let fixed = ["analyze", "--machine", "skylake", "--exact", "--json", "--granularity"];
        let output = run(&[&fixed[..], &[granularity, "--", program, way]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json(&stdout(&output))
    };
    for (way, range) in [("chained", 0.9..=1.0), ("free", 0.0..=0.1)] {
        let found = analyze("page", way);
        let share = found["waiting_share"].as_f64().expect("a share");
        assert!(range.contains(&share), "{way}: {share}");
        let rows = found["remedies"].as_array().expect("rows");
        let baked = rows.iter().find(|row| row["kind"] == "baked").expect("a row for baking");
        assert_eq!(
            (&baked["how"], &baked["walks"]),
            (&"lookaside bake run --settings prefetch CMD".into(), &baked["base_walks"])
        );
    }
    // Without windows nothing is known, which is no 0.
    assert_eq!(analyze("line", "chained")["waiting_share"], Value::Null);
}
