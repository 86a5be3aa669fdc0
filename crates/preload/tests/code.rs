//! Code on huge pages in real programs, as the library puts it there before `main`.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod support;

use std::path::Path;
use std::process::{Command, Output};

use lookaside_runtime::hugepages::{check_code, CodeObstacle, ProcessCode};
use support::{compile, compile_with, library, same_as_bare};

/// Code of 8 MiB, of which far-off functions are called; tells the mapping that one of them is in, and ends with code 7.
/// A child does the same.
const LARGE: &str = r##"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__asm__(".text\n .skip 3 << 20\n .globl far0\n far0: mov $1, %eax\n ret\n .skip 2 << 20\n .globl far1\n far1: mov $2, %eax\n ret\n .skip 3 << 20\n");
int far0(void), far1(void);
static void tell(unsigned long at) {
    char line[4096];
    int in = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            in = start <= at && at < end;
            if (in) printf("%s\n", strchr(line, '/') ? "file" : "memory");
        }
        if (in && (!strncmp(line, "AnonHugePages:", 14) || !strncmp(line, "FilePmdMapped:", 14) || !strncmp(line, "ShmemPmdMapped:", 15))) {
            int kib = 0;
            sscanf(strchr(line, ':') + 1, "%d", &kib);
            printf("%s\n", kib >= 2048 ? "huge" : "small");
        }
    }
    fclose(maps);
}
int main(int argc, char **argv) {
    if (argc > 1) tell((unsigned long)far1);
    printf("%d\n", far0() + far1());
    fflush(stdout);
    if (fork() == 0) { printf("child %d\n", far1() - far0()); fflush(stdout); _exit(0); }
    wait(0);
    return 7;
}
"##;

/// Becomes another program, with something set that the other keeps.
const LAUNCH: &str = r##"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (!strcmp(argv[1], "seccomp")) {
        struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        struct sock_fprog filter = { 1, &allow };
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 99;
    }
    if (!strcmp(argv[1], "switched-off") && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)) return 99;
    if (!strcmp(argv[1], "not-executable") && prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0)) return 99;
    if (!strcmp(argv[1], "no-copy")) {
        struct rlimit limit = { 16 << 20, 16 << 20 };
        if (setrlimit(RLIMIT_AS, &limit)) return 99;
    }
    execv(argv[2], argv + 2);
    return 98;
}
"##;

/// A library that starts a thread before `main`, or changes a byte of the program's code.
const MEDDLES: &str = r##"
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef CHANGES
__attribute__((constructor)) static void begin(void) {
    unsigned long start, end;
    char line[4096], rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && rights[2] == 'x' && end - start > 4 << 20) {
            mprotect((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC);
            ((volatile char *)end)[-5000] = 1;
            mprotect((void *)start, end - start, PROT_READ | PROT_EXEC);
        }
    fclose(maps);
}
#else
static void *waits(void *none) { pause(); return none; }
__attribute__((constructor)) static void begin(void) { pthread_t t; pthread_create(&t, 0, waits, 0); }
#endif
int meddles;
"##;

const ALIGNED: &str = "-Wl,-z,max-page-size=0x200000";

/// Whether it can be tested here; else that is said.
fn can() -> bool {
    let can = check_code();
    if let Err(e) = &can {
        eprintln!("LEFT OUT, code on huge pages is not tested here: {e}");
    }
    can.is_ok()
}

