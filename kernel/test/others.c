// SPDX-License-Identifier: GPL-2.0
/* Walks of other processes: who may, and what happens when they end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#define LEN (4 * HUGE)

static int walk_through(int pagemap, struct lookaside_walk *walk, const char *at)
{
	*walk = arguments(at, LEN);
	walk->pagemap = pagemap;
	return walk_as_is(walk);
}

/* What that user gets who wants to walk the process's tables: 0 or errno. */
static int as_user(uid_t user, pid_t target, const char *at)
{
	struct lookaside_walk walk;
	int status, pagemap, error;
	pid_t pid = fork();

	if (!pid) {
		become(user, true);
		pagemap = open_pagemap(target);
		if (pagemap < 0)
			_exit(errno);
		error = walk_through(pagemap, &walk, at);
		_exit(error ? error : walk.present == LEN / PAGE / 8 ? 0 : 98);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}

void other_processes(void)
{
	struct lookaside_walk walk;
	char *at;
	pid_t pid = holder(0, true, LEN, &at);
	int pagemap = open_pagemap(pid);

	ok(pagemap >= 0 && !walk_through(pagemap, &walk, at), "another process's tables can be walked");
	same(walk.touched, LEN / PAGE / 8, "entries touched there");
	same(walk.present, walk.touched, "all of them are there");
	ok(!walk_own(&walk, at, LEN) && !walk.present, "they are not the caller's");
	close(pagemap);
	end(pid);

	pagemap = open_pagemap(2);
	ok(pagemap < 0 || walk_through(pagemap, &walk, at) == ESRCH, "a kernel thread has none");
	close(pagemap);
	/* One's own by way of the file. */
	at = small_pages(LEN);
	pagemap = open_pagemap(getpid());
	ok(!walk_through(pagemap, &walk, at) && walk.present == LEN / PAGE / 8, "one's own pagemap");
	close(pagemap);
	munmap(at, LEN);
}

void other_users(void)
{
	struct lookaside_walk walk;
	char *at;
	pid_t pid = holder(0, true, LEN, &at);
	int pagemap, status, error;

	same(as_user(1000, pid, at), EACCES, "user 1000 may not walk root's");
	end(pid);

	pid = holder(1000, true, LEN, &at);
	same(as_user(1000, pid, at), 0, "user 1000 may walk a process of his");
	same(as_user(1001, pid, at), EACCES, "user 1001 may not");
	same(as_user(0, pid, at), 0, "root may");
	/* The right is with the file, as it is for what can be read from it. */
	pagemap = open_pagemap(pid);
	if (!fork()) {
		become(1001, true);
		error = walk_through(pagemap, &walk, at);
		/* But a file of one's own is none. */
		_exit(error ? error : walk_through(device, &walk, at) == EINVAL ? 0 : 96);
	}
	waitpid(-1, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status), "a pagemap that root opened serves whoever got it");
	close(pagemap);
	end(pid);

	pid = holder(1000, false, LEN, &at);
	same(as_user(1000, pid, at), EACCES, "what is not dumpable is walked by nobody else");
	same(as_user(0, pid, at), 0, "but by root");
	end(pid);

	if (!fork()) {
		become(1000, true);
		error = open(LOOKASIDE_DEVICE, O_RDWR | O_CLOEXEC);
		at = small_pages(LEN);
		_exit(error >= 0 && !walk_own(&walk, at, LEN) && walk.present == LEN / PAGE / 8 ? 0 : 1);
	}
	waitpid(-1, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status), "anybody's own tables are his to walk");
}

static void *end_soon(void *pid)
{
	usleep(30000);
	kill((pid_t)(intptr_t)pid, SIGKILL);
	return NULL;
}

