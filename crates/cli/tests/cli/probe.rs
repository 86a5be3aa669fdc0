//! The probe on the machine that runs the tests: it says what it knows, whatever that is; no time is asserted.

use crate::common::{assert_bad_input, run, stderr, stdout};

#[test]
fn gives_a_sound_machine_and_levels_or_reasons() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("machine.toml");
    let file = file.to_str().expect("text path");
    let output = run(&["probe", "--quick", "--json", "--time", "5", "-o", file]);
    if output.status.code() == Some(2) {
        assert_bad_input(&output, &[]); // no timer or no memory here: one line that says so
        return;
    }
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    for level in report["levels"].as_array().expect("a list") {
        let geometry = &level["geometry"];
        match geometry["state"].as_str() {
            Some("confirmed") => {
                let [entries, ways, sets] = ["entries", "ways", "sets"].map(|key| geometry["value"][key].as_u64());
                assert_eq!(entries, ways.zip(sets).map(|(ways, sets)| ways * sets));
            }
            _ => assert!(geometry["reason"].as_str().is_some_and(|reason| !reason.is_empty())),
        }
    }
    assert_eq!(run(&["machine", "check", file]).status.code(), Some(0));
}

#[test]
fn bad_arguments() {
    assert_eq!(run(&["probe", "--time", "0"]).status.code(), Some(2));
    assert_eq!(run(&["probe", "--only", "everything"]).status.code(), Some(2));
    assert_bad_input(
        &run(&["probe", "--quick", "--time", "1", "-o", "no/such/folder/m.toml"]),
        &["no/such/folder/m.toml", "choose another place"],
    );
}
