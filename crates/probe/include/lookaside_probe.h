/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A TLB miss counter without a PMU: which accesses of a short sequence miss the first-level data TLB, or all levels,
 * by calibrated timing. The caller's memory is read, never written to.
 *
 * Link with -llookaside_probe (liblookaside_probe.so), or with liblookaside_probe.a and what it needs of the system:
 * -lgcc_s -lutil -lrt -lpthread -lm -ldl. Both are in target/release after `cargo build --release -p lookaside-probe`.
 *
 * A counter belongs to the thread that opened it: that thread stays on one CPU until the counter is closed, and only it
 * may use the counter. Different threads may have counters of their own.
 */
#ifndef LOOKASIDE_PROBE_H
#define LOOKASIDE_PROBE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A calibrated counter. */
typedef struct lookaside_counter lookaside_counter;

/* What became of one access. */
enum lookaside_verdict {
    LOOKASIDE_HIT = 0,       /* it hit the first level */
    LOOKASIDE_L1_MISS = 1,   /* it missed the first level and hit the second */
    LOOKASIDE_STLB_MISS = 2, /* it missed all levels: a walk */
    LOOKASIDE_MIXED = 3      /* now this, now that, from round to round */
};

/* What became of a sequence. */
typedef struct lookaside_misses {
    size_t l1_misses;   /* accesses that miss the first level, those that walk too */
    size_t stlb_misses; /* accesses that miss all levels */
    size_t mixed;       /* accesses that do now this, now that; in neither of the above */
    size_t rounds;      /* rounds that each access was timed in */
} lookaside_misses;

/* Opens a counter.
 *
 * machine: path of a machine description (as `lookaside machine probe -o` writes it), not kept; or NULL: the TLBs are probed
 *          first.
 * rounds:  how often each access will be timed, with and without a control: at least 16, a multiple of 8 (rounded up);
 *          0 = 512. More rounds, fewer errors.
 * seed:    chooses the pages of the calibration.
 *
 * Returns a counter that the caller closes, or NULL with errno:
 *   EINVAL  the description cannot be read, or has no first-level TLB for loads of 4 KiB pages
 *   ENOTSUP this machine cannot be measured (no steady timer, no CPU to stay on), or its TLBs were not determined
 *   ENOMEM  no memory or address space for the pages of the calibration
 *   EAGAIN  known misses could not be told from known hits: the description is another machine's, or neighbours disturb
 * and a sentence in lookaside_probe_error().
 *
 * Bound: a calibration does some 100 sequences of at most 10,000 loads `rounds` times, tried three times at most: 2 to
 * 6 s with 512 rounds where nothing disturbs. With machine NULL at most 30 s more.
 */
lookaside_counter *lookaside_counter_open(const char *machine, size_t rounds, uint64_t seed);

/* Closes a counter, gives its memory back, and lets the thread run on all its CPUs again. NULL does nothing. */
void lookaside_counter_close(lookaside_counter *counter);

/* Which pages did `act` evict: loads a byte from each address of `prime` in order, calls act(context), then loads a
 * byte from each address of `timed`, in random orders, and times these; again and again.
 *
 * counter: open.
 * prime:   n_prime addresses; may be NULL where n_prime is 0.
 * act:     called 2 * rounds + 16 times, by this thread; must return (no longjmp, no exception) and must not use this
 *          counter. NULL = nothing is done. What it touches itself (stack, globals) counts.
 * timed:   n_timed addresses, 1 to 4096. Each 256 need a page for their list, which takes an entry.
 * misses:  is filled in.
 * verdicts: n_timed bytes to be filled in, each an enum lookaside_verdict; or NULL.
 * extra_ticks: n_timed doubles to be filled in: ticks that the translation took beyond a hit's, mean of the rounds;
 *          or NULL.
 *
 * All lists stay the caller's and are not kept. Each address lies in a page that can be read as a whole from before the
 * call until it returns; otherwise the program gets SIGSEGV or SIGBUS as by a load of its own.
 *
 * Returns 0, or -1 with errno: EINVAL (a NULL that is not allowed, n_timed out of range), EDEADLK (act used the
 * counter), ENOTSUP (this machine cannot).
 * Bound: (2 * rounds + 16) times (act, n_prime loads, n_timed loads and about 200 cycles for each).
 */
int lookaside_counter_evicted(lookaside_counter *counter, const void *const *prime, size_t n_prime,
                              void (*act)(void *context), void *context, const void *const *timed, size_t n_timed,
                              lookaside_misses *misses, uint8_t *verdicts, double *extra_ticks);

/* Which accesses of a sequence miss: loads a byte from each address of `before` in order, then from each of `sequence`
 * in order and times these; again and again. All else as for lookaside_counter_evicted(). In an even order a prefetcher
 * may run ahead and fill what would miss: that is part of what the sequence does. */
int lookaside_counter_count(lookaside_counter *counter, const void *const *before, size_t n_before,
                            const void *const *sequence, size_t n_sequence, lookaside_misses *misses,
                            uint8_t *verdicts, double *extra_ticks);

/* The errors of this counter as measured at its calibration: judgements of accesses that are known to hit (row 0), to
 * miss the first level (row 1) and to miss all levels (row 2), each by `rounds` rounds; columns in the order of enum
 * lookaside_verdict. A row of zeros: there are no such accesses (row 2 where there is only one level).
 *
 * Returns 0, or -1 with errno EINVAL where a pointer is NULL. Bound: constant.
 */
int lookaside_counter_confusion(const lookaside_counter *counter, size_t judged[3][4]);

/* The last failure of this thread as a sentence, "" if there was none. The text is the library's; it stays until the
 * next call of this library by this thread. Bound: constant. */
const char *lookaside_probe_error(void);

#ifdef __cplusplus
}
#endif

#endif
