//! The coloured heap.

use std::os::unix::process::ExitStatusExt;

use crate::{both_ways, output_of, Language};

/// The paper's calls, on the paper's machine.
const PAPER: &str = r##"
#include "tlb_malloc.h"
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned set(const void *p) { return ((uintptr_t)p >> 12) & 15; }

int main(void) {
    enum { R = 4, M = 16, N = 4, PAGE = 4096 };
    void *pages[N];
    unsigned i;

    assert(!tlb_malloc(1, 0) && errno == EINVAL && strstr(tlb_error(), "tlb_malloc_init was not called"));
    setenv("LOOKASIDE_MACHINE", "/nowhere", 1);
    assert(tlb_malloc_init(R) == -1 && errno == EINVAL && strstr(tlb_error(), "/nowhere: cannot be read"));
    setenv("LOOKASIDE_MACHINE", "xeon-e5-2650", 1);
    assert(tlb_malloc_init(M + 1) == -1 && errno == EINVAL);
    assert(tlb_malloc_init(R) == 0);
    assert(tlb_malloc_init(R) == -1 && errno == EINVAL && strstr(tlb_error(), "before"));

    for (i = 0; i < N; i++) {
        pages[i] = tlb_malloc(PAGE, 3);
        assert(pages[i] && set(pages[i]) == R + 3);
        memset(pages[i], 1, PAGE);
    }
    assert(!tlb_malloc(1, 3) && errno == ENOMEM);
    for (i = 0; i < N; i++)
        tlb_free(pages[i], 3);
    char *small = tlb_malloc(10, M - R - 1), *large = tlb_malloc(R * PAGE, N - 1);
    assert(set(small) == M - 1 && set(large) == 0 && set(large + R * PAGE - 1) == R - 1);
    assert(!tlb_malloc(10, M - R) && errno == EINVAL);
    assert(!tlb_malloc(PAGE + 1, N) && errno == EINVAL);
    assert(!tlb_malloc(R * PAGE + 1, 0) && errno == ENOMEM);
    assert(tlb_malloc(0, 0));
    tlb_free(NULL, 99);
    tlb_free(large, N - 1);
    fflush(stdout);
    tlb_free(small, 0); /* another colour: the end */
    return 0;
}
"##;

/// On a machine whose first level has no sets its second is coloured: 128 sets of 16 ways, of four pages in a row each.
const SECOND_LEVEL: &str = r##"
#include "tlb_malloc.h"
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    unsigned i;

    setenv("LOOKASIDE_MACHINE", "ryzen-5900x", 1);
    assert(tlb_malloc_init(129) == -1 && errno == EINVAL);
    assert(tlb_malloc_init(0) == 0);
    for (i = 0; i < 16; i++) {
        void *page = tlb_malloc(4096, 127);
        assert(page && ((uintptr_t)page >> 14 & 127) == 127);
    }
    assert(!tlb_malloc(1, 127) && errno == ENOMEM);
    assert(!tlb_malloc(1, 128) && errno == EINVAL);
    printf("coloured\n");
    return 0;
}
"##;

/// A partition file.
const FILE: &str = r##"
#define FILE_TEXT "machine = \"m\"\npage_size = \"4K\"\n[[level]]\nname = \"l1\"\nsets = 16\nways = 4\nindex = \"linear\"\n" \
    "[[partition]]\nname = \"red\"\npages = 24\ncontiguous_pages = 6\nshares = [{ level = \"l1\", sets = [0, 1, 2, 3, 4, 5], ways = 4 }]\n" \
    "[[partition]]\nname = \"blue\"\nshares = [{ level = \"l1\", sets = [9], ways = 2 }]\n" \
    "[[partition]]\nname = \"bookkeeping\"\nshares = [{ level = \"l1\", sets = [15] }]\n"
"##;

/// Everything else, in what C99 and C++17 have in common.
const HEAP: &str = r##"
#include "tlb_malloc.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned set(const void *p) { return ((uintptr_t)p >> 12) & 15; }
static void *where(void *arg) { char local = 0; *(uintptr_t *)arg = (uintptr_t)&local; return NULL; }
static void count(void *ptr, size_t size, int in_use, void *context) { (void)ptr; (void)size; *(int *)context += in_use; }
static const int table[3] = { 5, 6, 7 };
static tlb_heap *heap;
static volatile int stop, inside, leaving;
static void hold(void *ptr, size_t size, int in_use, void *context) {
    (void)ptr; (void)size; (void)in_use; (void)context;
    if (inside) return;
    inside = 1;
    while (!leaving) usleep(1000);
    usleep(50000); /* by then the other thread is in fork */
}
static void *walk(void *arg) { (void)arg; tlb_heap_walk(heap, 0, hold, NULL); return NULL; }
static long locked_kib(void) {
    char line[200];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmLck: %ld", &kib);
    fclose(status);
    return kib;
}
static int child_allocates(void) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        void *p = tlb_heap_malloc(heap, 64, 0);
        _exit(!(p && set(p) < 6 && tlb_heap_is_sound(heap)));
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}
static void *load(void *arg) {
    unsigned color = *(unsigned *)arg;
    while (!stop)
        tlb_heap_free(heap, tlb_heap_malloc(heap, 100, color));
    return NULL;
}

