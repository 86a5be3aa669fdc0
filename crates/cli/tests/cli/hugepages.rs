//! `lookaside hugepages`, `run --hugepages` and the variant of `compare`, on real programs; no time is asserted.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use lookaside_runtime::hugepages::{collapse_side, CollapseSide};

use crate::common::{assert_bad_input, compile, have_valgrind, json, lookaside, run, stderr, stdout};

/// 64 MiB in small pages, of which windows 5, 11, 17 and 23 get 15 of 16 reads; ends when its input does, and says the
/// sum of what it has. Pages are small at first whatever the system's setting.
const SKEWED: &str = r##"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
enum { WINDOW = 2 << 20, WINDOWS = 32 };
static volatile int over;
static volatile uint64_t last;
static void *ended(void *none) { char c; while (read(0, &c, 1) == 1); over = 1; return none; }
/* Each read waits for the one before. */
__attribute__((noinline)) static uint64_t reads(const uint64_t *a, uint64_t s) {
    for (int k = 0; k < 100000; k++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t r = s >> 33, window = r & 15 ? 5 + 6 * (r >> 4 & 3) : (r >> 4) % WINDOWS;
        s ^= a[(window << 18) + (s >> 20 & ((1 << 18) - 1))];
    }
    return s;
}
int main(void) {
    char *at = mmap(0, (size_t)(WINDOWS + 1) * WINDOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 3;
    int off = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    if (!off) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    uint64_t *a = (uint64_t *)(((uintptr_t)at + WINDOW - 1) & ~(uintptr_t)(WINDOW - 1));
    size_t words = WINDOW / 8, all = WINDOWS * words;
    for (size_t i = 0; i < all; i++) a[i] = i * 0x9e3779b97f4a7c15ull;
    if (!off) prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    pthread_t reader;
    if (pthread_create(&reader, 0, ended, 0)) return 4;
    printf("%p\n", (void *)a);
    fflush(stdout);
    uint64_t s = 1, x = 0;
    while (!over) last = s = reads(a, s);
    for (size_t i = 0; i < all; i++) x = (x << 5 | x >> 59) ^ a[i];
    printf("%llx\n", (unsigned long long)x);
    return 0;
}
"##;

/// The sum that it says at the end.
pub fn sum() -> String {
    let words = 32u64 * (2 << 20) / 8;
    let sum = (0..words).fold(0u64, |sum, i| sum.rotate_left(5) ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    format!("{sum:x}\n")
}

pub fn program(folder: &std::path::Path) -> Option<std::path::PathBuf> {
    compile(folder, "skewed", SKEWED, &["-O2", "-pthread"])
}

/// Starts it; gives where its windows begin, and its output from there.
pub fn start(command: &mut Command) -> (Child, u64, impl std::io::BufRead) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut said = std::io::BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("where it has its windows");
    let at = u64::from_str_radix(line.trim().trim_start_matches("0x"), 16).expect("an address");
    (child, at, said)
}

/// Starts one that ends with code 7, lets it have four windows huge, and has it end: what the command said.
pub fn told_of_four(command: &mut Command) -> String {
    let (mut child, _, mut said) = start(command);
    until_huge(&child, 4 * (2 << 20));
    drop(child.stdin.take());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut said, &mut rest).expect("its sum");
    assert_eq!(rest, sum());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(7));
    stderr(&output)
}

/// Whether huge pages can be made of other processes' memory here; says so where not.
pub fn can_collapse() -> bool {
    let way = collapse_side();
    if way != Ok(CollapseSide::Outside) {
        eprintln!("LEFT OUT, huge pages are not made from outside here: {way:?}");
    }
    way == Ok(CollapseSide::Outside)
}

/// Bytes in huge pages; 0 also where the process is about to begin or to end.
pub fn huge_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}

