//! `lookaside analyze --measure`: what is predicted and what runs took, of small programs; no time is asserted.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::common::{
    assert_bad_input, compile, ended_at_run, have_valgrind, lookaside, run, stderr, stdout, valid_json,
};
use serde_json::Value;

/// Reads 64 MiB at random: nearly each read walks.
const READS: &str = r#"
#include <stdint.h>
#include <stdlib.h>
#define BYTES (64u << 20)
int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], 0, 10) : 200000, state = 1, sum = 0;
	volatile char *a = calloc(BYTES, 1);
	for (uint64_t i = 0; i < BYTES; i += 4096)
		a[i] = 1;
	for (uint64_t i = 0; i < rounds; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		sum += (unsigned char)a[((state >> 33) + (sum & 1)) % BYTES];
	}
	return sum == 1;
}
"#;

/// Whether the variants of a measurement can be run here. Says so where they can't.
fn ready() -> bool {
    let places =
        ["hugepages-2048kB/enabled", "enabled"].map(|file| format!("/sys/kernel/mm/transparent_hugepage/{file}"));
    let text =
        places.iter().find_map(|file| std::fs::read_to_string(file).ok().filter(|text| !text.contains("[inherit]")));
    let on = text.is_some_and(|text| text.contains("[always]") || text.contains("[madvise]"));
    if !on {
        eprintln!("LEFT OUT: huge pages are off on this system, --measure is not tested");
    }
    on && have_valgrind()
}

/// The analysis that comes after the program's own output.
fn json(text: &str) -> Value {
    let start = text.find("{\n").unwrap_or_else(|| panic!("no JSON in {text:?}"));
    valid_json(&text[start..])
}

/// The same of mapped memory, for which huge pages are asked with an argument.
const MAPPED: &str = r#"
#include <stdint.h>
#include <sys/mman.h>
#define BYTES (64u << 20)
int main(int argc, char **argv)
{
	uint64_t state = 1, sum = 0;
	volatile char *a = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (argc > 1 && madvise((void *)a, BYTES, MADV_HUGEPAGE))
		return 3;
	for (uint64_t i = 0; i < BYTES; i += 4096)
		a[i] = 1;
	for (uint64_t i = 0; i < 300000; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		sum += (unsigned char)a[((state >> 33) + (sum & 1)) % BYTES];
	}
	return sum == 1;
}
"#;

#[test]
fn memory_for_which_the_program_asks_by_itself_is_in_the_prediction() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "mapped", MAPPED, &[]) else { return };
    let always = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if !ready() || always.is_ok_and(|text| text.contains("[always]")) {
        eprintln!("LEFT OUT: the system does not wait to be asked for huge pages");
        return;
    }
    let program = program.to_str().expect("text path");
    // Whole windows of 2 MiB in 64 MiB, of 512 pages each.
    let small_pages = |more: &[&str]| {
        let output = run(&[&["analyze", "--json", "--machine", "skylake", "--exact", "--", program], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let gain = &json(&stdout(&output))["huge_gain"];
        gain["faults"]["small_pages"].as_u64().unwrap_or_else(|| panic!("{gain}"))
    };
    let (asked, not_asked) = (small_pages(&["ask"]), small_pages(&[]));
    assert!(asked >= 31 * 512, "{asked}");
    assert!(not_asked < 1000, "{not_asked}");
}

#[test]
fn prediction_and_measurement_are_in_the_data() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "reads", READS, &[]) else { return };
    if !ready() {
        return;
    }
    let program = program.to_str().expect("text path");
    let analyze = |more: &[&str]| {
        let all = [&["analyze", "--json", "--machine", "skylake", "--exact"], more, &["--", program]].concat();
        let output = run(&all);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json(&stdout(&output))
    };
    let modelled = analyze(&["--once"])["huge_gain"].clone();
    assert_eq!((&modelled["measured"], &modelled["place"]), (&Value::Null, &Value::Null));
    assert_eq!(modelled["verdict"]["kind"], "unknown", "without seconds there is no answer: {modelled}");
    let predicted = &modelled["predicted"];
    assert_eq!(predicted["of"], "modelled-time");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    // 64 MiB lie in the reach of 2 MiB entries: walks go, and so the whole of both ends saves.
    let (least, most) = (number(&predicted["least_ratio"]), number(&predicted["most_ratio"]));
    assert!(1.0 < least && least < most, "{predicted}");
    assert!(number(&predicted["most_saved_seconds"]) < number(&predicted["of_seconds"]), "{predicted}");

    let found = analyze(&["--measure=2"]);
    let (predicted, measured) = (&found["huge_gain"]["predicted"], &found["huge_gain"]["measured"]);
    assert_eq!(measured["rounds"], 2);
    assert_eq!(measured["wall"]["significant"], false, "two rounds are too few");
    assert!(number(&measured["wall"]["base_seconds"]) > 0.0, "{measured}");
    // With a native run and replays, both are of its user time.
    let native = &found["native"];
    assert_eq!(predicted["of"], "user-time", "{predicted}");
    assert_eq!(predicted["of_seconds"], native["user_seconds"], "{predicted}");
    assert!(number(&native["minor_faults"]) > 16_000.0, "each page is touched: {native}");
    if predicted["basis"] == "replay" {
        let [least, best, most] = ["least_ratio", "ratio", "most_ratio"].map(|name| number(&predicted[name]));
        assert!(least <= best && best <= most, "{predicted}");
        assert!(number(&found["replay"]["timed_visits"]) > 0.0 && !found["huge_gain"]["verdict"].is_null());
        let faults = &found["huge_gain"]["faults"];
        assert!((30.0..=32.0).contains(&number(&faults["huge_pages"])), "64 MiB, aligned or not: {faults}");
    }
    if !measured["user"].is_null() {
        assert!(["below", "within", "above"].contains(&found["huge_gain"]["place"].as_str().expect("a word")));
    }
}

