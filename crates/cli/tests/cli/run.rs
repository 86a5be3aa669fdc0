//! `bake run` and `color run`: the program is as it is without, and what can't be done is said.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use crate::common::{assert_bad_input, compile, json, lookaside, run, stderr, stdout};

/// Has 64 MiB in small pages, says so, and waits for the end of its input.
const RESTS: &str = r##"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    enum { BYTES = 64 << 20 };
    char *at = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), c;
    if (at == MAP_FAILED) return 3;
    madvise(at, BYTES, MADV_NOHUGEPAGE);
    memset(at, 1, BYTES);
    return write(1, "x", 1) != 1 || read(0, &c, 1) != 0;
}
"##;

/// What a helper tells is there after some tenths of a second; on a machine that is held up, later.
#[test]
fn top_has_the_figures_of_programs_that_bake_themselves() {
    let may_use = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if may_use < 2 {
        return eprintln!("LEFT OUT: one CPU only, nothing is baked here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "rests", RESTS, &[]) else { return };
    let auto = if std::path::Path::new("/dev/lookaside").exists() { "module" } else { "prefetch:t0" };
    // Crowded while other tests want all CPUs.
    for (bake, asked, backend, states) in [
        ("--settings=prefetch:t1,sleep=1ms", "prefetch:t1,sleep=1000000ns", "prefetch:t1", &["baking", "crowded"][..]),
        ("--settings=auto", "auto,share=0.5", auto, &["idle"]),
    ] {
        let mut child = lookaside()
            .args(["bake", "run", bake, "--"])
            .arg(&program)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("the command can be started");
        let mut said = child.stdout.take().expect("its output");
        std::io::Read::read_exact(&mut said, &mut [0]).expect("it says that it is there");
        // Without statistics the command is the program.
        let pid = child.id();
        let row = || {
            let output = run(&["top", "--json", "--interval", "1"]);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let report = json(&output);
            let rows = report["processes"].as_array().expect("a list");
            rows.iter().find(|row| row["pid"] == pid).expect("the program").clone()
        };
        let there = |row: &serde_json::Value| states.iter().any(|state| row["baked"]["within"]["state"] == *state);
        let found = (0..20).map(|_| row()).find(there).expect("what its helper tells");
        let baked = &found["baked"];
        assert_eq!((&baked["within"]["bake"], &baked["within"]["backend"]), (&asked.into(), &backend.into()));
        let counted = ["cpu_nanos", "elapsed_nanos", "rounds", "touches", "busy_nanos"];
        // `auto` makes no round while other tests want all CPUs.
        let counted = if states == ["idle"] { &counted[..2] } else { &counted };
        assert!(counted.iter().all(|name| baked["stats"][name].as_u64() > Some(0)), "{baked}");
        assert!(baked["small_bytes"].as_u64() >= Some(64 << 20) && baked["mappings"].as_u64() > Some(0), "{baked}");
        drop(child.stdin.take());
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
}

/// What is said, but for the line that the tests themselves may use one CPU only.
fn said(output: &std::process::Output) -> String {
    stderr(output).split_inclusive('\n').filter(|line| !line.contains("may use one CPU only")).collect()
}

#[test]
fn input_output_and_exit_code_are_the_programs_own() {
    let output = run(&["bake", "run", "--", "sh", "-c", "echo $LOOKASIDE_BAKE; exit 7"]);
    assert_eq!((stdout(&output).as_str(), said(&output).as_str()), ("auto,share=0.5\n", ""));
    assert_eq!(output.status.code(), Some(7));
    // Without statistics the command is the program.
    assert_eq!(run(&["bake", "run", "--", "sh", "-c", "kill -9 $$"]).status.signal(), Some(9));
    let output = run(&["bake", "run", "--settings=prefetch:t1,sleep=1ms", "--stats", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.code(), Some(128 + 9));
    let output = run(&["bake", "run", "--settings=mincore", "--stats", "--", "sh", "-c", "/bin/true; exit 4"]);
    assert_eq!(output.status.code(), Some(4));
    // Some shells leave by `_exit`, and say nothing.
    let said = said(&output);
    assert!(said.starts_with("lookaside: baked 0 of ") && !said.starts_with("lookaside: baked 0 of 0"), "{said}");
}

#[test]
fn signals_go_to_the_program() {
    let mut child = lookaside()
        .args([
            "bake",
            "run",
            "--stats",
            "--",
            "sh",
            "-c",
            "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done",
        ])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let mut said = std::io::BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("a line");
    assert_eq!(line, "ready\n");
    // The signals are taken right after the program's start, which may be a moment after its first words.
    std::thread::sleep(Duration::from_millis(200));
    // SAFETY: a signal to the child, which has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    line.clear();
    std::io::BufRead::read_line(&mut said, &mut line).expect("a line");
    assert_eq!(line, "caught\n");
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
}

#[test]
fn programs_that_take_no_library_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(program) = compile(folder.path(), "still", "int main(void) { return 0; }\n", &["-static"]) {
        let program = program.to_string_lossy();
        assert_bad_input(&run(&["bake", "run", "--", &program]), &[&program, "statically", "lookaside bake pid"]);
    }
    if let Some(program) = compile(folder.path(), "other", "int main(void) { return 0; }\n", &[]) {
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("a mode");
        assert_bad_input(&run(&["bake", "run", "--", &program.to_string_lossy()]), &["setuid"]);
    }
}

#[test]
fn mistakes_get_a_line_each() {
    for (bake, why) in [
        ("--settings=load", "fault pages in"),
        ("--settings=warm", "no such backend"),
        ("--settings=", "no backend is given"),
        ("--settings=auto,stride=8", "auto chooses it"),
        ("--settings=prefetch,stride=0", "1 to 262144"),
        ("--settings=prefetch,cpu=8000", "cpu=8000"),
        ("--settings=auto,share=1.5", "above 0"),
    ] {
        assert_bad_input(&run(&["bake", "run", bake, "--", "true"]), &["--settings: ", why]);
    }
    assert_eq!(run(&["bake", "run"]).status.code(), Some(2));
    assert_eq!(run(&["bake", "run", "--", "/nonexistent"]).status.code(), Some(127));
    assert_eq!(run(&["bake", "run", "--", "/etc/passwd"]).status.code(), Some(126));
    let output = lookaside().env("LOOKASIDE_PRELOAD", "/nonexistent.so").args(["bake", "run", "--", "true"]).output();
    assert_bad_input(&output.expect("the command can be started"), &["LOOKASIDE_PRELOAD=/nonexistent.so"]);
}

const PARTITIONS: &str = r#"
machine = "xeon-e5-2650"
page_size = "4K"

[[level]]
name = "l1d-4k"
sets = 16
ways = 4

[[partition]]
name = "T1"
shares = [{ level = "l1d-4k", sets = [0, 1, 2, 3, 4, 5] }]

[[partition]]
name = "T2"
shares = [{ level = "l1d-4k", sets = [6] }]
"#;

#[test]
fn a_program_allocates_in_its_partition() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("p.toml");
    std::fs::write(&file, PARTITIONS).expect("a file");
    let of = |name: &str| format!("--partition={}{name}", file.display());
    let sets = r##"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    unsigned seen = 0;
    for (int i = 0; i < 2000; i++) seen |= 1u << (((uintptr_t)malloc(1000) >> 12) & 15);
    printf("%x\n", seen);
    return 3;
}
"##;
    let Some(program) = compile(folder.path(), "sets", sets, &[]) else { return };
    let program = program.to_string_lossy();
    for (name, seen) in [(":T1", "3f\n"), (":T2", "40\n")] {
        let output = run(&["color", "run", &of(name), "--", &program]);
        assert_eq!((stdout(&output).as_str(), stderr(&output).as_str(), output.status.code()), (seen, "", Some(3)));
    }
    // With the baker beside it, and what both did.
    let own = lookaside().get_program().to_string_lossy().into_owned();
    let bake = ["bake", "run", "--settings=mincore", "--stats", &own];
    let output = run(&[&bake[..], &["color", "run", &of(":T1"), "--stats", "--", &program]].concat());
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("3f\n", Some(3)));
    let said = stderr(&output);
    assert!(said.contains("lookaside: exited processes that used the partition: 1"), "{said}");
    assert!(
        said.contains(" in use; 0 allocations") && said.contains("0 refused") && said.contains("lookaside: baked "),
        "{said}"
    );
}

#[test]
fn partitions_that_are_not_there_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("p.toml");
    let of = |name: &str| format!("--partition={}{name}", file.display());
    assert_bad_input(&run(&["color", "run", &of(""), "--", "true"]), &["--partition: ", "p.toml: cannot be read"]);
    std::fs::write(&file, PARTITIONS).expect("a file");
    assert_bad_input(&run(&["color", "run", &of(""), "--", "true"]), &["has 2 partitions; say which", "T1, T2"]);
    assert_bad_input(&run(&["color", "run", &of(":T3"), "--", "true"]), &["\"T3\" is no partition; known: T1, T2"]);
    std::fs::write(&file, PARTITIONS.replace("\"4K\"", "\"2M\"")).expect("a file");
    assert_bad_input(&run(&["color", "run", &of(":T1"), "--", "true"]), &["a whole program can't be given 2M pages"]);
    std::fs::write(&file, PARTITIONS).expect("a file");
    let output = lookaside()
        .env("LOOKASIDE_MALLOC", "/nonexistent.so")
        .args(["color", "run", &of(":T1"), "--", "true"])
        .output();
    assert_bad_input(&output.expect("the command can be started"), &["LOOKASIDE_MALLOC=/nonexistent.so"]);
}
