//! `--html` and `--json` mean the same in every command that prints a table.

use std::path::Path;

use serde_json::Value;

use crate::common::{json, run, stderr, stdout, valid_json};

/// A small trace.
fn trace(folder: &Path) -> String {
    let (text, trace) = (folder.join("t.txt"), folder.join("t.lkt"));
    let lines: String = (0..5000u64).map(|i| format!("R {:#x} 8\n", (i * 7919 % 4096) << 12)).collect();
    std::fs::write(&text, lines).expect("written");
    let (text, trace) = (text.to_str().expect("text path"), trace.to_str().expect("text path"));
    assert_eq!(run(&["trace", "convert", text, "-o", trace]).status.code(), Some(0));
    trace.into()
}

#[test]
fn html_and_json_go_where_they_are_asked_to() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text path").to_string();
    let (trace, machine, recording) = (trace(folder.path()), path("machine.toml"), path("gups.lkt"));
    std::fs::write(&machine, stdout(&run(&["machine", "show", "skylake", "--toml"]))).expect("written");
    for arguments in [
        &["machine", "list"][..],
        &["machine", "show", "golden-cove"],
        &["machine", "check", &machine],
        &["trace", "info", &trace],
        &["trace", "check", &trace],
        &["lab", "workload", "list"],
        &["lab", "workload", "gups", "--size", "1M"],
        &["lab", "workload", "gups", "--size", "1M", "--record", &recording],
        &["simulate", &trace, "--machine", "skylake"],
    ] {
        let (page, data) = (path("page.html"), path("data.json"));
        let text = run(&[arguments, &["--html", &page, &format!("--json={data}")]].concat());
        assert_eq!(text.status.code(), Some(0), "{arguments:?}: {}", stderr(&text));
        let text = stdout(&text);
        assert!(serde_json::from_str::<Value>(&text).is_err() && text.lines().count() > 0, "{arguments:?}: {text}");
        let page = std::fs::read_to_string(page).expect("the page");
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{arguments:?}");
        let data = valid_json(&std::fs::read_to_string(data).expect("the data"));
        let printed = json(&run(&[arguments, &["--json"]].concat()));
        // A timed run is never the same twice.
        match arguments.contains(&"workload") && data.get("seconds").is_some() {
            true => assert_eq!(data["checksum"], printed["checksum"]),
            false => assert_eq!(data, printed, "{arguments:?}"),
        }
    }
}

#[test]
fn analyze_has_a_row_for_every_page_only_where_all_is_asked_for() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = trace(folder.path());
    let arguments = ["analyze", "--machine", "skylake", "--trace", &trace, "--json"];
    let small = json(&run(&arguments));
    let mut full = json(&run(&[&arguments[..], &["--full"]].concat()));
    assert_eq!(full["left_out"], Value::Array(Vec::new()));
    assert_eq!(full["outcome"]["pages"].as_array().map(Vec::len), Some(4096));
    for (rows, name) in [("pages", "outcome.pages"), ("instructions_rows", "outcome.instructions_rows")] {
        assert!(small["left_out"].as_array().is_some_and(|names| names.contains(&name.into())), "{name}");
        full["outcome"][rows] = Value::Array(Vec::new());
    }
    full["left_out"] = small["left_out"].clone();
    assert_eq!(small, full);
    let alone = run(&["analyze", "--full", "--trace", &trace]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(stderr(&alone).contains("--json"), "{}", stderr(&alone));
}

#[test]
fn simulate_has_rows_only_where_all_is_asked_for() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = trace(folder.path());
    let arguments = ["simulate", &trace, "--machine", "skylake", "--json"];
    let totals = json(&run(&arguments));
    let mut full = json(&run(&[&arguments[..], &["--full"]].concat()));
    assert_eq!(full["outcomes"][0]["pages"].as_array().map(Vec::len), Some(4096));
    for rows in ["pages", "regions", "objects", "instructions_rows", "threads"] {
        assert_eq!(totals["outcomes"][0][rows], Value::Array(Vec::new()), "{rows}");
        full["outcomes"][0][rows] = Value::Array(Vec::new());
    }
    assert_eq!(totals, full, "the totals are the same with rows and without");
}

#[test]
fn an_unsound_machine_is_in_the_report() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "name = 1").expect("written");
    let output = run(&["machine", "check", file.to_str().expect("text path"), "--json"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let checked = &json(&output)["files"][0];
    assert_eq!(checked["machine"], Value::Null);
    assert!(stderr(&output).contains(checked["error"].as_str().expect("a reason")), "{checked}");
}
