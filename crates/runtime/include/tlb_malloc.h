/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * TLB coloring: a heap whose pages only ever use chosen sets of the data TLB, so that tasks never evict each other's
 * translations (Panchamukhi 2014).
 *
 * The paper's three calls, on the machine that the program runs on:
 *
 *     if (tlb_malloc_init(4) != 0)
 *         fprintf(stderr, "%s\n", tlb_error());
 *     struct state *s = tlb_malloc(sizeof *s, 3);
 *     ...
 *     tlb_free(s, 3);
 *
 * or any partition of a file that `lookaside color plan` writes:
 *
 *     tlb_heap *heap = tlb_heap_create("partitions.toml", TLB_LOCKED);
 *     int red = tlb_heap_color(heap, "T1");
 *     struct state *s = tlb_heap_malloc(heap, sizeof *s, red);
 *
 * Time: every call but tlb_malloc_init, tlb_heap_create, tlb_heap_destroy, tlb_heap_walk and a realloc that must move takes a
 * number of steps that does not depend on what was allocated before. A heap takes no memory after it was made.
 * Space: see tlb_heap_malloc. Threads: any thread may call, on the same heap too, unless it was made with TLB_ONE_TASK. The
 * lock lends its holder the priority of who waits (PTHREAD_PRIO_INHERIT). Not to be called from signal handlers.
 * Fork: the child has a copy of each heap, which it may use.
 *
 * Memory of a heap never holds anything of another colour, or of the heap itself but headers of 8 bytes and links in what is
 * free. What the heap knows beyond lies in pages of its own.
 *
 * A pointer that is none of the heap's, was freed before, or is of another colour than was said ends the program (abort) with
 * a line on standard error that names it; TLB_CHECKED finds more of these.
 *
 * Link with -llookaside_runtime, as pt_baker.h says.
 */
#ifndef TLB_MALLOC_H
#define TLB_MALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The paper's interface. M sets of N ways: the first level of the data TLB for 4 KiB pages that has sets, of the machine that
 * the environment variable LOOKASIDE_MACHINE names (a preset, or a file as `lookaside machine probe -o` writes it), or else of the preset
 * nearest to the CPU.
 *
 * tlb_malloc_init: reserves R of the M sets for contiguous allocations. Called once. Returns 0, or -1 with errno: EINVAL (R is
 *     more than M, no such machine, called before; where the level coalesces c pages, R should be a multiple of c, and
 *     tlb_error() names the nearest R that can be), ENOMEM.
 * tlb_malloc: up to a page: colours 0 to M - R - 1, N pages each, all in set R + colour. More than a page, up to R pages:
 *     colours 0 to N - 1, R contiguous pages each, in sets 0 to R - 1
 *     (where the level coalesces, neighbours lie in the same set). Aligned to 16. size 0 gives a pointer that can be freed.
 *     Returns NULL with errno EINVAL (no such colour; tlb_malloc_init was not called) or ENOMEM (no room).
 *     A page holds 4072 bytes beside its headers; a request of 4073 to 4096 takes a free page whole.
 * tlb_free: color is the one it was allocated with. NULL is nothing.
 */
int tlb_malloc_init(unsigned R);
void *tlb_malloc(size_t size, unsigned color);
void tlb_free(void *ptr, unsigned color);

/* A heap with the colours of a file. */
typedef struct tlb_heap tlb_heap;

enum {
    TLB_CHECKED = 1,  /* headers carry seals: invalid pointers and overruns are found, all but one in 65,536 */
    TLB_LOCKED = 2,   /* its pages are locked in memory (mlock) */
    TLB_ONE_TASK = 4, /* no lock: one thread at a time calls */
};

/* Makes a heap with a colour for each partition of a file, in its order; one called "bookkeeping" is for the heap's own pages.
 * All its pages get memory at once, and where they are larger than 4 KiB all must be huge pages. flags: a sum of the above. NULL with errno EINVAL (the file; what it asks for does not exist)
 * or ENOMEM, and the sentence in tlb_error(). */
