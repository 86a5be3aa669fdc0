//! The systemd unit that is shipped: systemd understands it, and what it starts is understood here.

use std::path::Path;
use std::process::Command;

use crate::common::{assert_bad_input, run, stderr};

const UNIT: &str = include_str!("../../../../packaging/lookaside-bake.service");
const INSTALLED: &str = "/usr/local/bin/lookaside";

/// What systemd says about this text as a unit; `None`, said aloud, without systemd.
fn verified(folder: &Path, text: &str) -> Option<String> {
    let file = folder.join("lookaside-bake.service");
    std::fs::write(&file, text).expect("temporary folder can be written");
    // The manual is not installed where this is built.
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output() {
        Ok(output) => Some(format!("{}\n{}", output.status, stderr(&output))),
        Err(_) => {
            eprintln!("LEFT OUT: systemd-analyze is not installed (apt-get install systemd), the unit is not verified");
            None
        }
    }
}

#[test]
fn systemd_has_nothing_to_say_about_the_unit() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = assert_cmd::cargo::cargo_bin("lookaside");
    let unit = UNIT.replace(INSTALLED, &command.display().to_string());
    // Other units of this machine may have faults of their own; what it does not know it only warns of.
    let of_ours = |said: &str| said.lines().skip(1).filter(|line| line.contains("lookaside")).count();
    let Some(said) = verified(folder.path(), &unit) else { return };
    assert!(said.starts_with("exit status: 0\n") && of_ours(&said) == 0, "{said}");
    for (right, wrong) in [("RestartSec=", "RestartSecs="), ("ProtectHome=yes", "ProtectHome=certainly")] {
        let said = verified(folder.path(), &unit.replace(right, wrong)).expect("it is there");
        assert!(said.contains("lookaside-bake.service"), "{wrong}: {said}");
    }
}

#[test]
fn what_the_unit_starts_is_understood() {
    let line = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some(INSTALLED));
    // Its port may be taken here.
    let words: Vec<String> = words.map(|word| word.replace(":9177", ":0")).collect();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.extend(["--time", "0"]);
    let output = run(&words);
    if output.status.code() == Some(2) {
        return assert_bad_input(&output, &["Linux 6.7"]);
    }
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
}
