//! `lookaside lab`: the program is found, given all arguments, and its exit code passed on; where it is not there, that
//! is said.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{assert_bad_input, stdout};

/// A program of this name that says who it is and its arguments, and exits with 7.
fn program(folder: &Path, who: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    let path = folder.join("lookaside-lab");
    std::fs::write(&path, format!("#!/bin/sh\necho {who} \"$@\"\nexit 7\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("made executable");
}

#[test]
fn the_labs_program_is_found_beside_the_command_then_in_the_path() {
    let folder = tempfile::tempdir().expect("temporary folder");
    // Alone in a folder of its own, as installed.
    let command = folder.path().join("lookaside");
    std::fs::copy(assert_cmd::cargo::cargo_bin("lookaside"), &command).expect("copied");
    let in_path = folder.path().join("in path");
    let lab = |arguments: &[&str]| -> Output {
        let mut lab = Command::new(&command);
        lab.arg("lab").args(arguments).env("PATH", &in_path).output().expect("started")
    };
    assert_bad_input(&lab(&["reproduce", "pt-baker"]), &["lookaside-lab is not installed", "cargo build --release"]);
    program(&in_path, "path");
    let output = lab(&["reproduce", "--help", "-x", "a b"]);
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("path reproduce --help -x a b\n", Some(7)));
    program(folder.path(), "beside");
    let output = lab(&["experiment", "--help"]);
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("beside experiment --help\n", Some(7)));
    assert_eq!(stdout(&lab(&["experiment"])), "beside experiment\n");
}
