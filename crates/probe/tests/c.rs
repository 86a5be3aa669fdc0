//! The C interface: a C program is compiled against the header and the library, and run.

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

/// Where cargo puts the library: beside the tests, or one folder up.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a path of this program");
    let folders = test.ancestors().skip(1).take(2);
    let mut files = folders.map(|folder| folder.join("liblookaside_probe.so"));
    files.find(|file| file.exists()).expect("liblookaside_probe.so beside the tests: the crate is a cdylib")
}

#[test]
#[cfg(target_os = "linux")]
fn a_c_program_counts() {
    let folder = std::env::temp_dir().join(format!("lookaside-probe-c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let (source, program) = (folder.join("count.c"), folder.join("count"));
    std::fs::write(&source, PROGRAM).expect("a source file");
    let library = library();
    let beside = library.parent().expect("a folder");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let built = Command::new("gcc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-D_POSIX_C_SOURCE=200809L", "-I"])
        .arg(&include)
        .arg(&source)
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", beside.display()))
        .arg("-o")
        .arg(&program)
        .status();
    match built {
        Err(e) => eprintln!("LEFT OUT: gcc is not installed (apt-get install gcc): {e}"),
        Ok(status) => {
            assert!(status.success(), "the C program does not compile");
            let machine = folder.join("machine.toml");
            let preset = lookaside_machine::preset("ryzen-5900x").expect("a preset");
            std::fs::write(&machine, lookaside_machine::to_toml(&preset)).expect("a machine file");
            let output = Command::new(&program).arg(&machine).output().expect("the program can be started");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{said}{complaint}");
            assert!(said.starts_with("counted") || said.starts_with("no counter: "), "{said}");
        }
    }
    std::fs::remove_dir_all(&folder).expect("our own folder");
}
