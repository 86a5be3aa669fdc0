//! `workload`: every one runs, with and without a baker, to the same result.

use std::process::Stdio;

use lookaside_trace::{Block, Source};
use lookaside_workloads::{workload, WorkloadSpec, WorkloadStream};

use crate::common::{assert_bad_input, lookaside, run, stderr, stdout};

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    crate::common::json(&output)
}

#[test]
fn each_gives_the_same_result_baked_or_not() {
    let list = json(&["lab", "workload", "list", "--json"]);
    let list = list["workloads"].as_array().expect("a list");
    let names: Vec<&str> = list.iter().filter_map(|kind| kind["name"].as_str()).collect();
    assert_eq!(names, ["bc", "canneal", "graph500", "gups", "hashjoin", "liblinear", "reads"]);
    let text = stdout(&run(&["lab", "workload", "list"]));
    for name in names {
        assert!(text.contains(name), "{text}");
        let arguments = ["lab", "workload", name, "--size", "1M", "--seed", "5", "--rounds", "2", "--json"];
        let base = json(&arguments);
        let baked = json(&[&arguments[..], &["--bake", "prefetch:t0,stride=16,sleep=50us"]].concat());
        assert_eq!(base["complete"], true);
        assert!(base["operations"].as_u64() > Some(0) && base["bake"].is_null(), "{base}");
        for field in ["checksum", "operations", "parameters"] {
            assert_eq!(base[field], baked[field], "{name}: {field}");
        }
        assert_eq!(baked["bake"]["settings"], "prefetch:t0,stride=16,sleep=50000ns");
        let regions = baked["regions"].as_array().expect("regions");
        assert_eq!(regions.iter().filter(|region| region["baked"] == true).count(), 1, "{baked}");
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(cpus == 1 || baked["cpu"] != baked["bake"]["stats"]["cpu"], "{baked}");
        let other = json(&["lab", "workload", name, "--size", "1M", "--seed", "6", "--rounds", "2", "--json"]);
        assert_ne!(base["checksum"], other["checksum"], "{name}");
    }
}

