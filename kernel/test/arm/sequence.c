// SPDX-License-Identifier: GPL-2.0
/* What is written to the register, and what is refused. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm.h"

static bool is(const struct event *event, unsigned int core, const char *what, uint32_t value)
{
	return event->core == core && !strcmp(event->what, what) && event->value == value;
}

/* Whether this is how a core's entry is filled, as of docs/reference/kernel-module.md. */
static bool fills(const struct event *e, unsigned int core, unsigned int entry, uint32_t page)
{
	uint32_t victim = entry << 28;

	/* To have code and stack in the TLB. */
	return is(&e[0], core, "register", victim) && is(&e[1], core, "touch", page) &&
	       is(&e[2], core, "register", victim) &&
	       /* For good. */
	       e[3].core == core && !strcmp(e[3].what, "invalidate") && (e[3].value & -PAGE) == page &&
	       is(&e[4], core, "register", victim | 1) && is(&e[5], core, "touch", page) &&
	       is(&e[6], core, "register", victim) && is(&e[7], core, "back", page);
}

static void tell_events(const struct event *events, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		note("%u %s %08x", events[i].core, events[i].what, events[i].value);
}

/* Whether locking a page gave what it should, on each core. */
static bool sequence_of(const struct event *events, size_t count, unsigned int cores, unsigned int entry,
			uint32_t page)
{
	bool right = count == 8 * cores;
	unsigned int core;

	for (core = 0; right && core < cores; core++)
		right = fills(events + 8 * core, core, entry, page) && events[3].value == events[8 * core + 3].value;
	if (!right)
		tell_events(events, count);
	return right;
}

/* Whether a page's entry was taken out of each core, and nothing else done. */
static bool taken_out(const struct event *events, size_t count, unsigned int cores, uint32_t page)
{
	unsigned int seen = 0;
	size_t i;

	for (i = 0; i < count; i++)
		if (!strcmp(events[i].what, "invalidate") && (events[i].value & -PAGE) == page && events[i].value & 255)
			seen |= 1U << events[i].core;
	return count == cores && seen == (1U << cores) - 1;
}

void sequence(unsigned int cores)
{
	static struct event events[EVENTS];
	char *pages = small_pages(5 * PAGE);
	struct lookaside_lock answer;
	struct lookaside_locks locks;
	unsigned int i, wrong = 0;
	size_t count;

	same(recorded(events), 0, "nothing is written before");
	for (i = 0; i < 4; i++) {
		uint32_t page = (uintptr_t)pages + i * PAGE;

		ok(!lock(-1, pages + i * PAGE, &answer) && answer.entry == i && answer.cores == cores && answer.seen == cores,
		   "page %u is locked as entry %u of %u cores", i, answer.entry, answer.cores);
		count = recorded(events);
		if (!i)
			tell_events(events, count);
		ok(sequence_of(events, count, cores, i, page), "its sequence on each core");
	}
	same(lock(-1, pages + 4 * PAGE, &answer), ENOSPC, "a fifth is refused");
	same(recorded(events), 0, "nothing is written for it");
	same(lock(-1, pages, &answer), EEXIST, "nor is one locked twice");

	ok(!list(-1, &locks) && locks.count == 4 && !locks.free, "the list has %u, %u are free", locks.count, locks.free);
	for (i = 0; i < 4; i++)
		wrong += locks.pages[i].addr != (uintptr_t)pages + i * PAGE || locks.pages[i].entry != i ||
			 locks.pages[i].cores != cores || locks.pages[i].seen != cores;
	same(wrong, 0, "each with its address, entry and cores");

	ok(!unlock(-1, pages + PAGE, &answer) && answer.entry == 1 && answer.cores == cores, "one is unlocked");
	count = recorded(events);
	ok(taken_out(events, count, cores, (uintptr_t)pages + PAGE), "its entry is taken out of each core");
	same(unlock(-1, pages + PAGE, &answer), ENOENT, "not twice");
	ok(!list(-1, &locks) && locks.count == 3 && locks.free == 1 && locks.pages[1].entry == 2 && !locks.pages[3].addr,
	   "the list has %u, %u is free", locks.count, locks.free);
	ok(!lock(-1, pages + 4 * PAGE, &answer) && answer.entry == 1, "another gets its entry");
	count = recorded(events);
	ok(sequence_of(events, count, cores, 1, (uintptr_t)pages + 4 * PAGE), "and its sequence");
	for (i = 0; i < 5; i++)
		if (i != 1 && unlock(-1, pages + i * PAGE, &answer))
			ok(false, "page %u is unlocked", i);
	ok(!list(-1, &locks) && !locks.count && locks.free == 4, "all are unlocked");
	munmap(pages, 5 * PAGE);
	recorded(events);
}

