// SPDX-License-Identifier: GPL-2.0-or-later
/* The filter's slots, the buffer of records, and frames into the pipe. */

#include "lookaside.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"

/* Core's, not declared for tools: a descriptor beyond the program's reach. */
extern Int VG_(safe_fd)(Int fd);
extern Int VG_(fcntl)(Int fd, Int cmd, Addr arg);

#define MAGIC 0x4C41
#define FRAME_ACCESSES 1
#define FRAME_EVENT 2
#define FRAME_END 3

struct header {
	UShort magic;
	UShort kind;
	UInt payload;
	UInt process;
	UInt thread;
};

struct lk_slot lk_slots[LK_TABLES << LK_MAX_CLASSES];
/* The first is room for the header of the first frame. */
struct lk_record lk_buffer[1 + LK_FRAME_RECORDS + 2 * LK_RUN]
	__attribute__((aligned(64)));
struct lk_record *lk_pos = LK_BUFFER_FIRST;
ULong lk_instructions;
ULong lk_loads_stores;

static Int pipe_fd = -1;
static UInt process;
static UInt thread;
static ThreadId current = VG_INVALID_THREADID;
static ULong total_loads;
static ULong total_stores;
static ULong total_instructions;

static Bool is_our_pipe(Int fd)
{
	struct vg_stat stat;

	return VG_(fstat)(fd, &stat) == 0 && VKI_S_ISFIFO(stat.mode) &&
	       stat.ino == lk_opt.inode;
}

/*
 * Finds the pipe: under the number we were given, or, when the program has
 * replaced itself, under the one where our last image had put it out of
 * reach, near the limit of numbers.
 */
static Int find_pipe(void)
{
	struct vki_rlimit limit;
	Int fd;

	if (is_our_pipe(lk_opt.fd))
		return lk_opt.fd;
	if (VG_(getrlimit)(VKI_RLIMIT_NOFILE, &limit) != 0)
		return -1;
	for (fd = limit.rlim_cur + 64; fd > 2; fd--)
		if (is_our_pipe(fd))
			return fd;
	return -1;
}

void lk_wire_open(void)
{
	UInt i;
	Int fd = find_pipe();

	if (fd < 0) {
		VG_(umsg)("no pipe to record into\n");
		VG_(exit)(1);
	}
	pipe_fd = VG_(safe_fd)(fd);
	/* Stays open over exec; find_pipe finds it again. */
	VG_(fcntl)(pipe_fd, VKI_F_SETFD, 0);
	process = VG_(getpid)();
	thread = VG_(gettid)();
	for (i = 0; i < LK_TABLES << LK_MAX_CLASSES; i++)
		lk_slots[i].addr = LK_EMPTY;
}

/*
 * A write into a pipe without a reader raises SIGPIPE, which Valgrind holds
 * back and would deliver to the program: take it away.
 */
static void take_sigpipe(void)
{
	ULong set = 1ULL << (VKI_SIGPIPE - 1);
	struct vki_timespec now = { 0, 0 };
	register struct vki_timespec *timeout asm("rdx") = &now;
	register UWord size asm("r10") = sizeof(set);
	Long result = __NR_rt_sigtimedwait;

	asm volatile("syscall"
		     : "+a"(result)
		     : "D"(&set), "S"(0), "r"(timeout), "r"(size)
		     : "rcx", "r11", "memory");
}

/* `frame` begins with room for the header. */
static void send(void *frame, UShort kind, UInt payload)
{
	struct header *header = frame;
	Int bytes = sizeof(*header) + payload;
	Int result;

	if (pipe_fd < 0)
		return;
	header->magic = MAGIC;
	header->kind = kind;
	header->payload = payload;
	header->process = process;
	header->thread = thread;
	do {
		/* At most PIPE_BUF bytes: all or nothing. */
		result = VG_(write)(pipe_fd, frame, bytes);
	} while (result == -VKI_EINTR);
	if (result != bytes) {
		/* Nobody reads any more; the program shall not suffer. */
		take_sigpipe();
		VG_(close)(pipe_fd);
		pipe_fd = -1;
	}
}

