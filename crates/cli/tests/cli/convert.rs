//! Conversions for other tools: all of a trace, or a word on what is lost.

use crate::common::{assert_bad_input, run, stderr};

#[test]
fn champsim_gets_all_accesses_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = |file: &str| folder.path().join(file).to_string_lossy().into_owned();
    let convert = |text: &str| {
        std::fs::write(name("t.txt"), text).expect("written");
        run(&["trace", "convert", &name("t.txt"), "-o", &name("t.champsim")])
    };
    let all = convert("R 0x1000 8\nW 0x1008 8\n");
    assert_eq!((all.status.code(), stderr(&all).as_str()), (Some(0), ""));
    let lost = convert("P 1 1\nR 0x1000 8\nP 1 2\nW 0x2000 8\n");
    let line = "has 2 accesses in 1 instruction; ChampSim's format can't hold 1 switch between threads\n";
    assert_eq!(lost.status.code(), Some(1));
    assert_eq!(stderr(&lost), format!("lookaside: {}: {line}", name("t.champsim")));
    std::fs::remove_file(name("t.champsim")).expect("it is there");
    assert_bad_input(&convert("R 0x1000 8\nR 0x2000 8 x=40\n"), &["t.txt", "every access", "--granularity byte"]);
    assert!(!std::path::Path::new(&name("t.champsim")).exists());
}
