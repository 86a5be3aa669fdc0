// SPDX-License-Identifier: GPL-2.0
/* Who may have which threads watched, and until when. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm.h"

#define ON(pagemap, thread)	migrate(LOOKASIDE_MIGRATE, pagemap, thread, 256, NULL)
#define OFF(pagemap, thread)	migrate(LOOKASIDE_STAY, pagemap, thread, 0, NULL)
#define COUNTS(pagemap, thread)	migrate(LOOKASIDE_MIGRATED, pagemap, thread, 0, NULL)

static int on_and_off(int pagemap, const struct puppet *puppet)
{
	int error = ON(pagemap, puppet->pid);

	return error ? error : OFF(pagemap, puppet->pid);
}

static int ask_off(int pagemap, const struct puppet *puppet)
{
	return OFF(pagemap, puppet->pid);
}

static int ask_counts(int pagemap, const struct puppet *puppet)
{
	return COUNTS(pagemap, puppet->pid);
}

static void another_process(void)
{
	struct puppet other = puppet(1000);

	same(as_nice_user(1001, on_and_off, &other), EACCES, "user 1001 may not have a process of user 1000's watched");
	same(as_user(1000, on_and_off, &other), EPERM, "nor may user 1000 without CAP_SYS_NICE");
	same(ON(-1, other.pid), ESRCH, "his own memory is no right to another's thread");
	same(ON(device, other.pid), EINVAL, "what is no pagemap is no right");
	same(ON(other.pagemap, 0), ESRCH, "nor is the pagemap one to one's own thread");
	same(as_nice_user(1000, on_and_off, &other), 0, "user 1000 may with CAP_SYS_NICE, if it is a process of his");
	same(ON(other.pagemap, other.pid), 0, "root may");
	same(as_user(1000, ask_off, &other), EPERM, "user 1000 may not end it");
	same(as_user(1000, ask_counts, &other), 0, "but be told the counts");
	same(COUNTS(-1, other.pid), ESRCH, "its counts are not told for another memory");
	same(COUNTS(other.pagemap, other.pid), 0, "but for its own");
	dismiss(&other);
}

static void wrong_calls(void)
{
	const struct lookaside_migrate right = { .version = LOOKASIDE_VERSION, .pagemap = -1, .cap = 1 };
	struct lookaside_migrate arg;

#define REFUSED(error, what, ...) do { \
		arg = right; \
		__VA_ARGS__; \
		ok(ioctl(device, LOOKASIDE_MIGRATE, &arg) && errno == (error), what); \
	} while (0)
	REFUSED(EPROTO, "version 0", arg.version = 0);
	REFUSED(EPROTO, "the next version", arg.version++);
	REFUSED(EINVAL, "a flag", arg.flags = 1);
	REFUSED(EINVAL, "no pages", arg.cap = 0);
	REFUSED(EINVAL, "more pages than there are entries", arg.cap = 257);
	REFUSED(EINVAL, "thread -1", arg.thread = -1);
	REFUSED(ESRCH, "a thread that is not there", arg.thread = 32767);
	REFUSED(ESRCH, "a thread of the kernel", arg.thread = 2);
	REFUSED(EINVAL, "file -2", arg.pagemap = -2);
	REFUSED(EBADF, "a file that is not open", arg.pagemap = 1000);
	ok(ioctl(device, LOOKASIDE_MIGRATE, NULL) && errno == EFAULT, "no structure");
	same(OFF(-1, 0), ENOENT, "what is not watched cannot stay");
	same(ON(-1, 0), 0, "a thread is watched");
	same(ON(-1, getpid()), EEXIST, "not twice");
	arg = right;
	ok(ioctl(device, LOOKASIDE_STAY, &arg) && errno == EINVAL, "pages to stay");
	arg = right;
	ok(ioctl(device, LOOKASIDE_MIGRATED, &arg) && errno == EINVAL, "or to be told");
	same(OFF(-1, 0), 0, "it stays");
}

static void executes(void)
{
	struct puppet one = puppet(0);
	int pagemap;

	same(ON(one.pagemap, one.pid), 0, "a process is watched");
	ok(tell(&one, 'e'), "it executes another program");
	pagemap = open_pagemap(one.pid);
	same(COUNTS(one.pagemap, one.pid), ESRCH, "its old memory is gone");
	same(COUNTS(pagemap, one.pid), ENOENT, "in its new one it is not watched");
	same(ON(pagemap, one.pid), 0, "but can be");
	close(pagemap);
	dismiss(&one);
}

/* As many as there may be, ended while they are watched. */
static void ends_and_limit(void)
{
	static struct puppet many[LOOKASIDE_MIGRATING];
	struct sleeper thread;
	unsigned int i, wrong = 0, tries = 0;

	for (i = 0; i < LOOKASIDE_MIGRATING; i++) {
		many[i].pid = fork();
		if (!many[i].pid)
			_exit(pause());
		many[i].pagemap = open_pagemap(many[i].pid);
	}
	start_sleeper(&thread);
	same(ON(-1, thread.id), 0, "a thread is watched");
	for (i = 1; i < LOOKASIDE_MIGRATING; i++)
		wrong += !!ON(many[i].pagemap, many[i].pid);
	same(wrong, 0, "and 63 processes");
	same(ON(many[0].pagemap, many[0].pid), ENOSPC, "not more");
	end_sleeper(&thread);
	same(COUNTS(-1, thread.id), ESRCH, "the thread ends");
	/* It is joined a little before it leaves its core for the last time. */
	while (ON(many[0].pagemap, many[0].pid) && ++tries < 1000)
		usleep(10000);
	same(COUNTS(many[0].pagemap, many[0].pid), 0, "there is room for another");
	for (i = 0; i < LOOKASIDE_MIGRATING; i++) {
		end(many[i].pid);
		wrong += COUNTS(many[i].pagemap, many[i].pid) != ESRCH;
		close(many[i].pagemap);
	}
	same(wrong, 0, "all processes end");
	ok(!ON(-1, 0) && !OFF(-1, 0), "there is room again");
}

