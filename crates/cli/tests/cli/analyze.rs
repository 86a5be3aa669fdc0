//! `lookaside analyze` on real programs.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{compile, have_valgrind, json, lookaside, run, stderr, stdout, valid_json};
use serde_json::Value;

/// Two arrays read at random, the first three times as often, both far larger than any TLB's reach.
const TWO_ARRAYS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#define BYTES (64u << 20)
__attribute__((noinline)) static char *make_hot(void) { return calloc(BYTES, 1); }
__attribute__((noinline)) static char *make_cold(void)
{
	return calloc(BYTES + (2u << 20), 1); /* two MiB more tell its mapping from the other */
}
static uint64_t state = 1;
static uint64_t next(void) { state = state * 6364136223846793005u + 1442695040888963407u; return state >> 33; }
__attribute__((noinline)) static uint64_t read_at(volatile char *a, uint64_t n)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t v = (unsigned char)a[(next() + sum) % BYTES];
		sum += v;
	}
	return sum;
}
int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], 0, 10) : 100000;
	char *hot = make_hot();
	/* Other flags than the next mapping's, or the kernel joins the two. */
	madvise((void *)((uintptr_t)hot & ~4095ul), BYTES, MADV_DONTFORK);
	char *cold = make_cold();
	uint64_t sum = 0;
	for (uint64_t i = 0; i < BYTES; i += 4096)
		hot[i] = 1, cold[i] = 1;
	for (int i = 0; i < 8; i++)
		sum += read_at(hot, 3 * rounds / 8) + read_at(cold, rounds / 8);
	printf("%llu\n", (unsigned long long)sum);
	return 3;
}
"#;

fn analyze_json(arguments: &[&str], program: &[&str]) -> (Value, std::process::Output) {
    let mut all = vec!["analyze", "--json"];
    all.extend(arguments);
    all.push("--");
    all.extend(program);
    let output = run(&all);
    // The program's own output comes first; the JSON is the last top-level object.
    let text = stdout(&output);
    let start = text.find("{\n").unwrap_or_else(|| panic!("no JSON in {text:?}; {}", stderr(&output)));
    (valid_json(&text[start..]), output)
}

#[test]
fn names_objects_functions_and_remedies_of_a_program() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "two", TWO_ARRAYS, &[]) else { return };
    let (found, output) =
        analyze_json(&["--machine", "skylake", "--exact"], &[program.to_str().expect("text path"), "200000"]);
    assert_eq!(output.status.code(), Some(3), "the program's own exit code: {}", stderr(&output));
    let objects = found["objects"].as_array().expect("objects");
    assert!(objects[0]["name"].as_str().is_some_and(|n| n.starts_with("make_hot (two.c:")), "{objects:?}");
    assert!(objects[1]["name"].as_str().is_some_and(|n| n.starts_with("make_cold (two.c:")), "{objects:?}");
    let walks = |row: &Value| row["cost"]["walks"].as_f64().expect("walks");
    // 64 MiB against a reach of 6 MiB: of 600,000 reads nine in ten walk, first touches on top.
    assert!(walks(&objects[0]) > 520_000.0 && walks(&objects[0]) < 620_000.0, "{}", objects[0]);
    let ratio = walks(&objects[0]) / walks(&objects[1]);
    assert!((2.0..3.2).contains(&ratio), "reads are 3 to 1, first touches 1 to 1: {ratio}");
    let functions = found["functions"].as_array().expect("functions");
    assert!(functions[0]["name"].as_str().is_some_and(|n| n.starts_with("read_at")), "{functions:?}");
    let remedies = found["remedies"].as_array().expect("remedies");
    let huge = remedies
        .iter()
        .find(|r| r["what"].as_str().is_some_and(|w| w.starts_with("huge pages (2M) everywhere")))
        .expect("a row for huge pages");
    let kept = huge["translation_cycles"].as_f64().expect("cycles")
        / huge["base_translation_cycles"].as_f64().expect("cycles");
    assert!(kept < 0.2, "128 MiB in huge pages fit the reach of 2 MiB entries: {kept}");
}