static int lock_and_unlock(int pagemap, const struct puppet *puppet)
{
	int error = lock(pagemap, puppet->page, NULL);

	return error ? error : unlock(pagemap, puppet->page, NULL);
}

static int unlock_it(int pagemap, const struct puppet *puppet)
{
	return unlock(pagemap, puppet->page, NULL);
}

static int list_it(int pagemap, const struct puppet *puppet)
{
	struct lookaside_locks locks;

	(void)puppet;
	return list(pagemap, &locks);
}

static void another_process(unsigned int cores)
{
	static struct event events[EVENTS];
	struct puppet other = puppet(1000);
	struct lookaside_locks locks;

	recorded(events);
	same(as_nice_user(1001, lock_and_unlock, &other), EACCES, "user 1001 may not lock a page of user 1000's");
	same(as_user(1000, lock_and_unlock, &other), EPERM, "nor may user 1000 without CAP_SYS_NICE");
	same(lock(device, other.page, NULL), EINVAL, "what is no pagemap is no right");
	same(recorded(events), 0, "nothing is written for them");
	same(as_nice_user(1000, lock_and_unlock, &other), 0, "with it he may lock and unlock a page of a process of his");
	recorded(events);
	same(lock(other.pagemap, other.page, NULL), 0, "root may");
	ok(sequence_of(events, recorded(events), cores, 0, (uintptr_t)other.page), "with the sequence on each core");
	same(as_user(1000, list_it, &other), 0, "user 1000 may list the pages of his process");
	same(as_user(1000, unlock_it, &other), EPERM, "but not unlock what root has locked");
	ok(!list(other.pagemap, &locks) && locks.count == 1 && locks.pages[0].addr == (uintptr_t)other.page,
	   "the list of the process has it");
	ok(!list(-1, &locks) && !locks.count && locks.free == 3, "one's own has not, but an entry less is free");
	same(unlock(-1, other.page, NULL), ENOENT, "one's own page there is not locked");
	same(unlock(other.pagemap, other.page, NULL), 0, "it is unlocked");
	dismiss(&other);
}

void refusals(unsigned int cores)
{
	static struct event events[EVENTS];
	char *page = small_pages(2 * PAGE), *empty = reserve(PAGE);
	const struct lookaside_lock right = { .version = LOOKASIDE_VERSION, .pagemap = -1, .addr = (uintptr_t)page };
	struct lookaside_lock arg;
	struct lookaside_locks locks;
	int file;

#define REFUSED(error, what, ...) do { \
		arg = right; \
		__VA_ARGS__; \
		ok(ioctl(device, LOOKASIDE_LOCK, &arg) && errno == (error), what); \
	} while (0)
	REFUSED(EPROTO, "version 0", arg.version = 0);
	REFUSED(EPROTO, "the next version", arg.version++);
	REFUSED(EINVAL, "a flag", arg.flags = 1);
	REFUSED(EINVAL, "an address within a page", arg.addr++);
	REFUSED(EINVAL, "the kernel's half", arg.addr = 0xc0000000);
	REFUSED(EINVAL, "an address of more than 32 bits", arg.addr |= 1ULL << 32);
	REFUSED(EINVAL, "file -2", arg.pagemap = -2);
	REFUSED(EBADF, "a file that is not open", arg.pagemap = 1000);
	ok(ioctl(device, LOOKASIDE_LOCK, NULL) && errno == EFAULT, "no structure");
	locks = (struct lookaside_locks) { .version = LOOKASIDE_VERSION, .pagemap = -1, .reserved = 1 };
	ok(ioctl(device, LOOKASIDE_LOCKS, &locks) && errno == EINVAL, "a list with reserved used");

	same(lock(-1, NULL, NULL), ENXIO, "where nothing is mapped");
	same(lock(-1, empty, NULL), ENXIO, "a page that is not there");
	ok(!*(volatile char *)empty && lock(-1, empty, NULL) == ENXIO, "one that was read but not written");
	*empty = 1;
	same(lock(-1, empty, NULL), 0, "when it was written it can be");
	unlock(-1, empty, NULL);
	mprotect(page, PAGE, PROT_READ);
	ok(*(volatile char *)page == 1 && !lock(-1, page, NULL), "one that cannot be written");
	unlock(-1, page, NULL);
	mprotect(page, PAGE, PROT_NONE);
	same(lock(-1, page, NULL), ENXIO, "one that cannot be read");
	file = open("/dev/mem", O_RDONLY | O_SYNC | O_CLOEXEC);
	/* The boot ROM of i.MX6. */
	void *rom = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);

	ok(rom != MAP_FAILED && lock(-1, rom, NULL) == ENXIO, "a device's");
	munmap(rom, PAGE);
	close(file);
	ok(!list(-1, &locks) && locks.free == 4, "what was refused has no entry");
	munmap(page, 2 * PAGE);
	munmap(empty, PAGE);
	recorded(events);
	another_process(cores);
}
