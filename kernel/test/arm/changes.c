// SPDX-License-Identifier: GPL-2.0
/* What becomes of an entry when its page, its process, its ASID or the core does not stay. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm.h"

static struct event events[EVENTS];

/* On how many cores a page's entry was taken out, of what was written down since. */
static unsigned int taken_out(const void *page)
{
	size_t count = recorded(events), i;
	unsigned int cores = 0;

	for (i = 0; i < count; i++)
		if (!strcmp(events[i].what, "invalidate") && (events[i].value & -PAGE) == (uintptr_t)page)
			cores++;
		else
			return 0;
	return cores;
}

/* Nothing is locked any more. */
static bool none(int pagemap)
{
	struct lookaside_locks locks;

	return !list(pagemap, &locks) && !locks.count && locks.free == 4;
}

static void unmapped(char *page)
{
	munmap(page, PAGE);
}

static void protected(char *page)
{
	mprotect(page, PAGE, PROT_READ);
}

static void dropped(char *page)
{
	madvise(page, PAGE, MADV_DONTNEED);
}

static void moved(char *page)
{
	mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page + 8 * PAGE);
}

static void replaced(char *page)
{
	mmap(page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void forked(char *page)
{
	(void)page;
	if (!fork())
		_exit(0);
	wait(NULL);
}

/* With priority over the kernel's own threads on a core that it does not leave, or not any more. */
static bool alone(bool wanted)
{
	const struct sched_param param = { .sched_priority = wanted };
	cpu_set_t cores;
	unsigned int core;

	CPU_ZERO(&cores);
	for (core = 0; core < (wanted ? 1 : 8); core++)
		CPU_SET(core, &cores);
	return !sched_setaffinity(0, sizeof(cores), &cores) &&
	       !sched_setscheduler(0, wanted ? SCHED_FIFO : SCHED_OTHER, &param);
}

void mapping_changes(unsigned int cores)
{
	static const struct {
		const char *what;
		void (*change)(char *page);
		bool all;	/* whichever page is meant */
	} changes[] = {
		{ "unmapped", unmapped, false }, { "protected", protected, false }, { "dropped", dropped, false },
		{ "moved", moved, false }, { "mapped over", replaced, false }, { "forked", forked, true },
	};
	unsigned int i, out;

	for (i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		char *pages = small_pages(2 * PAGE);

		if (lock(-1, pages, NULL))
			ok(false, "a page is locked");
		recorded(events);
		if (!changes[i].all) {
			changes[i].change(pages + PAGE);
			same(recorded(events), 0, "its neighbour is changed: it stays");
		}
		/* The thread that gives entries back would take it out as well, but too late. */
		if (!alone(true))
			ok(false, "priority can be had");
		changes[i].change(pages);
		out = taken_out(pages);
		alone(false);
		same(out, cores, changes[i].what);
		ok(none(-1), "the entry is free");
		munmap(pages, 2 * PAGE);
	}
}

void ends(unsigned int cores)
{
	struct puppet one = puppet(0);
	struct lookaside_locks locks;
	unsigned int tries;

	same(lock(one.pagemap, one.page, NULL), 0, "a page of another process");
	recorded(events);
	ok(tell(&one, 't') && !taken_out(one.page), "it reads it: nothing is done");
	ok(tell(&one, 'f'), "it forks");
	same(taken_out(one.page), cores, "the entry is taken out");
	ok(none(-1), "and free");
	/* Its page is shared now and cannot be written until it is copied. */
	same(lock(one.pagemap, one.page, NULL), ENXIO, "a page to be copied on write");
	dismiss(&one);

	one = puppet(0);
	same(lock(one.pagemap, one.page, NULL), 0, "a page of another process");
	recorded(events);
	ok(tell(&one, 'e'), "it executes another program");
	for (tries = 0; tries < 100 && !(list(-1, &locks), locks.free == 4); tries++)
		usleep(10000);
	same(taken_out(one.page), cores, "the entry is taken out");
	ok(none(-1), "and free");
	same(lock(one.pagemap, one.page, NULL), ESRCH, "its old memory is gone");
	dismiss(&one);

	one = puppet(0);
	same(lock(one.pagemap, one.page, NULL), 0, "a page of another process");
	recorded(events);
	end(one.pid);
	same(taken_out(one.page), cores, "it ends: the entry is taken out");
	ok(none(-1), "and free");
	same(lock(one.pagemap, one.page, NULL), ESRCH, "it is gone");
	dismiss(&one);
}

/* There are 256 ASIDs. Where others use them up, a sleeping process's goes to another. */
void other_asid(void)
{
	struct puppet one = puppet(0);
	unsigned int forks = 0, before, after = 0, out = 0, refilled = 0;
	struct lookaside_locks locks;
	struct lookaside_lock answer;
	size_t count, i;

	recorded(events);
	ok(!lock(one.pagemap, one.page, &answer), "a page of a process that sleeps");
	count = recorded(events);
	before = count > 3 ? events[3].value & 255 : 0;
	for (; forks < 2000 && !out; forks++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		count = recorded(events);
		for (i = 0; i < count; i++)
			out += !strcmp(events[i].what, "invalidate") &&
			       events[i].value == ((uintptr_t)one.page | before);
	}
	ok(out, "of %u other processes one gets its ASID %u: the entry is taken out first", forks, before);
	ok(!list(one.pagemap, &locks) && locks.count == 1 && locks.pages[0].cores < answer.cores,
	   "the list says that %u cores have it", locks.pages[0].cores);
	recorded(events);
	ok(tell(&one, 't'), "the process goes on");
	count = recorded(events);
	for (i = 0; i < count; i++) {
		if (!strcmp(events[i].what, "invalidate") && events[i].value != ((uintptr_t)one.page | before))
			after = events[i].value & 255;
		refilled += !strcmp(events[i].what, "register") && events[i].value == (answer.entry << 28 | 1);
	}
	ok(refilled && after && after != before, "its entry is filled again, on %u core, with its new ASID %u", refilled,
	   after);
	ok(!unlock(one.pagemap, one.page, NULL) && none(-1), "it is unlocked");
	dismiss(&one);
}

void leaving_core(void)
{
	static const char online[] = "/sys/devices/system/cpu/cpu1/online";
	char *page = small_pages(PAGE);
	struct lookaside_locks locks;

	same(lock(-1, page, NULL), 0, "a page is locked");
	recorded(events);
	ok(write_to(online, "0"), "a core is switched off");
	same(taken_out(page), 1, "its entry is taken out");
	ok(!list(-1, &locks) && locks.count == 1 && locks.pages[0].cores == 1, "the other core has it");
	ok(write_to(online, "1"), "it is switched on again");
	ok(!list(-1, &locks) && locks.pages[0].cores == 1, "it has none");
	ok(!unlock(-1, page, NULL) && !lock(-1, page, NULL) && !list(-1, &locks) && locks.pages[0].cores == 2,
	   "until the page is locked anew");
	munmap(page, PAGE);
}
