/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Compartments on a processor with protection keys: 64 on the keys that others leave, at
 * least four, each written by itself and tried from all others.
 * In what C99 and C++17 have in common. Runs in a virtual machine, too (tools/check-kernel).
 * Exit code 0: all holds, and the counts are told; 1: a line says what does not; 2: no keys here, and a line says so.
 */
#include "domains.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { ALL = 64, PAGES = 3, BYTES = PAGES * 4096, KEY = 4 /* SEGV_PKUERR */, CLOSED = 2 /* SEGV_ACCERR */ };

static domain_id all[ALL];
static char *at[ALL];
static __thread volatile int code;            /* si_code of the last fault */
static __thread volatile domain_id whose;     /* and what domain_fault made of it */

#define HOLDS(...) do { \
    if (!(__VA_ARGS__)) { \
        printf("line %d does not hold: %s (errno %d, \"%s\")\n", __LINE__, #__VA_ARGS__, errno, domain_error()); \
        exit(1); \
    } \
} while (0)
#define FAILS(call, number) HOLDS((errno = 0, (call) == -1 && errno == (number)))

/* An access is an instruction of two bytes, which is left out where it faults. */
static void caught(int number, siginfo_t *info, void *context)
{
    (void)number;
    if (info->si_code != KEY && info->si_code != CLOSED)
        abort();
    code = info->si_code;
    whose = domain_fault(info->si_code, info->si_addr);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

/* The code of the fault; 0: there was none. */
static int reads(const char *from, char *value)
{
    char got = 0;

    code = 0;
    __asm__ volatile(".byte 0x8a, 0x07" : "+a"(got) : "D"(from) : "memory"); /* mov (%rdi), %al */
    *value = got;
    return code;
}

static int writes(char *to, char value)
{
    code = 0;
    __asm__ volatile(".byte 0x88, 0x07" : : "a"(value), "D"(to) : "memory"); /* mov %al, (%rdi) */
    return code;
}

/* Nothing of that compartment can be used by this thread. */
static void is_closed(int one)
{
    char value = 0;
    int first;

    HOLDS((first = reads(at[one], &value)) && whose == all[one] && value == 0);
    HOLDS(reads(at[one] + BYTES - 1, &value) == first && whose == all[one]);
    HOLDS(writes(at[one] + 4096, 99) == first && whose == all[one]);
}

/* All of it can be read and has what belongs there. */
static void is_open(int one)
{
    char value;
    int page;

    for (page = 0; page < PAGES; page++)
        HOLDS(!reads(at[one] + page * 4096 + 7, &value) && value == (char)(one + page + 1));
}

static void enter(int one) { HOLDS(domain_enter(all[one]) == 0); }
static void leave(int one) { HOLDS(domain_leave(all[one]) == 0); }

/* Each writes its own memory, and then tries all others'. */
static void each_has_its_own(void)
{
    domain_stats before, stats;
    int one, other, page;

    for (one = 0; one < ALL; one++)
        is_closed(one);
    for (one = 0; one < ALL; one++) {
        enter(one);
        for (page = 0; page < PAGES; page++)
            HOLDS(!writes(at[one] + page * 4096 + 7, (char)(one + page + 1)));
        leave(one);
    }
    domain_get_stats(&before);
    for (one = 0; one < ALL; one++) {
        enter(one);
        is_open(one);
        for (other = 0; other < ALL; other++)
            if (other != one)
                is_closed(other);
        is_open(one);
        leave(one);
        is_closed(one);
    }
    domain_get_stats(&stats);
    HOLDS(stats.compartments == ALL && stats.keys >= 1 && stats.keys <= 15);
    HOLDS(stats.switches - before.switches == 2 * ALL);
    HOLDS(stats.key_faults + stats.closed_faults - before.key_faults - before.closed_faults == 3 * ALL * ALL);
    HOLDS(stats.key_faults > before.key_faults && stats.closed_faults > before.closed_faults);
    /* Every key changes hands so often that each compartment is opened again: once in a round. */
    HOLDS(stats.recycled - before.recycled >= ALL - stats.keys && stats.recycled - before.recycled <= ALL);
    HOLDS(stats.protect_calls - before.protect_calls >= ALL && stats.protect_calls - before.protect_calls <= 2 * ALL);
}

/* Nested, and shared to read and to write. */
static void shared(void)
{
    char value;

    HOLDS(domain_share(all[1], all[0], DOMAIN_READ) == 0 && domain_share(all[2], all[0], DOMAIN_WRITE) == 0);
    enter(0);
    is_open(0), is_open(1), is_open(2), is_closed(3);
    HOLDS(writes(at[1], 5) == KEY && whose == all[1] && !writes(at[2], 5));
    FAILS(domain_share(all[3], all[0], DOMAIN_READ), EBUSY);
    FAILS(domain_destroy(all[0]), EBUSY);
    FAILS(domain_destroy(all[1]), EBUSY);
    enter(1);
    is_open(1), is_closed(0), is_closed(2);
    HOLDS(!writes(at[1], 6));
    FAILS(domain_leave(all[0]), EPERM);
    FAILS(domain_leave(all[2]), EPERM);
    is_open(1), is_closed(0);
    leave(1);
    HOLDS(!reads(at[1], &value) && value == 6);
    HOLDS(writes(at[1], 5) == KEY);
    leave(0);
    is_closed(0), is_closed(1), is_closed(2);
    enter(2);
    is_closed(0), is_open(2);
    HOLDS(!reads(at[2], &value) && value == 5);
    leave(2);
    HOLDS(domain_share(all[1], all[0], DOMAIN_NONE) == 0);
    enter(0);
    is_closed(1), is_open(2);
    leave(0);
}

/* More entered than there are keys. */
static void too_many(void)
{
    domain_stats stats;
    int one = 3, in;

    while (domain_enter(all[one]) == 0)
        one++;
    in = one - 1;
    domain_get_stats(&stats);
    HOLDS(errno == EAGAIN && strstr(domain_error(), "keys needed: 1, free: 0 of ") && (uint64_t)(in - 2) == stats.keys);
    is_open(in), is_closed(one);
    for (; in >= 3; in--)
        leave(in);
    enter(one), is_open(one), leave(one);
}

/* System calls go by the caller's rights. */
static void system_calls(void)
{
    int ends[2];

    HOLDS(pipe(ends) == 0);
    HOLDS(write(ends[1], at[5], 8) == -1 && errno == EFAULT);
    enter(5);
    HOLDS(write(ends[1], at[5] + 7, 1) == 1);
    enter(6);
    HOLDS(read(ends[0], at[5], 1) == -1 && errno == EFAULT);
    leave(6);
    is_open(5);
    leave(5);
    close(ends[0]), close(ends[1]);
}

static pthread_barrier_t meet;

/* In compartment 7, meanwhile the other takes what keys it can. */
static void *stays(void *ends_inside)
{
    is_closed(7);
    enter(7), enter(8);
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet);
    is_open(8), is_closed(7), is_closed(9);
    leave(8);
    is_open(7), is_closed(8);
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet);
    if (!ends_inside)
        leave(7);
    return NULL;
}

