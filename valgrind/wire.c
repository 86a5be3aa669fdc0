// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames into the pipe. Records are put into a slot of the memory that we
 * share with the reader, and the pipe says which; into the frame itself where
 * no slot can be had.
 */

#include "lookaside.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"

/* Core's, not declared for tools: a descriptor beyond the program's reach. */
extern Int VG_(safe_fd)(Int fd);
extern Int VG_(fcntl)(Int fd, Int cmd, Addr arg);
extern SysRes VG_(am_shared_mmap_file_float_valgrind)(SizeT length, UInt prot,
						      Int fd, Off64T offset);

/*
 * Core's too. Only the first member is named, which is the first in all
 * versions since 3.9; find_messages() looks whether it is what it should be.
 */
extern struct {
	Int fd;
} VG_(log_output_sink);

/* Not in Valgrind's headers. */
#define ETIMEDOUT 110

#define MAGIC 0x4C41
#define FRAME_ACCESSES 1
#define FRAME_EVENT 2
#define FRAME_END 3
#define FRAME_SLOT 4

/* The memory for Valgrind's messages has so many. */
#define MESSAGE_BYTES 65536

struct header {
	UShort magic;
	UShort kind;
	UInt payload;
	UInt process;
	UInt thread;
};

/* With room for the header. */
static struct lk_record buffer[1 + LK_FEWEST_RECORDS]
	__attribute__((aligned(64)));

/* The shared memory; docs/explanation/recorders.md describes it. */
#define SLOTS 32
#define SLOT_RECORDS 4096
struct shared {
	volatile UInt taken[SLOTS];
	volatile UInt freed; /* how often a slot became free, mod 2^32 */
	UChar unused[4096 - (SLOTS + 1) * sizeof(UInt)];
	struct lk_record slots[SLOTS][SLOT_RECORDS];
};
static struct shared *shared;
static struct lk_record *ours; /* a slot, or `buffer`; NULL = neither */

struct lk_record *lk_out;
struct lk_record *lk_out_end;

static Int pipe_fd = -1;
static Int shared_fd = -1;
static Int messages_fd = -1;
static UInt process;
static UInt thread;
static ThreadId current = VG_INVALID_THREADID;

/* A file's type, its size where it has one, and its number. */
struct wanted {
	UInt type;
	Long size;
	ULong inode;
};

static Bool is_wanted(Int fd, struct wanted wanted)
{
	struct vg_stat stat;

	return VG_(fstat)(fd, &stat) == 0 &&
	       (stat.mode & VKI_S_IFMT) == wanted.type &&
	       stat.ino == wanted.inode &&
	       (wanted.type != VKI_S_IFREG || stat.size == wanted.size);
}

/*
 * Finds a file: under the number we were given, or, when the program has
 * replaced itself, under the one where our last image had put it out of
 * reach, near the limit of numbers. Puts it out of reach.
 */
static Int find(Int fd, struct wanted wanted)
{
	struct vki_rlimit limit;

	if (!is_wanted(fd, wanted)) {
		if (VG_(getrlimit)(VKI_RLIMIT_NOFILE, &limit) != 0)
			return -1;
		for (fd = limit.rlim_cur + 64; fd > 2; fd--)
			if (is_wanted(fd, wanted))
				break;
		if (fd <= 2)
			return -1;
	}
	fd = VG_(safe_fd)(fd);
	/* Stays open over exec. */
	VG_(fcntl)(fd, VKI_F_SETFD, 0);
	return fd;
}

/* Two numbers of one open file share its flags. */
static Bool is_same(Int a, Int b)
{
	Int flags = VG_(fcntl)(a, VKI_F_GETFL, 0);
	Bool same;

	if (flags < 0 || VG_(fcntl)(b, VKI_F_GETFL, 0) != flags)
		return False;
	VG_(fcntl)(a, VKI_F_SETFL, flags ^ VKI_O_APPEND);
	same = VG_(fcntl)(b, VKI_F_GETFL, 0) != flags;
	VG_(fcntl)(a, VKI_F_SETFL, flags);
	return same;
}

/*
 * Valgrind's messages go to /dev/null, which any user may open and any
 * process may open again; from here on into the memory that we inherited.
 * Valgrind moves the file out of the program's reach and leaves the number
 * that it had: the program would find it taken.
 */
static void find_messages(void)
{
	struct wanted wanted = { VKI_S_IFREG, MESSAGE_BYTES,
				 lk_opt.messages_inode };
	struct vg_stat stat;
	Int sink = VG_(log_output_sink).fd;
	Int fd;

	if (VG_(fstat)(sink, &stat) != 0 ||
	    (stat.mode & VKI_S_IFMT) != VKI_S_IFCHR)
		return;
	/* It was the lowest that was free. */
	for (fd = 0; fd < sink && fd < 1024; fd++)
		if (is_same(sink, fd)) {
			VG_(close)(fd);
			break;
		}
	fd = find(lk_opt.messages_fd, wanted);
	if (fd >= 0)
		VG_(log_output_sink).fd = messages_fd = fd;
}

