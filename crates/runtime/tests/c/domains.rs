//! Compartments by protection keys. On a processor without them it is tested that this is said; with them, everything
//! else: tools/check-kernel runs the same program where QEMU has them.

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use crate::{both_ways, output_of, Language};

const PROGRAM: &str = include_str!("domains.c");
const EXAMPLE: &str = include_str!("../../examples/domains.c");

/// Whether the processor and the kernel have keys.
fn are_there() -> bool {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").expect("/proc/cpuinfo");
    cpus.lines().find(|line| line.starts_with("flags")).is_some_and(|flags| flags.split(' ').any(|f| f == "ospke"))
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn compartments_in_c_and_cxx() {
    let [shared, fixed] = both_ways();
    for (language, linked) in [(Language::C, &shared), (Language::Cxx, &shared), (Language::C, &fixed)] {
        let Some(output) = output_of(PROGRAM, language, linked) else { continue };
        let (said, complaint) = texts(&output);
        if are_there() {
            assert_eq!(output.status.code(), Some(0), "{said}{complaint}");
            assert!(said.starts_with("64 compartments, "), "{said}");
        } else {
            assert_eq!(output.status.code(), Some(2), "{said}{complaint}");
            assert!(said.starts_with("no compartments: ") && said.lines().count() == 1, "{said}");
        }
    }
}

#[test]
fn the_example_guards_its_vault() {
    let Some(output) = output_of(EXAMPLE, Language::C, &both_ways()[0]) else { return };
    let (said, complaint) = texts(&output);
    if are_there() {
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{said}{complaint}");
        assert!(said.starts_with("signature ") && said.ends_with("\na stray read of the vault\n"), "{said}");
    } else {
        assert_eq!((output.status.code(), said.as_str()), (Some(2), ""), "{complaint}");
        assert!(complaint.starts_with("no compartments: ") && complaint.lines().count() == 1, "{complaint}");
    }
}
