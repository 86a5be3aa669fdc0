//! Bad input: one clear line, exit code 2, no panic.

use crate::common::{assert_bad_input, run, stderr, stdout};

#[test]
fn machines_that_cannot_be() {
    assert_bad_input(&run(&["machine", "show", "pentium"]), &["pentium", "skylake"]);
    assert_bad_input(&run(&["machine", "show", "no/such.toml"]), &["no/such.toml"]);
    assert_bad_input(&run(&["machine", "show", "skylake", "--set", "tlb.stlb.wyas=12"]), &["wyas"]);
    assert_bad_input(&run(&["simulate", "x.lkt", "--machine", "skylake", "--set", "nonsense"]), &["nonsense"]);
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("bad.toml");
    let toml = stdout(&run(&["machine", "show", "skylake", "--toml"]));
    std::fs::write(&file, toml.replacen("ways = ", "ways = 1", 1)).expect("written");
    let output = run(&["machine", "check", file.to_str().expect("text path")]);
    assert_bad_input(&output, &["bad.toml", "tlb[0].ways"]);
}

#[test]
fn every_preset_shows_and_checks() {
    let list = stdout(&run(&["machine", "list"]));
    for name in [
        "sa1100",
        "cortex-a7",
        "gem5-armv7",
        "cortex-a9",
        "xeon-e5-2650",
        "skylake",
        "cascade-lake",
        "neoverse-n1",
        "ryzen-5900x",
        "ice-lake-sp",
        "neoverse-v1",
        "zen4",
        "golden-cove",
        "neoverse-v2",
        "zen5",
    ] {
        assert!(list.contains(name), "{list}");
        let shown = run(&["machine", "show", name, "--toml"]);
        assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
        let folder = tempfile::tempdir().expect("temporary folder");
        let file = folder.path().join("copy.toml");
        std::fs::write(&file, stdout(&shown)).expect("written");
        let checked = run(&["machine", "check", file.to_str().expect("text path")]);
        assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    }
}

#[test]
fn traces_that_are_none() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("noise");
    std::fs::write(&file, [0x9e_u8, 0x01, 0xff, 0x00, 0x42].repeat(1000)).expect("written");
    let path = file.to_str().expect("text path");
    assert_bad_input(&run(&["trace", "info", path]), &["noise"]);
    assert_bad_input(&run(&["simulate", path, "--machine", "skylake"]), &["noise"]);
    assert_bad_input(&run(&["trace", "info", "/no/such.lkt"]), &["/no/such.lkt"]);
    assert_bad_input(&run(&["analyze", "--trace", "/no/such.lkt"]), &["/no/such.lkt"]);
}

#[test]
fn a_damaged_trace_gives_up_only_what_is_damaged() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let text = folder.path().join("t.txt");
    let lines: String = (0..200_000u64).map(|i| format!("R {:#x} 8\n", (i * 7919 % 65_536) << 12)).collect();
    std::fs::write(&text, lines).expect("written");
    let (text, trace) = (text.to_str().expect("text"), folder.path().join("t.lkt"));
    let trace_path = trace.to_str().expect("text");
    assert_eq!(run(&["trace", "convert", text, "-o", trace_path]).status.code(), Some(0));
    let whole = run(&["trace", "check", trace_path]);
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    let mut bytes = std::fs::read(&trace).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&trace, &bytes).expect("written");
    let damaged = run(&["trace", "check", trace_path]);
    assert_eq!(damaged.status.code(), Some(1), "{}", stdout(&damaged));
    let simulated = run(&["simulate", trace_path, "--machine", "skylake", "--json"]);
    assert_eq!(simulated.status.code(), Some(1), "damage shows in the exit code: {}", stderr(&simulated));
    assert!(stderr(&simulated).contains("bytes"), "{}", stderr(&simulated));
}

#[test]
fn nowhere_to_write() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let text = folder.path().join("t.txt");
    std::fs::write(&text, "R 0x1000 8\nW 0x2000 8\n").expect("written");
    let text = text.to_str().expect("text");
    assert_bad_input(&run(&["trace", "convert", text, "-o", "/no/folder/t.lkt"]), &["/no/folder/t.lkt"]);
    let full = run(&["trace", "convert", text, "-o", "/dev/full", "--format", "lkt"]);
    assert_bad_input(&full, &["/dev/full"]);
}

#[test]
fn places_are_tried_before_the_program_runs() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mark = folder.path().join("ran");
    let (mark, place) = (mark.to_str().expect("text"), folder.path().to_str().expect("text"));
    for (arguments, named) in [
        (&["analyze", "--html", "/no/folder/x"][..], "/no/folder/x"),
        (&["analyze", "--json=/no/folder/x"], "/no/folder/x"),
        (&["analyze", "--html", place], place),
        (&["record", "-o", "/no/folder/x"], "/no/folder/x"),
        (&["record", "-o", place], place),
    ] {
        let output = run(&[arguments, &["--", "touch", mark]].concat());
        assert_bad_input(&output, &[named]);
        assert!(!std::path::Path::new(mark).exists(), "{arguments:?} ran the program");
    }
}

#[test]
fn analysis_of_a_damaged_trace_is_not_clean() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (text, trace) = (folder.path().join("t.txt"), folder.path().join("t.lkt"));
    let lines: String = (0..200_000u64).map(|i| format!("R {:#x} 8\n", (i * 7919 % 65_536) << 12)).collect();
    std::fs::write(&text, lines).expect("written");
    let trace_path = trace.to_str().expect("text");
    assert_eq!(run(&["trace", "convert", text.to_str().expect("text"), "-o", trace_path]).status.code(), Some(0));
    let analyze = ["analyze", "--trace", trace_path, "--machine", "skylake"];
    assert_eq!(run(&analyze).status.code(), Some(0));
    let bytes = std::fs::read(&trace).expect("read");
    std::fs::write(&trace, &bytes[..bytes.len() / 2]).expect("written");
    let output = run(&analyze);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("Cut short."), "{}", stdout(&output));
}

#[test]
fn exact_never_samples() {
    let output = crate::common::lookaside()
        .args(["analyze", "--exact", "--", "/bin/sh", "-c", ":"])
        .env("PATH", "/no/folder")
        .output()
        .expect("started");
    assert_bad_input(&output, &["valgrind", "apt-get install valgrind gcc"]);
    // An ARM program's header is all that choosing looks at; there is no QEMU in that folder either.
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = folder.path().join("arm");
    let mut elf = vec![0u8; 84];
    elf[..6].copy_from_slice(b"\x7fELF\x01\x01");
    (elf[18], elf[28], elf[42], elf[44], elf[52]) = (40, 52, 32, 1, 1); // e_machine, e_phoff, e_phentsize, e_phnum, PT_LOAD
    std::fs::write(&program, &elf).expect("written");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("made executable");
    let output = crate::common::lookaside()
        .args(["analyze", "--exact", "--"])
        .arg(&program)
        .env("PATH", "/no/folder")
        .output()
        .expect("started");
    assert_bad_input(&output, &["qemu-arm", "apt-get install qemu-user"]);
}
