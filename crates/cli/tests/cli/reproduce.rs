//! The papers' microbenchmarks on the machine that runs the tests: rows with reasons, whatever it is; no time is asserted.

use crate::common::{assert_bad_input, run, stderr, stdout};

#[test]
fn bad_arguments() {
    assert_bad_input(
        &run(&["reproduce", "tlb-coloring"]),
        &["tlb-coloring", "only measured on this machine (--metal)"],
    );
    assert_bad_input(&run(&["reproduce", "tlb-lockdown", "--metal"]), &["tlb-lockdown", "pt-baker and tlb-coloring"]);
    assert_bad_input(&run(&["reproduce", "pt-maker", "--metal"]), &["pt-maker", "no paper has this name"]);
    // Options of measuring do nothing in the model: they are refused.
    for option in [["--time", "5"], ["--memory", "64"], ["--seed", "2"]] {
        let output = run(&["reproduce", "pt-baker", option[0], option[1]]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("--metal"), "{}", stderr(&output));
    }
    for option in [["--time", "0"], ["--memory", "1"]] {
        let output = run(&["reproduce", "pt-baker", "--metal", option[0], option[1]]);
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn every_row_of_the_metal_has_a_value_or_a_reason() {
    for paper in ["pt-baker", "tlb-coloring"] {
        let output = run(&["reproduce", paper, "--metal", "--json", "--time", "4"]);
        if output.status.code() == Some(2) {
            assert_bad_input(&output, &[]); // no timer or no memory here: one line that says so
            continue;
        }
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
        let found: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        assert_eq!(found["measured"], true);
        assert!(found["machine"].as_str().is_some_and(|machine| machine.contains("CPU")), "{}", found["machine"]);
        let rows = found["rows"].as_array().expect("a list");
        assert!(rows.len() >= 9);
        for row in rows {
            let missing = row["ours"].is_null();
            assert_eq!(missing, row["verdict"] == "not-reproduced", "{row}");
            assert!(!missing || row["note"].as_str().is_some_and(|note| !note.is_empty()), "{row}");
        }
    }
}
