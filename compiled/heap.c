/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Heap blocks of 64 KiB and more, with the calls that led to them. The allocator is the one that the program would have
 * without us: these functions pass on to the next definition of each name, and give way to one of the program's own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "recorder.h"

enum {
	LARGE = 64 << 10, /* as of the other recorders */
	OWN_FRAMES = 2, /* of a call stack: note_block, and the function that was called */
	MOST_FRAMES = 16 + OWN_FRAMES,
	MOST_SITES = 4096,
	MOST_BLOCKS = 1 << 16,
	EARLY = 16 << 10
};

#define WEAK __attribute__((weak))

struct site {
	uint64_t hash;
	uint32_t frames;
};

struct block {
	uint64_t addr;
	size_t bytes;
};

/* Sites and large blocks that live, in open tables, guarded by `lock`. */
static struct tables {
	struct site sites[2 * MOST_SITES];
	struct block blocks[2 * MOST_BLOCKS];
} *tables;
static uint32_t site_count, block_count;
static int lock;
/* How many large blocks of each hash live, so that most calls of free need no lock. */
static uint32_t live[1 << 12];

static void hold(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_sched_yield);
}

static void release(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

void heap_forked(void)
{
	release();
}

static uint32_t *live_of(const void *block)
{
	return &live[((uint64_t)block >> 4) * 0x9e3779b97f4a7c15 >> 52];
}

static struct block *find_block(uint64_t addr)
{
	uint64_t at = addr * 0x9e3779b97f4a7c15 >> 47;

	while (tables->blocks[at].addr != 0 && tables->blocks[at].addr != addr)
		at = (at + 1) % (2 * MOST_BLOCKS);
	return &tables->blocks[at];
}

/* Takes a block out; those behind it are put where they are found again. */
static void remove_block(struct block *at)
{
	at->addr = 0;
	for (uint64_t i = (uint64_t)(at - tables->blocks + 1) % (2 * MOST_BLOCKS); tables->blocks[i].addr != 0;
	     i = (i + 1) % (2 * MOST_BLOCKS)) {
		struct block block = tables->blocks[i];

		tables->blocks[i].addr = 0;
		*find_block(block.addr) = block;
	}
}

struct frames {
	uint32_t count;
	uint64_t at[MOST_FRAMES];
};

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *into)
{
	struct frames *frames = into;
	uint64_t ip = _Unwind_GetIP(context);

	if (ip == 0 || frames->count == MOST_FRAMES)
		return _URC_END_OF_STACK;
	frames->at[frames->count++] = ip;
	return _URC_NO_REASON;
}

/* The site's number; a new one is sent. 0: there are too many. `skipped`: frames of our own. */
static uint32_t site_of(struct thread *t, const struct frames *frames, uint32_t skipped)
{
	uint64_t hash = 0xcbf29ce484222325, at; /* FNV-1a, by words */

	for (uint32_t i = skipped; i < frames->count; i++)
		hash = (hash ^ frames->at[i]) * 0x100000001b3;
	hash |= 1;
	for (at = hash % (2 * MOST_SITES); tables->sites[at].hash != 0; at = (at + 1) % (2 * MOST_SITES)) {
		if (tables->sites[at].hash == hash)
			return (uint32_t)at + 1;
	}
	if (site_count == MOST_SITES)
		return 0;
	site_count++;
	tables->sites[at].hash = hash;
	text_begin(t);
	text_add(t, "{\"site\":{\"id\":");
	text_number(t, at + 1);
	text_add(t, ",\"frames\":[");
	for (uint32_t i = skipped; i < frames->count; i++) {
		text_add(t, i > skipped ? "," : "");
		/* Within the call, not behind it. */
		text_number(t, frames->at[i] - 1);
	}
	text_add(t, "]}}");
	wire_event(t);
	return (uint32_t)at + 1;
}