#[test]
fn the_hot_windows_of_a_running_program_become_huge() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(folder.path()).filter(|_| can_collapse()) else { return };
    let (mut child, at, mut said) = start(&mut Command::new(program));
    let before = huge_bytes(child.id());
    let pid = child.id().to_string();
    let choose = |more: &[&str]| {
        let all = [&["hugepages", "apply", "--pid", &pid, "--budget", "4", "--seconds", "1", "--json"], more].concat();
        let output = run(&all);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json(&output)
    };
    let windows = |found: &serde_json::Value| {
        let rows = found["rows"].as_array().expect("a list");
        let mut windows: Vec<u64> =
            rows.iter().map(|row| (row["start"].as_u64().expect("an address") - at) >> 21).collect();
        windows.sort_unstable();
        windows
    };
    let hot = [5, 11, 17, 23];
    let dry = choose(&["--dry-run"]);
    assert_eq!((&dry["schema"], &dry["dry_run"]), (&"lookaside-hugepages/1".into(), &true.into()));
    assert_eq!(huge_bytes(child.id()), before);
    let sampled = dry["by"] == "sample";
    if sampled {
        assert_eq!(windows(&dry), hot, "{dry}");
    } else {
        eprintln!("LEFT OUT, sampling is not tested here: {}", dry["no_samples"]);
    }
    let found = choose(&[]);
    assert_eq!(huge_bytes(child.id()), before + 4 * (2 << 20));
    if sampled {
        assert_eq!(windows(&found), hot, "{found}");
        let share = found["chosen_weight"].as_f64().expect("a number") / found["weight"].as_f64().expect("a number");
        assert!(share > 0.5, "{found}");
        assert!(found["held_out"].as_f64() > Some(0.5), "{found}");
    }
    for row in found["rows"].as_array().expect("a list") {
        assert_eq!((&row["tried"]["outcome"], &row["huge_at_end"]), (&"collapsed".into(), &true.into()), "{row}");
    }
    // As text, by the other way of seeing: what is told, and how it is weighed, is said.
    let output = run(&["hugepages", "apply", "--pid", &pid, "--budget", "2", "--seconds", "1", "--by", "referenced"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in
        ["referenced bits in 1 interval", "one sum per mapping", "chosen   2 of ", "Made 2 of 2 chosen windows huge"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(huge_bytes(child.id()), before + 6 * (2 << 20));
    drop(child.stdin.take());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut said, &mut rest).expect("its sum");
    assert_eq!((rest, child.wait().expect("it ends").code()), (sum(), Some(0)));
}

/// `nobody`, everywhere.
const NOBODY: u32 = 65534;

/// A folder that `nobody` may look into, where its rights can be tested here; says so where not.
pub fn folder_for_nobody() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("a mode");
    if !rustix::process::geteuid().is_root() || !can_collapse() {
        eprintln!("LEFT OUT: rights are tested by root only");
        return None;
    }
    match as_nobody(&["--version"]).output() {
        Ok(output) if output.status.success() => Some(folder),
        other => {
            eprintln!("LEFT OUT: nobody may not start the command here: {other:?}");
            None
        }
    }
}

pub fn as_nobody(arguments: &[&str]) -> Command {
    let mut command = lookaside();
    command.args(arguments).uid(NOBODY).gid(NOBODY).stderr(Stdio::piped());
    command
}

/// Until the program, or what it starts, has so much in huge pages.
pub fn until_huge(child: &Child, bytes: u64) {
    let huge = || lookaside_runtime::bake::family(child.id()).into_iter().skip(1).map(huge_bytes).sum::<u64>();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while huge() < bytes {
        assert!(std::time::Instant::now() < end, "no huge pages within a minute");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(huge(), bytes, "the budget is kept");
}

pub const FROM_INSIDE: &str = "; from inside (no permission from outside)\n";

#[test]
fn who_cannot_be_helped_is_named_in_a_line() {
    let choose = |pid: &str| run(&["hugepages", "apply", "--pid", pid, "--budget", "1", "--seconds", "1"]);
    assert_bad_input(&choose("4194305"), &["process 4194305", "there is none"]);
    let (budget, seconds) = (["--budget", "0"], ["--seconds", "0"]);
    for bad in [budget, seconds] {
        let output = run(&[&["hugepages", "apply", "--pid", "1", "--budget", "1"], &bad[..]].concat());
        assert_eq!(output.status.code(), Some(2));
    }
    if !rustix::process::geteuid().is_root() || !can_collapse() {
        return eprintln!("LEFT OUT: rights are tested by root only");
    }
    let sleeper = |uid: Option<u32>| {
        let mut command = Command::new("sleep");
        command.arg("600");
        if let Some(uid) = uid {
            command.uid(uid).gid(uid);
        }
        command.spawn().expect("sleep is everywhere")
    };
    for (uid, part) in [(None, "another user's"), (Some(NOBODY), "CAP_SYS_NICE")] {
        let mut other = sleeper(uid);
        let output = lookaside()
            .args(["hugepages", "apply", "--pid", &other.id().to_string(), "--budget", "1"])
            .uid(NOBODY)
            .gid(NOBODY)
            .output();
        other.kill().expect("it runs");
        other.wait().expect("it ends");
        match output {
            Ok(output) => assert_bad_input(&output, &[part, "needs root"]),
            Err(e) => eprintln!("LEFT OUT: nobody may not start the command here: {e}"),
        }
    }
}

#[test]
fn a_program_is_run_with_its_hot_windows_huge() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(folder.path()).filter(|_| can_collapse()) else { return };
    // Its family too: the shell has none of the memory.
    let mut command = lookaside();
    command
        .args(["hugepages", "run", "--budget=4", "--", "sh", "-c", "\"$0\"; exit 7"])
        .arg(program)
        .stderr(Stdio::piped());
    let told = told_of_four(&mut command);
    assert!(told.starts_with("lookaside: huge pages: 4 made, 4 in use when last checked, budget 4; "), "{told}");
    assert!(told.ends_with("; from outside\n"), "{told}");
}

