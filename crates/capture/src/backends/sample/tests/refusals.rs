//! What is refused before anything starts.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn bad_requests_are_one_line() {
    let line = |target, hz| {
        let error = start(&request(target, hz)).err().expect("an error").to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    for hz in [0, 100_001] {
        let asked = format!("backend sample: {hz} samples a second: wants 1 to 100000");
        assert_eq!(line(RecordTarget::Command(vec!["true".into()]), hz), asked);
    }
    assert!(line(RecordTarget::Command(vec!["/nonexistent/program".into()]), 1000).contains("/nonexistent/program"));
    assert!(line(RecordTarget::Pid(5_000_000), 1000).contains("no such process"));
}

#[test]
fn programs_that_cannot_be_sampled_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |machine: u8, mode| {
        let program = folder.path().join("program");
        let mut elf = [0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18] = machine;
        std::fs::write(&program, elf).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(mode)).unwrap();
        check(&[program.into()]).err().map(|error| error.to_string())
    };
    let (x86_64, aarch64) = (62, 183);
    assert_eq!(refused(x86_64, 0o755), None);
    let foreign = refused(aarch64, 0o755).expect("an error");
    assert!(foreign.contains("the program is for another instruction set"), "{foreign}");
    // It gains rights that it had already where root starts it.
    match (refused(x86_64, 0o4755), rustix::process::geteuid().is_root()) {
        (None, true) => {}
        (Some(error), false) => assert!(error.contains("setuid or setgid") && error.contains("run as root"), "{error}"),
        other => panic!("{other:?}"),
    }
}