void lk_wire_open(void)
{
	struct wanted pipe = { VKI_S_IFIFO, 0, lk_opt.inode };
	struct wanted slots = { VKI_S_IFREG, sizeof(struct shared),
				lk_opt.shared_inode };
	SysRes map;

	find_messages();
	pipe_fd = find(lk_opt.fd, pipe);
	if (pipe_fd < 0) {
		VG_(umsg)("no pipe to record into\n");
		VG_(exit)(1);
	}
	shared_fd = find(lk_opt.shared_fd, slots);
	if (shared_fd >= 0) {
		map = VG_(am_shared_mmap_file_float_valgrind)(
			sizeof(struct shared), VKI_PROT_READ | VKI_PROT_WRITE,
			shared_fd, 0);
		if (!sr_isError(map))
			shared = (struct shared *)sr_Res(map);
	}
	process = VG_(getpid)();
	thread = VG_(gettid)();
}

/* Whether the next program that is executed has our descriptors no more. */
void lk_close_on_exec(Bool close)
{
	Int fds[] = { pipe_fd, shared_fd, messages_fd };
	UInt i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			VG_(fcntl)(fds[i], VKI_F_SETFD, close ? VKI_FD_CLOEXEC : 0);
}

/* Not all of these system calls are offered to tools. */
static Long system_call(Long number, Addr a, Addr b, Addr c, Addr d)
{
	register Addr r10 asm("r10") = d;

	asm volatile("syscall"
		     : "+a"(number)
		     : "D"(a), "S"(b), "d"(c), "r"(r10)
		     : "rcx", "r11", "memory");
	return number;
}

/*
 * A write into a pipe without a reader raises SIGPIPE, which Valgrind holds
 * back and would deliver to the program: take it away.
 */
static void take_sigpipe(void)
{
	ULong set = 1ULL << (VKI_SIGPIPE - 1);
	struct vki_timespec now = { 0, 0 };

	system_call(__NR_rt_sigtimedwait, (Addr)&set, 0, (Addr)&now,
		    sizeof(set));
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

void lk_send_records(void)
{
	struct {
		struct header header;
		UInt slot;
		UInt bytes;
	} frame;
	UInt bytes = (HChar *)lk_out - (HChar *)ours;

	if (!ours)
		return;
	if (ours == buffer + 1) {
		if (bytes)
			send(buffer, FRAME_ACCESSES, bytes);
	} else {
		frame.slot = (ours - shared->slots[0]) / SLOT_RECORDS;
		frame.bytes = bytes;
		send(&frame, FRAME_SLOT, sizeof(frame) - sizeof(frame.header));
	}
	ours = lk_out = lk_out_end = NULL;
}

static struct lk_record *free_slot(void)
{
	static UInt next;
	UInt i;

	for (i = 0; i < SLOTS; i++, next++)
		if (__sync_bool_compare_and_swap(&shared->taken[next % SLOTS],
						 0, 1))
			return shared->slots[next++ % SLOTS];
	return NULL;
}

/*
 * Waits for a slot. Not for ever: processes that were killed have kept
 * theirs. From then on this process does without.
 */
static struct lk_record *wait_for_slot(void)
{
	struct vki_timespec second = { 1, 0 };
	struct lk_record *slot;
	UInt freed;

	while (shared && pipe_fd >= 0) {
		freed = shared->freed;
		slot = free_slot();
		if (slot)
			return slot;
		if (system_call(__NR_futex, (Addr)&shared->freed,
				VKI_FUTEX_WAIT, freed,
				(Addr)&second) == -ETIMEDOUT)
			shared = NULL;
	}
	return NULL;
}

void lk_next_frame(void)
{
	UInt records = SLOT_RECORDS;

	lk_send_records();
	ours = wait_for_slot();
	if (!ours) {
		ours = buffer + 1;
		records = LK_FEWEST_RECORDS;
		/* They are empty now. */
		if (lk_opt.window > LK_SMALL_WINDOW)
			lk_opt.window = LK_SMALL_WINDOW;
	}
	lk_out = ours;
	lk_out_end = ours + records;
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

/* We are a child now; the parent has sent all that was in the buffer. */
void lk_forked(void)
{
	lk_forget_totals();
	lk_forget_waits();
	process = VG_(getpid)();
	thread = VG_(gettid)();
}

void lk_send_event(ThreadId tid, const HChar *json, UInt len)
{
	static ULong frame[4096 / sizeof(ULong)];

	lk_switch_thread(tid);
	lk_finish_frame();
	tl_assert(len <= sizeof(frame) - sizeof(struct header));
	VG_(memcpy)((HChar *)frame + sizeof(struct header), json, len);
	send(frame, FRAME_EVENT, len);
}

void lk_send_end(void)
{
	struct header frame;

	lk_filter();
	lk_send_records();
	send(&frame, FRAME_END, 0);
}
