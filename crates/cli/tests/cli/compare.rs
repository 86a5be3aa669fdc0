//! Runs in turns, of programs that take no time; no time is asserted.

use crate::common::{assert_bad_input, ended_at_run, json, lookaside, run, stderr, stdout};

#[test]
fn a_number_in_the_output_is_compared() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let page = folder.path().join("compare.html");
    let script =
        r#"case "$GLIBC_TUNABLES" in *hugetlb*) echo "rate: 300 a second";; *) echo "rate: 200 a second";; esac"#;
    let arguments = ["compare", "--variants", "base,asis,nothp", "--runs", "5", "--warmup", "0", "--json"];
    let output = lookaside()
        .args(arguments)
        .args(["--metric", "rate: ([0-9]+)", "--html"])
        .arg(&page)
        .args(["--", "sh", "-c", script])
        .output()
        .expect("started");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = json(&output);
    assert_eq!(found["schema"], "lookaside-comparison/1");
    assert_eq!((&found["rounds"], &found["is_time"]), (&5.into(), &false.into()));
    let names: Vec<_> = found["variants"].as_array().expect("a list").iter().map(|v| v["name"].clone()).collect();
    assert_eq!(names, ["base", "asis", "nothp"]);
    assert_eq!(found["variants"][2]["median"], 200.0);
    assert_eq!(found["variants"][2]["ratio"]["significant"], false);
    let text = std::fs::read_to_string(page).expect("the page");
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n") && text.contains("no significant"));
}

#[test]
fn the_text_has_a_row_a_variant_and_a_verdict() {
    let output = run(&["compare", "--variants", "nothp", "--runs", "2", "--metric", "user", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in [
        "Does it help? true",
        "measured  user time; 2 rounds after 1 warm-up round",
        "base ÷ variant",
        "\nnothp ",
        "Verdict: ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// The papers' programs ask for huge pages and don't get them in `base`: no failure, it is what is compared.
#[test]
fn a_workload_that_wants_huge_pages_is_compared_with_none() {
    let program = assert_cmd::cargo::cargo_bin("lookaside").to_string_lossy().into_owned();
    let arguments =
        ["compare", "--variants", "base", "--runs", "1", "--warmup", "0", "--metric", "([0-9.]+) ns each", "--"];
    let output =
        run(&[&arguments[..], &[&program, "lab", "workload", "reads", "--size", "16M", "--pages", "thp"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_program_that_fails_is_named_with_its_status() {
    let output = run(&["compare", "--variants", "base", "--", "sh", "-c", "exit 42"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("base, warm-up: the program failed with exit code 42"), "{}", stderr(&output));
    assert_eq!(run(&["compare", "--variants", "base", "--", "/nonexistent/program"]).status.code(), Some(127));
    assert_eq!(run(&["compare", "--variants", "base", "--", "/proc/self/status"]).status.code(), Some(126));
}

#[test]
fn bad_arguments() {
    let bad = |arguments: &[&str], parts: &[&str]| {
        let all: Vec<&str> = [&["compare"], arguments, &["--", "true"]].concat();
        assert_bad_input(&run(&all), parts);
    };
    bad(&["--variants", "base,hugetlb"], &["`hugetlb`", "there are base, thp"]);
    bad(&["--variants", "thp,thp"], &["thp is listed twice"]);
    bad(&["--variants", "bake:scan,stride=8"], &["bake:scan,stride=8", "every entry"]);
    bad(&["--variants", "bake:load"], &["bake:load", "bake:prefetch never faults"]);
    bad(&["--metric", "(["], &["--metric", "not wall, user, sys, nor a regular expression"]);
    bad(&["--variants", "base", "--html", "no/such/folder/x.html"], &["no/such/folder/x.html", "choose another place"]);
    for arguments in [["--runs", "0"], ["--warmup", "101"], ["--pressure", "vm:3"]] {
        let all: Vec<&str> = [&["compare"], &arguments[..], &["--", "true"]].concat();
        assert_eq!(run(&all).status.code(), Some(2));
    }
    assert_eq!(run(&["compare"]).status.code(), Some(2), "a program is needed");
}

#[test]
fn a_signal_gives_what_is_known() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let runs = folder.path().join("runs");
    // From the seventh run on (a warm-up round and two rounds are whole) it waits to be ended.
    let script = r#"echo >> "$0"; [ $(wc -l < "$0") -lt 7 ] || exec sleep 1000"#;
    let mut command = lookaside();
    command.args(["compare", "--variants", "nothp", "--runs", "9", "--", "sh", "-c", script]).arg(&runs);
    let output = ended_at_run(&mut command, &runs, 7);
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("2 of 9 rounds") && text.contains("Cut short: interrupted"), "{text}");
    assert!(text.contains("nothing is significant with fewer than 5 rounds"), "{text}");
}
