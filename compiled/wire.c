/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Frames into the pipe that Lookaside reads. Records go into the memory that both share, and a frame says where; into
 * frames where no memory can be had. A pipe that is closed ends the recording, and nothing else. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

enum {
	MAGIC = 0x4C41,
	ACCESSES = 1, /* frame kinds */
	EVENT = 2,
	END = 3,
	SLOT = 4,
	SLOTS = 32
};

struct header {
	uint16_t magic, kind;
	uint32_t payload, process, thread;
};

/* docs/explanation/recorders.md describes it. */
struct shared {
	volatile uint32_t taken[SLOTS];
	volatile uint32_t freed; /* how often a slot became free, mod 2^32 */
	uint8_t unused[4096 - (SLOTS + 1) * sizeof(uint32_t)];
	struct record slots[SLOTS][BATCH];
};

static int pipe_file = -1;
static struct shared *volatile shared;

/* Is it the file that was meant? Its number may be another's by now. */
static bool is_file(int file, uint64_t inode)
{
	struct stat stat;

	return fstat(file, &stat) == 0 && stat.st_ino == inode;
}

/* Moves a file out of the program's way: above the limit that it sees, so that it neither meets nor reuses the number. It
 * stays open over exec. */
static int moved(int file)
{
	struct rlimit limit, raised;
	int high = -1;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur <= 8)
		return file;
	raised = limit;
	raised.rlim_cur += 2;
	if (raised.rlim_cur <= limit.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0) {
		high = fcntl(file, F_DUPFD, (int)limit.rlim_cur);
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (high < 0)
		high = fcntl(file, F_DUPFD, (int)limit.rlim_cur - 2);
	if (high < 0)
		return file;
	close(file);
	return high;
}

bool wire_open(struct wire_files *files)
{
	struct stat stat;
	void *room;

	if (!is_file(files->pipe, files->pipe_inode))
		return false;
	if (files->pipe < 1024)
		files->pipe = moved(files->pipe);
	pipe_file = files->pipe;
	if (!is_file(files->memory, files->memory_inode))
		return true;
	if (files->memory < 1024)
		files->memory = moved(files->memory);
	if (fstat(files->memory, &stat) != 0 || stat.st_size != (off_t)sizeof(struct shared))
		return true;
	room = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, files->memory, 0);
	if (room != MAP_FAILED)
		shared = room;
	return true;
}

/* At most PIPE_BUF bytes: all or nothing. */
static void write_frame(const void *frame, size_t length)
{
	while (recorder_state == RECORDING) {
		long n = syscall(SYS_write, pipe_file, frame, length);

		if (n == (long)length)
			return;
		if (n < 0 && errno == EINTR)
			continue;
		recorder_state = OFF;
		if (errno != EPIPE) {
			static const char said[] = "lookaside: the recording stopped: its pipe was closed\n";

			syscall(SYS_write, 2, said, sizeof said - 1);
		}
	}
}

/* The thread's frame. A reader that is gone must not end the program by SIGPIPE. */
static void send(struct thread *t, uint16_t kind, uint32_t payload)
{
	struct header header = {MAGIC, kind, payload, recorder_process, t->number};
	struct timespec now = {0, 0};
	sigset_t sigpipe, old, pending;
	int error = errno;

	memcpy(t->frame, &header, HEADER);
	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	sigpending(&pending);
	sigprocmask(SIG_BLOCK, &sigpipe, &old);
	write_frame(t->frame, HEADER + payload);
	if (recorder_state == OFF && !sigismember(&pending, SIGPIPE)) {
		while (sigtimedwait(&sigpipe, NULL, &now) < 0 && errno == EINTR)
			;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	errno = error;
}

static int free_slot(struct shared *memory)
{
	static uint32_t next;
	uint32_t first = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);

	for (uint32_t i = first; i != first + SLOTS; i++) {
		if (__sync_bool_compare_and_swap(&memory->taken[i % SLOTS], 0, 1))
			return (int)(i % SLOTS);
	}
	return -1;
}

/* Waits for a slot. Not for ever: processes that were killed have kept theirs. Then this process does without. */
static int wait_for_slot(struct shared *memory)
{
	struct timespec second = {1, 0};

	while (memory != NULL && recorder_state == RECORDING) {
		uint32_t freed = memory->freed;
		int slot = free_slot(memory), error = errno;

		if (slot >= 0)
			return slot;
		if (syscall(SYS_futex, &memory->freed, FUTEX_WAIT, freed, &second, NULL, 0) != 0 && errno == ETIMEDOUT)
			memory = shared = NULL;
		errno = error;
	}
	return -1;
}

void wire_records(struct thread *t, const struct record *records, size_t n)
{
	enum { MOST = (FRAME - HEADER) / sizeof(struct record) };
	struct shared *memory = shared;
	int slot = wait_for_slot(memory);

	if (slot >= 0) {
		uint32_t named[2] = {(uint32_t)slot, (uint32_t)(n * sizeof(struct record))};

		memcpy(memory->slots[slot], records, n * sizeof(struct record));
		memcpy(t->frame + 1, named, sizeof named);
		send(t, SLOT, sizeof named);
		return;
	}
	while (n > 0 && recorder_state == RECORDING) {
		size_t some = n < MOST ? n : MOST;

		memcpy(t->frame + 1, records, some * sizeof(struct record));
		send(t, ACCESSES, (uint32_t)(some * sizeof(struct record)));
		records += some;
		n -= some;
	}
}

void wire_event(struct thread *t)
{
	send(t, EVENT, (uint32_t)t->text_bytes);
}

void wire_end(struct thread *t)
{
	send(t, END, 0);
}
