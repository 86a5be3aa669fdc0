//! Lock plans: of a trace and of a program, what is written, what is refused.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use lookaside_techniques::lock::plan::LockPlan;
use lookaside_techniques::lock::regions::Confidence;
use lookaside_techniques::lock::select::PageSelector;

use crate::common::{assert_bad_input, compile, have_valgrind, plan, run, stderr, stdout};

/// Three pages of one set of the main TLB and of more of another come again and again.
fn trace(folder: &std::path::Path) -> String {
    let path = folder.join("t.txt");
    let page = |i: u64| [0, 64, 128, 192, 256, 1, 65][i as usize % 7] + (i % 40) * 64 * 16;
    let text: String = (0..900).map(|i| format!("R {:#x} 4\n", page(i) << 12)).collect();
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("text path").into()
}

#[test]
fn a_trace_is_planned_for() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = trace(folder.path());
    let file = folder.path().join("plan.toml");
    let place = file.to_str().expect("text path");
    let output = run(&["lock", "plan", "--entries", "2", "-o", place, "--trace", &trace]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("\ncortex-a9: 2 of 2 lockable entries of main, chosen by gain"),
        "{}",
        stdout(&output)
    );
    let made = LockPlan::load(&file).expect("a plan");
    assert_eq!((made.entries, made.pages.len(), made.curve.len(), made.accesses), (2, 2, 5, 900));
    assert_eq!((made.choices.len(), made.selector), (4, PageSelector::Gain));
    assert!(made.locked.mean.cycles() < made.base.mean.cycles());
    assert_eq!(made.command, std::slice::from_ref(&trace));
    let printed = run(&["lock", "plan", "--entries", "2", "--json", "--trace", &trace]);
    let read: LockPlan = plan(&printed);
    assert_eq!(read, made);
    for way in ["accesses", "misses", "worst"] {
        let output =
            run(&["lock", "plan", "--select", way, "--entries", "1", "--json", "--tlb", "main", "--trace", &trace]);
        let read: LockPlan = plan(&output);
        let own = read.choices.iter().find(|choice| choice.selector == read.selector).expect("its own");
        assert_eq!((own.stalls, own.pages.len()), (read.locked, read.pages.len()), "{way}");
    }
}

