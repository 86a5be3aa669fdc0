/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the parts of the recorder that is compiled into a program share. docs/explanation/recorders.md describes the
 * stream that it writes. */
#ifndef LOOKASIDE_RECORDER_H
#define LOOKASIDE_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
/* It is always linked into an executable, never into a library. */
#define OWN_OF_THREAD __thread __attribute__((tls_model("local-exec")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
/* What a signal handler of the same thread sees is in this order. */
#define IN_ORDER() __asm__ volatile("" ::: "memory")

enum { LOAD = 0, STORE = 1, REPEATS = 3 };
enum { PAGE_SHIFT = 12, BATCH = 4096 /* records: a slot of the shared memory */ };

#define ADDR_MASK ((UINT64_C(1) << 48) - 1)

/* As in the stream. */
struct record {
	uint64_t w0, w1;
};

/* The unit (page or line) last recorded of a class, above the number of accesses to it that were left out since. */
typedef uint64_t filter_slot;
enum { COUNT_BITS = 16 };
#define MOST_REPEATS ((UINT64_C(1) << COUNT_BITS) - 1)
#define NO_UNIT (UINT64_MAX << COUNT_BITS)

/* What each access uses: of the thread itself. */
struct filter {
	uint64_t class_mask;
	filter_slot *table[2];   /* of loads, of stores; maybe one. A thread without a batch has one slot, of no unit */
	/* Where the next record goes; `end` is NULL where each access is to go the slow way. */
	struct record *at, *volatile end;
	volatile uint64_t busy;  /* beyond the filter: a signal handler's accesses are then nobody's */
	volatile bool stopped;   /* by who ends the process, and waits until it is not busy */
	uint64_t stores;         /* made */
	struct thread *thread;
};

/* wire.c: frames. */
enum { FRAME = 4096 /* PIPE_BUF: a write of so much is atomic */, HEADER = 16 };

/* The rest of what is known of a thread: much, since its stack may be small. */
struct thread {
	struct filter *filter;
	uint32_t number;
	uint32_t rounds;     /* of destructors at its end */
	uint32_t unit_shift; /* 12: page, 6: line, 0: nothing is left out */
	uint64_t made;       /* accesses whose records were sent */
	size_t bytes;        /* of this memory */
	struct thread *next;
	struct record *batch;
	size_t text_bytes;            /* of the event that is being written, behind the header of `frame` */
	struct record frame[FRAME / sizeof(struct record)];
	filter_slot slots[];
};

/* threads.c: the program's threads, and the process's beginning and end. */
enum { UNKNOWN, OFF, RECORDING };
HIDDEN extern volatile int recorder_state;
HIDDEN extern OWN_OF_THREAD struct filter recorder_filter;
HIDDEN extern uint32_t recorder_process;
/* More than one thread has run: each batch then leaves no slot behind, so that batches of threads can mix. */
HIDDEN extern volatile bool recorder_many;
/* The calling thread with `busy` set; NULL: nothing is recorded, or it is set already. errno is kept. */
HIDDEN struct thread *recorder_enter(void);
HIDDEN void recorder_leave(struct thread *t);
/* What the process has still to say, as if it ended. */
HIDDEN void recorder_last_words(void);
/* The same, and nothing is recorded any more. */
HIDDEN void recorder_end(void);

/* access.c: records. */
HIDDEN void recorder_slowly(unsigned kind, uint64_t addr, unsigned size, uint64_t instruction);
/* Sends what is pending. `empty`: counts of all slots too, and empties them. The thread is held. */
HIDDEN void recorder_drain(struct thread *t, bool empty);
HIDDEN void recorder_empty_slots(struct thread *t);

/* A program's addresses are below 2^47: at any other the access that is about to come ends it. */
static inline struct record recorder_record(unsigned kind, uint64_t addr, unsigned size, uint64_t instruction,
					    uint64_t before)
{
	return (struct record){addr | (uint64_t)kind << 48 | (uint64_t)size << 56, instruction | before << 48};
}

/* One access: mostly a repeat, which is only counted, else mostly a record of which there is room. */
static inline __attribute__((always_inline)) void recorder_access(unsigned kind, uint64_t addr, unsigned size,
								   uint64_t instruction)
{
	struct filter *f = &recorder_filter;
	filter_slot *slot = &f->table[kind][addr >> PAGE_SHIFT & f->class_mask], old = *slot;

	if (LIKELY(old >> COUNT_BITS == addr >> PAGE_SHIFT && (old & MOST_REPEATS) != MOST_REPEATS)) {
		*slot = old + 1;
		f->stores += kind == STORE;
		return;
	}
	if (LIKELY(f->busy == 0 && old >> COUNT_BITS != addr >> PAGE_SHIFT)) {
		f->busy = 1;
		IN_ORDER();
		struct record *at = f->at;

		if (LIKELY(at < f->end)) {
			*at = recorder_record(kind, addr, size, instruction, old & MOST_REPEATS);
			f->at = at + 1;
			*slot = addr >> PAGE_SHIFT << COUNT_BITS;
			f->stores += kind == STORE;
			IN_ORDER();
			f->busy = 0;
			return;
		}
		f->busy = 0;
	}
	if (recorder_state != OFF)
		recorder_slowly(kind, addr, size, instruction);
}

/* wire.c again. */
struct wire_files {
	int pipe, memory; /* of the shared slots */
	uint64_t pipe_inode, memory_inode;
};
/* Opens the pipe and the memory, which may get other numbers. False: there is no such pipe. */
HIDDEN bool wire_open(struct wire_files *files);
HIDDEN void wire_records(struct thread *t, const struct record *records, size_t n);
/* Sends the event whose text was written last. */
HIDDEN void wire_event(struct thread *t);
HIDDEN void wire_end(struct thread *t);

/* maps.c: sends the mappings that came and went since the last look if some records lie in none that is known. */
HIDDEN void maps_look(struct thread *t, const struct record *records, size_t n);
/* Sends all, or what the program that was executed has. */
HIDDEN void maps_begin(struct thread *t);
/* In the child of a fork, whose mappings are its parent's: they are known if nobody was about to look at them. */
HIDDEN void maps_forked(void);

/* heap.c: forgets who holds its locks, in the child of a fork. */
HIDDEN void heap_forked(void);

/* text.c: the JSON of an event, without a library. */
HIDDEN void text_begin(struct thread *t);
HIDDEN void text_add(struct thread *t, const char *more);
HIDDEN void text_number(struct thread *t, uint64_t number);
/* Between the quotes of a JSON string, cut at 2,000 bytes. */
HIDDEN void text_quoted(struct thread *t, const char *more, size_t bytes);

#endif