static void send_records(UInt n)
{
	send(LK_BUFFER_FIRST - 1, FRAME_ACCESSES, n * sizeof(lk_buffer[0]));
}

/* Sends the frames that are full; what is left moves to the front. */
static void send_full(void)
{
	UInt i;
	UInt left;

	while (lk_pos >= LK_BUFFER_FULL) {
		send_records(LK_FRAME_RECORDS);
		left = lk_pos - LK_BUFFER_FULL;
		for (i = 0; i < left; i++)
			LK_BUFFER_FIRST[i] = LK_BUFFER_FULL[i];
		lk_pos = LK_BUFFER_FIRST + left;
	}
}

static void send_rest(void)
{
	send_full();
	if (lk_pos > LK_BUFFER_FIRST)
		send_records(lk_pos - LK_BUFFER_FIRST);
	lk_pos = LK_BUFFER_FIRST;
}

/* Sends the slot's count, and which table it is of. */
static void send_count(UInt slot)
{
	ULong table = slot >> lk_opt.classes;

	lk_pos->w0 = lk_slots[slot].addr | (ULong)LK_REPEATS << LK_KIND_SHIFT |
		     table << LK_SIZE_SHIFT;
	lk_pos->w1 = lk_slots[slot].count;
	lk_pos++;
	lk_slots[slot].count = 0;
	send_full();
}

/* Called inline when the buffer is full or a count has grown large. */
void lk_spill(void)
{
	UInt i;

	send_full();
	for (i = 0; i < LK_TABLES << lk_opt.classes; i++)
		if (lk_slots[i].count >> LK_COUNT_BIT)
			send_count(i);
}

/* Sends all counts and records; the next access to any page is recorded. */
void lk_empty_slots(void)
{
	UInt i;

	for (i = 0; i < LK_TABLES << lk_opt.classes; i++) {
		if (lk_slots[i].count)
			send_count(i);
		lk_slots[i].addr = LK_EMPTY;
	}
	send_rest();
}

void lk_switch_thread(ThreadId tid)
{
	if (tid == current)
		return;
	lk_empty_slots();
	current = tid;
	thread = VG_(gettid)();
}

/* The thread is gone; its number may come again as another thread. */
void lk_forget_thread(void)
{
	lk_empty_slots();
	current = VG_INVALID_THREADID;
}

void lk_drain_counts(void)
{
	total_instructions += lk_instructions;
	total_loads += lk_loads_stores & 0xffffffff;
	total_stores += lk_loads_stores >> 32;
	lk_instructions = 0;
	lk_loads_stores = 0;
}

/* We are a child now; the parent has sent all that was in the buffer. */
void lk_forked(void)
{
	lk_drain_counts();
	total_instructions = total_loads = total_stores = 0;
	process = VG_(getpid)();
	thread = VG_(gettid)();
}

void lk_send_event(ThreadId tid, const HChar *json, UInt len)
{
	static ULong frame[4096 / sizeof(ULong)];

	lk_switch_thread(tid);
	send_rest();
	tl_assert(len <= sizeof(frame) - sizeof(struct header));
	VG_(memcpy)((HChar *)frame + sizeof(struct header), json, len);
	send(frame, FRAME_EVENT, len);
}

void lk_send_totals(void)
{
	HChar json[200];
	UInt len;

	lk_drain_counts();
	len = VG_(snprintf)(json, sizeof(json),
			    "{\"totals\":{\"loads\":%llu,\"stores\":%llu,"
			    "\"fetches\":%llu,\"instructions\":%llu}}",
			    total_loads, total_stores,
			    lk_opt.fetches ? total_instructions : 0,
			    total_instructions);
	lk_send_event(current, json, len);
}

void lk_send_end(void)
{
	struct header frame;

	send_rest();
	send(&frame, FRAME_END, 0);
}