static void threads(void)
{
    int ends_inside, one;

    for (ends_inside = 0; ends_inside < 2; ends_inside++) {
        pthread_t other;

        HOLDS(pthread_barrier_init(&meet, NULL, 2) == 0);
        HOLDS(pthread_create(&other, NULL, stays, ends_inside ? &meet : NULL) == 0);
        pthread_barrier_wait(&meet);
        for (one = 9; one < ALL; one++) {
            enter(one);
            is_open(one), is_closed(7), is_closed(8);
            leave(one);
        }
        FAILS(domain_leave(all[7]), EPERM);
        FAILS(domain_destroy(all[8]), EBUSY);
        pthread_barrier_wait(&meet);
        pthread_barrier_wait(&meet);
        enter(8), is_open(8), is_closed(7), leave(8);
        enter(7), is_open(7), leave(7);
        is_closed(7);
        FAILS(domain_destroy(all[7]), EBUSY);
        pthread_barrier_wait(&meet);
        HOLDS(pthread_join(other, NULL) == 0);
        enter(7), is_open(7), leave(7);
        pthread_barrier_destroy(&meet);
    }
    /* It left by ending: nobody is in 7. */
    HOLDS(domain_destroy(all[7]) == 0);
    FAILS(domain_enter(all[7]), ENOENT);
    FAILS(domain_leave(all[7]), ENOENT);
    FAILS(domain_destroy(all[7]), ENOENT);
    HOLDS(!domain_memory(all[7], NULL) && errno == ENOENT);
    all[7] = domain_create(BYTES);
    HOLDS(all[7]);
    at[7] = (char *)domain_memory(all[7], NULL);
    enter(7);
    for (one = 0; one < PAGES; one++)
        HOLDS(!writes(at[7] + one * 4096 + 7, (char)(7 + one + 1)));
    leave(7);
}

static volatile int in_handler;

static void interrupts(int number)
{
    char value;

    (void)number;
    in_handler = reads(at[20], &value);
}

/* A signal's handler has no rights; who is interrupted has its own back. */
static void signals(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = interrupts;
    HOLDS(sigaction(SIGUSR1, &action, NULL) == 0);
    enter(20);
    HOLDS(raise(SIGUSR1) == 0 && in_handler == KEY && whose == all[20]);
    is_open(20);
    leave(20);
}

/* What domains.h warns of: rights are copied to a new thread, until its first enter or leave. */
static void *made_inside(void *unused)
{
    is_open(21);
    enter(22), is_closed(21), is_open(22), leave(22);
    is_closed(21), is_closed(22);
    return unused;
}

