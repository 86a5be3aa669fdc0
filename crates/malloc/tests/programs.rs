//! The library in real programs: their output is theirs, and what they allocate lies in the partition's sets.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

#[path = "../../preload/tests/support/mod.rs"]
mod support;

use std::process::{Command, Output};

use support::{compile, library, same_as_bare};

/// Half of 16 sets by the low bits of the page number; one set; all pages.
const PARTITIONS: [&str; 3] = ["12;-;1,2,4,8/0-7=*", "12;-;1,2,4,8/3-3=*", "12;-"];

fn placed(line: &str, command: &[&str]) -> Output {
    let mut program = Command::new(command[0]);
    program.args(&command[1..]).env("LD_PRELOAD", library("malloc")).env("LOOKASIDE_COLOR", line);
    program.output().expect("the program can be started")
}

#[test]
fn programs_put_out_what_they_do_without() {
    let folder = tempfile::tempdir().expect("a folder");
    same_as_bare(folder.path(), 100_000, &PARTITIONS, placed);
}

#[test]
fn each_call_is_there_and_keeps_to_the_sets() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(
        folder.path(),
        "p",
        r##"
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned set(void *p) { return ((uintptr_t)p >> 12) & 15; }
#define IN(p, n) (set(p) < 8 && set((char *)(p) + (n) - 1) < 8)
int main(void) {
    void *p[1000], *q;
    size_t i, n;
    for (i = 0; i < 1000; i++) {
        n = 1 + i * 7 % 3000;
        p[i] = malloc(n);
        assert(p[i] && (uintptr_t)p[i] % 16 == 0 && malloc_usable_size(p[i]) >= n && IN(p[i], n));
        memset(p[i], 1, n);
    }
    for (i = 0; i < 1000; i += 2) free(p[i]);
    char *z = calloc(100, 30);
    for (i = 0; i < 3000; i++) assert(z[i] == 0);
    z[2999] = 5;
    z = realloc(z, 9000);
    assert(z && z[2999] == 5 && IN(z, 9000));
    z = reallocarray(z, 3, 1000);
    assert(z && z[2999] == 5);
    assert(!reallocarray(z, SIZE_MAX, 2) && errno == ENOMEM && z[2999] == 5);
    assert(posix_memalign(&q, 3, 8) == EINVAL && posix_memalign(&q, 512, 100) == 0 && (uintptr_t)q % 512 == 0 && IN(q, 100));
    free(q);
    assert((q = memalign(1024, 10)) && (uintptr_t)q % 1024 == 0 && IN(q, 10));
    assert((q = aligned_alloc(64, 640)) && (uintptr_t)q % 64 == 0 && IN(q, 640));
    assert((q = valloc(10)) && (uintptr_t)q % 4096 == 0 && IN(q, 10));
    assert((q = pvalloc(4097)) && (uintptr_t)q % 4096 == 0 && malloc_usable_size(q) >= 8192 && IN(q, 8192));
    free(q);
    assert(malloc(0) && !malloc(SIZE_MAX / 2) && errno == ENOMEM && !calloc(SIZE_MAX, 2) && !pvalloc(SIZE_MAX));
    assert(malloc_usable_size(NULL) == 0 && !memalign(24, 8) && errno == EINVAL);
    errno = 7; free(NULL); free(z); assert(errno == 7);
    /* Longer than eight sets in a row: outside of the partition, and usable. */
    char *big = malloc(100000);
    assert(big && malloc_usable_size(big) >= 100000);
    memset(big, 3, 100000);
    big = realloc(big, 300000);
    assert(big && big[99999] == 3);
    big = realloc(big, 50);
    assert(big && big[49] == 3 && IN(big, 50));
    free(big);
    /* Eight sets in a row are a run of pages, and this fills it. */
    q = malloc(8 * 4096 - 24);
    assert((uintptr_t)q % 4096 == 16 && set(q) == 0);
    free(q);
    assert(!realloc(malloc(5), 0));
    puts("all");
    fflush(stdout);
    free((char *)p[1] + 16);
    return 0;
}
"##,
    ) else {
        return;
    };
    let output = placed(PARTITIONS[0], &[&program]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all\n", "{said}");
    // What the pointer into an allocation finds in front of it is its owner's: any fault will do, none will not.
    use std::os::unix::process::ExitStatusExt;
    assert!(output.status.signal().is_some(), "{said}");
}

#[test]
fn forks_under_load_and_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(
        folder.path(),
        "p",
        r##"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int stop;
static void *load(void *arg) {
    unsigned seed = (unsigned)(size_t)arg, i;
    unsigned char *p[32] = { 0 };
    size_t n[32] = { 0 };
    while (!stop) {
        i = rand_r(&seed) % 32;
        for (size_t k = 0; k < n[i]; k++) assert(p[i][k] == i);
        free(p[i]);
        n[i] = rand_r(&seed) % 5000;
        p[i] = malloc(n[i]);
        memset(p[i], i, n[i]);
    }
    return NULL;
}
int main(void) {
    pthread_t threads[64];
    for (size_t i = 0; i < 64; i++) assert(!pthread_create(&threads[i], NULL, load, (void *)i));
    for (int i = 0; i < 40; i++) {
        int status = -1;
        pid_t child = fork();
        if (!child) { alarm(20); for (int k = 0; k < 100; k++) free(malloc(k * 50)); _exit(0); }
        assert(waitpid(child, &status, 0) == child && status == 0);
    }
    stop = 1;
    for (int i = 0; i < 64; i++) pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
"##,
    ) else {
        return;
    };
    for line in PARTITIONS {
        let output = placed(line, &[&program]);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "done\n",
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Looking for the one page in 2048 that is of the partition takes most of the thread's time, in the heap: nearly every
/// fork meets it there.
#[test]
fn forks_wait_for_who_is_in_the_heap() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compile(
        folder.path(),
        "p",
        r##"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int stop;
static void *load(void *arg) {
    while (!stop) { assert(malloc(4000)); usleep(100); }
    return NULL;
}
int main(void) {
    pthread_t thread;
    assert(!pthread_create(&thread, NULL, load, NULL));
    for (int i = 0; i < 20; i++) {
        int status = -1;
        pid_t child = fork();
        if (!child) { alarm(20); _exit(!malloc(4000)); }
        assert(waitpid(child, &status, 0) == child && status == 0);
    }
    stop = 1;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
"##,
    ) else {
        return;
    };
    let output = placed("12;-;1,2,4,8,10,20,40,80,100,200,400/5-5=*", &[&program]);
    assert_eq!(
        (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout)),
        ("".into(), "done\n".into())
    );
}

#[test]
fn a_partition_with_an_end_ends_and_a_bad_line_is_told() {
    let limited = placed("12;40;1,2,4,8/0-15=4", &["python3", "-c", "print(len([str(i) for i in range(10**6)]))"]);
    // 160 KiB do not hold Python: it is told so by malloc, and nothing else is harmed.
    assert!(!limited.status.success() && limited.stdout.is_empty());
    let bad = placed("12;-;zz", &["echo", "x"]);
    assert_eq!(String::from_utf8_lossy(&bad.stdout), "x\n");
    assert_eq!(
        String::from_utf8_lossy(&bad.stderr),
        "lookaside: color: LOOKASIDE_COLOR cannot be read; the program runs without\n"
    );
}
