/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * PT-Baker: a helper thread that keeps the page-table entries of a program's data in the caches, so that its TLB misses
 * cost less (Chatzopoulos 2024).
 *
 * As in the paper's Algorithm 1:
 *
 *     pt_baker_region data = { array, bytes };
 *     pt_baker *baker = pt_baker_start(&data, 1, "prefetch:t0,stride=8");
 *     if (!baker)
 *         fprintf(stderr, "%s\n", pt_baker_error());
 *     work();
 *     pt_baker_stop(baker, NULL);
 *
 * Link with -llookaside_runtime (liblookaside_runtime.so), or with liblookaside_runtime.a and what it needs of the system:
 * -lgcc_s -lutil -lrt -lpthread -lm -ldl. Both are in target/release after `cargo build --release -p lookaside-runtime`.
 *
 * All functions may be called from any thread, on the same baker too, but for pt_baker_stop: it comes last. None but
 * pt_baker_start allocates more than a list of regions. After a fork the child has no helper; it may only leave its copy
 * of the baker alone.
 */
#ifndef PT_BAKER_H
#define PT_BAKER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A running baker. */
typedef struct pt_baker pt_baker;

/* Memory to keep warm: all pages that hold any of its bytes. */
typedef struct pt_baker_region {
    const void *start;
    size_t len; /* bytes; at least 1 */
} pt_baker_region;

/* What a baker did so far. */
typedef struct pt_baker_stats {
    uint64_t rounds;        /* whole rounds through all regions */
    uint64_t touches;       /* of pages (load, prefetch), of page-table entries (scan, mincore, module) */
    uint64_t busy_nanos;    /* nanoseconds spent touching */
    uint64_t cpu_nanos;     /* nanoseconds of CPU of the helper, up to its last touches or rest */
    uint64_t elapsed_nanos; /* nanoseconds since the start */
    uint64_t failed_calls;  /* kernel calls that failed */
    int32_t last_errno;     /* error number of the last of these; 0: none */
    int32_t cpu;            /* CPU that the helper stays on; -1: any */
} pt_baker_stats;

/* Starts a helper thread.
 *
 * regions:  count of them, not kept; may be none (add some later: the helper sleeps until then).
 * settings: NULL, or auto[,cpu=auto|sibling|NUMBER][,share=0.5],
 *           or BACKEND[,stride=PAGES][,nops=N][,sleep=TIME][,cpu=auto|sibling|NUMBER][,share=0.5]
 *           auto     module where that is loaded, else prefetch:t0, every 8th page, half a CPU at most unless share says
 *                    otherwise; paces itself by the time that its own touches take, and rests where baking does not pay:
 *                    pt_baker_state tells. With one CPU allowed it does nothing.
 *           BACKEND  load            a load of each page; the regions must stay mapped and readable until they are taken
 *                                    out, and a page that was never touched gets a frame
 *                    prefetch:t0     (t1, t2; NULL and "prefetch" are t0) a prefetch, which never faults
 *                    scan            the kernel reads all entries (Linux 6.7 and later)
 *                    mincore         the same with an older call
 *                    module          the kernel module of Lookaside reads every n-th entry (docs/reference/kernel-module.md)
 *           stride   pages from one touch to the next, 8: a line holds 8 entries. Not for scan and mincore.
 *           nops     NOP instructions after each touch, 0. Not for scan and mincore.
 *           sleep    pause after each round: 500us, 2ms, 1s; none unless given
 *           cpu      where the helper runs; auto: another core under the same last-level cache, if there is one
 *           share    at most this share of a CPU is spent touching, 1
 *
 * What the helper does is told to `lookaside top` meanwhile, in a memory file in a table of files of the helper's own
 * (close_range, memfd_create; where the system refuses either, nothing is told). The program's files stay as they are.
 *
 * Returns a baker that the caller stops, or NULL with errno EINVAL (a setting or region that cannot be) or ENOTSUP (the
 * system lacks something), and the sentence in pt_baker_error().
 */
pt_baker *pt_baker_start(const pt_baker_region *regions, size_t count, const char *settings);

/* Other regions in place of those before; one more region; one taken out (the parts of others that lie in it).
 * When these return, nothing of what is no longer a region is being touched: take memory out, then unmap it.
 * They wait for a chunk of touches at most: 512 touches, the page-table entries of 16 MiB read by the kernel,
 * or 4096 steps of its module.
 *
 * Return 0, or -1 with errno EINVAL; then all stays as it was.
 */
int pt_baker_set_regions(const pt_baker *baker, const pt_baker_region *regions, size_t count);
int pt_baker_add(const pt_baker *baker, pt_baker_region region);
int pt_baker_remove(const pt_baker *baker, pt_baker_region region);

/* What it did so far. Returns 0, or -1 with errno EINVAL (a NULL). */
int pt_baker_get_stats(const pt_baker *baker, pt_baker_stats *stats);

/* What it is doing, a word that is never freed: "looking" (there are no regions), "baking", "warm" (as slowly as can be:
 * what it touches stays in the caches by itself), "off-refused" (the system refused what it had granted before). With auto
 * also "idle" (the program does nothing), "crowded" (other threads want the helper's CPU), "off-hopeless" (its touches stay
 * cold however fast it goes; tries again after 5 s and later), "off-too-large" (the page tables are larger than the last
 * cache), "off-no-cpu" (the program may use one CPU only). NULL with errno EINVAL for NULL. */
const char *pt_baker_state(const pt_baker *baker);

/* Stops the helper, waits until its thread has ended, frees the baker. NULL is nothing. stats: NULL, or what it did. */
void pt_baker_stop(pt_baker *baker, pt_baker_stats *stats);

/* What went wrong last in this thread: a sentence without a line break, valid until the thread's next failing call. */
const char *pt_baker_error(void);

#ifdef __cplusplus
}
#endif

#endif