#[test]
fn a_recorders_windows_change_no_count() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "two", TWO_ARRAYS, &[]) else { return };
    let command = [program.to_str().expect("text path"), "20000"];
    for machine in ["skylake", "xeon-e5-2650", "golden-cove", "neoverse-n1"] {
        let counts = |granularity: &str| {
            let how = ["--machine", machine, "--exact", "--once", "--granularity", granularity];
            let (found, _) = analyze_json(&how, &command);
            let outcome = &found["outcome"];
            let of_side = |side: &str| {
                let cost = &outcome[side]["cost"];
                (side.to_owned(), cost["l1_misses"].as_u64(), cost["walks"].as_u64(), None)
            };
            let of_tlb = |tlb: &Value| {
                let count = |what: &str| tlb[what].as_u64();
                (
                    tlb["name"].to_string(),
                    count("fills"),
                    count("evictions"),
                    count("hits").filter(|_| tlb["level"] == 2),
                )
            };
            let tlbs = outcome["tlbs"].as_array().expect("tlbs");
            let counts = ["data", "fetch"].map(of_side).into_iter().chain(tlbs.iter().map(of_tlb)).collect::<Vec<_>>();
            (found["seeing"]["window"].as_u64(), counts)
        };
        let ((window, near), (none, all)) = (counts("page"), counts("line"));
        assert!(window > Some(15) && none == Some(0), "{machine}: {window:?}");
        assert!(near[0].1 > Some(70_000), "{machine}: {near:?}");
        assert_eq!(near, all, "{machine}: without windows on the right");
    }
}

#[test]
fn sampler_and_exact_run_agree_in_rank() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "two", TWO_ARRAYS, &[]) else { return };
    let path = program.to_str().expect("text path");
    let (sampled, output) = analyze_json(&["--backend", "sample"], &[path, "20000000"]);
    if output.status.code() == Some(2) && stderr(&output).contains("perf_event_open") {
        eprintln!("LEFT OUT: the kernel refuses perf_event_open: {}", stderr(&output));
        return;
    }
    let (exact, _) = analyze_json(&["--machine", "skylake", "--once"], &[path, "200000"]);
    // Both arrays are mappings of their own, `cold`'s 2 MiB larger: rank them by cost and by samples.
    let order = |found: &Value| -> Vec<&str> {
        let regions = found["regions"].as_array().expect("regions");
        let array = |region: &Value| match region["bytes"].as_u64().expect("bytes") >> 20 {
            64 => Some("hot"),
            66 => Some("cold"),
            _ => None,
        };
        regions.iter().filter_map(array).collect()
    };
    assert_eq!(order(&exact), ["hot", "cold"], "{}", exact["regions"]);
    assert_eq!(order(&sampled), ["hot", "cold"], "{}", sampled["regions"]);
}

