//! The C interface: a C program is compiled against the header and the library, and run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Gets the path of a machine description. No time is asserted: what the counter says depends on the machine; that it
/// answers as the header promises does not.
const PROGRAM: &str = r##"
#include "lookaside_probe.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lookaside_counter *counter;
static size_t acts;
static void act(void *context) {
    *(size_t *)context += 1;
    if (counter && acts == 1) {
        lookaside_misses misses;
        const void *self = &acts;
        assert(lookaside_counter_evicted(counter, 0, 0, 0, 0, &self, 1, &misses, 0, 0) == -1 && errno == EDEADLK);
    }
}

int main(int argc, char **argv) {
    assert(argc == 2);
    assert(strcmp(lookaside_probe_error(), "") == 0);
    assert(!lookaside_counter_open("/nonexistent.toml", 0, 1) && errno == EINVAL);
    assert(strstr(lookaside_probe_error(), "nonexistent"));
    lookaside_counter_close(0);
    assert(lookaside_counter_confusion(0, 0) == -1 && errno == EINVAL);

    counter = lookaside_counter_open(argv[1], 32, 1);
    if (!counter) {
        /* Not the machine of the description, or no machine to measure. */
        assert(errno == EAGAIN || errno == ENOTSUP || errno == ENOMEM);
        assert(*lookaside_probe_error());
        printf("no counter: %s\n", lookaside_probe_error());
        return 0;
    }
    size_t judged[3][4], sum = 0;
    assert(lookaside_counter_confusion(counter, judged) == 0);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            sum += judged[i][j];
    assert(sum > 0);

    enum { PAGES = 20 };
    char *memory = calloc(PAGES + 1, 4096);
    const void *pages[PAGES];
    for (int i = 0; i < PAGES; i++)
        pages[i] = memory + 4096 * i + 64 * i + 63;
    lookaside_misses misses;
    unsigned char verdicts[PAGES];
    double extra[PAGES];
    assert(lookaside_counter_evicted(counter, pages, PAGES, act, &acts, pages, PAGES, &misses, verdicts, extra) == 0);
    assert(acts == 2 * 32 + 16 && misses.rounds == 32);
    size_t kinds[4] = {0};
    for (int i = 0; i < PAGES; i++) {
        assert(verdicts[i] < 4);
        kinds[verdicts[i]]++;
    }
    assert(misses.l1_misses == kinds[LOOKASIDE_L1_MISS] + kinds[LOOKASIDE_STLB_MISS]);
    assert(misses.mixed == kinds[LOOKASIDE_MIXED]);
    assert(lookaside_counter_evicted(counter, 0, 0, 0, 0, pages, PAGES, &misses, 0, 0) == 0);
    assert(lookaside_counter_count(counter, pages, 2, pages, PAGES, &misses, verdicts, extra) == 0);
    assert(lookaside_counter_count(counter, 0, 0, 0, 1, &misses, 0, 0) == -1 && errno == EINVAL);
    assert(lookaside_counter_evicted(counter, pages, 1, 0, 0, pages, 0, &misses, 0, 0) == -1 && errno == EINVAL);
    assert(lookaside_counter_evicted(counter, 0, 1, 0, 0, pages, 1, &misses, 0, 0) == -1 && errno == EINVAL);
    assert(lookaside_counter_evicted(counter, pages, 1, 0, 0, pages, 1, 0, 0, 0) == -1 && errno == EINVAL);
    assert(lookaside_counter_evicted(0, pages, 1, 0, 0, pages, 1, &misses, 0, 0) == -1 && errno == EINVAL);
    assert(strstr(lookaside_probe_error(), "counter"));
    lookaside_counter_close(counter);
    free(memory);
    printf("counted\n");
    return 0;
}
"##;

/// What a static library needs of the system's (`rustc --print native-static-libs`).
const NATIVE: &[&str] = &["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// Where cargo puts a library: beside the tests, or one folder up.
fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path of this program");
    let folders = test.ancestors().skip(1).take(2);
    let mut files = folders.map(|folder| folder.join(name));
    files.find(|file| file.exists()).unwrap_or_else(|| panic!("no {name} beside the tests: see the crate's types"))
}

/// Builds the program with what it is linked with; `None` = there is no C compiler here.
fn build(folder: &Path, name: &str, linked: &[&OsStr]) -> Option<PathBuf> {
    let (source, program) = (folder.join("count.c"), folder.join(name));
    std::fs::write(&source, PROGRAM).expect("a source file");
    let built = Command::new("gcc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-D_POSIX_C_SOURCE=200809L", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg(&source)
        .args(linked)
        .arg("-o")
        .arg(&program)
        .status();
    match built {
        Ok(status) => {
            assert!(status.success(), "the C program does not compile, or does not link with {linked:?}");
            Some(program)
        }
        Err(e) => {
            eprintln!("LEFT OUT: gcc is not installed (apt-get install gcc): {e}");
            None
        }
    }
}

/// Runs it with a machine description.
fn run(folder: &Path, program: &Path) {
    let machine = folder.join("machine.toml");
    let preset = lookaside_machine::preset("ryzen-5900x").expect("a preset");
    std::fs::write(&machine, lookaside_machine::to_toml(&preset)).expect("a machine file");
    let output = Command::new(program).arg(&machine).output().expect("the program can be started");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{complaint}");
    assert!(said.starts_with("counted") || said.starts_with("no counter: "), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_c_program_counts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shared = library("liblookaside_probe.so");
    let path = format!("-Wl,-rpath,{}", shared.parent().expect("a folder").display());
    if let Some(program) = build(folder.path(), "shared", &[shared.as_ref(), path.as_ref()]) {
        run(folder.path(), &program);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_c_program_linked_statically_counts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = library("liblookaside_probe.a");
    let linked: Vec<&OsStr> = [library.as_ref()].into_iter().chain(NATIVE.iter().map(OsStr::new)).collect();
    if let Some(program) = build(folder.path(), "static", &linked) {
        let needed = Command::new("ldd").arg(&program).output().expect("the C library's ldd");
        assert!(!String::from_utf8_lossy(&needed.stdout).contains("lookaside"), "it needs no library of ours to run");
        run(folder.path(), &program);
    }
}
