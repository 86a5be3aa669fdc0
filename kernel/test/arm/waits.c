// SPDX-License-Identifier: GPL-2.0
/* A process whose memory is locked for long keeps those waiting who ask for it, and nobody else. */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm.h"

/* Whether it has not done yet what it was told. */
static bool is_busy(const struct puppet *puppet)
{
	struct pollfd answer = { .fd = puppet->done, .events = POLLIN };

	return poll(&answer, 1, 0) == 0;
}

/* It forks, and has its memory locked meanwhile: 0, or the number of what did wait though it should not. */
static int wait_for_fork(const struct puppet *one, int (*its)(const struct puppet *puppet), int (*own)(void))
{
	pid_t waiting;
	int wrong = 0;
	char byte = 'f';

	if (write(one->orders, &byte, 1) != 1)
		return -1;
	usleep(10000);
	waiting = fork();
	if (!waiting)
		_exit(its(one));
	while (is_busy(one) && sleeps_in(waiting) != SYS_ioctl)
		usleep(1000);
	if (own() || !is_busy(one) || sleeps_in(waiting) != SYS_ioctl)
		wrong = 1;
	end(waiting);
	/* When its memory is unlocked it has forked a moment later. */
	usleep(50000);
	if (!wrong && !is_busy(one))
		wrong = 2;
	return read(one->done, &byte, 1) == 1 ? wrong : -1;
}

void waits(int (*its)(const struct puppet *puppet), int (*own)(void), const char *what)
{
	struct puppet one = puppet(0);
	unsigned int tries = 0;
	int wrong;

	ok(tell(&one, 'm'), "it has a great many mappings");
	/* Again where the machine was held up. */
	do {
		wrong = wait_for_fork(&one, its, own);
	} while (wrong && ++tries < 10);
	ok(wrong == 0 || wrong == 2, "while a call waits for it to fork, %s", what);
	same(wrong, 0, "the call ends at once when it is killed");
	same(own(), 0, "then all is as before");
	dismiss(&one);
}
