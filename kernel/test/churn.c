// SPDX-License-Identifier: GPL-2.0
/* Walks while signals come, while others wait for the lock, while everything changes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static atomic_uint alarms;
static atomic_bool stop;

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

void signals(void)
{
	const struct sigaction action = { .sa_handler = on_alarm }, usual = { .sa_handler = SIG_DFL };
	const struct itimerval soon = { { 0, 5000 }, { 0, 5000 } }, never = { 0 };
	const size_t len = 2 * HUGE;
	char *at = small_pages(len);
	struct lookaside_walk walk = long_walk(at, len);
	unsigned int ends[4] = { 0 };
	uint64_t touched = 0;
	int error;

	walk.stride = 1;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	do {
		error = walk_as_is(&walk);
		if (error)
			break;
		touched += walk.touched;
		ends[walk.ended & 3]++;
		walk.len -= walk.next - walk.start;
		walk.start = walk.next;
	} while (walk.ended != LOOKASIDE_END);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &usual, NULL);
	same(error, 0, "a walk interrupted by signals is no failure");
	ok(ends[LOOKASIDE_SIGNAL] > 0 && alarms > 0, "signals end a walk");
	same(touched, len / PAGE, "and each entry is touched once all the same");

	/* A deadly one. */
	pid_t pid = fork();

	if (!pid) {
		do
			walk = long_walk(at, len);
		while (!walk_as_is(&walk));
		_exit(1);
	}
	usleep(20000);
	kill(pid, SIGKILL);
	same(waitpid(pid, &error, 0), pid, "a walking process can be killed");
	ok(WIFSIGNALED(error), "it was killed");
	munmap(at, len);
}

static void *map_and_unmap(void *count)
{
	while (!stop) {
		void *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		munmap(at, PAGE);
		++*(atomic_uint *)count;
	}
	return NULL;
}

/* One call that takes long leaves the lock to others now and then. */
void waiting_writers(void)
{
	const size_t len = 2 * HUGE;
	char *at = small_pages(len);
	struct lookaside_walk walk;
	unsigned int before, during = 0, calls = 0;
	atomic_uint count = 0;
	int error;
	pthread_t thread;

	stop = false;
	pthread_create(&thread, NULL, map_and_unmap, &count);
	while (!count)
		usleep(1000);
	/* On a busy machine the thread may not run meanwhile. */
	do {
		walk = long_walk(at, len);
		before = count;
		error = walk_as_is(&walk);
		during = count - before;
	} while (!error && during < 10 && ++calls < 100);
	stop = true;
	pthread_join(thread, NULL);
	ok(!error && walk.touched > 100, "a long walk");
	/* A call that kept the lock would let two in: one before it, one after. */
	ok(during >= 10, "mappings come and go during it");
	munmap(at, len);
}

/* What the threads share: a range in which everything changes. */
static struct {
	char *at;
	size_t len;
	int file;
	atomic_uint calls;
	atomic_uint changes;
	atomic_uint errors;
	atomic_uint implausible;
	atomic_ulong huge;
} all;

static void *walker(void *seed)
{
	static const unsigned int strides[] = { 1, 8, 7, 512 };
	unsigned int state = (uintptr_t)seed;

	while (!stop) {
		struct lookaside_walk walk = arguments(all.at, all.len);

		walk.stride = strides[rand_r(&state) % 4];
		walk.nops = rand_r(&state) % 4 ? 0 : 1000;
		walk.start += rand_r(&state) % (all.len / PAGE / 2) * PAGE;
		walk.len = (rand_r(&state) % (all.len / PAGE / 2) + 1) * PAGE;
		all.errors += walk_as_is(&walk) != 0;
		/* A mapping may begin at every page, its first is touched. */
		all.implausible += walk.touched > walk.len / PAGE || walk.present > walk.touched ||
				   walk.next > walk.start + walk.len || walk.next <= walk.start;
		all.huge += walk.huge;
		all.calls++;
	}
	return NULL;
}

/* One change of a part of this half of the range, which nobody else changes. */
static void change(char *half, unsigned int *state)
{
	size_t pages = all.len / 2 / PAGE, first = rand_r(state) % pages, count = rand_r(state) % 1024 + 1;
	char *at = half + first * PAGE, *huge = half + first / 512 * HUGE;
	int flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS;
	size_t i, len;

	if (first + count > pages)
		count = pages - first;
	len = count * PAGE;
	switch (rand_r(state) % 9) {
	case 0:
		munmap(at, len);
		break;
	case 1:
		mmap(at, len, PROT_READ | PROT_WRITE, flags, -1, 0);
		for (i = 0; i < len; i += PAGE)
			at[i] = 1;
		break;
	case 2:
		madvise(at, len, MADV_DONTNEED);
		break;
	case 3:
		mprotect(at, len, PROT_READ);
		break;
	case 4:
		mremap(at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, half + rand_r(state) % (pages - count + 1) * PAGE);
		break;
	case 5:
		mmap(huge, HUGE, PROT_READ | PROT_WRITE, flags, -1, 0);
		madvise(huge, HUGE, MADV_HUGEPAGE);
		*huge = 1;
		break;
	case 6:
		/* A file's small pages, made a huge one under whoever reads the tables, and no more. */
		mmap(huge, HUGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, all.file, 0);
		for (i = 0; i < HUGE; i += PAGE)
			huge[i] = 1;
		madvise(huge, HUGE, MADV_COLLAPSE);
		break;
	case 7:
		fallocate(all.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first % 512 * PAGE, PAGE);
		break;
	case 8:
		if (!fork())
			_exit(0);
		waitpid(-1, NULL, 0);
		break;
	}
}

static void *changer(void *seed)
{
	unsigned int state = (uintptr_t)seed;

	while (!stop) {
		change(all.at + (uintptr_t)seed % 2 * all.len / 2, &state);
		all.changes++;
	}
	return NULL;
}

void churn(unsigned int seconds)
{
	pthread_t threads[4];
	uintptr_t i;

	all.len = 16 * HUGE;
	all.at = small_pages(all.len);
	all.file = memfd_create("churn", MFD_CLOEXEC);
	ok(all.file >= 0 && !ftruncate(all.file, HUGE), "a file in memory");
	stop = false;
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i / 2 ? changer : walker, (void *)i);
	sleep(seconds);
	stop = true;
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	note("%u s: %u walks, %u changes, %lu huge pages seen", seconds, all.calls, all.changes, all.huge);
	ok(all.calls > 0 && all.changes > 0 && all.huge > 0, "walks while all is mapped, unmapped, moved, collapsed, forked");
	same(all.errors, 0, "walks that failed");
	same(all.implausible, 0, "counts that cannot be");
	munmap(all.at, all.len);
	close(all.file);
}
