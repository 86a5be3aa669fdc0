//! What the command-line tests share.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The command under test, which heeds signals even where the tests themselves were started so that they ignore them (in the
/// background of a script, under `nohup`): it would respect that, and the tests that interrupt it would wait for ever.
pub fn lookaside() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("lookaside"));
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

/// Runs it with these arguments.
pub fn run(arguments: &[&str]) -> Output {
    lookaside().args(arguments).output().expect("the command can be started")
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

/// Whether exact recording can be tested here. Says so when it can't.
pub fn have_valgrind() -> bool {
    let have = Path::new("/usr/bin/valgrind").exists();
    if !have {
        eprintln!("LEFT OUT: valgrind is not installed (apt-get install valgrind), exact recording is not tested");
    }
    have
}

/// Builds a C program of the tests; `None`, said aloud, without a compiler.
pub fn compile(folder: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let c = folder.join(format!("{name}.c"));
    let program = folder.join(name);
    std::fs::write(&c, source).expect("temporary folder can be written");
    let status = Command::new("gcc").args(["-O1", "-g", "-o"]).arg(&program).arg(&c).args(flags).status();
    match status {
        Ok(status) => {
            assert!(status.success(), "{name}.c does not compile");
            Some(program)
        }
        Err(_) => {
            eprintln!("LEFT OUT: gcc is not installed (apt-get install gcc)");
            None
        }
    }
}

/// A command whose program adds a line to `runs` each time that it runs: it is ended (SIGTERM) when there are so many.
pub fn ended_at_run(command: &mut Command, runs: &Path, count: usize) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    while std::fs::read(runs).map_or(0, |bytes| bytes.len()) < count {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let status = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    assert!(status.success());
    child.wait_with_output().expect("ended")
}