#[test]
fn the_text_says_what_ran() {
    let output = run(&["lab", "workload", "gups", "--size", "2M", "--rounds", "64", "--bake", "mincore"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    for part in ["gups: 262,144 words", "(base pages)", "1,048,576 operations in 64 rounds", "table by mincore on"] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

/// Whether it bakes is its own choice; what it did is said.
#[test]
fn auto_says_what_it_did() {
    let arguments = ["lab", "workload", "gups", "--size", "64M", "--rounds", "2"];
    let baked = json(&[&arguments[..], &["--bake", "auto", "--json"]].concat());
    assert_eq!(baked["checksum"], json(&[&arguments[..], &["--json"]].concat())["checksum"]);
    let bake = &baked["bake"];
    let backend = if std::path::Path::new("/dev/lookaside").exists() { "module" } else { "prefetch:t0" };
    assert_eq!((&bake["settings"], &bake["within"]["backend"]), (&"auto,share=0.5".into(), &backend.into()));
    assert!(bake["within"]["state"].is_string() && bake["within"]["pause_nanos"].is_u64(), "{bake}");
    assert!(bake["stats"]["rounds"].is_u64(), "{bake}");
    let said = stdout(&run(&[&arguments[..], &["--bake", "auto,share=0.3"]].concat()));
    assert!(
        said.contains("table by auto,share=0.3 on ") && said.lines().any(|line| line.starts_with("auto ")),
        "{said}"
    );
}

/// Looks until it sees what it waits for: a machine that is held up is slow to bake.
#[test]
fn top_has_what_its_baker_tells() {
    let arguments =
        ["lab", "workload", "gups", "--size", "64M", "--rounds", "10000000", "--bake", "prefetch:t1,sleep=1ms"];
    let child = lookaside().args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("the command can be started");
    let row = || {
        let report: serde_json::Value = json(&["top", "--once", "--json", "--interval", "1"]);
        report["processes"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|row| row["pid"] == child.id())
            .expect("the program")
            .clone()
    };
    let rounds = |row: &serde_json::Value| row["baked"]["stats"]["rounds"].as_u64();
    let first = (0..60).map(|_| row()).find(|row| rounds(row) > Some(0)).expect("what its baker tells");
    let later = (0..60).map(|_| row()).find(|row| rounds(row) > rounds(&first)).expect("more rounds");
    let within = &later["baked"]["within"];
    assert_eq!(within["backend"], "prefetch:t1");
    assert!(within["state"] == "baking" || within["state"] == "crowded", "{within}");
    assert_eq!(later["helpers"][0][0], child.id());
    assert!(later["baked"]["small_bytes"].as_u64() >= Some(64 << 20), "{later}");
    // SAFETY: a signal to a child that was not waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    assert_eq!(child.wait().expect("it ends").code(), Some(128 + libc::SIGINT));
}

#[test]
fn what_cannot_be_is_one_line() {
    assert_bad_input(&run(&["lab", "workload", "gusp"]), &["gusp", "no such workload", "hashjoin"]);
    assert_bad_input(&run(&["lab", "workload", "gups", "--size", "8X"]), &["--size 8X", "512M"]);
    assert_bad_input(&run(&["lab", "workload", "gups", "--size", "4K"]), &["4096 bytes", "1M"]);
    assert_bad_input(&run(&["lab", "workload", "gups", "--size", "1000G"]), &["1000G", "ask for less"]);
    assert_bad_input(&run(&["lab", "workload", "gups", "--size", "99999G"]), &["bytes", "1024G"]);
    assert_bad_input(&run(&["lab", "workload", "gups", "--rounds", "0"]), &["0 rounds"]);
    assert_bad_input(&run(&["lab", "workload", "gups", "--bake", "warm"]), &["baking: ", "warm"]);
    assert_bad_input(&run(&["lab", "workload", "gups", "--bake", "auto,stride=8"]), &["baking: ", "auto chooses it"]);
    assert_bad_input(&run(&["lab", "workload", "gups", "--size", "1M", "--bake", "prefetch,cpu=9999"]), &["9999"]);
}

/// Where the system has some, an array of any size is in them; else a line says so.
#[test]
fn huge_pages_are_had_or_missed_aloud() {
    let output = run(&["lab", "workload", "gups", "--size", "1M", "--pages", "thp", "--json"]);
    let said = stderr(&output);
    match output.status.code() {
        Some(0) => {
            let outcome = crate::common::json(&output);
            assert!(outcome["huge_bytes"].as_u64() >= Some(1 << 20), "{outcome}");
            assert_eq!(outcome["checksum"], json(&["lab", "workload", "gups", "--size", "1M", "--json"])["checksum"]);
        }
        Some(1 | 2) => {
            assert!(said.lines().count() == 1 && (said.contains("thp") || said.contains("memory")), "{said}")
        }
        other => panic!("{other:?}: {said}"),
    }
}

/// What is neither asked for nor refused comes from whoever gives it: here what `malloc` is told.
#[test]
fn pages_are_as_they_are_given() {
    let gups = |tunables: &str| {
        let mut command = crate::common::lookaside();
        command.args(["lab", "workload", "gups", "--size", "4M", "--pages", "asis", "--json"]);
        let output = command.env("GLIBC_TUNABLES", tunables).output().expect("it starts");
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
        crate::common::json(&output)
    };
    let plain = gups("");
    // glibc 2.36 compares the system's setting as it read it, without an end: by what lies behind on the stack a run
    // heeds the tunable or doesn't, some six in ten of this program's.
    let mut asked = (0..20).map(|_| gups("glibc.malloc.hugetlb=1"));
    let heeded = asked.find(|asked| asked["huge_bytes"].as_u64() >= Some(2 << 20));
    let word = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if word.contains("[madvise]") {
        assert_eq!((&plain["pages"], &plain["huge_bytes"]), (&"asis".into(), &0.into()));
        assert_eq!(plain["checksum"], heeded.expect("a run in huge pages")["checksum"]);
    }
    let text = stdout(&run(&["lab", "workload", "gups", "--size", "1M", "--pages", "asis"]));
    assert!(text.contains("(pages as given, "), "{text}");
}

/// All accesses of a trace, its memory map by name, and whether it is whole.
fn read(path: &str) -> (Vec<(lookaside_trace::Kind, u64)>, Vec<String>, bool) {
    let mut source = lookaside_trace::open(path).expect("a trace");
    let (mut block, mut accesses, mut names) = (Block::default(), Vec::new(), Vec::new());
    while source.next_block(&mut block).expect("it can be read") {
        accesses.extend(block.kind.iter().copied().zip(block.addr.iter().copied()));
        names.extend(block.events.iter().map(|(_, event)| match event {
            lookaside_trace::Event::Map { source: lookaside_trace::MapSource::File { path, .. }, .. } => path.clone(),
            other => panic!("{other:?}"),
        }));
    }
    (accesses, names, source.damage().is_empty())
}

/// The trace has the accesses of the stream, one for one; and what reads traces reads it.
#[test]
fn accesses_become_a_trace() {
    let folder = tempfile::tempdir().expect("temporary folder");
    for name in ["gups", "hashjoin", "bc"] {
        let path = folder.path().join(format!("{name}.lkt"));
        let path = path.to_str().expect("text");
        let written = json(&["lab", "workload", name, "--size", "1M", "--seed", "5", "--record", path, "--json"]);
        let spec = WorkloadSpec { seed: 5, ..WorkloadSpec::new(1 << 20) };
        let mut stream = WorkloadStream::new(workload(name, &spec).expect("memory"));
        let (mut block, mut expected) = (Block::default(), Vec::new());
        while stream.next_block(&mut block).expect("a block") {
            expected.extend(block.kind.iter().copied().zip(block.addr.iter().copied()));
        }
        let (accesses, names, whole) = read(path);
        assert!(accesses == expected && whole, "{name}");
        assert_eq!(written["accesses"], expected.len());
        let arrays: Vec<String> = stream.workload().regions().iter().map(|r| format!("[anon:{}]", r.name)).collect();
        assert_eq!(names, arrays);
        let native = json(&["lab", "workload", name, "--size", "1M", "--seed", "5", "--json"]);
        for field in ["checksum", "operations", "parameters"] {
            assert_eq!(written[field], native[field], "{name}: {field}");
        }
        assert_eq!(
            json(&["simulate", path, "-m", "skylake", "--json"])["outcomes"][0]["data"]["accesses"],
            expected.len()
        );
        let info = json(&["trace", "info", path, "--json"]);
        let command = ["lookaside", "lab", "workload", name, "--size", "1M", "--seed", "5", "--rounds", "1"];
        assert_eq!(info["info"]["command"], serde_json::json!(command));
    }
}

#[test]
fn what_reads_the_trace_names_the_arrays() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("gups.lkt");
    let path = path.to_str().expect("text");
    let output = run(&["lab", "workload", "gups", "--size", "4M", "-o", path]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stdout(&output).lines().any(|line| line.starts_with("table ") && line.contains("0x1000000000"))
            && stderr(&output).contains("gups.lkt: "),
        "{}",
        stdout(&output)
    );
    for arguments in [
        &["analyze", "--trace", path, "-m", "skylake"][..],
        &["hugepages", "plan", "--trace", path, "-m", "skylake", "--budget", "2"],
        &["lock", "plan", "--trace", path, "-m", "cortex-a9", "--entries", "1"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        assert!(stdout(&output).contains("[anon:table]"), "{arguments:?}: {}", stdout(&output));
    }
}

#[test]
fn a_recording_that_is_interrupted_stays_readable() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("t.lkt");
    let mut child = lookaside()
        .args(["lab", "workload", "reads", "--size", "1M", "--rounds", "1000000", "--record"])
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    while std::fs::metadata(&path).map_or(0, |file| file.len()) < 100_000 {
        assert!(child.try_wait().expect("a state").is_none(), "it ended before its time");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let (accesses, _, whole) = read(path.to_str().expect("text"));
    assert!(whole && accesses.len() > 100_000, "{}", accesses.len());
}

#[test]
fn recordings_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("t.lkt");
    let path = path.to_str().expect("text");
    let nowhere = ["lab", "workload", "gups", "--size", "1M", "--record", "/no/folder/t.lkt"];
    assert_bad_input(&run(&nowhere), &["/no/folder/t.lkt", "choose another place"]);
    let place = folder.path().to_str().expect("text");
    assert_bad_input(&run(&["lab", "workload", "gups", "--size", "1M", "--record", place]), &[place, "is a folder"]);
    assert_bad_input(&run(&["lab", "workload", "gups", "--size", "4K", "--record", path]), &["4096 bytes", "1M"]);
    assert_bad_input(&run(&["lab", "workload", "list", "--record", path]), &["name a workload"]);
    for other in [["--bake", "prefetch"], ["--pages", "thp"]] {
        let output = run(&[&["lab", "workload", "gups", "--size", "1M", "--record", path][..], &other].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
    }
    assert!(!std::path::Path::new(path).exists());
    let full = run(&["lab", "workload", "gups", "--size", "1M", "--record", "/dev/full"]);
    assert_eq!(full.status.code(), Some(125), "{}", stderr(&full));
    assert!(stderr(&full).contains("/dev/full"), "{}", stderr(&full));
}