#[test]
fn the_text_and_the_page_have_both() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "reads", READS, &[]) else { return };
    if !ready() {
        return;
    }
    let program = program.to_str().expect("text path");
    let page = folder.path().join("report.html");
    let arguments =
        ["analyze", "--machine", "skylake", "--measure=1", "--html", page.to_str().expect("text path"), "--", program];
    let child = lookaside().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let output = child.expect("started").wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let page = std::fs::read_to_string(page).expect("the page");
    for said in [&text.split_whitespace().collect::<Vec<_>>().join(" "), &page] {
        assert!(said.contains(": saves ") && said.contains("start to end"), "{said}");
    }
    // Where the screen is full, the text has fewer notes.
    assert!(page.contains("the analysed run had a file or pipe as its standard input"), "{page}");
    assert!(text.contains("\nhuge pages  predicted ") && text.contains("\nhuge pages  measured "), "{text}");
    let alone = stdout(&run(&["analyze", "--machine", "skylake", "--", program]));
    let joined = alone.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        joined.contains("--measure checks it in ") || joined.contains("--measure runs it with and without them"),
        "{alone}"
    );
}

/// Whether memory of another process can be made huge here, as runs of mosaics need it.
fn collapses() -> bool {
    let side = lookaside_runtime::hugepages::collapse_side();
    if let Err(why) = &side {
        eprintln!("LEFT OUT: {why}");
    }
    side.is_ok()
}

