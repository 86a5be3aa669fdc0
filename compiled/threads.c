/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The program's threads, and the beginning and the end of its process. The program goes on as if nothing was there:
 * errno is kept, and no memory of its heap is taken. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

/* By this Lookaside knows such programs. */
static const struct {
	uint32_t name_bytes, bytes, kind;
	char name[12];
	uint32_t version;
} note __attribute__((section(".note.lookaside"), used, aligned(4))) = {10, 4, 1, "Lookaside", 1};

volatile int recorder_state = UNKNOWN;
static filter_slot no_slot = NO_UNIT;
OWN_OF_THREAD struct filter recorder_filter = {.table = {&no_slot, &no_slot}};
uint32_t recorder_process;
volatile bool recorder_many;

/* As LOOKASIDE_COMPILED says. */
static struct {
	uint32_t unit_shift, classes_log2;
	bool apart; /* stores have a table of their own */
} options;

/* All threads that have a batch, and what those that ended had made. Guarded by `lock`. */
static struct thread *threads;
static uint64_t gone_made, gone_stores;
static int lock;
/* Zero in the child of a fork, however it was made. */
static volatile uint64_t *here;
static pthread_key_t ending;
/* A thread's batch is being made, by calls whose own accesses shall not ask for one. */
static OWN_OF_THREAD bool starting;

static void hold(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_sched_yield);
}

static void release(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* `#` stands for the first number, `$` for the second. */
static void send_numbers(struct thread *t, const char *format, uint64_t first, uint64_t second)
{
	char piece[2] = {0, 0};

	text_begin(t);
	for (; *format; format++) {
		piece[0] = *format;
		if (*format == '#')
			text_number(t, first);
		else if (*format == '$')
			text_number(t, second);
		else
			text_add(t, piece);
	}
	wire_event(t);
}

/* A whole number before a comma or the end. */
static uint64_t next_number(const char **at)
{
	uint64_t number = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++)
		number = 10 * number + (uint64_t)(**at - '0');
	*at += **at == ',';
	return number;
}

/* Writes a number over one of ten digits, for the programs that this one executes. */
static void overwrite(char *digits, int number)
{
	for (int i = 9; i >= 0; i--, number /= 10)
		digits[i] = (char)('0' + number % 10);
}

/* When a thread ends: in each round of its destructors, since others may come after ours. What they do in the last round
 * after ours is not recorded. */
static void end_thread(void *its)
{
	struct thread *t = its, **link = &threads;

	if (recorder_enter() == NULL)
		return;
	if (++t->rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(ending, t);
		recorder_leave(t);
		return;
	}
	recorder_drain(t, true);
	send_numbers(t, "{\"thread-exit\":{\"thread\":#}}", t->number, 0);
	hold();
	gone_made += t->made;
	gone_stores += t->filter->stores;
	while (*link != NULL && *link != t)
		link = &(*link)->next;
	if (*link != NULL)
		*link = t->next;
	release();
	starting = true; /* for ever: its filter's memory is about to go */
	*t->filter = (struct filter){.table = {&no_slot, &no_slot}};
	munmap(t, t->bytes);
}

/* In the child of a fork: what the parent's threads had to say is theirs. `t` is the calling thread, held, or NULL. */
static void start_child(struct thread *t)
{
	uint32_t parent = recorder_process;

	*here = 1;
	recorder_process = (uint32_t)getpid();
	lock = 0;
	threads = t;
	gone_made = gone_stores = 0;
	recorder_many = false;
	maps_forked();
	heap_forked();
	if (t == NULL)
		return;
	t->next = NULL;
	t->number = recorder_process;
	t->filter->at = t->batch;
	t->made = t->filter->stores = 0;
	recorder_empty_slots(t);
	send_numbers(t, "{\"fork\":{\"parent\":#,\"child\":$}}", parent, recorder_process);
}

static void after_fork(void)
{
	struct thread *t = recorder_enter();

	if (t != NULL)
		recorder_leave(t);
}

/* Bits of the last of the options: stores are filtered apart; another program was executed before in this process. */
enum { APART = 1, EXECUTED = 2 };

/* Reads LOOKASIDE_COMPILED: number and inode of the pipe, those of the shared slots, the filter's unit and classes, and the
 * bits above. For programs that are executed later, what has changed is written there. */
static bool read_options(char *said, bool *executed)
{
	const char *at = said, *memory;
	struct wire_files files;

	files.pipe = (int)next_number(&at);
	files.pipe_inode = next_number(&at);
	memory = at;
	files.memory = (int)next_number(&at);
	files.memory_inode = next_number(&at);
	options.unit_shift = (uint32_t)next_number(&at);
	options.classes_log2 = (uint32_t)next_number(&at);
	options.apart = (*at - '0') & APART;
	*executed = (*at - '0') & EXECUTED;
	if (*at == 0 || memory - said < 11 || memory[10] != ',' || options.classes_log2 > 12 ||
	    options.unit_shift > PAGE_SHIFT || !wire_open(&files))
		return false;
	overwrite(said, files.pipe);
	overwrite(said + (memory - said), files.memory);
	said[at - said] |= EXECUTED;
	return true;
}

/* This program took the place of another that was recorded. */
static void send_exec(struct thread *t)
{
	char path[1024];
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof path);

	text_begin(t);
	text_add(t, "{\"exec\":{\"path\":\"");
	text_quoted(t, path, bytes > 0 ? (size_t)bytes : 0);
	text_add(t, "\"}}");
	wire_event(t);
}

