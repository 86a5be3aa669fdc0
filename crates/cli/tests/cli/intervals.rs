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

/// A thread solves for a second of CPU time, half a second after the start and before the end, and says when.
const PHASES: &str = "#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sum;
static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }
static void busy(double more) {
    for (double end = seconds() + more; seconds() < end;)
        for (int i = 0; i < 200000; i++)
            sum += i;
}
__attribute__((noinline)) void solve(void) { busy(1); }
__attribute__((noinline)) void finish(void) { sum++; }
__attribute__((noinline)) void never(void) { sum--; }
static void *work(void *of) {
    printf(\"%f\\n\", seconds());
    solve();
    printf(\"%f\\n\", seconds());
    finish();
    return of;
}
int main(int argc, char **argv) {
    pthread_t thread;
    busy(0.5);
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    if (argc > 1)
        never();
    busy(0.5);
    return 9;
}";

/// Words that say that this system gives no breakpoints, or no `perf_event_open` at all.
fn has_no_breakpoints(said: &str) -> bool {
    let has_none = said.contains("hardware breakpoint for it") || said.contains("perf_event_open is refused");
    if has_none {
        eprintln!("LEFT OUT: {said}");
    }
    has_none
}

#[test]
fn intervals_begin_and_end_at_calls() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "phases", PHASES, &["-pthread"]) else { return };
    let program = program.to_str().expect("text path");
    let trace = folder.path().join("phases.lkt");
    let trace = trace.to_str().expect("text path");
    let record = ["record", "-o", trace, "--every", "20ms", "--for", "100k"];
    let output = run(&[&record[..], &["--start", "call:solve", "--stop", "call:finish", program]].concat());
    let said = stderr(&output);
    if has_no_breakpoints(&said) {
        return;
    }
    assert_eq!(output.status.code(), Some(9), "{said}");
    assert!(!said.contains("was not seen to call"), "{said}");
    let moments: Vec<f64> = stdout(&output).lines().map(|line| line.parse().expect("seconds")).collect();
    let report = json(&run(&["analyze", "-m", "skylake", "--json", "--trace", trace]));
    let intervals = report["outcome"]["intervals"].as_array().expect("intervals");
    let times: Vec<f64> = intervals.iter().map(|interval| number(&interval["cpu_ns"]) / 1e9).collect();
    assert!(times.len() >= 2, "{times:?}");
    // A call is noticed some milliseconds late, and later where there are few CPUs for many.
    let near = 0.2;
    assert!(times.iter().all(|time| (moments[0] - near..moments[1] + near).contains(time)), "{times:?} {moments:?}");

    // What is not called is said.
    let output = run(&[&record[..], &["--start", "call:never", program]].concat());
    let said = stderr(&output);
    let never = "no interval: the program was not seen to call never (--start call:never)";
    assert!(output.status.code() == Some(9) && said.contains(never), "{said}");
    let said = stderr(&run(&[&record[..], &["--stop", "call:never", program]].concat()));
    assert!(said.contains("up to the end of the run: the program was not seen to call never"), "{said}");

    // What is not there is said before the program runs.
    let output = run(&[&record[..], &["--stop", "call:nobody", program]].concat());
    assert_bad_input(&output, &["--stop call:nobody: no symbol of the program", "names a function nobody"]);
    assert_eq!(stdout(&output), "");
}

/// Each step of this chase waits for memory: some 100,000 instructions take a millisecond, not some 100 µs.
const CHASE: &str = "#include <stdlib.h>
#include <time.h>
int main(void) {
    size_t words = 16 << 20, at = 0;
    size_t *next = malloc(words * sizeof *next);
    for (size_t i = 0; i < words; i++)
        next[i] = (i * 5 + 12345677) % words;
    clock_t end = clock() + 2 * CLOCKS_PER_SEC;
    while (clock() < end)
        for (int i = 0; i < 20000; i++)
            at = next[at];
    return at == 1;
}";

#[test]
fn an_interval_of_a_time_has_as_many_instructions_as_the_program_executes_in_it() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "chase", CHASE, &[]) else { return };
    let trace = folder.path().join("chase.lkt");
    let trace = trace.to_str().expect("text path");
    let program = program.to_str().expect("text path");
    let output = run(&["record", "-o", trace, "--every", "150ms", "--for", "3ms", program]);
    let said = stderr(&output);
    if has_no_breakpoints(&said) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let line = said.lines().find(|line| line.contains("3.00 ms of an interval were taken as")).expect("a line");
    assert!(line.contains("in the end: the program's speed was measured"), "{line}");
    let millions = line.split(" taken as ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a number");
    let millions: f64 = millions.parse().expect("a number");
    // As long as the speed is not known, it would be 3 M.
    assert!(millions < 1.5, "{line}");
}

#[test]
fn what_cannot_be_is_said_before_the_program_runs() {
    let refused = |arguments: &[&str], said: &[&str]| {
        assert_bad_input(&run(&[arguments, &["sh", "-c", "echo ran >&2"]].concat()), said);
    };
    let record = ["record", "-o", "/dev/null"];
    let with = |more: &[&'static str]| [&record[..], more].concat();
    for (option, value, said) in [
        ("--every", "1ms", "10ms"),
        ("--for", "12", "20M"),
        ("--for", "1m", "10s"),
        ("--start", "soon", "number"),
        ("--stop", "call:", "call:solve"),
    ] {
        let output = run(&[&with(&[option, value])[..], &["sh", "-c", "echo ran >&2"]].concat());
        let text = stderr(&output);
        assert!(output.status.code() == Some(2) && !text.contains("ran"), "{text}");
        assert!(text.contains(option) && text.contains(said), "{text}");
    }
    refused(&with(&["--start", "2s", "--stop", "1s"]), &["--stop: must be later than --start"]);
    refused(&with(&["--every", "1s", "--backend", "valgrind"]), &["--every", "--backend intervals"]);
    refused(&with(&["--start", "call:main", "--backend", "qemu"]), &["--start", "--backend intervals"]);
    refused(&["analyze", "--every", "1s", "--exact"], &["--exact: intervals are not the whole run"]);
    assert_bad_input(
        &run(&["analyze", "--every", "1s", "--trace", "x.lkt"]),
        &["--every: a trace is recorded already"],
    );
    assert_bad_input(&run(&["record", "-o", "/dev/null", "--every", "1s", "--pid", "2147483647"]), &["no process"]);
}
