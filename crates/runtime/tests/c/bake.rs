//! The baker: the program of the paper's Algorithm 1, and the example.

use std::path::Path;
use std::process::Command;

use crate::{library, output_of, Language};

const PROGRAM: &str = r##"
#include "pt_baker.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    enum { BYTES = 8 << 20 };
    char *array = calloc(BYTES, 1);
    const pt_baker_region data = { array, BYTES };
    pt_baker_stats stats;
    struct timespec moment = { 0, 1000000 };

    assert(strcmp(pt_baker_error(), "") == 0);
    assert(!pt_baker_start(&data, 1, "warm") && errno == EINVAL);
    assert(strstr(pt_baker_error(), "no such backend"));
    assert(!pt_baker_start(NULL, 1, NULL) && errno == EINVAL);
    assert(!pt_baker_state(NULL) && errno == EINVAL);
    pt_baker_stop(NULL, NULL);
    assert(pt_baker_get_stats(NULL, &stats) == -1 && errno == EINVAL);

    pt_baker *baker = pt_baker_start(&data, 1, NULL);
    if (!baker) {
        fprintf(stderr, "%s\n", pt_baker_error());
        return 1;
    }
    do {
        nanosleep(&moment, NULL);
        assert(pt_baker_get_stats(baker, &stats) == 0);
    } while (stats.rounds < 2);
    assert(stats.touches >= 2 * BYTES / 4096 / 8 && stats.failed_calls == 0);
    pt_baker_region half = { array, BYTES / 2 }, none = { array, 0 };
    assert(pt_baker_remove(baker, half) == 0 && pt_baker_add(baker, half) == 0);
    assert(pt_baker_add(baker, none) == -1 && errno == EINVAL && strstr(pt_baker_error(), "no bytes"));
    assert(pt_baker_set_regions(baker, &half, 1) == 0 && pt_baker_set_regions(baker, NULL, 0) == 0);
    assert(pt_baker_get_stats(baker, NULL) == -1 && errno == EINVAL);
    pt_baker_stop(baker, &stats);
    assert(stats.elapsed_nanos >= stats.busy_nanos);

    assert(!pt_baker_start(&data, 1, "auto,stride=8") && strstr(pt_baker_error(), "auto chooses it"));
    baker = pt_baker_start(&data, 1, "auto,share=0.25");
    assert(baker && strlen(pt_baker_state(baker)) > 0);
    nanosleep(&moment, NULL);
    pt_baker_stop(baker, NULL);

    /* The program may close and use all numbers of files: the helper's are others. It tells some times meanwhile. */
    baker = pt_baker_start(&data, 1, "scan,sleep=1ms");
    if (!baker) /* before Linux 6.7 */
        baker = pt_baker_start(&data, 1, "mincore,sleep=1ms");
    assert(baker);
    for (int file = 3; file < 64; file++)
        close(file);
    FILE *files[8];
    for (int n = 0; n < 8; n++)
        assert(files[n] = tmpfile());
    for (int n = 0; n < 500; n++)
        nanosleep(&moment, NULL);
    assert(pt_baker_get_stats(baker, &stats) == 0);
    for (uint64_t rounds = stats.rounds; stats.rounds < rounds + 2; pt_baker_get_stats(baker, &stats))
        nanosleep(&moment, NULL);
    pt_baker_stop(baker, &stats);
    assert(stats.failed_calls == 0);
    for (int n = 0; n < 8; n++) {
        assert(fseek(files[n], 0, SEEK_END) == 0 && ftell(files[n]) == 0);
        assert(fclose(files[n]) == 0);
    }
    free(array);
    printf("baked\n");
    return 0;
}
"##;

#[test]
fn a_c_program_bakes() {
    for linked in crate::both_ways() {
        if let Some(output) = output_of(PROGRAM, Language::C, &linked) {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(String::from_utf8_lossy(&output.stdout), "baked\n");
        }
    }
}

#[test]
fn the_example_bakes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("gups");
    let shared = library("liblookaside_runtime.so");
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("gcc")
        .args(["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(crate_folder.join("include"))
        .arg(crate_folder.join("examples/gups.c"))
        .arg(&shared)
        .arg(format!("-Wl,-rpath,{}", shared.parent().expect("a folder").display()))
        .arg("-o")
        .arg(&program)
        .status();
    match built {
        Ok(status) => assert!(status.success(), "the example does not compile"),
        Err(e) => return eprintln!("LEFT OUT: gcc is not installed (apt-get install gcc): {e}"),
    }
    let run = |arguments: &[&str]| Command::new(&program).args(arguments).output().expect("the program can be started");
    let (base, baked) = (run(&["4"]), run(&["4", "mincore"]));
    // The same table, baked or not.
    let table = |output: &std::process::Output| {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.split_once("table[0] = ").map(|(_, word)| word.to_string()).unwrap_or_else(|| panic!("{said}"))
    };
    assert!(base.status.success() && baked.status.success());
    assert_eq!(table(&base), table(&baked));
    for bad in [&["0"][..], &["4", "warm"]] {
        let output = run(bad);
        assert_eq!(output.status.code(), Some(2), "{bad:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{bad:?}");
    }
}
