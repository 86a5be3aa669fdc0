//! `lookaside hugepages run --text`, `hugepages plan --text` and the variant of `compare`, on real programs; no time is
//! asserted.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use lookaside_runtime::hugepages::check_code;

use crate::common::{assert_bad_input, compile, have_valgrind, json, lookaside, run, stderr, stdout};

/// A function on each of 2,000 pages of code, called in turns; ends with code 7. With an argument it tells that it has
/// begun, and ends when its input does.
const PAGES: &str = r##"
#include <stdio.h>
#include <unistd.h>
__asm__(".text\n .p2align 12\n .globl pages\n pages:\n .rept 2000\n .p2align 12\n mov $1, %eax\n ret\n .endr\n"
        ".globl last_page\n .type last_page, @function\n last_page: mov $2, %eax\n ret\n .size last_page, 6\n .p2align 12\n");
extern char pages[];
int last_page(void);
int main(int argc, char **argv) {
    unsigned sum = 0;
    for (unsigned k = 0; k < 40000; k++) sum += ((unsigned (*)(void))(pages + (k * 7919 % 2000) * 4096))();
    printf("%u\n", sum + last_page());
    fflush(stdout);
    char c;
    if (argc > 1) while (read(0, &c, 1) == 1);
    return 7;
}
"##;

const ALIGNED: &str = "-Wl,-z,max-page-size=0x200000";

/// The program; `None`, said aloud, where it can't be built or there is no such thing as code on huge pages.
fn program(folder: &Path) -> Option<PathBuf> {
    if let Err(e) = check_code() {
        eprintln!("LEFT OUT, code on huge pages is not tested here: {e}");
        return None;
    }
    compile(folder, "pages", PAGES, &["-O1", "-w", ALIGNED])
}

#[test]
fn a_program_runs_with_its_code_on_huge_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(folder.path()) else { return };
    for (text, made) in [("--text", 3), ("--text=2", 2), ("--text=99", 3)] {
        let out = lookaside().args(["hugepages", "run", text]).arg(&program).output().expect("it runs");
        assert_eq!((out.status.code(), stdout(&out)), (Some(7), "40002\n".into()), "{}", stderr(&out));
        let said = stderr(&out);
        assert!(said.starts_with(&format!("lookaside: code on huge pages: pages: {made} of 3 windows (")), "{said}");
        assert!(said.contains("of code lies outside whole windows") && said.lines().count() == 1, "{said}");
    }
    // Programs that it starts have it too, and those without whole windows are counted.
    let script = format!("{0}; {0}; exit 3", program.display());
    let out = run(&["hugepages", "run", "--text", "sh", "-c", &script]);
    let said = stderr(&out);
    assert_eq!((out.status.code(), stdout(&out)), (Some(3), "40002\n40002\n".into()));
    assert!(said.contains("pages (2 processes): 3 of 3 windows"), "{said}");
    assert!(said.contains("\nlookaside:   1 other process has no whole window"), "{said}");
    // With memory on huge pages as well.
    let out =
        lookaside().args(["hugepages", "run", "--text", "--budget", "4"]).arg(&program).output().expect("it runs");
    if out.status.code() != Some(2) {
        let said = stderr(&out);
        assert!(
            said.contains("lookaside: huge pages: ") && said.contains("lookaside: code on huge pages: pages"),
            "{said}"
        );
    }
}

#[test]
fn what_cannot_be_is_said_before_the_program_runs() {
    for (text, part) in
        [("--text=0", "want all, or a number"), ("--text=few", "`few`"), ("--text=", "want all, or a number")]
    {
        let out = run(&["hugepages", "run", text, "true"]);
        assert!(out.status.code() == Some(2) && stderr(&out).contains(part), "{text}: {}", stderr(&out));
    }
    let out = run(&["compare", "--variants", "text:none", "true"]);
    assert_bad_input(&out, &["variants: text:none: `none`: want all, or a number"]);
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(folder.path(), "static", "int main(void) { return 0; }", &["-static"]) else { return };
    if check_code().is_err() {
        return;
    }
    for command in [&["hugepages", "run", "--text"][..], &["compare", "--variants", "text"]] {
        let out = lookaside().args(command).arg(&program).output().expect("it runs");
        assert_bad_input(&out, &["is linked statically: nothing can be loaded into it", "tmpfs"]);
    }
    let plan = folder.path().join("plan.toml");
    for (text, part) in [
        ("plan = \"code\"\n", "missing field"),
        ("plan = \"code\"\nbudget = 0.5\n", "budget"),
        ("plan = \"code\"\nx = 1\n", "unknown field"),
    ] {
        std::fs::write(&plan, text).expect("written");
        let out = lookaside().args(["hugepages", "run", "--plan"]).arg(&plan).arg("true").output().expect("it runs");
        assert_bad_input(&out, &["plan.toml", part]);
    }
}