/* The first that is heard of the process: without it nobody would know that it was killed. */
static void begin(bool executed)
{
	struct thread *t = recorder_enter();

	if (t == NULL)
		return;
	if (executed)
		send_exec(t);
	maps_begin(t);
	recorder_leave(t);
}

/* Asks once whether to record. */
static __attribute__((constructor(101))) void start(void)
{
	static int asked;
	char *said;
	void *room;
	bool executed;

	if (__atomic_exchange_n(&asked, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	said = secure_getenv("LOOKASIDE_COMPILED");
	if (said != NULL && read_options(said, &executed)) {
		room = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (room != MAP_FAILED && madvise(room, 4096, MADV_WIPEONFORK) == 0 &&
		    pthread_key_create(&ending, end_thread) == 0) {
			here = room;
			*here = 1;
			recorder_process = (uint32_t)getpid();
			syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
			pthread_atfork(NULL, NULL, after_fork);
			atexit(recorder_end);
			at_quick_exit(recorder_end);
			recorder_state = RECORDING;
			begin(executed);
			return;
		}
	}
	recorder_state = OFF;
}

/* Fast is what leaves out repeats of a page. */
static void open_fast_way(struct thread *t)
{
	t->filter->end = t->unit_shift == PAGE_SHIFT ? t->batch + BATCH : NULL;
}

/* A batch for the calling thread, with `busy` set; NULL if there is none. */
static struct thread *start_thread(void)
{
	size_t classes = (size_t)1 << options.classes_log2;
	size_t bytes = sizeof(struct thread) + 2 * classes * sizeof(filter_slot) + BATCH * sizeof(struct record);
	struct thread *t = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct filter *f = &recorder_filter;

	if (t == MAP_FAILED)
		return NULL;
	t->filter = f;
	t->bytes = bytes;
	t->unit_shift = options.unit_shift;
	t->batch = (struct record *)(t->slots + 2 * classes);
	t->number = (uint32_t)syscall(SYS_gettid);
	f->busy = 1;
	f->class_mask = classes - 1;
	f->at = t->batch;
	f->thread = t;
	recorder_empty_slots(t);
	IN_ORDER();
	f->table[LOAD] = t->slots;
	f->table[STORE] = t->slots + (options.apart ? classes : 0);
	open_fast_way(t);
	pthread_setspecific(ending, t);
	hold();
	t->next = threads;
	threads = t;
	release();
	if (t->number != recorder_process) {
		recorder_many = true;
		send_numbers(t, "{\"thread-start\":{\"thread\":#}}", t->number, 0);
	}
	return t;
}

struct thread *recorder_enter(void)
{
	struct filter *f = &recorder_filter;
	struct thread *t = f->thread;
	int error = errno;

	if (recorder_state == UNKNOWN)
		start();
	if (recorder_state != RECORDING || starting)
		return NULL;
	if (t == NULL) {
		starting = true;
		t = start_thread();
		starting = false;
	} else if (f->busy != 0) {
		t = NULL;
	} else {
		f->busy = 1;
		IN_ORDER();
		if (f->stopped) {
			f->busy = 0;
			return NULL;
		}
	}
	if (*here == 0)
		start_child(t);
	errno = error;
	return t;
}

void recorder_leave(struct thread *t)
{
	IN_ORDER();
	t->filter->busy = 0;
}

/* Stops a thread at its next record. False: it is held where it stands, for a second now, or has ended by a bare system
 * call, and its filter is nobody's memory. */
static bool stop(struct thread *t)
{
	struct timespec pause = {0, 1000000};

	if (syscall(SYS_tgkill, recorder_process, t->number, 0) != 0)
		return false;
	t->filter->stopped = true;
	t->filter->end = NULL;
	/* Each thread is from here on either seen to be busy, or sees that it is stopped. */
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (int i = 0; t->filter->busy != 0 && i < 1000; i++)
		syscall(SYS_nanosleep, &pause, NULL);
	return t->filter->busy == 0;
}

/* The calling thread, held, of a process that may speak for itself. The child of a vfork is in its parent's memory. */
static struct thread *enter_alone(void)
{
	if (recorder_state != RECORDING || (*here != 0 && (uint32_t)getpid() != recorder_process))
		return NULL;
	return recorder_enter();
}

/* What all threads have still to say, and the totals. `t` is the calling thread, held. What others do meanwhile is not
 * recorded. */
static void say_all(struct thread *t, bool goes_on)
{
	hold();
	uint64_t made = gone_made, stores = gone_stores;

	for (struct thread *other = threads; other != NULL; other = other->next) {
		if (other != t && !stop(other))
			continue;
		recorder_drain(other, true);
		made += other->made;
		stores += other->filter->stores;
		if (other != t && goes_on) {
			open_fast_way(other);
			other->filter->stopped = false;
		}
	}
	release();
	send_numbers(t, "{\"totals\":{\"loads\":#,\"stores\":$,\"fetches\":0,\"instructions\":0}}", made - stores, stores);
	wire_end(t);
}

void recorder_last_words(void)
{
	struct thread *t = enter_alone();

	if (t == NULL)
		return;
	say_all(t, true);
	recorder_leave(t);
}

void recorder_end(void)
{
	int error = errno;
	struct thread *t = enter_alone();

	if (t == NULL)
		return;
	say_all(t, false);
	recorder_state = OFF;
	errno = error;
}

__attribute__((weak)) void _exit(int code)
{
	recorder_end();
	for (;;)
		syscall(SYS_exit_group, code);
}

__attribute__((weak)) void _Exit(int code)
{
	_exit(code);
}
