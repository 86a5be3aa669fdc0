//! Running a command, and what it says: what the tests of both commands share.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// A command of this workspace, which heeds signals even where the tests themselves were started so that they ignore them (in the
/// background of a script, under `nohup`): it would respect that, and the tests that interrupt it would wait for ever.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin(name));
    command.env("NO_COLOR", "1");
    let heed = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: sets a disposition, which may be done between fork and exec.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: as above: nothing else happens in the child.
    unsafe { command.pre_exec(heed) };
    command
}

/// Standard output as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("standard output is text")
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("standard error is text")
}

/// Asserts exit code 2 and exactly one line on standard error that holds all of `parts`.
pub fn assert_bad_input(output: &Output, parts: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "one line expected:\n{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
    assert!(!said.contains("panicked"), "{said}");
}
