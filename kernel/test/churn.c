// SPDX-License-Identifier: GPL-2.0
/* Walks while signals come, while others wait for the lock, while everything changes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
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

/* Somebody wants the lock all the while. */
void waiting_writers(void)
{
	const size_t len = 2 * HUGE;
	char *at = small_pages(len);
	struct lookaside_walk walk;
	unsigned int before, during = 0, calls = 0;
	atomic_uint count = 0;
	pthread_t thread;
	int error;

	stop = false;
	pthread_create(&thread, NULL, map_and_unmap, &count);
	/* On a busy machine the thread may not run meanwhile. */
	do {
		walk = long_walk(at, len);
		before = count;
		error = walk_as_is(&walk);
		during += count - before;
	} while (!error && during < 100 && ++calls < 1000);
	stop = true;
	pthread_join(thread, NULL);
	ok(!error && walk.touched == 128 && during >= 100, "mappings come and go during walks");
	munmap(at, len);
}

static bool write_to(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	bool done = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);

	close(file);
	return done;
}

#define EVENT "mmap_lock_acquire_returned"

/* How often the process takes the lock until a walk is done, if there is one, as the kernel traces it; -1: unknown. */
static int traced(struct lookaside_walk *walk)
{
	static const char enable[] = "/tracing/events/mmap_lock/" EVENT "/enable";
	char line[1024];
	int count = 0;
	FILE *file;

	if (!write_to("/tracing/trace", "\n") || !write_to(enable, "1"))
		return -1;
	if ((walk && walk_as_is(walk)) || !write_to(enable, "0"))
		return -1;
	file = fopen("/tracing/trace", "re");
	while (file && fgets(line, sizeof(line), file))
		count += strstr(line, EVENT) && strstr(line, "write=false");
	if (file)
		fclose(file);
	return count;
}

/* How often a walk does. To have it traced does, too, in newer kernels. */
static int terms(struct lookaside_walk *walk)
{
	int before = traced(NULL), with = traced(walk);

	return before < 0 || with < 0 ? -1 : with - before;
}

/* The lock is given up after 512 steps, which bounds how long anybody waits. */
void terms_of_the_lock(void)
{
	const size_t len = 2 * HUGE;
	char *at = small_pages(len), pid[16];
	struct lookaside_walk walk = long_walk(at, len);

	snprintf(pid, sizeof(pid), "%d", getpid());
	mkdir("/tracing", 0700);
	mount("tracing", "/tracing", "tracefs", 0, NULL);
	ok(write_to("/tracing/set_event_pid", pid), "the kernel can be traced");
	/* Each touch is more than 512 steps by its NOPs. */
	same(terms(&walk), 128, "terms of the lock of 128 touches with many NOPs");
	/* Of a term's steps one finds the mapping, one each of the two tables: 510, 2 + 507 and 5 touches. */
	walk = arguments(at, len);
	walk.stride = 1;
	same(terms(&walk), 3, "terms of 1024 touches");
	walk = arguments(at, len);
	same(terms(&walk), 1, "terms of 128 touches");
	/* What there is none of takes steps as well: a table's place each. Some are there, or whole gigabytes would be one step. */
	munmap(at, len);
	at = reserve(600 * HUGE);
	for (size_t i = 0; i < 600; i += 150)
		at[i * HUGE] = 1;
	walk = arguments(at, 600 * HUGE);
	same(terms(&walk), 2, "terms of 600 places of tables");
	munmap(at, 600 * HUGE);
	umount("/tracing");
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
	unsigned int waited;
	uintptr_t i;

	all.len = 16 * HUGE;
	all.at = small_pages(all.len);
	all.file = memfd_create("churn", MFD_CLOEXEC);
	ok(all.file >= 0 && !ftruncate(all.file, HUGE), "a file in memory");
	stop = false;
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i / 2 ? changer : walker, (void *)i);
	/* Longer where the machine is held up: there has to be something to see. */
	for (waited = 0; waited < seconds || (waited < 60 && (all.changes < 50 || !all.huge)); waited++)
		sleep(1);
	stop = true;
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	note("%u s: %u walks, %u changes, %lu huge pages seen", waited, all.calls, all.changes, all.huge);
	ok(all.calls > 0 && all.changes > 0 && all.huge > 0, "walks while all is mapped, unmapped, moved, collapsed, forked");
	same(all.errors, 0, "walks that failed");
	same(all.implausible, 0, "counts that cannot be");
	munmap(all.at, all.len);
	close(all.file);
}