/// A command with the library in it, and what it reported.
fn with_code(budget: &str, command: &[&str]) -> (Output, Vec<ProcessCode>) {
    let report = tempfile::NamedTempFile::new().expect("a file");
    let mut program = Command::new(command[0]);
    program.args(&command[1..]).env("LD_PRELOAD", library("preload"));
    program.env("LOOKASIDE_CODE", budget).env("LOOKASIDE_CODE_REPORT", report.path());
    let output = program.output().expect("it starts");
    let text = std::fs::read_to_string(report.path()).expect("text");
    (output, text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

fn text(output: &Output) -> String {
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn code_lies_on_huge_pages_and_does_what_it_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile_with(folder.path(), "large", LARGE, &[]).filter(|_| can()) else { return };
    let (alone, none) =
        (Command::new(&program).arg("tell").output().expect("it starts"), "file\nsmall\nsmall\nsmall\n");
    assert!(text(&alone).starts_with(none), "{}", text(&alone));
    let (output, report) = with_code("all", &[&program, "tell"]);
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(7), "memory\nhuge\nsmall\nsmall\n3\nchild 1\n"));
    let [told] = &report[..] else { panic!("{report:?}") };
    assert_eq!((told.program.as_str(), told.obstacle, told.by_file), ("large", None, 0));
    assert!(told.windows >= 3 && told.by_copy == told.windows, "{told:?}");
    assert_eq!(told.moved.iter().map(|(_, bytes)| bytes).sum::<u64>(), u64::from(told.by_copy) << 21);
    assert!(told.outside_bytes + (u64::from(told.windows) << 21) == told.code_bytes, "{told:?}");
    // As many as are asked for.
    let (output, report) = with_code("1", &[&program]);
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(7), "3\nchild 1\n"));
    assert_eq!((report[0].by_copy, report[0].windows), (1, told.windows.max(report[0].windows)));
}

#[test]
fn real_programs_put_out_what_they_do_without() {
    if !can() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    same_as_bare(folder.path(), 20_000, &["all", "1"], |budget, command| with_code(budget, command).0);
}

#[test]
fn a_plans_weights_say_which_windows_come_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile_with(folder.path(), "large", LARGE, &[ALIGNED]).filter(|_| can()) else { return };
    let weights = folder.path().join("weights");
    let path = Path::new(&program).canonicalize().expect("a path");
    let run = |lines: &str| {
        std::fs::write(&weights, lines).expect("written");
        let report = tempfile::NamedTempFile::new().expect("a file");
        let mut start = Command::new(&program);
        start.env("LD_PRELOAD", library("preload")).env("LOOKASIDE_CODE", "1");
        start.env("LOOKASIDE_CODE_REPORT", report.path()).env("LOOKASIDE_CODE_WEIGHTS", &weights);
        assert_eq!(start.output().expect("it starts").status.code(), Some(7));
        serde_json::from_str::<ProcessCode>(&std::fs::read_to_string(report.path()).expect("text")).expect("JSON")
    };
    // By offset in the file; the code begins at 2 MiB.
    let line = |weight: u64, mib: u64| {
        lookaside_runtime::hugepages::code_weights_line(weight, mib << 20, 1 << 20, &path.to_string_lossy())
    };
    let second = run(&[line(5, 2), line(9, 4), line(3, 6)].concat());
    let third = run(&[line(5, 2), line(3, 4), line(9, 6)].concat());
    assert_eq!((second.by_copy, third.by_copy), (1, 1));
    // Addresses differ from run to run, but not where in 8 MiB they are: windows follow one another.
    assert_ne!(second.moved[0].0, third.moved[0].0);
    assert_eq!(run(&line(9, 900)).by_copy, 0, "nothing of it is there");
    let absent = run("no weights\n");
    assert_eq!((absent.made(), absent.obstacle), (0, None));
}

