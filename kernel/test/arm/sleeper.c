// SPDX-License-Identifier: GPL-2.0
/* A thread to be moved about. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arm.h"

static void *sleep_until_poked(void *arg)
{
	struct sleeper *sleeper = arg;
	char byte;

	sleeper->id = gettid();
	while (write(sleeper->done[1], "", 1) == 1 && read(sleeper->orders[0], &byte, 1) == 1 && !byte)
		;
	return NULL;
}

/* The kernel waits until a thread is off its core to tell where it sleeps. */
long sleeps_in(pid_t thread)
{
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/syscall", thread);
	file = fopen(path, "re");
	/* "running" is no number. */
	if (file && fscanf(file, "%ld", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number;
}

void wait_for_it(const struct sleeper *sleeper)
{
	unsigned int tries = 0;
	char byte;

	if (read(sleeper->done[0], &byte, 1) != 1)
		ok(false, "the thread answers");
	while (sleeps_in(sleeper->id) != SYS_read)
		if (++tries == 10000)
			ok(false, "the thread sleeps");
		else
			usleep(1000);
}

void start_sleeper(struct sleeper *sleeper)
{
	if (pipe(sleeper->orders) || pipe(sleeper->done) ||
	    pthread_create(&sleeper->thread, NULL, sleep_until_poked, sleeper)) {
		ok(false, "a thread can be made");
		exit(1);
	}
	wait_for_it(sleeper);
}

void poke(struct sleeper *sleeper)
{
	if (write(sleeper->orders[1], "", 1) != 1)
		ok(false, "the thread can be poked");
	wait_for_it(sleeper);
}

void end_sleeper(struct sleeper *sleeper)
{
	if (write(sleeper->orders[1], "\1", 1) != 1)
		ok(false, "the thread can be ended");
	pthread_join(sleeper->thread, NULL);
	close(sleeper->orders[0]), close(sleeper->orders[1]);
	close(sleeper->done[0]), close(sleeper->done[1]);
}