tlb_heap *tlb_heap_create(const char *partitions, unsigned flags);

/* Gives all its memory back; nobody may use it, or anything that came from it. NULL is nothing. */
void tlb_heap_destroy(tlb_heap *heap);

/* Number of a partition's colour; -1 with errno EINVAL where there is none of that name. */
int tlb_heap_color(const tlb_heap *heap, const char *name);

/* As malloc, calloc, realloc, aligned_alloc and malloc_usable_size, of a colour. NULL with errno ENOMEM (no room: with k allocations
 * of u bytes in r runs of c bytes of pages, any request of up to (c - 16 r - u) / (k + r) bytes, less a sixteenth and 40, is
 * met; with up to 16 free blocks, any that one of them can hold) or EINVAL (no such colour; an alignment that is no power of two). A realloc that returns NULL has changed nothing.
 * An allocation takes 8 to 39 bytes more than was asked for, and 32 at least. */
void *tlb_heap_malloc(tlb_heap *heap, size_t size, unsigned color);
void *tlb_heap_calloc(tlb_heap *heap, size_t count, size_t size, unsigned color);
void *tlb_heap_realloc(tlb_heap *heap, void *ptr, size_t size, unsigned color);
void *tlb_heap_aligned_alloc(tlb_heap *heap, size_t alignment, size_t size, unsigned color);
size_t tlb_heap_usable_size(tlb_heap *heap, const void *ptr);

/* Frees; the heap knows the colour. NULL is nothing. */
void tlb_heap_free(tlb_heap *heap, void *ptr);

/* Counts of a colour. */
typedef struct tlb_heap_stats {
    uint64_t capacity_bytes;      /* of its pages */
    uint64_t used_bytes;          /* of blocks in use, headers included */
    uint64_t peak_bytes;          /* the most that these ever were */
    uint64_t allocations;         /* in use */
    uint64_t refused;             /* that were refused */
    uint64_t largest_asked_bytes; /* of the largest ever asked for */
} tlb_heap_stats;

/* Returns 0, or -1 with errno EINVAL. */
int tlb_heap_get_stats(tlb_heap *heap, unsigned color, tlb_heap_stats *stats);

/* 1: what can be looked at in constant time is sound; 0: the heap is damaged. */
int tlb_heap_is_sound(tlb_heap *heap);

/* Calls `each` for each block of a colour, in the order of addresses, with the heap locked: it must not call the heap.
 * 1: all headers are sound; 0: one is not, and what lies behind it was not looked at. */
int tlb_heap_walk(tlb_heap *heap, unsigned color, void (*each)(void *ptr, size_t size, int in_use, void *context),
                  void *context);

/* A stack for a thread (pthread_attr_setstack): contiguous pages of a colour, and one below that faults. `size` is rounded up to
 * pages, and given back with the lowest address. NULL with errno ENOMEM or EINVAL. */
void *tlb_stack_create(tlb_heap *heap, size_t *size, unsigned color);
void tlb_stack_destroy(tlb_heap *heap, void *lowest);

/* A copy of read-mostly data in memory of a colour, to be used in its place; NULL with errno. TLB_COPY keeps the type:
 *     const double *table = TLB_COPY(heap, global_table, red);
 */
void *tlb_section_copy(tlb_heap *heap, const void *data, size_t size, unsigned color);
#ifdef __cplusplus
#define TLB_COPY(heap, object, color) \
    (static_cast<decltype(&(object)[0])>(tlb_section_copy((heap), (object), sizeof(object), (color))))
#else
#define TLB_COPY(heap, object, color) (tlb_section_copy((heap), (object), sizeof(object), (color)))
#endif

/* What went wrong last in this thread: a sentence without a line break, valid until its next failing call. */
const char *tlb_error(void);

#ifdef __cplusplus
}
#endif

#endif