#[test]
fn code_on_huge_pages_is_a_variant() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(folder.path()) else { return };
    // Its exit code is a failure to compare: one that ends well.
    let script = format!("{} || true", program.display());
    let arguments = ["compare", "--variants", "base,text,text:1", "--runs", "2", "--json", "sh", "-c", &script];
    let out = run(&arguments);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let found = json(&out);
    let names = |at: usize| found["variants"][at]["name"].as_str().expect("a name").to_string();
    assert_eq!([0, 1, 2].map(names), ["base", "text", "text:1"]);
    let code = |at: usize| found["variants"][at]["runs"][0]["code"].clone();
    assert!(code(0).is_null());
    for (at, made) in [(1, 3), (2, 1)] {
        assert_eq!(
            (&code(at)["windows"], &code(at)["by_copy"], &code(at)["helped"]),
            (&3.into(), &made.into(), &1.into())
        );
    }
    let notes = found["notes"].to_string();
    assert!(notes.contains("text: 3 of 3 whole windows of 2 MiB of code put on huge pages in a run"), "{notes}");
    assert!(notes.contains("text:1: 1 of 3 whole windows"), "{notes}");
    let out = run(&["compare", "--variants", "text", "--runs", "1", "--json", "true"]);
    let notes = json(&out)["notes"].to_string();
    assert!(notes.contains("text: no code was put on huge pages: no mapping of code has a whole window"), "{notes}");
}

/// While it runs, and for those that look when it has ended.
#[test]
fn profilers_find_a_map_of_the_code_that_was_copied() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(folder.path()) else { return };
    let mut command = lookaside();
    command.args(["hugepages", "run", "--text"]).arg(&program).arg("wait");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("its output");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    drop(child.stdin.take());
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(7));
    let path = said.split_once("map for profilers: ").and_then(|(_, rest)| rest.split_once(' '));
    let (path, _) = path.unwrap_or_else(|| panic!("{said}"));
    let map = std::fs::read_to_string(path).expect("the map");
    std::fs::remove_file(path).expect("ours");
    assert!(path.starts_with("/tmp/perf-") && path.ends_with(".map"), "{path}");
    // 2,000 pages are the last of the code but for this one; of 8 MiB, whole windows have 6.
    assert!(map.lines().all(|line| line.split(' ').count() >= 3), "{map}");
    assert!(map.contains(" pages\n") || map.contains(" main\n"), "{map}");
}

#[test]
fn a_plan_chooses_windows_of_code_by_the_model_and_is_applied() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(folder.path()).filter(|_| have_valgrind()) else { return };
    let plan = folder.path().join("code.toml");
    let mut planned = lookaside();
    planned.args(["hugepages", "plan", "--text", "--machine", "skylake", "--budget", "2", "-o"]).arg(&plan);
    let result = folder.path().join("code.json");
    let out = planned.arg(format!("--json={}", result.display())).arg(&program).output().expect("it runs");
    assert_eq!(out.status.code(), Some(1), "the program ends with 7: {}", stderr(&out));
    assert!(stdout(&out).contains("Code to put on huge pages") && stdout(&out).contains("pages"), "{}", stdout(&out));
    let text = std::fs::read_to_string(&result).expect("a result");
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&found["schema"], &found["plan"]), (&"lookaside-code-plan/1".into(), &"code".into()));
    let (window_cycles, base) = (found["window_cycles"].as_f64(), found["base_cycles"].as_f64());
    assert!(window_cycles > base.map(|all| all / 3.0), "most of translation is of this code: {found}");
    let chosen = ["window", "later"].map(|list| found[list].as_array().map_or(0, Vec::len));
    assert_eq!(chosen.iter().sum::<usize>(), 2, "{found}");
    let text = std::fs::read_to_string(&plan).expect("a plan");
    assert!(text.starts_with("plan = \"code\"\n") && text.contains("/pages\"\n"), "{text}");
    let out = lookaside().args(["hugepages", "run", "--plan"]).arg(&plan).arg(&program).output().expect("it runs");
    assert_eq!((out.status.code(), stdout(&out)), (Some(7), "40002\n".into()));
    assert!(stderr(&out).starts_with("lookaside: code on huge pages: pages: 2 of 3 windows"), "{}", stderr(&out));
    let script = format!("{} || true", program.display());
    let variant = format!("text:{}", plan.display());
    let out = run(&["compare", "--variants", &variant, "--runs", "1", "--json", "sh", "-c", &script]);
    let code = json(&out)["variants"][1]["runs"][0]["code"].clone();
    assert_eq!((&code["by_copy"], &code["windows"]), (&2.into(), &3.into()));
    let out = run(&["compare", "--variants", "text:absent.toml", "true"]);
    assert_bad_input(&out, &["absent.toml"]);
    // As many as are asked for, by the plan's weights.
    let mut command = lookaside();
    let out =
        command.args(["hugepages", "run", "--text=1", "--plan"]).arg(&plan).arg(&program).output().expect("it runs");
    assert!(stderr(&out).starts_with("lookaside: code on huge pages: pages: 1 of 3 windows"), "{}", stderr(&out));
    // A trace without fetches tells nothing of code.
    let trace = folder.path().join("data.lk");
    std::fs::write(&trace, " L 1000,8\n S 2000,8\n").expect("written");
    let mut command = lookaside();
    command.args(["hugepages", "plan", "--text", "--machine", "skylake", "--budget", "2", "--trace"]).arg(&trace);
    assert_bad_input(&command.output().expect("it runs"), &["no fetches of instructions"]);
}