/* A thread sleeps on a core that is switched off. */
static void leaving_its_core(void)
{
	static const char online[] = "/sys/devices/system/cpu/cpu1/online";
	static uint32_t got[EVENTS];
	struct lookaside_migrate answer;
	struct sleeper sleeper;
	char *page = small_pages(PAGE);

	start_sleeper(&sleeper);
	ok(pin(0, 0) && pin(sleeper.id, 1), "one thread on core 0, one on core 1");
	supply_page(1, 1, (struct page) { (uintptr_t)page, own_asid(0) });
	poke(&sleeper);
	same(ON(-1, sleeper.id), 0, "it is watched");
	poke(&sleeper);
	ok(write_to(online, "0"), "core 1 is switched off");
	poke(&sleeper);
	ok(prefetched(0, got) == 1 && got[0] == (uintptr_t)page, "its page is prefetched on core 0");
	ok(!migrate(LOOKASIDE_STAY, -1, sleeper.id, 0, &answer) && answer.moves == 1, "it was one move");
	ok(write_to(online, "1"), "core 1 is switched on");
	end_sleeper(&sleeper);
	supply_none(1);
	munmap(page, PAGE);
}

/* Whether a call is ended by a signal is the kernel's business, and not the caller's. */
static void begins_amid_signals(void)
{
	unsigned int round, wrong = 0;
	struct sleeper sleeper;

	start_sleeper(&sleeper);
	/* So that probes stay: that is faster. */
	same(ON(-1, sleeper.id), 0, "a thread is watched");
	for (round = 0; round < 200; round++) {
		/* Sooner or later in the call. */
		signal_in(5 + 2 * round);
		wrong += ON(-1, 0) || OFF(-1, 0);
	}
	same(wrong, 0, "and another, 200 times while a signal comes");
	OFF(-1, sleeper.id);
	end_sleeper(&sleeper);
}

/* Mappings beside each other: each is told of by itself, one right after the other. */
#define MAPPINGS	200

static volatile bool changes;

static void *change(void *pages)
{
	pin(0, 1);
	while (changes)
		madvise(pages, MAPPINGS * PAGE, MADV_DONTNEED);
	return NULL;
}

/* Changes are told from the moment that a thread is watched on, and before all of it is set up. */
static void begins_amid_changes(void)
{
	char *pages = reserve(MAPPINGS * PAGE);
	unsigned int round, i, wrong = 0;
	pthread_t changer;

	for (i = 0; i < MAPPINGS; i += 2)
		mprotect(pages + i * PAGE, PAGE, PROT_READ);
	changes = true;
	if (!pin(0, 0) || pthread_create(&changer, NULL, change, pages)) {
		ok(false, "a thread can be made");
		return;
	}
	for (round = 0; round < 200; round++)
		wrong += ON(-1, 0) || OFF(-1, 0);
	changes = false;
	pthread_join(changer, NULL);
	same(wrong, 0, "a thread is watched 200 times while mappings change all the time");
	munmap(pages, MAPPINGS * PAGE);
}

void watches(void)
{
	wrong_calls();
	another_process();
	begins_amid_signals();
	begins_amid_changes();
	executes();
	ends_and_limit();
	leaving_its_core();
}

void unloading(void)
{
	struct puppet other = puppet(1000);
	struct sleeper sleeper;
	unsigned int i, round, wrong = 0;

	for (round = 0; round < 3; round++) {
		start_sleeper(&sleeper);
		wrong += ON(-1, 0) || ON(-1, sleeper.id) || ON(other.pagemap, other.pid);
		for (i = 0; i < 20; i++) {
			pin(0, i % 2);
			pin(sleeper.id, i % 3 % 2);
			poke(&sleeper);
		}
		same(wrong, 0, "three threads are watched");
		unload();
		for (i = 0; i < 20; i++) {
			pin(0, i % 2);
			pin(sleeper.id, i % 3 % 2);
			poke(&sleeper);
		}
		ok(tell(&other, 't'), "they go on without it");
		end_sleeper(&sleeper);
		if (round < 2 && !load_with("record=1"))
			return;
	}
	dismiss(&other);
}