#[test]
fn a_mosaic_has_runs_with_parts_of_the_memory_huge() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(program) = compile(folder.path(), "reads", READS, &["-O2"]) else { return };
    if !ready() || !collapses() {
        return;
    }
    let program = program.to_str().expect("text path");
    let arguments = ["analyze", "--machine", "skylake", "--exact", "--json", "--measure=mosaic:1", "--"];
    let output = run(&[&arguments[..], &[program, "4000000"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = json(&stdout(&output));
    let (mosaic, notes) = (&found["huge_gain"]["mosaic"], found["notes"].to_string());
    assert_eq!(found["huge_gain"]["measured"]["rounds"], 1, "{notes}");
    if mosaic.is_null() {
        // Where others take the CPU, windows become huge too late to say anything. Nothing else is an excuse.
        assert!(notes.contains("mosaic: can't tell: no run had more than "), "{notes}");
        eprintln!("LEFT OUT: {notes}");
        return;
    }
    let rows = mosaic["mosaics"].as_array().expect("rows");
    let windows = |row: &Value| row["windows"].as_u64().expect("a count");
    assert_eq!((rows.len(), mosaic["rounds"].as_u64(), windows(&rows[0])), (9, Some(1), 0), "{mosaic}");
    // 64 MiB lie in 31 or 32 whole windows, all alike.
    assert!((31..=32).contains(&windows(&rows[1])) && mosaic["windows"] == rows[1]["windows"], "{mosaic}");
    assert!(mosaic["windows_share"].as_f64().is_some_and(|share| share > 0.9 && share <= 1.0), "{mosaic}");
    for row in rows {
        assert!(row["covered"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{row}");
        assert!(row["user_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{row}");
        assert!(row["left_out_seconds"].is_f64(), "{row}");
    }
    assert_eq!(
        (windows(&rows[5]) + windows(&rows[6]), windows(&rows[7]) + windows(&rows[8])),
        (windows(&rows[1]), windows(&rows[1])),
        "halves"
    );
}

#[test]
fn a_mosaic_of_a_program_without_memory_cannot_tell() {
    if !ready() || !collapses() {
        return;
    }
    let output = run(&["analyze", "--machine", "skylake", "--exact", "--json", "--measure=mosaic:1", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = json(&stdout(&output));
    assert!(found["huge_gain"]["mosaic"].is_null());
    let notes = found["notes"].to_string();
    assert!(notes.contains("mosaic: can't tell: ") && notes.contains("too few"), "{notes}");
}

#[test]
fn a_program_that_fails_is_not_measured() {
    if !ready() {
        return;
    }
    let output = run(&["analyze", "--machine", "skylake", "--measure=1", "--json", "--", "/bin/false"]);
    assert_eq!(output.status.code(), Some(1), "the program's own: {}", stderr(&output));
    let found = json(&stdout(&output));
    assert!(found["huge_gain"]["measured"].is_null());
    let notes = found["notes"].to_string();
    assert!(notes.contains("not measured: the analysed run failed"), "{notes}");

    // One that fails when it is run again: the analysis is told all the same.
    let folder = tempfile::tempdir().expect("temporary folder");
    let mark = folder.path().join("mark");
    let script = r#"[ -e "$0" ] && exit 4; : > "$0""#;
    let arguments = ["analyze", "--machine", "skylake", "--measure=1", "--json", "--", "sh", "-c", script];
    let output = lookaside().args(arguments).arg(&mark).output().expect("started");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("--measure: ") && stderr(&output).contains("exit code 4"), "{}", stderr(&output));
    let notes = json(&stdout(&output))["notes"].to_string();
    assert!(
        notes.contains("not measured: ") && notes.contains("warm-up: the program failed with exit code 4"),
        "{notes}"
    );
}

#[test]
fn a_signal_while_it_measures_keeps_what_is_known() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let runs = folder.path().join("runs");
    // The analysed run, the native one, a warm-up round, a round; the seventh run waits to be ended.
    let script = r#"echo >> "$0"; [ $(wc -l < "$0") -lt 7 ] || exec sleep 1000"#;
    let mut command = lookaside();
    command.args(["analyze", "--machine", "skylake", "--measure=9", "--json", "--", "sh", "-c", script]).arg(&runs);
    let output = ended_at_run(&mut command, &runs, 7);
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    let found = json(&stdout(&output));
    assert_eq!((&found["huge_gain"]["measured"]["rounds"], &found["complete"]), (&1.into(), &true.into()));
    assert!(found["notes"].to_string().contains("measured in part only: interrupted"), "{}", found["notes"]);
}

#[test]
fn what_cannot_be_measured_is_said_before_anything_runs() {
    for measure in ["--measure=0", "--measure=x", "--measure=10001", "--measure=mosaic:0", "--measure=mosaics"] {
        let refused = run(&["analyze", measure, "--", "true"]);
        assert_eq!(refused.status.code(), Some(2), "{measure}");
        assert!(stderr(&refused).contains("mosaic:ROUNDS"), "{}", stderr(&refused));
    }
    for other in [["--trace", "x.lkt"], ["--pid", "1"]] {
        assert_eq!(run(&["analyze", "--measure", other[0], other[1]]).status.code(), Some(2), "{other:?}");
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let foreign = folder.path().join("foreign");
    // The head of a 32-bit executable for ARM (ELF: class 1, type 2, machine 40).
    let head = [&b"\x7fELF\x01\x01\x01"[..], &[0; 9], &[2, 0, 40, 0, 1, 0, 0, 0], &[0; 28]].concat();
    std::fs::write(&foreign, head).expect("written");
    std::fs::set_permissions(&foreign, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let refused = run(&["analyze", "--measure", "--", foreign.to_str().expect("text path")]);
    assert_bad_input(&refused, &["--measure: ", "for arm and can't be timed on this machine", "leave --measure out"]);
    assert_eq!(run(&["analyze", "--measure", "--", "/no/such/program"]).status.code(), Some(127));
}