static void new_threads(void)
{
    pthread_t other;

    enter(21);
    HOLDS(pthread_create(&other, NULL, made_inside, NULL) == 0 && pthread_join(other, NULL) == 0);
    is_open(21);
    leave(21);
}

/* In and out of all at random, two at once; each finds what is its own and nothing else. */
static void *wanders(void *seed)
{
    uint32_t random = *(uint32_t *)seed;
    int step, one, other;

    for (step = 0; step < 1500; step++) {
        random = random * 1664525 + 1013904223;
        one = 3 + (random >> 16) % (ALL - 3);
        other = 3 + (random >> 8) % (ALL - 3);
        enter(one);
        is_open(one);
        if (other != one) {
            char value;

            HOLDS(reads(at[other], &value));
            if (step % 4 == 0) {
                enter(other);
                is_open(other);
                HOLDS(reads(at[one], &value) && writes(at[one], 1));
                leave(other);
                is_open(one);
            }
        }
        leave(one);
    }
    return NULL;
}

static void two_at_once(void)
{
    uint32_t seeds[2] = { 1, 2 };
    pthread_t two[2];
    int i;

    for (i = 0; i < 2; i++)
        HOLDS(pthread_create(&two[i], NULL, wanders, &seeds[i]) == 0);
    for (i = 0; i < 2; i++)
        HOLDS(pthread_join(two[i], NULL) == 0);
}

/* A child is where its maker was, in a copy; it has no other thread, whatever these were in. */
static void forks(void)
{
    pthread_t other;
    int status = -1, one;
    pid_t child;

    HOLDS(pthread_barrier_init(&meet, NULL, 2) == 0);
    HOLDS(pthread_create(&other, NULL, stays, NULL) == 0);
    pthread_barrier_wait(&meet);
    enter(10);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(60);
        is_open(10), is_closed(7);
        HOLDS(!writes(at[10], 77));
        FAILS(domain_destroy(all[10]), EBUSY);
        HOLDS(domain_destroy(all[8]) == 0);
        for (one = 11; one < ALL; one++)
            enter(one), is_open(one), is_closed(10), leave(one);
        leave(10);
        fflush(stdout);
        _exit(0);
    }
    HOLDS(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    is_open(10);
    HOLDS(at[10][0] != 77);
    leave(10);
    for (one = 0; one < 3; one++)
        pthread_barrier_wait(&meet);
    HOLDS(pthread_join(other, NULL) == 0);
}

int main(void)
{
    struct sigaction action;
    domain_stats stats;
    size_t size = 0;
    int one;

    HOLDS(strcmp(domain_error(), "") == 0);
    HOLDS(!domain_create(0) && errno == EINVAL && strstr(domain_error(), "no bytes"));
    HOLDS(!domain_create(SIZE_MAX) && errno == ENOMEM);
    FAILS(domain_enter(1), ENOENT);
    FAILS(domain_share(1, 2, 3), EINVAL);
    HOLDS(domain_fault(KEY, &size) == 0);
    all[0] = domain_create(BYTES - 5);
    if (!all[0]) {
        HOLDS(errno == ENOTSUP || errno == ENOSYS || errno == ENOSPC);
        domain_get_stats(&stats);
        HOLDS(stats.compartments == 0 && stats.keys == 0);
        printf("%s\n", domain_error());
        return 2;
    }
    for (one = 1; one < ALL; one++)
        HOLDS(all[one] = domain_create(BYTES));
    for (one = 0; one < ALL; one++)
        HOLDS((at[one] = (char *)domain_memory(all[one], &size)) && size == BYTES);
    FAILS(domain_share(all[0], all[0], DOMAIN_READ), EINVAL);

    memset(&action, 0, sizeof action);
    action.sa_sigaction = caught;
    action.sa_flags = SA_SIGINFO;
    HOLDS(sigaction(SIGSEGV, &action, NULL) == 0);
    each_has_its_own();
    shared();
    too_many();
    system_calls();
    signals();
    new_threads();
    threads();
    two_at_once();
    forks();

    domain_get_stats(&stats);
    printf("%" PRIu64 " compartments, %" PRIu64 " keys: %" PRIu64 " switches, %" PRIu64 " keys taken in %" PRIu64 " flushes, %" PRIu64
           " calls of pkey_mprotect, %" PRIu64 " faults of keys, %" PRIu64 " of closed memory\n",
           stats.compartments, stats.keys, stats.switches, stats.recycled, stats.flushes, stats.protect_calls, stats.key_faults,
           stats.closed_faults);
    for (one = 0; one < ALL; one++)
        HOLDS(domain_destroy(all[one]) == 0);
    domain_get_stats(&stats);
    HOLDS(stats.compartments == 0);
    return 0;
}
