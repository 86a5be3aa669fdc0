//! `hugepages run` and the variant of `compare` without any right: a preloaded library makes the huge pages.

use std::process::{Command, Stdio};

use crate::common::{assert_bad_input, compile, json, lookaside, stderr};
use crate::hugepages::{as_nobody, folder_for_nobody, program, told_of_four, FROM_INSIDE};

#[test]
fn without_rights_hot_windows_are_made_huge_from_inside() {
    let Some(folder) = folder_for_nobody() else { return };
    let Some(program) = program(folder.path()) else { return };
    let program = program.to_string_lossy();
    let watched = ["hugepages", "run", "--budget=4", "--", "sh", "-c", "\"$0\"; exit 7", &program];
    // With a baker beside them: one command runs the other, either way.
    let own = as_nobody(&[]).get_program().to_string_lossy().into_owned();
    let bake = ["bake", "run", "--settings=prefetch,sleep=1ms"];
    let within = [&watched[..4], &[&own], &bake[..], &watched[4..]].concat();
    let around = [&bake[..], &[&own], &watched[..]].concat();
    let mut commands = vec![as_nobody(&watched), as_nobody(&within), as_nobody(&around)];
    // Root of a user namespace has the right's name and not the right.
    if Command::new("unshare").args(["-r", "true"]).status().is_ok_and(|status| status.success()) {
        let mut command = Command::new("unshare");
        command.arg("-r").arg(lookaside().get_program()).args(watched).stderr(Stdio::piped());
        commands.push(command);
    } else {
        eprintln!("LEFT OUT: no user namespace can be made here");
    }
    for mut command in commands {
        let told = told_of_four(&mut command);
        let line = told.split_inclusive('\n').find(|line| line.contains("huge pages")).expect("a line");
        assert!(line.starts_with("lookaside: huge pages: 4 made, 4 in use when last checked, budget 4; "), "{told}");
        assert!(line.ends_with(FROM_INSIDE) && !told.contains("refused"), "{told}");
    }
}

#[test]
fn without_rights_programs_that_take_no_library_are_named() {
    let Some(folder) = folder_for_nobody() else { return };
    let Some(program) = compile(folder.path(), "still", "int main(void) { return 0; }\n", &["-static"]) else { return };
    let program = program.to_string_lossy();
    let needs = ["statically", "need root or CAP_SYS_NICE"];
    let output = as_nobody(&["hugepages", "run", "--budget=1", "--", &program]).output().expect("it starts");
    assert_bad_input(&output, &needs);
    let compare = ["compare", "--variants", "hugepages:auto:1", "--runs", "1", "--", &program];
    assert_bad_input(&as_nobody(&compare).output().expect("it starts"), &needs);
    // What a program starts is found out when it is looked at, and left alone.
    let unfit = compile(folder.path(), "rests", RESTS, &["-static"]).expect("a compiler");
    let arguments = ["hugepages", "run", "--budget=1", "--", "sh", "-c", "\"$0\"; exit 3", &unfit.to_string_lossy()];
    let output = as_nobody(&arguments).output().expect("it starts");
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("CAP_SYS_NICE") && told.contains("take a preloaded library"), "{told}");
    // The library itself.
    let mut command = as_nobody(&["hugepages", "run", "--budget=1", "--", "true"]);
    let output = command.env("LOOKASIDE_PRELOAD", "/nonexistent.so").output().expect("it starts");
    assert_bad_input(&output, &["LOOKASIDE_PRELOAD=/nonexistent.so"]);
}

#[test]
fn without_rights_chosen_huge_pages_are_a_variant() {
    let Some(_folder) = folder_for_nobody() else { return };
    let perl = "my $x = 'a' x (64 << 20); select(undef, undef, undef, 3)";
    let variants = ["compare", "--variants", "hugepages:auto:4", "--runs", "1", "--warmup", "0", "--json", "--"];
    let output = as_nobody(&[&variants[..], &["perl", "-e", perl]].concat()).stdout(Stdio::piped()).output();
    let output = output.expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = json(&output);
    assert_eq!(found["variants"][1]["runs"][0]["hugepages"]["way"], "inside", "{found}");
    assert_eq!(found["variants"][1]["runs"][0]["helped"], serde_json::Value::Null);
}

/// Has 32 MiB in small pages for three seconds.
const RESTS: &str = r##"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    char *at = mmap(0, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 4;
    memset(at, 1, 32 << 20);
    usleep(3000000);
    return 0;
}
"##;
