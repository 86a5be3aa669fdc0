//! The machine at hand: measured at the first use, kept for later ones.

use std::path::Path;

use crate::common::{lookaside, stderr, stdout};

/// A command with a cache of its own.
fn show(cache: &Path) -> std::process::Output {
    let mut command = lookaside();
    command.args(["machine", "show", "this", "--toml"]).env_remove("LOOKASIDE_MACHINE").env("XDG_CACHE_HOME", cache);
    command.output().expect("the command can be started")
}

#[test]
fn this_machine_is_measured_once() {
    let cache = tempfile::tempdir().expect("temporary folder");
    let first = show(cache.path());
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert!(stderr(&first).starts_with("lookaside: measuring this machine, once"), "{}", stderr(&first));
    let kept = std::fs::read_dir(cache.path().join("lookaside/machine")).expect("its folder").count();
    if kept == 0 {
        // Neighbours, or an emulator, left nothing to be seen.
        eprintln!("LEFT OUT: no level of the TLBs could be measured here");
        assert!(stdout(&first).contains("not measured"), "{}", stdout(&first));
        return;
    }
    assert_eq!(kept, 1);
    assert!(stdout(&first).contains("name = \"this\"") && stdout(&first).contains("as measured"));
    let second = show(cache.path());
    assert_eq!((stdout(&second), stderr(&second)), (stdout(&first), String::new()));
}

#[test]
fn where_nothing_can_be_kept_nothing_is_measured() {
    let homeless = show(Path::new("/proc/none"));
    assert_eq!(homeless.status.code(), Some(0));
    assert!(stderr(&homeless).contains("; not measured: /proc/none"), "{}", stderr(&homeless));
    assert!(!stdout(&homeless).contains("name = \"this\""));
}
