//! Commands on a terminal, which is the program's while it runs.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::common::lookaside;

/// A terminal of our own: our side and the program's.
fn terminal() -> (File, File) {
    let (mut ours, mut theirs) = (-1, -1);
    let null = std::ptr::null_mut();
    // SAFETY: two descriptors are filled in; no name, attributes or size are asked for.
    let opened = unsafe { libc::openpty(&mut ours, &mut theirs, null, null.cast(), null.cast()) };
    assert_eq!(opened, 0, "a terminal");
    // SAFETY: just opened, and nobody else's.
    unsafe { (File::from_raw_fd(ours), File::from_raw_fd(theirs)) }
}

/// What a command shows on a terminal of its own, where `typed` was typed at once.
fn shown(arguments: &[&str], typed: &str) -> String {
    let (mut ours, theirs) = terminal();
    let end = || Stdio::from(theirs.try_clone().expect("a descriptor"));
    let mut command = lookaside();
    command.args(arguments).stdin(end()).stdout(end()).stderr(end());
    let take = || {
        // SAFETY: system calls between fork and exec.
        match unsafe { libc::setsid() != -1 && libc::ioctl(0, libc::TIOCSCTTY, 0) == 0 } {
            true => Ok(()),
            false => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(take) };
    let mut child = command.spawn().expect("the command can be started");
    drop((command, theirs));
    ours.write_all(typed.as_bytes()).expect("typed");
    let mut bytes = Vec::new();
    // Its end is an error: the other side is gone.
    let mut part = [0; 4096];
    while let Ok(n @ 1..) = ours.read(&mut part) {
        bytes.extend_from_slice(&part[..n]);
    }
    assert!(child.wait().expect("it ends").success(), "{}", String::from_utf8_lossy(&bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Without our lines, and without what was typed, which is echoed before or after the question.
fn programs(seen: &str) -> String {
    let lines = seen.replacen("Ada\r\n", "", 1);
    lines.split_inclusive('\n').filter(|line| !line.starts_with("lookaside: ")).collect()
}

/// Half a second is time for two turns of a spinner.
const ASKS: &str = "printf 'name? '; read name; sleep 0.5; printf 'more? '; sleep 0.5; echo \"hello $name\"";

#[test]
fn nothing_is_drawn_over_what_the_program_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.lkt").to_string_lossy().into_owned();
    for backend in ["sample", "valgrind"] {
        let output = lookaside().args(["record", "--backend", backend, "-o", &trace, "--", "true"]).output();
        if !output.expect("started").status.success() {
            eprintln!("LEFT OUT: {backend} is not to be had here");
            continue;
        }
        let seen = shown(&["record", "--backend", backend, "-o", &trace, "--", "sh", "-c", ASKS], "Ada\n");
        assert_eq!(programs(&seen), "name? more? hello Ada\r\n", "{seen:?}");
        let last = seen.lines().last().expect("a line");
        assert!(last.starts_with("lookaside: ") && last.contains(" accesses"), "{seen:?}");
    }
    let seen = shown(&["analyze", "--once", "--no-probe", "--", "sh", "-c", ASKS], "Ada\n");
    assert!(programs(&seen).starts_with("name? more? hello Ada\r\n"), "{seen:?}");
    // Which recorder it is, is said before the program has the terminal.
    let said = ["lookaside: exact, by ", "lookaside: sampled: "].iter().find_map(|words| seen.find(words));
    assert!(said.is_some() && said < seen.find("name? "), "{seen:?}");
}
