// SPDX-License-Identifier: GPL-2.0
/* Memory and processes to look at. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

char *reserve(size_t len)
{
	char *at = mmap(NULL, len + HUGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED) {
		ok(false, "%zu bytes can be had: %s", len, strerror(errno));
		exit(1);
	}
	at = (char *)(((uintptr_t)at + HUGE - 1) & ~(HUGE - 1));
	madvise(at, len, MADV_NOHUGEPAGE);
	return at;
}

char *small_pages(size_t len)
{
	char *at = reserve(len);

	memset(at, 1, len);
	return at;
}

void become(uid_t user, bool dumpable)
{
	if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user))
		_exit(99);
	/* A change of user makes it undumpable: nobody but root looks at it. */
	prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0);
}

void become_nice(uid_t user)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct rights[2] = { {
		.effective = 1U << CAP_SYS_NICE,
		.permitted = 1U << CAP_SYS_NICE,
	} };

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
		_exit(99);
	become(user, true);
	if (syscall(SYS_capset, &header, rights))
		_exit(99);
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

pid_t holder(uid_t user, bool dumpable, size_t len, char **at)
{
	int ready[2];
	char byte;
	pid_t pid;

	*at = small_pages(len);
	if (pipe2(ready, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		close(ready[0]);
		become(user, dumpable);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	ok(pid > 0 && read(ready[0], &byte, 1) == 1, "a process of user %u%s", user, dumpable ? "" : ", not dumpable");
	close(ready[0]);
	munmap(*at, len);
	return pid;
}

void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int open_pagemap(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}
