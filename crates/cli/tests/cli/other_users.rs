//! What other users of the machine can read of ours, or put in its place.

use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::common::{lookaside, run, stderr, stdout};

/// A small trace.
fn trace(folder: &Path) -> String {
    let file = folder.join("gups.lkt").to_str().expect("text path").to_string();
    let output = run(&["workload", "gups", "--size", "1M", "--record", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    file
}

#[test]
fn reports_have_the_rights_that_the_mask_leaves_or_that_they_had() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = trace(folder.path());
    let mode = |file: &Path| file.metadata().expect("written").permissions().mode() & 0o777;
    for (mask, left) in [("077", 0o600), ("022", 0o644), ("027", 0o640)] {
        let (json, page) = (folder.path().join(format!("{mask}.json")), folder.path().join(format!("{mask}.html")));
        let script = "umask $1; exec \"$2\" simulate \"$3\" --machine skylake --json=\"$4\" --html \"$5\"";
        let program = lookaside().get_program().to_owned();
        let again = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", script, "sh", mask]).arg(&program).arg(&trace).args([&json, &page]);
            let output = shell.env_remove("LOOKASIDE_MACHINE").output().expect("a shell");
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        };
        again();
        assert_eq!((mode(&json), mode(&page)), (left, left), "{mask}");
        std::fs::set_permissions(&json, std::fs::Permissions::from_mode(0o604)).expect("ours");
        again();
        assert_eq!((mode(&json), mode(&page)), (0o604, left), "{mask}");
    }
}

/// As with a `sudo` that keeps the variable.
#[test]
fn root_keeps_nothing_in_another_users_home_and_runs_nothing_from_there() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("LEFT OUT: only root can give a folder away");
        return;
    }
    let home = tempfile::tempdir().expect("temporary folder");
    chown(home.path(), Some(65534), None).expect("root may");
    let at_home = |arguments: &[&str]| {
        let mut command = lookaside();
        command.args(arguments).env("HOME", home.path()).env_remove("XDG_CACHE_HOME").env_remove("LOOKASIDE_MACHINE");
        command.output().expect("the command can be started")
    };
    let shown = at_home(&["machine", "show", "this"]);
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    assert!(stderr(&shown).contains("other users may write there"), "{}", stderr(&shown));
    assert!(!stdout(&shown).starts_with("this"), "the nearest preset by its name: {}", stdout(&shown));
    let trace = home.path().join("../lookaside-of-root.lkt");
    let recorded = at_home(&["record", "-o", trace.to_str().expect("text path"), "--", "true"]);
    // Without Valgrind it says so.
    assert!([Some(0), Some(2)].contains(&recorded.status.code()), "{}", stderr(&recorded));
    let _ = std::fs::remove_file(trace);
    assert_eq!(std::fs::read_dir(home.path()).expect("there").count(), 0);
}

#[test]
fn the_example_of_simulates_help_runs() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = trace(folder.path());
    let help = stdout(&run(&["simulate", "--help"]));
    let example = help.lines().find_map(|line| line.split_once("lookaside simulate sort.lkt ")).expect("its example").1;
    let words: Vec<&str> = ["simulate", trace.as_str()].into_iter().chain(example.split_whitespace()).collect();
    assert_eq!(run(&words).status.code(), Some(0), "{example}: {}", stderr(&run(&words)));
}