#[test]
fn what_forbids_it_leaves_the_program_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile_with(folder.path(), "large", LARGE, &[]).filter(|_| can()) else { return };
    let launch = compile(folder.path(), "launch", LAUNCH).expect("a compiler");
    let check = |name: &str, command: &[&str]| {
        let (output, report) = with_code("all", command);
        if output.status.code() == Some(99) {
            return eprintln!("LEFT OUT: the system can't set {name}");
        }
        assert_eq!((output.status.code(), text(&output).as_str()), (Some(7), "3\nchild 1\n"), "{name}");
        let told = report.iter().find(|process| process.windows > 0).unwrap_or_else(|| panic!("{name}: {report:?}"));
        assert_eq!((told.made(), told.obstacle.map(CodeObstacle::name)), (0, Some(name)), "{told:?}");
    };
    for name in ["seccomp", "switched-off", "not-executable", "no-copy"] {
        check(name, &[&launch, name, &program]);
    }
    // A filter that is known to let all calls through, as a container's.
    let report = tempfile::NamedTempFile::new().expect("a file");
    for (known, made) in [("1", true), ("2", false)] {
        let mut start = Command::new(&launch);
        start.args(["seccomp", &program]).env("LD_PRELOAD", library("preload")).env("LOOKASIDE_CODE", "all");
        start.env("LOOKASIDE_CODE_REPORT", report.path()).env("LOOKASIDE_CODE_FILTERS", known);
        if start.output().expect("it starts").status.code() == Some(99) {
            break;
        }
        let lines = std::fs::read_to_string(report.path()).expect("text");
        let told: ProcessCode = serde_json::from_str(lines.lines().next_back().expect("a line")).expect("JSON");
        assert_eq!((told.made() > 0, told.obstacle.is_none()), (made, made), "{told:?}");
    }
    for (name, flags) in [("threads", &["-shared", "-fPIC"][..]), ("changed", &["-shared", "-fPIC", "-DCHANGES"])] {
        let meddler = compile_with(folder.path(), &format!("lib{name}.so"), MEDDLES, flags).expect("a compiler");
        let meddled = compile_with(folder.path(), &format!("with_{name}"), LARGE, &["-Wl,--no-as-needed", &meddler]);
        check(name, &[&meddled.expect("a compiler")]);
    }
}

/// A control group with a limit of 40 MiB, of which a sixteenth holds one window.
struct LimitedGroup(std::path::PathBuf);

impl LimitedGroup {
    fn new() -> Option<Self> {
        let name = format!("lookaside-code-{}", std::process::id());
        let versions = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        versions.into_iter().find_map(|(folder, limit)| {
            // Where the file is none of the kernel's, there is no such hierarchy.
            let group = Self(Path::new(folder).join(&name));
            std::fs::create_dir(&group.0).ok()?;
            let limit = group.0.join(limit);
            (limit.exists() && std::fs::write(limit, "41943040").is_ok()).then_some(group)
        })
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_control_groups_limit_leaves_room_for_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile_with(folder.path(), "large", LARGE, &[ALIGNED]).filter(|_| can()) else { return };
    let Some(group) = LimitedGroup::new() else { return eprintln!("LEFT OUT: no control group of memory can be made") };
    let script = format!("echo $$ > {}/cgroup.procs; exec {program}", group.0.display());
    let (output, report) = with_code("all", &["sh", "-c", &script]);
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(7), "3\nchild 1\n"));
    let told = report.iter().find(|process| process.windows > 0).expect("a report");
    assert_eq!((told.by_copy, told.obstacle), (1, Some(CodeObstacle::MemoryLimit)), "{told:?}");
}

#[test]
fn a_file_whose_cache_can_have_huge_pages_keeps_its_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile_with(folder.path(), "large", LARGE, &[ALIGNED]).filter(|_| can()) else { return };
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        return eprintln!("LEFT OUT: no file system in memory");
    };
    let copy = memory.path().join("large");
    std::fs::copy(&program, &copy).expect("copied");
    if Command::new(&copy).output().is_err() {
        return eprintln!("LEFT OUT: /dev/shm executes nothing");
    }
    let (output, report) = with_code("all", &[&copy.to_string_lossy(), "tell"]);
    let said = text(&output);
    assert_eq!((output.status.code(), report[0].obstacle), (Some(7), None));
    assert!(said.ends_with("3\nchild 1\n"), "{said}");
    if report[0].by_file == 0 {
        return eprintln!("LEFT OUT: the kernel makes no huge pages of this file system's files");
    }
    assert!(said.starts_with("file\n") && said.contains("huge"), "{said}");
    assert_eq!((report[0].by_file, report[0].by_copy, &report[0].moved[..]), (report[0].windows, 0, &[][..]));
}

#[test]
fn a_wrong_setting_is_said_and_the_program_runs() {
    let (output, report) = with_code("some", &["sh", "-c", "exit 3"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), report.len()), (Some(3), 0));
    assert!(said.starts_with("lookaside: LOOKASIDE_CODE: `some`: want all, or a number"), "{said}");
    assert_eq!(said.lines().count(), 1);
}
