/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The paper's Algorithm 1 in C: random updates of a table, baked meanwhile.
 *
 *     gcc -O2 -I crates/runtime/include crates/runtime/examples/gups.c -L target/release -llookaside_runtime -o gups
 *     LD_LIBRARY_PATH=target/release ./gups 4096 prefetch:t0,stride=8      # MiB, settings; without settings: not baked
 */
#define _DEFAULT_SOURCE /* MADV_NOHUGEPAGE */

#include "pt_baker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 10) << 20 : 0, words = 1;
    pt_baker_stats stats = { 0 };
    pt_baker *baker = NULL;

    if (most < 1 << 20 || most > UINT64_C(1) << 40) {
        fprintf(stderr, "usage: %s MIB [SETTINGS], 1 to 1048576 MiB\n", argv[0]);
        return 2;
    }
    while (words * 2 <= most / sizeof(uint64_t))
        words *= 2;

    /* init_workload: all of the table is touched, on base pages. */
    size_t bytes = words * sizeof(uint64_t);
    uint64_t *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    madvise(table, bytes, MADV_NOHUGEPAGE); /* refused where there are no huge pages anyway */
    for (uint64_t i = 0; i < words; i++)
        table[i] = i;

    /* create_pt_baker_thread */
    if (argc > 2) {
        pt_baker_region data = { table, bytes };
        baker = pt_baker_start(&data, 1, argv[2]);
        if (!baker) {
            fprintf(stderr, "%s\n", pt_baker_error());
            return 2;
        }
    }

    /* start_workload_main_task */
    uint64_t updates = words / 16, x = 1;
    double begin = seconds();
    for (uint64_t i = 0; i < updates; i++) {
        x = x << 1 ^ (x >> 63 ? 7 : 0);
        table[x & (words - 1)] ^= x;
    }
    double took = seconds() - begin;

    /* stop_pt_baker_thread */
    pt_baker_stop(baker, &stats);
    printf("%.2f ns an update, %" PRIu64 " updates, %" PRIu64 " touches, table[0] = %016" PRIx64 "\n",
           took * 1e9 / updates, updates, stats.touches, table[0]);
    munmap(table, bytes);
    return 0;
}
