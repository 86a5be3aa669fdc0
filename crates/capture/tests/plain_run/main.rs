//! How plain runs begin and end.

mod memory;
#[path = "../programs/mod.rs"]
#[allow(dead_code)] // Shared with tests that use more of it.
mod programs;
mod sandboxes;
mod threads;

use std::time::Duration;

use lookaside_capture::plain_run::{Aslr, PlainRun};
use lookaside_capture::{CaptureError, ChildEnd};
use lookaside_trace::MapSource;

use programs::{command, compile};

fn run(source: &str, flags: &[&str]) -> lookaside_capture::plain_run::PlainRunMaps {
    let (_folder, program) = compile(source, flags);
    PlainRun::start(&command(&program, &[]), Aslr::Off, |_| {}).unwrap().wait().unwrap()
}

fn names(regions: &[lookaside_trace::Region]) -> Vec<String> {
    let name = |region: &lookaside_trace::Region| match &region.source {
        MapSource::File { path, .. } => Some(path.clone()),
        _ => None,
    };
    regions.iter().filter_map(name).collect()
}

const LATE: &str = r#"
#include <stdlib.h>
#include <sys/mman.h>
#include <signal.h>
#include <unistd.h>
int main(void) {
    volatile char *late = mmap((void *)0x600000000000, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile char *block = malloc(100);
    late[0] = block[0] = 1;
    END
}
"#;

#[test]
fn maps_are_those_at_the_programs_begin_and_at_its_end() {
    for (end, wanted) in [("return 42;", ChildEnd::Code(42)), ("raise(SIGSEGV);", ChildEnd::Signal(libc::SIGSEGV))] {
        let maps = run(&LATE.replace("END", end), &["-O1"]);
        assert_eq!((maps.end, maps.notes), (wanted, vec![]));
        assert!(names(&maps.loaded).iter().any(|name| name.ends_with("/libc.so.6")));
        let late = |regions: &[lookaside_trace::Region]| regions.iter().any(|region| region.start == 0x6000_0000_0000);
        let heap = |regions: &[lookaside_trace::Region]| regions.iter().any(|region| region.source == MapSource::Heap);
        assert!(!late(&maps.loaded) && late(&maps.exit));
        assert!(!heap(&maps.loaded) && heap(&maps.exit));
        let stack = maps.exit.iter().find(|region| region.source == MapSource::Stack).unwrap();
        assert!(stack.holds(maps.entry_stack.unwrap()));
        assert!(maps.exit.iter().all(|region| region.made > 0));
    }
}

#[test]
fn fixed_places_are_the_same_ones_twice() {
    let (_folder, program) = compile(&LATE.replace("END", "return 0;"), &["-O1"]);
    let run = |placement| PlainRun::start(&command(&program, &[]), placement, |_| {}).unwrap().wait().unwrap();
    assert_eq!(run(Aslr::Off), run(Aslr::Off));
    let random = std::fs::read_to_string("/proc/sys/kernel/randomize_va_space").is_ok_and(|text| text.trim() == "2");
    if random {
        assert_ne!(run(Aslr::System).entry_stack, run(Aslr::System).entry_stack);
    }
}

#[test]
fn a_program_that_does_not_end_is_stopped_and_none_is_left() {
    // What it ignores, it still ignores when it executes itself: the second moment tells that it does.
    let source = r#"
#include <signal.h>
#include <unistd.h>
int main(int argc, char **argv) {
    signal(SIGTERM, SIG_IGN);
    if (argc == 1) execl(argv[0], argv[0], "again", (char *)0);
    for (;;) pause();
}
"#;
    let (_folder, program) = compile(source, &["-O1"]);
    let (sender, began) = std::sync::mpsc::channel();
    let run = PlainRun::start(&command(&program, &[]), Aslr::Off, move |_| {
        let _ = sender.send(());
    })
    .unwrap();
    for _ in 0..2 {
        began.recv_timeout(Duration::from_secs(20)).unwrap();
    }
    let pid = run.pid();
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/exe")).unwrap(), program.canonicalize().unwrap());
    run.stop();
    assert_eq!(run.wait().unwrap().end, ChildEnd::Signal(libc::SIGKILL));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(run.wait().is_err());

    // What looks at it panics.
    let run = PlainRun::start(&command(&program, &[]), Aslr::Off, |_| panic!("looked")).unwrap();
    let pid = run.pid();
    assert!(run.wait().unwrap_err().to_string().contains("panicked"));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());

    // Nobody waits.
    let run = PlainRun::start(&command(&program, &[]), Aslr::Off, |_| {}).unwrap();
    let pid = run.pid();
    drop(run);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn what_can_not_be_started_is_said_in_a_line() {
    let error = |words: &[&str]| {
        let words: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
        PlainRun::start(&words, Aslr::Off, |_| {}).err().unwrap()
    };
    assert!(matches!(error(&["/no/such/program"]), CaptureError::Program { code: 127, .. }));
    assert!(matches!(error(&[]), CaptureError::Program { code: 127, .. }));
    assert!(!error(&["/etc/passwd"]).to_string().contains('\n'));
    let (folder, program) = compile("int main(void) { return 0; }", &[]);
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    for rights in [0o4755, 0o2755] {
        mode(&program, rights);
        let said = error(&[program.to_str().unwrap()]).to_string();
        assert!(said.ends_with("is setuid or setgid: traced, it would run without its rights"), "{said}");
    }
    let other = folder.path().join("other");
    let mut elf = std::fs::read(&program).unwrap();
    elf[18..20].copy_from_slice(&[0x34, 0x12]);
    std::fs::write(&other, elf).unwrap();
    mode(&other, 0o755);
    let said = error(&[other.to_str().unwrap()]).to_string();
    assert!(said.ends_with("is for ELF machine 4660, not this one"), "{said}");
}