void ending_processes(void)
{
	struct lookaside_walk walk;
	unsigned int exits = 0, calls = 0, tries = 0;
	int pagemap, go[2], begun[2], error;
	pthread_t thread;
	char *at, byte;
	pid_t pid;

	pid = holder(0, true, LEN, &at);
	pagemap = open_pagemap(pid);
	end(pid);
	same(walk_through(pagemap, &walk, at), ESRCH, "a process that has ended");
	close(pagemap);

	/* Another program: it begins when it is told to, which closes its end of the second pipe. */
	at = small_pages(LEN);
	if (pipe2(go, O_CLOEXEC) || pipe2(begun, O_CLOEXEC))
		return;
	pid = fork();
	if (!pid) {
		if (read(go[0], &byte, 1) == 1)
			execl("/init", "/init", "wait", NULL);
		_exit(1);
	}
	close(begun[1]);
	pagemap = open_pagemap(pid);
	ok(!walk_through(pagemap, &walk, at) && walk.present == LEN / PAGE / 8, "a process before exec");
	ok(write(go[1], "", 1) == 1 && read(begun[0], &byte, 1) == 0, "it executes another program");
	close(go[0]);
	close(go[1]);
	close(begun[0]);
	do {
		error = walk_through(pagemap, &walk, at);
	} while (!error && ++calls < 1000 && !usleep(1000));
	same(error, ESRCH, "after exec its old memory is gone");
	close(pagemap);
	munmap(at, LEN);
	end(pid);

	/* In the middle of a walk; where the machine is busy it may be between two. */
	do {
		pid = holder(0, true, LEN, &at);
		pagemap = open_pagemap(pid);
		pthread_create(&thread, NULL, end_soon, (void *)(intptr_t)pid);
		do {
			walk = long_walk(at, LEN);
			walk.stride = 1;
			walk.pagemap = pagemap;
			error = walk_as_is(&walk);
			exits += !error && walk.ended == LOOKASIDE_EXIT;
		} while (!error);
		pthread_join(thread, NULL);
		close(pagemap);
		end(pid);
	} while (error == ESRCH && !exits && ++tries < 10);
	same(error, ESRCH, "a process that ends while its tables are walked");
	same(exits, 1, "the walk that it ended in said so");
}

static long open_files(void)
{
	FILE *file = fopen("/proc/sys/fs/file-nr", "re");
	long count = -1;

	if (file && fscanf(file, "%ld", &count) != 1)
		count = -1;
	if (file)
		fclose(file);
	return count;
}

/* More processes than there is memory for, one after the other: what is walked is not kept. */
void nothing_kept(void)
{
	const size_t len = 64UL << 20;
	const unsigned int processes = sysconf(_SC_PHYS_PAGES) * PAGE / len + 2;
	struct lookaside_walk walk;
	unsigned int i, walked = 0, tries;
	int pagemap;
	long before;
	char *at = NULL;
	pid_t pid;

	for (i = 0; i < processes; i++) {
		at = small_pages(len);
		pid = fork();
		if (!pid)
			_exit(pause());
		munmap(at, len);
		pagemap = open_pagemap(pid);
		/* With and without success. */
		walk = arguments(at, len);
		walk.pagemap = pagemap;
		walk.start = 1UL << 62;
		if (walk_as_is(&walk) != EINVAL)
			break;
		walk.start = (uintptr_t)at;
		if (walk_as_is(&walk) || walk.present != len / PAGE / 8)
			break;
		walked++;
		close(pagemap);
		end(pid);
	}
	ok(walked == processes, "of %u processes with 64 MiB each nothing is kept", processes);

	before = open_files();
	for (i = 0; i < 2000; i++) {
		pagemap = open_pagemap(getpid());
		walk = arguments(at, len);
		walk.pagemap = i % 2 ? pagemap : device;
		if (walk_as_is(&walk) != (i % 2 ? 0 : EINVAL))
			break;
		close(pagemap);
	}
	ok(i == 2000, "walks through files that are pagemaps and such that are none");
	/* They are let go a little later, and counted by CPU: some more or less. */
	for (tries = 0; tries < 100 && open_files() - before >= 500; tries++)
		usleep(20000);
	ok(before >= 0 && tries < 100, "nor are files");
}