int main(void) {
    FILE *file = fopen("p.toml", "w");
    tlb_heap_stats stats;
    int red, blue, used = 0, i;

    assert(file && fputs(FILE_TEXT, file) >= 0 && fclose(file) == 0);
    assert(!tlb_heap_create("none.toml", 0) && errno == EINVAL && strstr(tlb_error(), "none.toml"));
    assert(!tlb_heap_create(NULL, 0) && errno == EINVAL && !tlb_heap_create("p.toml", 64) && errno == EINVAL);
    heap = tlb_heap_create("p.toml", TLB_CHECKED | TLB_LOCKED);
    if (!heap) {
        fprintf(stderr, "%s\n", tlb_error());
        return 1;
    }
    assert(locked_kib() >= (24 + 2) * 4);
    red = tlb_heap_color(heap, "red");
    blue = tlb_heap_color(heap, "blue");
    assert(red == 0 && blue == 1 && tlb_heap_color(heap, "green") == -1 && errno == EINVAL && strstr(tlb_error(), "red, blue"));

    char *a = (char *)tlb_heap_calloc(heap, 10, 10, blue);
    assert(set(a) == 9 && a[99] == 0 && (uintptr_t)a % 16 == 0);
    memset(a, 7, 100);
    a = (char *)tlb_heap_realloc(heap, a, 3000, blue);
    assert(a && a[99] == 7 && tlb_heap_usable_size(heap, a) >= 3000 && tlb_heap_usable_size(heap, NULL) == 0);
    assert(!tlb_heap_realloc(heap, a, 9000, blue) && errno == ENOMEM && a[99] == 7);
    char *b = (char *)tlb_heap_aligned_alloc(heap, 256, 100, red);
    assert(b && (uintptr_t)b % 256 == 0 && set(b) < 6);
    assert(!tlb_heap_aligned_alloc(heap, 48, 100, red) && errno == EINVAL);
    assert(!tlb_heap_malloc(heap, 1, 2) && errno == EINVAL);
    assert(tlb_heap_get_stats(heap, blue, &stats) == 0 && stats.allocations == 1 && stats.refused == 1 && stats.capacity_bytes == 8192);
    assert(tlb_heap_get_stats(heap, 2, &stats) == -1 && errno == EINVAL && tlb_heap_get_stats(heap, 0, NULL) == -1);
    assert(tlb_heap_is_sound(heap) && tlb_heap_walk(heap, blue, count, &used) && used == 1);

    const int *copy = TLB_COPY(heap, table, blue);
    assert(copy && copy[2] == 7 && set(copy) == 9);
    size_t size = 16000;
    void *stack = tlb_stack_create(heap, &size, red);
    assert(stack && size == 16384);
    pthread_attr_t attributes;
    pthread_t threads[2], on_stack;
    uintptr_t seen = 0;
    assert(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, size) == 0);
    assert(pthread_create(&on_stack, &attributes, where, &seen) == 0 && pthread_join(on_stack, NULL) == 0);
    assert(seen > (uintptr_t)stack && seen < (uintptr_t)stack + size);
    tlb_stack_destroy(heap, stack);
    tlb_stack_destroy(heap, NULL);

    /* A fork waits for who is in the heap; and forks while threads go in and out. */
    assert(pthread_create(&threads[0], NULL, walk, NULL) == 0);
    while (!inside) usleep(1000);
    leaving = 1;
    assert(child_allocates() && pthread_join(threads[0], NULL) == 0);
    unsigned colors[2] = { 0, 1 };
    for (i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, load, &colors[i]) == 0);
    for (i = 0; i < 30; i++)
        assert(child_allocates());
    stop = 1;
    for (i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);

    /* A heap that has ended is nothing to a fork. */
    tlb_heap *ended = tlb_heap_create("p.toml", 0);
    assert(ended && tlb_heap_malloc(ended, 100, blue));
    tlb_heap_destroy(ended);
    assert(child_allocates());

    tlb_heap_free(heap, b);
    tlb_heap_free(heap, NULL);
    tlb_heap_destroy(NULL);
    printf("coloured\n");
    fflush(stdout);
    tlb_heap_free(heap, a);
    tlb_heap_free(heap, a); /* the end */
    return 0;
}
"##;

/// Aborted, with one line on standard error.
fn ends_with(output: &std::process::Output, line: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
    let (start, end) = line.split_once("…").expect("an address is left out");
    assert!(said.starts_with(start) && said.ends_with(end) && said.lines().count() == 1, "{said}");
}

#[test]
fn the_papers_calls() {
    for linked in both_ways() {
        if let Some(output) = output_of(PAPER, Language::C, &linked) {
            ends_with(&output, "tlb_free(0x…): it is of colour 11\n");
        }
    }
}

#[test]
fn the_first_level_that_has_sets_is_coloured() {
    if let Some(output) = output_of(SECOND_LEVEL, Language::C, &both_ways()[0]) {
        let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((said.as_ref(), wrong.as_ref()), ("coloured\n", ""));
    }
}

#[test]
fn heaps_in_c_and_cxx() {
    let linked = &both_ways()[0];
    for language in [Language::C, Language::Cxx] {
        if let Some(output) = output_of(&format!("{FILE}{HEAP}"), language, linked) {
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "coloured\n",
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            ends_with(&output, "tlb_heap_free(0x…): it was freed before\n");
        }
    }
}