#[test]
fn a_program_is_recorded_and_its_pages_named() {
    let folder = tempfile::tempdir().expect("temporary folder");
    // 160 pages of one array, initialised: they lie in the program's file.
    let source = "static volatile char table[160 << 12] __attribute__((aligned(4096))) = {1};\n\
        int main(void) { for (int i = 0; i < 2000; i++) table[(i % 160) << 12]++; return 0; }\n";
    let Some(program) = compile(folder.path(), "locked", source, &["-static", "-no-pie"]) else { return };
    if !have_valgrind() {
        return;
    }
    let output = run(&["lock", "plan", "--entries", "2", "--json", "--", program.to_str().expect("text path")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let made: LockPlan = plan(&output);
    // By the addresses of this run's stack, all pages of the table are as good, and replacement is random: where the
    // second would cost some cycles, it is not locked.
    assert!((1..=2).contains(&made.pages.len()), "{:?}", made.pages);
    assert!(made.pages.last().is_some_and(|page| page.saving_cycles > 0.0), "{:?}", made.pages);
    assert!(made.pages.iter().all(|page| page.data_misses + page.fetch_misses > 0), "{:?}", made.pages);
    let ours = made.pages.iter().filter_map(|page| page.region.as_ref());
    assert!(ours.into_iter().any(|region| region.name == "locked"), "{:?}", made.pages);
    assert!(made.base.mean.data.main_cycles > made.locked.mean.data.main_cycles);
}

#[test]
fn pages_are_found_in_a_plain_run() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = "static volatile char table[160 << 12] __attribute__((aligned(4096))) = {1};\n\
        int main(void) { for (int i = 0; i < 2000; i++) table[(i % 160) << 12]++; return 0; }\n";
    let Some(program) = compile(folder.path(), "moved", source, &["-pie", "-fPIE"]) else { return };
    if !have_valgrind() {
        return;
    }
    let program = program.to_str().expect("text path");
    let output = run(&["lock", "plan", "--native", "--json", "--", program]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let made: LockPlan = plan(&output);
    assert!(made.pages.iter().all(|page| page.native.is_some() != page.not_native.is_some()), "{:?}", made.pages);
    let ours: Vec<_> =
        made.pages.iter().filter(|page| page.region.as_ref().is_some_and(|region| region.name == "moved")).collect();
    assert!(!ours.is_empty(), "{:?}", made.pages);
    for page in ours {
        let native = page.native.as_ref().expect("found");
        // Valgrind loads it low, the kernel high; the place in the file is the same.
        assert!(native.vpn > page.vpn && native.region.starts_with("moved rw- +"), "{page:?}");
        assert_eq!(
            (native.confidence, &native.rests_on[0][..]),
            (Confidence::Exact, "same file, permission and offset")
        );
    }
    let text = run(&["lock", "plan", "--native", "--entries", "1", "--", program]);
    assert!(stdout(&text).contains("In a plain run, addresses fixed\n"), "{}", stdout(&text));
    // What cannot run plainly is refused before anything is recorded; a failure of its own is said.
    let foreign = folder.path().join("foreign");
    // The head of an executable for AArch64 (ELF: class 2, type 2, machine 183).
    let head = [&b"\x7fELF\x02\x01\x01"[..], &[0; 9], &[2, 0, 183, 0, 1, 0, 0, 0], &[0; 40]].concat();
    std::fs::write(&foreign, head).expect("written");
    std::fs::set_permissions(&foreign, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let refused = run(&["lock", "plan", "--native", "--", foreign.to_str().expect("text path")]);
    assert_eq!((refused.status.code(), stdout(&refused).len()), (Some(126), 0), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("is for aarch64: its memory can't be told from QEMU's own"),
        "{}",
        stderr(&refused)
    );
    let failed = run(&["lock", "plan", "--native", "--entries", "1", "--", "/bin/false"]);
    assert_eq!(failed.status.code(), Some(1), "{}", stderr(&failed));
    assert!(stdout(&failed).contains("\n· the plain run ended with exit code 1"), "{}", stdout(&failed));
    // A trace does not run.
    let trace = trace(folder.path());
    assert_eq!(run(&["lock", "plan", "--native", "--trace", &trace]).status.code(), Some(2));
}

#[test]
fn pages_of_a_static_arm_program_are_found_in_a_plain_run_under_qemu() {
    let (compiler, emulator) = ("arm-linux-gnueabihf-gcc", "qemu-arm");
    if [compiler, emulator].iter().any(|name| Command::new(name).arg("--version").output().is_err()) {
        eprintln!("LEFT OUT: {compiler} or {emulator} is not installed, plain runs of ARM programs are not tested");
        return;
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let (source, program) = (folder.path().join("arm.c"), folder.path().join("moved"));
    let text = "static volatile char table[160 << 12] __attribute__((aligned(4096))) = {1};\n\
        int main(void) { for (int i = 0; i < 2000; i++) table[(i % 160) << 12]++; return 0; }\n";
    std::fs::write(&source, text).expect("written");
    let built = Command::new(compiler).args(["-O1", "-static", "-o"]).arg(&program).arg(&source).status().expect("run");
    assert!(built.success());
    let output = run(&["lock", "plan", "--native", "--json", "--", program.to_str().expect("text path")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let made: LockPlan = plan(&output);
    let ours: Vec<_> =
        made.pages.iter().filter(|page| page.region.as_ref().is_some_and(|region| region.name == "moved")).collect();
    assert!(!ours.is_empty(), "{:?}", made.pages);
    for page in ours {
        let native = page.native.as_ref().expect("found");
        // The emulator loads it where its file says, by the program's own addresses.
        assert_eq!((native.vpn, native.confidence), (page.vpn, Confidence::Exact), "{page:?}");
    }
    assert!(made.pages.iter().all(|page| page.native.is_some() != page.not_native.is_some()), "{:?}", made.pages);
}

#[test]
fn bad_input_is_one_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let trace = trace(folder.path());
    let on = |more: &[&str]| run(&[&["lock", "plan", "--trace", trace.as_str()], more].concat());
    assert_bad_input(&on(&["--machine", "skylake"]), &["skylake", "no TLB array has lockable entries", "cortex-a9"]);
    assert_bad_input(&on(&["--entries", "5"]), &["\"main\" has 4 lockable entries, not 5"]);
    assert_bad_input(&on(&["--tlb", "micro-d"]), &["\"micro-d\" has no lockable entries", "main"]);
    assert_bad_input(&on(&["-o", "/no/folder/x"]), &["/no/folder/x", "choose another place"]);
    assert_bad_input(&run(&["lock", "plan", "--trace", "/no/such.lkt"]), &["/no/such.lkt"]);
    assert_eq!(run(&["lock", "plan"]).status.code(), Some(2));
}

#[test]
fn a_program_that_fails_is_planned_for_and_said() {
    if !have_valgrind() {
        return;
    }
    let output = run(&["lock", "plan", "--entries", "1", "--", "/bin/false"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("\n· the program ended with exit code 1"), "{}", stdout(&output));
}
