//! The papers' microbenchmarks on the machine that runs the tests: rows with reasons, whatever it is; no time is
//! asserted.

use crate::common::{assert_bad_input, json, run, stderr};

#[test]
fn bad_arguments() {
    assert_bad_input(&run(&["reproduce", "tlb-migration", "--metal"]), &["tlb-migration", "pt-baker and tlb-coloring"]);
    assert_bad_input(&run(&["reproduce", "tlb-lockdown", "--metal"]), &["tlb-lockdown", "pt-baker and tlb-coloring"]);
    assert_bad_input(&run(&["reproduce", "pt-maker"]), &["pt-maker", "pt-baker"]);
    assert_bad_input(&run(&["reproduce", "pt-maker", "--metal"]), &["pt-maker", "no paper has this name"]);
    // Options of measuring do nothing in the model: they are refused.
    for option in [["--time", "5"], ["--memory", "64"], ["--seed", "2"], ["--machine", "xeon-e5-2650"]] {
        let output = run(&["reproduce", "pt-baker", option[0], option[1]]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("--metal"), "{}", stderr(&output));
    }
    assert_bad_input(&run(&["reproduce", "pt-baker", "--metal", "--machine", "no/such.toml"]), &["no/such.toml"]);
    assert_bad_input(&run(&["reproduce", "tlb-coloring", "--metal", "--machine", "xeon"]), &["xeon"]);
    for option in [["--time", "0"], ["--memory", "1"]] {
        let output = run(&["reproduce", "pt-baker", "--metal", option[0], option[1]]);
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_anything_is_measured() {
    assert_bad_input(
        &run(&["reproduce", "pt-baker", "--metal", "--html", "/nonexistent/page.html"]),
        &["/nonexistent"],
    );
}

#[test]
fn every_row_of_the_metal_has_a_value_or_a_reason() {
    for paper in ["pt-baker", "tlb-coloring"] {
        let folder = tempfile::tempdir().expect("a folder");
        let html = folder.path().join("page.html");
        let path = html.to_str().expect("a name");
        let output = run(&["reproduce", paper, "--metal", "--json", "--time", "4", "--html", path]);
        if output.status.code() == Some(2) {
            assert_bad_input(&output, &[]); // no timer or no memory here: one line that says so
            continue;
        }
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
        let found = json(&output);
        assert_eq!(found["measured"], true);
        assert!(found["machine"].as_str().is_some_and(|machine| machine.contains("CPU")), "{}", found["machine"]);
        let rows = found["rows"].as_array().expect("a list");
        assert!(rows.len() >= 9);
        // The sweeps are not reached in that time, and say so.
        let swept = rows.iter().any(|row| row["place"].as_str().is_some_and(|place| place.contains("Figure 6.11")));
        assert_eq!(swept, paper == "pt-baker");
        let page = std::fs::read_to_string(&html).expect("the page");
        assert!(page.contains("Published and ours") && page.ends_with("</html>\n"));
        for row in rows {
            let missing = row["ours"].is_null();
            assert_eq!(missing, row["verdict"] == "not-reproduced", "{row}");
            assert!(!missing || row["note"].as_str().is_some_and(|note| !note.is_empty()), "{row}");
        }
    }
}

/// What a description says is not looked for, whatever machine this is; where it is another's, rows say that.
#[test]
fn a_description_is_taken_for_the_machines_tlbs() {
    let output = run(&["reproduce", "tlb-coloring", "--metal", "--json", "--time", "4", "--machine", "xeon-e5-2650"]);
    if output.status.code() == Some(2) {
        return assert_bad_input(&output, &[]); // no timer or no memory here: one line that says so
    }
    let found = json(&output);
    let said = found["assumptions"].as_array().expect("a list").iter().filter_map(|line| line.as_str());
    let given = "its TLBs are as the description \"xeon-e5-2650\" has them; they were not looked for";
    assert_eq!(said.filter(|line| *line == given).count(), 1, "{found}");
    let notes = found["rows"].as_array().expect("a list").iter().filter_map(|row| row["note"].as_str());
    assert!(notes.into_iter().all(|note| !note.contains("not determined")), "{found}");
}