static __attribute__((noinline)) void note_block(void *block, size_t bytes)
{
	struct thread *t = recorder_enter();
	struct frames frames = {.count = 0};
	int error = errno;

	if (t == NULL)
		return;
	_Unwind_Backtrace(take_frame, &frames);
	recorder_drain(t, recorder_many);
	hold();
	if (tables == NULL) {
		void *room = mmap(NULL, sizeof *tables, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		tables = room == MAP_FAILED ? NULL : room;
	}
	if (tables != NULL && block_count < MOST_BLOCKS) {
		struct block *at = find_block((uint64_t)block);
		uint32_t site = site_of(t, &frames, frames.count < OWN_FRAMES ? frames.count : OWN_FRAMES);

		if (at->addr == 0) {
			block_count++;
			__atomic_fetch_add(live_of(block), 1, __ATOMIC_RELAXED);
		}
		*at = (struct block){(uint64_t)block, bytes};
		text_begin(t);
		text_add(t, "{\"alloc\":{\"addr\":");
		text_number(t, (uint64_t)block);
		text_add(t, ",\"len\":");
		text_number(t, bytes);
		text_add(t, ",\"site\":");
		text_number(t, site);
		text_add(t, "}}");
		wire_event(t);
	}
	release();
	recorder_leave(t);
	errno = error;
}

/* Before a block is freed; its bytes if it was a large one. */
static __attribute__((noinline)) size_t forget_block(void *block)
{
	struct thread *t = recorder_enter();
	size_t bytes = 0;

	if (t == NULL)
		return 0;
	recorder_drain(t, recorder_many);
	hold();
	struct block *at = find_block((uint64_t)block);

	if (at->addr != 0) {
		bytes = at->bytes;
		remove_block(at);
		block_count--;
		__atomic_fetch_sub(live_of(block), 1, __ATOMIC_RELAXED);
		text_begin(t);
		text_add(t, "{\"free\":{\"addr\":");
		text_number(t, (uint64_t)block);
		text_add(t, "}}");
		wire_event(t);
	}
	release();
	recorder_leave(t);
	return bytes;
}

static inline void *allocated(void *block, size_t bytes)
{
	if (bytes >= LARGE && block != NULL && recorder_state != OFF)
		note_block(block, bytes);
	return block;
}

static inline size_t freed(void *block)
{
	return __atomic_load_n(live_of(block), __ATOMIC_RELAXED) != 0 ? forget_block(block) : 0;
}

/* The allocator's own functions. */
static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void (*free)(void *);
} next;

/* What is asked for while they are looked for, which is little and stays. */
static _Alignas(64) char early[EARLY];
static size_t early_used;
static OWN_OF_THREAD int looking;

static void *early_block(size_t bytes)
{
	size_t at = __atomic_fetch_add(&early_used, (bytes + 63) & ~(size_t)63, __ATOMIC_RELAXED);

	return bytes <= EARLY && at <= EARLY - bytes ? early + at : NULL;
}

static bool is_early(const void *block)
{
	return (const char *)block >= early && (const char *)block < early + EARLY;
}

/* From an early block to the end of all. */
static size_t early_left(const void *block)
{
	return (size_t)(early + EARLY - (const char *)block);
}

/* Whether they are there; not while the calling thread looks for them. */
static bool found(void)
{
	if (LIKELY(__atomic_load_n(&next.free, __ATOMIC_ACQUIRE) != NULL))
		return true;
	if (looking)
		return false;
	looking = 1;
	*(void **)&next.malloc = dlsym(RTLD_NEXT, "malloc");
	*(void **)&next.calloc = dlsym(RTLD_NEXT, "calloc");
	*(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
	*(void **)&next.memalign = dlsym(RTLD_NEXT, "memalign");
	*(void **)&next.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
	*(void **)&next.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	__atomic_store_n((void **)&next.free, dlsym(RTLD_NEXT, "free"), __ATOMIC_RELEASE);
	looking = 0;
	return true;
}

WEAK void *malloc(size_t bytes)
{
	return found() ? allocated(next.malloc(bytes), bytes) : early_block(bytes);
}

WEAK void *calloc(size_t count, size_t each)
{
	size_t bytes;

	if (!found())
		return __builtin_mul_overflow(count, each, &bytes) ? NULL : early_block(bytes);
	return allocated(next.calloc(count, each), count * each);
}

WEAK void *realloc(void *block, size_t bytes)
{
	void *moved;

	if (!found() || is_early(block)) {
		moved = malloc(bytes);
		if (moved != NULL && block != NULL)
			memcpy(moved, block, bytes < early_left(block) ? bytes : early_left(block));
		return moved;
	}
	size_t before = freed(block);

	moved = next.realloc(block, bytes);
	if (moved == NULL && bytes != 0)
		allocated(block, before); /* it failed and left the block */
	return allocated(moved, bytes);
}

WEAK void *memalign(size_t alignment, size_t bytes)
{
	return found() ? allocated(next.memalign(alignment, bytes), bytes) : NULL;
}

WEAK void *aligned_alloc(size_t alignment, size_t bytes)
{
	return found() ? allocated(next.aligned_alloc(alignment, bytes), bytes) : NULL;
}

WEAK int posix_memalign(void **block, size_t alignment, size_t bytes)
{
	int error = found() ? next.posix_memalign(block, alignment, bytes) : ENOMEM;

	if (error == 0)
		allocated(*block, bytes);
	return error;
}

WEAK void free(void *block)
{
	if (block == NULL || is_early(block) || !found())
		return;
	freed(block);
	next.free(block);
}
