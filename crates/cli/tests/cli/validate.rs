//! The digital twin on the machine that runs the tests: rows or reasons, whatever they are; no time is asserted.

use crate::common::{assert_bad_input, json, run, stderr};

#[test]
fn gives_rows_and_names_what_it_leaves_out() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let page = folder.path().join("twin.html");
    let page = page.to_str().expect("text path");
    let output = run(&[
        "machine",
        "validate",
        "--machine",
        "skylake",
        "--quick",
        "--memory",
        "4",
        "--time",
        "20",
        "--json",
        "--html",
        page,
    ]);
    if output.status.code() == Some(2) {
        assert_bad_input(&output, &[]); // no timer or no memory here: one line that says so
        return;
    }
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let validation = json(&output);
    let rows = validation["rows"].as_array().expect("a list");
    let left_out = validation["left_out"].as_array().expect("a list");
    for row in rows {
        let [low, measured, high] =
            ["low_cycles", "measured_cycles", "high_cycles"].map(|key| row[key].as_f64().expect("a number"));
        assert!(0.0 < low && low <= measured && measured <= high, "{row}");
    }
    assert!(left_out.iter().any(|left| left["reason"].as_str().is_some_and(|why| why.contains("4 MiB are allowed"))));
    let text = std::fs::read_to_string(page).expect("the page");
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"));
}

#[test]
fn bad_arguments() {
    assert_eq!(run(&["machine", "validate", "--time", "0"]).status.code(), Some(2));
    assert_eq!(run(&["machine", "validate", "--memory", "0"]).status.code(), Some(2));
    assert_eq!(run(&["machine", "validate", "--memory", "32769"]).status.code(), Some(2));
    assert_bad_input(&run(&["machine", "validate", "--machine", "no-such-preset"]), &["no-such-preset"]);
    assert_bad_input(&run(&["machine", "validate", "--machine", "no/such.toml"]), &["no/such.toml"]);
    assert_bad_input(
        &run(&["machine", "validate", "--machine", "skylake", "--html", "no/such/folder/twin.html"]),
        &["no/such/folder/twin.html", "choose another place"],
    );
}
