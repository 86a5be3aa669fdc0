//! Running a command, and what it says: what the tests of both commands share.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A command of this workspace, which heeds signals even where the tests themselves were started so that they ignore
/// them (in the background of a script, under `nohup`): it would respect that, and the tests that interrupt it would
/// wait for ever.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin(name));
    command.env("NO_COLOR", "1");
    // No test measures this machine by the way: that takes half a minute where nothing is kept yet.
    command.env("LOOKASIDE_MACHINE", "skylake");
    // The journal of trials is a test's own.
    command.env("XDG_STATE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("state"));
    heed_signals(&mut command);
    command
}

/// Has a program heed the signals that end it.
pub fn heed_signals(command: &mut Command) {
    let heed = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: sets a disposition, which may be done between fork and exec.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: as above: nothing else happens in the child.
    unsafe { command.pre_exec(heed) };
}

/// Standard output as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("standard output is text")
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("standard error is text")
}

/// Standard output as JSON, see [`valid_json`]. Where there is none, how the command ended is told.
pub fn json(output: &Output) -> Value {
    assert!(!output.stdout.is_empty(), "no output; {}: {}", output.status, stderr(output));
    valid_json(&stdout(output))
}

/// JSON that says first which data it is, and is as the JSON Schema of that name in `schemas/` has it.
pub fn valid_json(text: &str) -> Value {
    assert!(text.starts_with("{\n  \"schema\": \"lookaside-"), "no schema in front: {text}");
    let data: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let file = format!("{}.json", data["schema"].as_str().expect("a name").replace('/', "-"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas").join(file);
    let schema = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let schema = serde_json::from_str(&schema).expect("a schema is JSON");
    let schema = jsonschema::validator_for(&schema).expect("a sound schema");
    let wrong: Vec<String> = schema.iter_errors(&data).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{}: {wrong:#?}", file.display());
    data
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
