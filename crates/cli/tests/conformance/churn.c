// Maps, unmaps, moves, protects and forks; looks that each word is what it wrote and, where `strict`, that no page has a
// frame that it did not touch. Prints "right", and how long its munmaps took.
// churn OPERATIONS THREADS strict|loose
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, AREAS = 24, LARGEST = 1536, STEADY = 16384, WORDS = PAGE / sizeof(uint64_t) };
// 64 buckets for each power of two of nanoseconds.
enum { BUCKETS = 64 * 40 };

struct area {
    uint64_t *at, first;
    size_t pages, step;
};

static long operations;
static int strict;
static uint64_t *steady;
static _Atomic long counts[BUCKETS];

static void fail(const char *what) {
    dprintf(1, "wrong: %s\n", what);
    _exit(1);
}

static uint64_t nanos(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t bucket(uint64_t ns) {
    if (ns < 64) return ns;
    int power = 63 - __builtin_clzll(ns);
    size_t at = (size_t)(power - 5) * 64 + ((ns >> (power - 6)) & 63);
    return at < BUCKETS ? at : BUCKETS - 1;
}

static uint64_t least_of(size_t bucket) {
    return bucket < 128 ? bucket : (64 + (bucket & 63)) << (bucket / 64 - 1);
}

static uint64_t word(const struct area *area, size_t page) {
    return (area->first + page) * 0x9e3779b97f4a7c15ull;
}

static uint64_t *place(const struct area *area, size_t page) {
    return area->at + page * WORDS + page % WORDS;
}

static void fill(const struct area *area, size_t from) {
    for (size_t page = from; page < area->pages; page += area->step) *place(area, page) = word(area, page);
}

// Pages with a frame: as many as were touched, and the touched ones.
static void check_frames(const uint64_t *at, size_t pages, size_t step) {
    unsigned char here[STEADY];
    if (mincore((void *)at, pages * PAGE, here)) fail("mincore");
    for (size_t page = 0; page < pages; page++) {
        if (page % step == 0 && !(here[page] & 1)) return; // swapped out
        if (page % step != 0 && here[page] & 1) fail("a page has a frame that was not touched");
    }
}

static void check(const struct area *area) {
    if (strict) check_frames(area->at, area->pages, area->step);
    for (size_t page = 0; page < area->pages; page += area->step)
        if (*place(area, page) != word(area, page)) fail("a word of an area");
}

static void check_steady(void) {
    for (size_t page = 0; page < STEADY; page += 2)
        if (steady[page * WORDS] != page) fail("a word of the steady memory");
}

static void map(struct area *area, uint64_t *state) {
    // One of 128 is large enough for a baker, or for huge pages.
    area->pages = next(state) % 128 ? 1 + next(state) % 24 : 1024 + next(state) % (LARGEST - 1024);
    area->step = 1 + next(state) % 3;
    area->first = *state;
    area->at = mmap(0, area->pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area->at == MAP_FAILED) fail("mmap");
    if (strict && madvise(area->at, area->pages * PAGE, MADV_NOHUGEPAGE)) fail("madvise");
    fill(area, 0);
}

static void unmap(struct area *area) {
    check(area);
    uint64_t before = nanos();
    if (munmap(area->at, area->pages * PAGE)) fail("munmap");
    atomic_fetch_add(&counts[bucket(nanos() - before)], 1);
    area->at = 0;
}

static void move(struct area *area, uint64_t *state) {
    check(area);
    size_t pages = 1 + next(state) % (area->pages * 2), old = area->pages;
    if (pages > LARGEST) pages = LARGEST;
    area->at = mremap(area->at, old * PAGE, pages * PAGE, MREMAP_MAYMOVE);
    if (area->at == MAP_FAILED) fail("mremap");
    area->pages = pages;
    // The first page after the old end that has a turn.
    if (pages > old) fill(area, (old + area->step - 1) / area->step * area->step);
    check(area);
}

static void protect(const struct area *area) {
    if (mprotect(area->at, area->pages * PAGE, PROT_NONE)) fail("mprotect");
    if (mprotect(area->at, area->pages * PAGE, PROT_READ | PROT_WRITE)) fail("mprotect");
    check(area);
}

static void child_checks(const struct area *areas) {
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        for (int i = 0; i < AREAS; i++)
            if (areas[i].at) check(areas + i);
        check_steady();
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status) fail("a child");
}

static void *churn(void *seed) {
    uint64_t state = 0x2545f4914f6cdd1dull * (uintptr_t)seed;
    struct area areas[AREAS] = {0};
    for (long done = 0; done < operations; done++) {
        struct area *area = areas + next(&state) % AREAS;
        unsigned what = next(&state) % 1024;
        if (!area->at) map(area, &state);
        else if (what == 0) child_checks(areas);
        else if (what < 600) unmap(area);
        else if (what < 900) move(area, &state);
        else protect(area);
        if (done % 4096 == 0) check_steady();
    }
    for (int i = 0; i < AREAS; i++)
        if (areas[i].at) unmap(areas + i);
    return 0;
}

static uint64_t at_share(double share) {
    long all = 0, below = 0;
    for (size_t i = 0; i < BUCKETS; i++) all += counts[i];
    for (size_t i = 0; i < BUCKETS; i++)
        if ((below += counts[i]) >= all * share) return least_of(i);
    return 0;
}

int main(int argc, char **argv) {
    int threads = argc == 4 ? atoi(argv[2]) : 0;
    if (threads < 1 || threads > 16) fail("usage");
    operations = atol(argv[1]) / threads;
    strict = !strcmp(argv[3], "strict");
    steady = mmap(0, STEADY * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (steady == MAP_FAILED) fail("mmap");
    if (strict) madvise(steady, STEADY * PAGE, MADV_NOHUGEPAGE);
    for (size_t page = 0; page < STEADY; page += 2) steady[page * WORDS] = page;
    pthread_t ids[16];
    for (long i = 0; i < threads; i++)
        if (pthread_create(ids + i, 0, churn, (void *)(i + 1))) fail("a thread");
    for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
    check_steady();
    if (strict) check_frames(steady, STEADY, 2);
    printf("right\nmunmap p50 %lu ns, p99 %lu ns, p99.9 %lu ns, longest %lu ns\n", at_share(0.5), at_share(0.99),
           at_share(0.999), at_share(1));
    return 0;
}
