//! Intervals of a run: `--every`, `--for`, `--start` and `--stop`.

use std::process::Stdio;

use serde_json::Value;

use crate::common::{assert_bad_input, compile, json, lookaside, run, stderr, stdout};

/// Random reads of 64 MiB for as long as it is told to, in milliseconds of CPU time.
const READS: &str = "#include <stdint.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv) {
    size_t words = 8 << 20;
    uint64_t *array = malloc(words * sizeof *array), x = 88172645463325252, sum = 0;
    for (size_t i = 0; i < words; i++)
        array[i] = i;
    clock_t end = clock() + atoi(argv[1]) * (CLOCKS_PER_SEC / 1000);
    while (clock() < end)
        for (int i = 0; i < 100000; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            sum += array[x % words];
        }
    return sum == 1 ? 1 : 9;
}";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn a_share_of_the_whole_run_comes_with_its_interval() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "reads", READS, &[]) else { return };
    let program = program.to_str().expect("text path");
    let arguments = ["analyze", "-m", "skylake", "--every", "50ms", "--for", "1M", program, "2000"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(9), "{}", stderr(&output));
    let text = stdout(&output);
    for said in
        ["Translation costs ", "every access in intervals of the run", "intervals  ", "walks a 1,000 accesses ("]
    {
        assert!(text.contains(said), "{said:?} is not in\n{text}");
    }
    let report = json(&run(&[&arguments[..1], &["--json"], &arguments[1..]].concat()));
    let estimate = &report["intervals"];
    assert!(number(&estimate["intervals"]) >= 3.0, "{estimate}");
    for figure in ["translation_share", "walks_per_1000_accesses"] {
        let [low, value, high] = ["low", "value", "high"].map(|end| number(&estimate[figure][end]));
        assert!(low <= value && value <= high && value > 0.0, "{figure}: {low} {value} {high}");
    }
    let intervals = report["outcome"]["intervals"].as_array().expect("intervals");
    let counted: f64 = intervals.iter().map(|interval| number(&interval["accesses"])).sum();
    let [data, fetch] = ["data", "fetch"].map(|side| number(&report["outcome"][side]["accesses"]));
    assert_eq!(counted, data + fetch);
    // What helps is computed over the intervals, so it has an interval too.
    let huge = &report["remedies"][0];
    assert!(number(&huge["windows"]) > 1.0 && number(&huge["saved_share"]) > 0.5, "{huge}");
    assert!(report["native"].is_null() && report["huge_gain"]["verdict"].to_string().contains("intervals tell"));
    let notes = report["notes"].to_string();
    for said in ["intervals of the run", "stood still for at most"] {
        assert!(notes.contains(said), "{said:?} is not in\n{notes}");
    }
}

#[test]
fn a_running_process_is_recorded_and_goes_on() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "reads", READS, &[]) else { return };
    let child = std::process::Command::new(program).arg("4000").stdout(Stdio::null()).spawn().expect("started");
    let trace = folder.path().join("reads.lkt");
    let trace = trace.to_str().expect("text path");
    let pid = child.id().to_string();
    let output = run(&["record", "-o", trace, "--every", "50ms", "--for", "200k", "--stop", "2500ms", "--pid", &pid]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("intervals of the run"), "{}", stderr(&output));
    let status = child.wait_with_output().expect("its end").status;
    assert_eq!(status.code(), Some(9));
    // From the trace, the same is told.
    let info = stdout(&run(&["trace", "info", trace]));
    assert!(info.contains("recorder                 intervals") && info.contains("interval "), "{info}");
    let report = json(&run(&["analyze", "-m", "skylake", "--json", "--trace", trace]));
    assert!(number(&report["intervals"]["intervals"]) >= 2.0, "{}", report["intervals"]);
}

#[test]
fn the_first_interval_begins_when_it_is_told_to() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "reads", READS, &[]) else { return };
    let trace = folder.path().join("reads.lkt");
    let trace = trace.to_str().expect("text path");
    let mut command = lookaside();
    command.args(["record", "-o", trace, "--every", "20ms", "--for", "100k", "--start", "300ms"]);
    let output = command.arg(program).arg("1200").output().expect("started");
    assert_eq!(output.status.code(), Some(9), "{}", stderr(&output));
    let report = json(&run(&["analyze", "-m", "skylake", "--json", "--trace", trace]));
    let first = number(&report["outcome"]["intervals"][0]["cpu_ns"]);
    // It has a CPU nearly to itself, or not.
    assert!(first > 20e6, "{first}");
}

#[test]
fn what_cannot_be_is_said_before_the_program_runs() {
    let refused = |arguments: &[&str], said: &[&str]| {
        assert_bad_input(&run(&[arguments, &["sh", "-c", "echo ran >&2"]].concat()), said);
    };
    let record = ["record", "-o", "/dev/null"];
    let with = |more: &[&'static str]| [&record[..], more].concat();
    for (option, value, said) in [("--every", "1ms", "10ms"), ("--for", "12", "20M"), ("--start", "soon", "number")] {
        let output = run(&[&with(&[option, value])[..], &["sh", "-c", "echo ran >&2"]].concat());
        let text = stderr(&output);
        assert!(output.status.code() == Some(2) && !text.contains("ran"), "{text}");
        assert!(text.contains(option) && text.contains(said), "{text}");
    }
    refused(&with(&["--start", "2s", "--stop", "1s"]), &["--stop: must be later than --start"]);
    refused(&with(&["--every", "1s", "--backend", "valgrind"]), &["--every", "--backend intervals"]);
    refused(&["analyze", "--every", "1s", "--exact"], &["--exact: intervals are not the whole run"]);
    assert_bad_input(
        &run(&["analyze", "--every", "1s", "--trace", "x.lkt"]),
        &["--every: a trace is recorded already"],
    );
    assert_bad_input(&run(&["record", "-o", "/dev/null", "--every", "1s", "--pid", "2147483647"]), &["no process"]);
}
