// SPDX-License-Identifier: GPL-2.0
/* What becomes of locked pages when the module is not told that a core goes to another process. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm.h"

#define KPROBES	"/debug/kprobes/enabled"

static unsigned int warnings(void)
{
	return logged("lookaside: all pages are unlocked");
}

static bool none(void)
{
	struct lookaside_locks locks;

	return !list(-1, &locks) && locks.free == 4;
}

/* So many entries are taken out, sooner or later, and nothing else is done. */
static void taken_out(unsigned int entries, const char *what)
{
	static struct event events[EVENTS];
	unsigned int tries, out = 0, other = 0;

	for (tries = 0; tries < 100 && out < entries; tries++) {
		size_t count = recorded(events), i;

		for (i = 0; i < count; i++)
			if (strcmp(events[i].what, "invalidate"))
				other++;
			else
				out++;
		usleep(10000);
	}
	ok(out == entries && !other, "%s: %u entries are taken out", what, out);
}

/* What the kernel counts. */
static void counted(const struct puppet *one, unsigned int cores)
{
	static struct event events[EVENTS];
	char *page = small_pages(PAGE);
	struct lookaside_locks locks;

	ok(!lock(-1, page, NULL) && !lock(one->pagemap, one->page, NULL), "pages of two processes are locked");
	recorded(events);
	ok(write_to(LOCKDOWN, "missed"), "the kernel misses a switch");
	ok(!list(-1, &locks) && !locks.count && locks.free == 4, "none is locked any more");
	ok(!list(one->pagemap, &locks) && !locks.count, "of neither");
	taken_out(2 * cores, "out of each core");
	same(warnings(), 1, "the log says so, once");
	ok(!lock(-1, page, NULL) && !list(-1, &locks) && locks.count == 1 && locks.pages[0].cores == cores,
	   "one is locked anew");
	same(unlock(-1, page, NULL), 0, "and unlocked");
	munmap(page, PAGE);
	recorded(events);
}

/* Who comes to a core takes its memory along. */
static void another_process_runs(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

/* What it does not count. */
static void switched_off(const struct puppet *one, unsigned int cores)
{
	static struct event events[EVENTS];
	unsigned int tries, before;

	same(lock(one->pagemap, one->page, NULL), 0, "a page is locked");
	recorded(events);
	ok(write_to(KPROBES, "0"), "kprobes are switched off");
	another_process_runs();
	for (tries = 0; tries < 100 && !none(); tries++)
		usleep(10000);
	ok(none(), "as soon as another process runs it is not locked any more");
	taken_out(cores, "out of each core");
	same(warnings(), 2, "the log says so");
	same(lock(one->pagemap, one->page, NULL), EOPNOTSUPP, "nor can it be locked");
	ok(none(), "and has no entry");
	ok(write_to(KPROBES, "1"), "kprobes are switched on");
	another_process_runs();
	before = warnings();
	same(lock(one->pagemap, one->page, NULL), 0, "then it can");
	another_process_runs();
	ok(!unlock(one->pagemap, one->page, NULL) && none(), "and stays so until it is unlocked");
	same(warnings(), before, "the log says no more");
	recorded(events);
}

void missed_switches(unsigned int cores)
{
	struct puppet one = puppet(0);

	counted(&one, cores);
	switched_off(&one, cores);
	dismiss(&one);
	forget_log();
}
