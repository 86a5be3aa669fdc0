// SPDX-License-Identifier: GPL-2.0
/* Locking while mappings change; what was written down is held against a model of the entries. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm.h"

#define PAGES	6
#define ROUNDS	400

/* Lockable entries of each core, by what was written down. */
static struct {
	uint32_t mva[4];	/* 0: none */
	uint32_t last;		/* invalidated last: it has the ASID */
	uint32_t preserve;	/* register: 0, or the entry and 1 */
} model[8];

/* Takes in what was written down since; gives what cannot be. */
static unsigned int replay(void)
{
	static struct event events[EVENTS];
	size_t count = recorded(events), i;
	unsigned int wrong = 0, entry;

	for (i = 0; i < count; i++) {
		uint32_t value = events[i].value, core = events[i].core % 8;

		if (!strcmp(events[i].what, "invalidate")) {
			/* Never while walks fill an entry. */
			wrong += model[core].preserve != 0;
			model[core].last = value;
			for (entry = 0; entry < 4; entry++)
				if (model[core].mva[entry] == value)
					model[core].mva[entry] = 0;
		} else if (!strcmp(events[i].what, "register")) {
			model[core].preserve = value & 1 ? value : 0;
		} else if (!strcmp(events[i].what, "lost")) {
			wrong++;
		} else if (model[core].preserve && !strcmp(events[i].what, "touch")) {
			entry = model[core].preserve >> 28;
			/* The page's other entry is gone, and this one is free. */
			wrong += (model[core].last & -PAGE) != value || model[core].mva[entry];
			model[core].mva[entry] = model[core].last;
		}
	}
	return wrong;
}

static unsigned int held(void)
{
	unsigned int count = 0, core, entry;

	for (core = 0; core < 8; core++)
		for (entry = 0; entry < 4; entry++)
			count += !!model[core].mva[entry];
	return count;
}

/* Changes one of the pages after the other, and has them written again. */
static void change(char *pages)
{
	unsigned int state = 1;

	while (true) {
		char *page = pages + rand_r(&state) % PAGES * PAGE;

		switch (rand_r(&state) % 8) {
		case 0:
			munmap(page, PAGE);
			mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		case 1:
			madvise(page, PAGE, MADV_DONTNEED);
			break;
		case 2:
			mprotect(page, PAGE, PROT_READ);
			usleep(1000);
			mprotect(page, PAGE, PROT_READ | PROT_WRITE);
			break;
		case 3:
			if (!fork())
				_exit(0);
			wait(NULL);
			break;
		default:
			usleep(rand_r(&state) % 4000);
		}
		memset(pages, 1, PAGES * PAGE);
	}
}

void churn_locks(void)
{
	char *pages = small_pages(PAGES * PAGE);
	unsigned int state = 2, i, wrong = 0, locked = 0, changed = 0, other = 0, most = 0;
	struct lookaside_locks locks;
	pid_t pid = fork();
	int pagemap;

	if (!pid)
		change(pages);
	pagemap = open_pagemap(pid);
	replay();
	memset(model, 0, sizeof(model));
	for (i = 0; i < ROUNDS; i++) {
		char *page = pages + rand_r(&state) % PAGES * PAGE;
		int error = rand_r(&state) % 3 ? lock(pagemap, page, NULL) : unlock(pagemap, page, NULL);

		locked += !error;
		changed += error == EAGAIN || error == ENXIO;
		other += error && error != EAGAIN && error != ENXIO && error != EEXIST && error != ENOSPC && error != ENOENT;
		wrong += replay();
		most = held() > most ? held() : most;
	}
	ok(locked && most && !other, "%u calls while a process changes its pages: %u done, %u too late, up to %u entries",
	   ROUNDS, locked, changed, most);
	end(pid);
	for (i = 0; i < 100 && (list(-1, &locks), locks.free != 4); i++)
		usleep(10000);
	wrong += replay();
	same(wrong, 0, "an entry is filled when it is free, its page's other is gone");
	same(held(), 0, "when the process has ended no core has an entry of it");
	close(pagemap);
	munmap(pages, PAGES * PAGE);
}

/* The first lock of a process takes all of its mappings' locks. Whether a signal ends that is the kernel's business, and not the caller's. */
void amid_signals(void)
{
	char *page = small_pages(PAGE);
	unsigned int i, wrong = 0;
	int status;
	pid_t pid;

	for (i = 0; i < 100; i++) {
		pid = fork();
		if (!pid) {
			*page = 1;
			/* Sooner or later in the call. */
			signal_in(5 + 5 * i);
			_exit(lock(-1, page, NULL));
		}
		wrong += waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status);
		replay();
	}
	same(wrong, 0, "a page is locked in each of 100 processes while a signal comes");
	munmap(page, PAGE);
}