#[test]
fn output_input_and_exit_of_the_program_pass_through() {
    if !have_valgrind() {
        return;
    }
    let mut child = lookaside()
        .args(["analyze", "--json=/dev/null", "--machine", "cortex-a7", "--", "sort", "-r"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    child.stdin.take().expect("stdin").write_all(b"a\nc\nb\n").expect("written");
    let output = child.wait_with_output().expect("ended");
    assert!(stdout(&output).starts_with("c\nb\na\n"), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(0));
    let killed = run(&["analyze", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(137), "{}", stderr(&killed));
    assert!(stdout(&killed).contains("Translation costs"), "what was seen is still said: {}", stdout(&killed));
}

#[test]
fn programs_that_cannot_run_say_so() {
    for (program, code, part) in
        [("/no/such/program", 127, "no such"), ("/etc/passwd", 126, "executable"), ("/etc", 126, "")]
    {
        let output = run(&["analyze", "--", program]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{program}: {said}");
        let last = said.lines().last().unwrap_or_default().to_lowercase();
        assert!(last.contains(program) && last.contains(part), "{program}: {said}");
        assert!(!said.contains("panicked"));
    }
}

#[test]
fn termination_reaches_the_program_and_ends_in_an_analysis() {
    if !have_valgrind() {
        return;
    }
    for (signal, code) in [("-TERM", 143), ("-HUP", 129)] {
        let child = lookaside()
            .args(["analyze", "--machine", "skylake", "--", "sh", "-c", "echo up; while :; do :; done"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        std::thread::sleep(Duration::from_secs(4));
        let status = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
        assert!(status.success());
        let output = child.wait_with_output().expect("ended");
        // 143 also for SIGHUP: on a busy machine it may be ended by SIGTERM before the signal reaches it.
        assert!([Some(code), Some(143)].contains(&output.status.code()), "{signal}: {:?}", output.status);
        assert!(stdout(&output).contains("Cut short."), "{signal}: {}", stdout(&output));
    }
}

#[test]
fn interrupt_gives_the_analysis_so_far() {
    if !have_valgrind() {
        return;
    }
    let child = lookaside()
        .args(["analyze", "--machine", "skylake", "--", "sh", "-c", "while :; do :; done"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    std::thread::sleep(Duration::from_secs(4));
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(status.success());
    let output = child.wait_with_output().expect("ended");
    // 143: on a busy machine it may be ended by SIGTERM before its own SIGINT reaches it.
    assert!(matches!(output.status.code(), Some(130 | 143)), "{:?} {}", output.status, stderr(&output));
    assert!(stdout(&output).contains("Cut short."), "{}", stdout(&output));
}

/// As a terminal's Ctrl-C or a job's end does it: the signal reaches recorder and recorded at once, and not by our hand
/// only.
#[test]
fn a_signal_to_the_whole_group_ends_in_an_analysis() {
    if !have_valgrind() {
        return;
    }
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = tempfile::tempdir().expect("temporary folder");
        let ready = folder.path().join("ready");
        let child = lookaside()
            .args(["analyze", "--machine", "skylake", "--", "sh", "-c", "sleep 1000 & : >\"$0\"; while :; do :; done"])
            .arg(&ready)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        while !ready.exists() {
            std::thread::sleep(Duration::from_millis(50));
        }
        let group = format!("-{}", child.id());
        let status = Command::new("kill").args([signal, "--", &group]).status().expect("kill");
        assert!(status.success());
        let output = child.wait_with_output().expect("ended");
        // 143: on a busy machine it may be ended by SIGTERM before the signal reaches it.
        assert!([Some(code), Some(143)].contains(&output.status.code()), "{:?} {}", output.status, stderr(&output));
        assert!(stdout(&output).contains("Translation costs"), "{signal}: {}", stdout(&output));
        assert!(!stderr(&output).contains("panicked"), "{signal}: {}", stderr(&output));
    }
}

#[test]
fn a_recorded_trace_gives_the_same_counts_as_the_live_run() {
    if !have_valgrind() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let flags = ["-static"];
    let Some(program) = compile(folder.path(), "two", TWO_ARRAYS, &flags) else { return };
    let path = program.to_str().expect("text path");
    let (live, _) = analyze_json(&["--machine", "skylake", "--once"], &[path, "20000"]);
    let trace = folder.path().join("two.lkt");
    let trace = trace.to_str().expect("text path");
    let recorded = run(&["record", "-o", trace, "--", path, "20000"]);
    assert_eq!(recorded.status.code(), Some(3), "{}", stderr(&recorded));
    let read = run(&["analyze", "--json", "--machine", "skylake", "--trace", trace]);
    let read = json(&read);
    for side in ["data", "fetch"] {
        for count in ["l1_misses", "walks", "walk_references"] {
            let (a, b) = (&live["outcome"][side]["cost"][count], &read["outcome"][side]["cost"][count]);
            let (a, b) = (a.as_f64().expect("count"), b.as_f64().expect("count"));
            // Stack contents (environment, auxiliary vector) may differ between two runs by a page.
            assert!((a - b).abs() <= 16.0 + a * 1e-3, "{side} {count}: {a} live, {b} from the trace");
        }
    }
}

/// Windows lie by the seed; --exact-what-ifs has none.
#[test]
fn what_would_help_is_exact_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let text = folder.path().join("t.txt");
    let line = |i: u64| format!("R {:#x} 8\n", 0x7000_0000_0000 + ((i * 7919 % 4096) << 12));
    std::fs::write(&text, (0..400_000).map(line).collect::<String>()).expect("written");
    let text = text.to_str().expect("text path");
    let baked = |more: &[&str]| {
        let read = json(&run(&[&["analyze", "--json", "--machine", "skylake", "--trace", text], more].concat()));
        let rows = read["remedies"].as_array().expect("rows").clone();
        rows.into_iter().find(|row| row["kind"] == "baked").expect("a row for baking")
    };
    let (windows, exact) = (baked(&[]), baked(&["--exact-what-ifs"]));
    assert!(windows["windows"].as_u64().is_some_and(|count| (33..=64).contains(&count)), "{windows}");
    assert_ne!(windows["least_saved_share"], windows["most_saved_share"]);
    assert_eq!((&exact["windows"], &exact["accesses_share"]), (&Value::from(0), &Value::from(1.0)));
    assert_eq!(
        (&exact["least_saved_share"], &exact["most_saved_share"]),
        (&exact["saved_share"], &exact["saved_share"])
    );
}
