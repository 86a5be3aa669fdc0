//! The probe on the machine that runs the tests: it says what it knows, whatever that is; no time is asserted.

use std::path::Path;

use crate::common::{assert_bad_input, json, run, stderr, stdout};

#[test]
fn gives_a_sound_machine_and_levels_or_reasons() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("machine.toml");
    let file = file.to_str().expect("text path");
    let output = run(&["machine", "probe", "--quick", "--json", "--time", "5", "-o", file]);
    if output.status.code() == Some(2) {
        assert_bad_input(&output, &[]); // no timer or no memory here: one line that says so
        return;
    }
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let report = json(&output);
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
    assert_eq!(run(&["machine", "probe", "--time", "0"]).status.code(), Some(2));
    assert_eq!(run(&["machine", "probe", "--only", "everything"]).status.code(), Some(2));
    assert_bad_input(
        &run(&["machine", "probe", "--quick", "--time", "1", "-o", "no/such/folder/m.toml"]),
        &["no/such/folder/m.toml", "choose another place"],
    );
}

/// Lines of the samples in a folder of evidence.
fn samples(folder: &Path) -> Vec<serde_json::Value> {
    let file = std::fs::File::open(folder.join("samples.jsonl.zst")).expect("samples");
    let text = std::io::read_to_string(zstd::Decoder::new(file).expect("zstd")).expect("a whole stream of text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn evidence_holds_the_report_and_every_sample() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let evidence = folder.path().join("new/evidence");
    let output = run(&[
        "machine",
        "probe",
        "--only",
        "l1",
        "--time",
        "3",
        "--json",
        "--evidence",
        evidence.to_str().expect("text"),
    ]);
    if output.status.code() == Some(2) {
        assert_bad_input(&output, &[]); // no timer or no memory here
        return;
    }
    let report = std::fs::read_to_string(evidence.join("report.json")).expect("a report");
    assert_eq!(report.trim(), stdout(&output).trim());
    let lines = samples(&evidence);
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert_eq!((&first["kind"], &first["format"], &first["seed"]), (&"start".into(), &1.into(), &1.into()));
    let chases = lines.iter().filter(|line| line["kind"] == "chase");
    assert_eq!(last["measurements"], chases.clone().count());
    assert!(chases.clone().all(|chase| chase["ticks_a_round"].as_array().is_some_and(|ticks| !ticks.is_empty())));
}

#[test]
fn evidence_that_cannot_be_written_is_said_in_one_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let at = |path: &Path| path.to_str().expect("text path").to_string();
    let probe = |evidence: &str| run(&["machine", "probe", "--only", "l1", "--time", "1", "--evidence", evidence]);
    assert_bad_input(&probe(&at(&file)), &[&at(&file), "choose another place"]);
    assert_bad_input(&probe(&at(&file.join("below"))), &[&at(&file), "choose another place"]);

    // A disk that fills up: what was found is printed all the same.
    let full = folder.path().join("full");
    std::fs::create_dir(&full).expect("a folder");
    std::os::unix::fs::symlink("/dev/full", full.join("samples.jsonl.zst")).expect("a link");
    let output = probe(&at(&full));
    assert_bad_input(&output, &[]);
    if stderr(&output).contains("cannot be probed") {
        return;
    }
    assert_bad_input(&output, &["samples.jsonl.zst", "No space left"]);
    assert!(stdout(&output).contains("L1 DTLB"), "{}", stdout(&output));
}
