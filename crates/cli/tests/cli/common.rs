//! What the command-line tests share.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub use crate::command::{assert_bad_input, json, stderr, stdout, valid_json};

/// The command under test.
pub fn lookaside() -> Command {
    crate::command::command("lookaside")
}

/// Runs it with these arguments.
pub fn run(arguments: &[&str]) -> Output {
    lookaside().args(arguments).output().expect("the command can be started")
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

/// The plan that was printed as JSON.
pub fn plan<P: serde::de::DeserializeOwned>(output: &Output) -> P {
    let mut data = json(output);
    data.as_object_mut().expect("fields").remove("schema"); // a plan file has none
    serde_json::from_value(data).expect("a plan")
}