#[test]
fn exit_codes_and_what_is_bad() {
    if !can_collapse() {
        return;
    }
    let output = run(&["hugepages", "run", "--budget=4", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.code(), Some(128 + 9));
    assert!(stderr(&output).starts_with("lookaside: huge pages: no process was sampled"), "{}", stderr(&output));
    assert_eq!(run(&["hugepages", "run", "--budget=4", "--", "/nonexistent/program"]).status.code(), Some(127));
    for wrong in [&["--budget", "0"][..], &["--budget", "some"], &["--budget", "1", "--plan", "plan.toml"], &[]] {
        assert_eq!(run(&[&["hugepages", "run"], wrong, &["--", "true"]].concat()).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn chosen_huge_pages_are_a_variant() {
    if !can_collapse() {
        return;
    }
    let variants = ["compare", "--variants", "base,hugepages:auto:4", "--runs", "1", "--warmup", "0", "--json", "--"];
    let output = run(&[&variants[..], &["sh", "-c", "exit 0"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = json(&output);
    let runs = |n: usize| &found["variants"][n]["runs"][0]["hugepages"];
    assert_eq!((&found["variants"][1]["name"], runs(0)), (&"hugepages:auto:4".into(), &serde_json::Value::Null));
    assert_eq!((&runs(1)["budget"], &runs(1)["collapsed"]), (&4.into(), &0.into()));
    let notes = found["notes"].as_array().expect("a list");
    assert!(notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains("0 windows"))), "{notes:?}");
}

/// A plan of a workload's stream is one of its native run, where nothing is said of huge pages; and that run gets them
/// by whoever gives or makes them.
#[test]
fn the_papers_programs_are_compared_by_plan() {
    if !can_collapse() || !thp_is_given() {
        return eprintln!("LEFT OUT: huge pages can't be had here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, plan) = (folder.path().join("t.lkt"), folder.path().join("plan.toml"));
    let (trace, plan) = (trace.to_str().expect("text"), plan.to_str().expect("text"));
    let program = assert_cmd::cargo::cargo_bin("lookaside").to_string_lossy().into_owned();
    for arguments in [
        &["lab", "workload", "gups", "--size", "64M", "--record", trace][..],
        &["hugepages", "plan", "--budget", "4", "--machine", "skylake", "-o", plan, "--trace", trace],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    // Beyond the first look, whatever the machine.
    let task = ["lab", "workload", "gups", "--size", "64M", "--rounds", "200", "--pages", "asis"];
    let compare = |variants: &str| {
        let compare = ["compare", "--variants", variants, "--runs", "1", "--warmup", "1", "--json", "--", &program];
        let output = run(&[&compare[..], &task].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json(&output)
    };
    // glibc 2.36 heeds its tunable in a part of the runs only.
    let asked = (0..20).any(|_| compare("base,thp")["variants"][1]["pages"]["huge_bytes"].as_u64() >= Some(48 << 20));
    assert!(asked, "thp had no huge pages in any of 20 runs");
    let found = compare(&format!("base,hugepages:{plan},hugepages:auto:4"));
    let [base, planned, chosen] = [0, 1, 2].map(|n| &found["variants"][n]);
    assert_eq!(base["pages"]["huge_bytes"], 0, "{found}");
    assert_eq!(planned["name"], format!("hugepages:{plan}"));
    let made = &planned["runs"][0]["planned"];
    assert_eq!(
        (&made["found"], &made["changed"], &made["refused"]),
        (&4.into(), &serde_json::json!({}), &serde_json::json!({}))
    );
    assert_eq!(
        (&planned["runs"][0]["hugepages"], &chosen["runs"][0]["planned"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    let notes = found["notes"].as_array().expect("a list");
    let note = format!("hugepages:{plan}: {} of 4 windows found of the plan made huge", made["collapsed"]);
    assert!(notes.iter().any(|text| text.as_str().is_some_and(|text| text.starts_with(&note))), "{notes:?}");
}

/// Whether the system gives huge pages to who asks.
fn thp_is_given() -> bool {
    let word = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    word.is_ok_and(|text| !text.contains("[never]"))
}

#[test]
fn a_plan_that_cannot_be_read_is_no_variant() {
    let output = run(&["compare", "--variants", "base,hugepages:/nonexistent/plan.toml", "--", "true"]);
    assert_bad_input(&output, &["/nonexistent/plan.toml"]);
}

/// 32 MiB (40 with an argument) of which 8 are read; waits for the end of its input.
const PLANNED: &str = r##"
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int c, char **v) {
    size_t bytes = (size_t)(c > 1 ? 40 : 32) << 20;
    uint64_t *a = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), s = 1, x = 0;
    if (a == MAP_FAILED) return 3;
    madvise(a, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < bytes / 8; i += 512) a[i] = i;
    madvise(a, bytes, MADV_HUGEPAGE);
    for (int k = 0; k < 100000; k++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        x += a[((s >> 33) % 3 ? (8 << 17) : 0) + (s >> 20) % (4 << 17)];
    }
    printf("%llx\n", (unsigned long long)x);
    fflush(stdout);
    char b;
    while (read(0, &b, 1) == 1) x++;
    return 0;
}
"##;

#[test]
fn a_plan_is_applied_to_the_program_it_was_made_for_and_to_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    if !can_collapse() || !have_valgrind() {
        return;
    }
    let Some(program) = compile(folder.path(), "planned", PLANNED, &[]) else { return };
    let plan = folder.path().join("plan.toml");
    let arguments = ["hugepages", "plan", "--budget", "4", "--machine", "skylake", "-o"];
    let output = lookaside().args(arguments).arg(&plan).arg("--").arg(&program).stdin(Stdio::null()).output();
    let output = output.expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let as_nobody_too = folder_for_nobody().is_some();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("a mode");
    for (uid, from) in [(None, "; from outside\n"), (Some(NOBODY), FROM_INSIDE)] {
        if uid.is_some() && !as_nobody_too {
            break;
        }
        let apply = || {
            let mut command = lookaside();
            command.args(["hugepages", "run", "--plan"]).arg(&plan).arg("--").arg(&program);
            if let Some(uid) = uid {
                command.uid(uid).gid(uid);
            }
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            command
        };
        let mut child = apply().spawn().expect("it starts");
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let huge = || lookaside_runtime::bake::family(child.id()).get(1).map_or(0, |&pid| huge_bytes(pid));
        while huge() < 4 * (2 << 20) {
            assert!(std::time::Instant::now() < end, "no huge pages within a minute");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        // The kernel's own thread (khugepaged) may have made them, before the first look.
        std::thread::sleep(std::time::Duration::from_millis(800));
        drop(child.stdin.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0));
        // A run of windows that lies otherwise to the borders of 2 MiB has one more.
        let told = stderr(&output);
        assert!(
            told.starts_with("lookaside: huge pages: ") && told.contains(" windows found of the plan made; "),
            "{told}"
        );
        assert!(!told.contains("not as planned") && !told.contains("refused") && told.contains(from), "{told}");

        let mut child = apply().arg("larger").spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(800)); // some looks; without any nothing is said, below
        drop(child.stdin.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0));
        let told = stderr(&output);
        assert!(told.starts_with("lookaside: huge pages: 0 of 0 windows"), "{told}");
        assert!(told.lines().count() == 1 || told.contains("of 32768 KiB: the program has 0 regions"), "{told}");
    }
    let output = run(&["hugepages", "run", "--plan=/nonexistent/plan.toml", "--", "true"]);
    assert_bad_input(&output, &["/nonexistent/plan.toml"]);
}
