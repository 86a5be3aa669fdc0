// SPDX-License-Identifier: GPL-2.0
/* What a thread takes along: which entries, from which core to which, and when not. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arm.h"

#define PAGES	40

static uint32_t got[EVENTS];

/* Pages of the process, alternately in either way; their entries among others that are not to be taken along. */
static void supply_pages(unsigned int core, const char *pages, unsigned int asid)
{
	/* Right but for one thing each. */
	static const struct {
		unsigned int high, low, value;
	} others[] = { { 0, 0, 0 }, { 34, 34, 0 }, { 3, 1, 2 }, { 3, 1, 6 }, { 17, 5, 0xc0000000 >> 19 } };
	uint32_t addr = (uintptr_t)pages;
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		supply_page(core, i % 2, (struct page) { addr + i * PAGE, asid });
	for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
		uint32_t data[3] = { 0 };

		put(data, 0, 0, 1);
		put(data, 17, 5, addr >> 19);
		put(data, 33, 26, asid);
		put(data, 34, 34, 1);
		put(data, others[i].high, others[i].low, others[i].value);
		supply(core, 64 + i, data);
	}
	/* Other ASIDs: each bit of it, in either register. */
	for (i = 0; i < 8; i++)
		supply_page(core, 1, (struct page) { addr + (80 + i) * PAGE, asid ^ 1U << i });
}

/* Which page of these comes i-th: the TLB is read way by way. */
static uint32_t ith(const char *pages, unsigned int i)
{
	unsigned int page = i < PAGES / 2 ? 2 * i : 2 * (i - PAGES / 2) + 1;

	return (uintptr_t)pages + page * PAGE;
}

/* Whether the first @count of these pages were prefetched on a core, in order, and nothing else. */
static bool were(unsigned int core, const char *pages, unsigned int count)
{
	unsigned int is = prefetched(core, got), i;
	bool right = is == count;

	for (i = 0; right && i < count; i++)
		right = got[i] == ith(pages, i);
	if (!right)
		note("%u prefetched on core %u instead of %u", is, core, count);
	return right;
}

/* A running thread is moved by the stopper. */
static void own_move(void)
{
	char *pages = small_pages(PAGES * PAGE);
	struct lookaside_migrate answer;

	ok(pin(0, 0), "on core 0");
	/* On both: it may leave the other for a moment, too. */
	supply_pages(0, pages, own_asid(0));
	supply_pages(1, pages, own_asid(0));
	same(migrate(LOOKASIDE_MIGRATE, -1, 0, 256, &answer), 0, "a thread takes its pages along");
	ok(answer.cap == 256 && !answer.stopped && !answer.moves && !answer.restores, "nothing has happened yet");
	same(prefetched(0, got), 0, "nothing is prefetched before it is moved");
	ok(pin(0, 1), "to core 1");
	ok(were(1, pages, PAGES), "its %u pages, and nobody else's, are prefetched there", PAGES);
	ok(!migrate(LOOKASIDE_MIGRATED, -1, 0, 0, &answer) && answer.moves == 1 && answer.restores == 1 &&
	   answer.restored == PAGES && answer.saves && answer.saved == PAGES * answer.saves && !answer.over &&
	   !answer.stale && !answer.stopped, "and counted");
	supply_none(1);
	ok(pin(0, 0) && !prefetched(0, got), "core 1 has none any more: back on core 0 nothing is prefetched");
	ok(!migrate(LOOKASIDE_STAY, -1, 0, 0, &answer) && answer.moves == 2 && answer.restores == 1 && answer.cap == 256,
	   "it stays: %llu moves", (unsigned long long)answer.moves);
	ok(pin(0, 1) && !prefetched(1, got), "then nothing is taken along");
	same(migrate(LOOKASIDE_MIGRATED, -1, 0, 0, NULL), ENOENT, "nor counted");

	supply_pages(1, pages, own_asid(1));
	ok(pin(0, 0) && !migrate(LOOKASIDE_MIGRATE, -1, 0, 3, NULL) && pin(0, 1), "at most three");
	ok(were(1, pages, 3), "the first three are prefetched");
	ok(!migrate(LOOKASIDE_STAY, -1, 0, 0, &answer) && answer.saved == 3 * answer.saves &&
	   answer.over == (PAGES - 3) * answer.saves, "the others are counted");
	munmap(pages, PAGES * PAGE);
	supply_none(0);
	supply_none(1);
}

/* It does not stay long enough for the TLB to be read as it leaves: then it is as it is moved. */
static void on_and_back(void)
{
	static struct event events[EVENTS];
	char *pages = small_pages(PAGES * PAGE);
	struct lookaside_migrate answer;
	size_t count;

	ok(pin(0, 0), "on core 0");
	supply_pages(0, pages, own_asid(0));
	supply_page(1, 0, (struct page) { (uintptr_t)pages, own_asid(0) });
	ok(!migrate(LOOKASIDE_MIGRATE, -1, 0, 256, NULL) && pin(0, 1) && pin(0, 0), "to core 1 and back");
	count = recorded_in(PREFETCHES, events);
	ok(count == PAGES + 1 && events[PAGES - 1].core == 1 && events[PAGES].core == 0 &&
	   events[PAGES].value == (uintptr_t)pages, "with what was in core 1's TLB");
	ok(!migrate(LOOKASIDE_STAY, -1, 0, 0, &answer) && answer.moves == 2 && answer.restored == PAGES + 1, "two moves");
	munmap(pages, PAGES * PAGE);
	supply_none(0);
	supply_none(1);
}

/* Its TLB is not read, and what the thread has stays. */
static void by_way_of_another_processor(void)
{
	static struct event events[EVENTS];
	char *pages = small_pages(PAGES * PAGE);
	struct lookaside_migrate answer;
	unsigned int i, bad = 0;
	size_t count;

	ok(pin(0, 0) && write_to(PREFETCHES, "1 other"), "on core 0; core 1 is no Cortex-A7");
	supply_pages(0, pages, own_asid(0));
	supply_page(1, 0, (struct page) { (uintptr_t)pages, own_asid(0) });
	ok(!migrate(LOOKASIDE_MIGRATE, -1, 0, 256, NULL) && pin(0, 1), "to core 1");
	usleep(50000);
	ok(pin(0, 0), "and back after a while");
	count = recorded_in(PREFETCHES, events);
	for (i = 0; i < count; i++)
		bad += strcmp(events[i].what, "pld") || events[i].core != (i < PAGES);
	ok(count == 2 * PAGES && !bad && events[PAGES].value == ith(pages, 0), "with what core 0 had, both times: %zu pages",
	   count);
	ok(!migrate(LOOKASIDE_STAY, -1, 0, 0, &answer) && answer.saves && answer.saved == PAGES * answer.saves &&
	   answer.restores == 2, "no TLB but core 0's is read");
	ok(write_to(PREFETCHES, "1 a7"), "core 1 is one");
	munmap(pages, PAGES * PAGE);
	supply_none(0);
	supply_none(1);
}

static struct sleeper sleeper;

static struct lookaside_migrate sleepers_counts(void)
{
	struct lookaside_migrate answer;

	if (migrate(LOOKASIDE_MIGRATED, -1, sleeper.id, 0, &answer))
		ok(false, "it is watched");
	return answer;
}

/* It runs and leaves its core, of which the TLB is read: what was read lately stays. */
static void poke_until_saved(void)
{
	uint64_t before = sleepers_counts().saves;

	usleep(50000);
	poke(&sleeper);
	if (sleepers_counts().saves == before)
		ok(false, "the TLB is read");
}

static void watch_sleeper(void)
{
	ok(!migrate(LOOKASIDE_MIGRATE, -1, sleeper.id, 256, NULL), "a thread that sleeps");
	poke_until_saved();
}

/* It is moved as it is woken, by a thread on the core that it goes to. */
static void woken_elsewhere(void)
{
	char *pages = small_pages(PAGES * PAGE);
	struct lookaside_migrate answer;

	ok(pin(0, 1) && pin(sleeper.id, 0), "one thread on core 1, one on core 0");
	supply_pages(0, pages, own_asid(1));
	poke(&sleeper);
	watch_sleeper();
	ok(pin(sleeper.id, 1) && !prefetched(1, got), "it may run on core 1: it does not yet");
	poke(&sleeper);
	ok(were(1, pages, PAGES), "when it does, what it left core 0 with is prefetched");
	answer = sleepers_counts();
	ok(answer.moves == 1 && answer.restores == 1, "it is one move");
	poke(&sleeper);
	same(prefetched(1, got), 0, "it runs there again: nothing is prefetched");
	supply_none(0);

	pages += 2 * PAGE;
	supply_page(1, 0, (struct page) { (uintptr_t)pages, own_asid(1) });
	poke_until_saved();
	ok(pin(sleeper.id, 0), "back to core 0");
	poke(&sleeper);
	ok(prefetched(0, got) == 1 && got[0] == (uintptr_t)pages, "with what it left core 1 with");
	supply_none(1);
	migrate(LOOKASIDE_STAY, -1, sleeper.id, 0, NULL);
	munmap(pages - 2 * PAGE, PAGES * PAGE);
}

/* Mappings change while the thread sleeps. */
static void stale(void)
{
	char *pages = small_pages(PAGES * PAGE);
	unsigned int i, wrong = 0, count;

	ok(pin(0, 1) && pin(sleeper.id, 0), "one thread on core 1, one on core 0");
	supply_pages(0, pages, own_asid(1));
	poke(&sleeper);
	watch_sleeper();
	munmap(pages, PAGE);
	same(sleepers_counts().stale, 1, "one of its pages is unmapped");
	mprotect(pages + PAGE, PAGE, PROT_READ);
	same(sleepers_counts().stale, 2, "one is protected");
	madvise(pages + 2 * PAGE, 2 * PAGE, MADV_DONTNEED);
	same(sleepers_counts().stale, 4, "two are dropped");
	munmap(pages + PAGES * PAGE, PAGE);
	same(sleepers_counts().stale, 4, "nobody's");
	ok(pin(sleeper.id, 1), "to core 1");
	poke(&sleeper);
	count = prefetched(1, got);
	for (i = 0; i < count; i++)
		wrong += got[i] < (uintptr_t)pages + 4 * PAGE || got[i] >= (uintptr_t)pages + PAGES * PAGE;
	ok(count == PAGES - 4 && !wrong, "the %u others are prefetched", count);
	ok(sleepers_counts().restored == count, "and counted");

	migrate(LOOKASIDE_STAY, -1, sleeper.id, 0, NULL);
	munmap(pages, PAGES * PAGE);
	supply_none(0);
}

static void forking(void)
{
	char *pages = small_pages(PAGES * PAGE);
	int status;

	ok(pin(0, 1) && pin(sleeper.id, 0), "one thread on core 1, one on core 0");
	supply_pages(0, pages, own_asid(1));
	poke(&sleeper);
	watch_sleeper();
	if (!fork())
		_exit(migrate(LOOKASIDE_MIGRATED, -1, 0, 0, NULL));
	wait(&status);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == ENOENT, "the process forks: its child is not watched");
	same(sleepers_counts().stale, PAGES, "all pages are to be copied on write");
	ok(pin(sleeper.id, 1), "to core 1");
	poke(&sleeper);
	same(prefetched(1, got), 0, "with nothing");
	migrate(LOOKASIDE_STAY, -1, sleeper.id, 0, NULL);
	munmap(pages, PAGES * PAGE);
	supply_none(0);
}

/* The calling process alone runs on its core from now on, or not any more. */
static bool alone(bool wanted)
{
	const struct sched_param param = { .sched_priority = wanted };

	return !sched_setscheduler(0, wanted ? SCHED_FIFO : SCHED_OTHER, &param);
}

/* A process that lets nobody else on core 1. */
static pid_t busy_core(void)
{
	volatile char *runs = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();

	if (!pid) {
		if (!pin(0, 1) || !alone(true))
			_exit(1);
		for (*runs = 1;;)
			;
	}
	while (pid > 0 && !*runs)
		usleep(1000);
	munmap((void *)runs, PAGE);
	return pid;
}

/* It may run, but others are on both cores while it is moved. */
static void moved_before_it_runs(bool back)
{
	char *pages = small_pages(PAGES * PAGE);
	unsigned int moves;
	pid_t busy;
	bool done;

	ok(pin(0, 0) && pin(sleeper.id, 0), "two threads on core 0");
	supply_pages(0, pages, own_asid(0));
	poke(&sleeper);
	busy = busy_core();
	/* Not before the fork, at which it would forget all. */
	watch_sleeper();
	/* No more than a moment: the kernel gives others their turn after 0.95 s. */
	done = alone(true) && write(sleeper.orders[1], "", 1) == 1 && pin(sleeper.id, 1) &&
	       (!back || pin(sleeper.id, 0));
	moves = sleepers_counts().moves;
	done = alone(false) && done;
	end(busy);
	wait_for_it(&sleeper);
	ok(done && moves == 1U + back, "one is moved %u times before it runs", moves);
	if (back)
		same(prefetched(0, got), 0, "on the core that it left: nothing is prefetched");
	else
		ok(were(1, pages, PAGES), "on the other: its pages are prefetched");
	migrate(LOOKASIDE_STAY, -1, sleeper.id, 0, NULL);
	munmap(pages, PAGES * PAGE);
	supply_none(0);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

/* A thread that leaves its core often. */
static void seldom_saved(void)
{
	uint64_t start, most;
	struct lookaside_migrate answer;
	unsigned int i;

	ok(!migrate(LOOKASIDE_MIGRATE, -1, sleeper.id, 256, NULL), "a thread that sleeps");
	start = now_ms();
	for (i = 0; i < 1000; i++)
		poke(&sleeper);
	answer = sleepers_counts();
	most = (now_ms() - start) / 10 + 2;
	ok(answer.saves && answer.saves <= most, "it leaves its core 1000 times: the TLB is read %llu times, at most %llu",
	   (unsigned long long)answer.saves, (unsigned long long)most);
	migrate(LOOKASIDE_STAY, -1, sleeper.id, 0, NULL);
}

/* Until it is given up. */
static void too_often(void)
{
	char *pages = small_pages(PAGES * PAGE);
	struct lookaside_migrate answer = { 0 }, then;
	unsigned int hops = 0;

	ok(pin(0, 0), "on core 0");
	supply_pages(0, pages, own_asid(0));
	same(migrate(LOOKASIDE_MIGRATE, -1, 0, 256, NULL), 0, "a thread that is moved all the time");
	while (hops < 100000 && !answer.stopped) {
		pin(0, ++hops % 2);
		prefetched(hops % 2, got);
		migrate(LOOKASIDE_MIGRATED, -1, 0, 0, &answer);
	}
	ok(answer.stopped && answer.moves > LOOKASIDE_MOVES_A_SECOND, "is given up after %u moves", hops);
	pin(0, 0), pin(0, 1);
	ok(!prefetched(1, got) && !migrate(LOOKASIDE_MIGRATED, -1, 0, 0, &then) && then.restores == answer.restores &&
	   then.saves == answer.saves && then.moves > answer.moves && then.stopped, "then nothing is read or prefetched");
	usleep(1200000);
	pin(0, 0), pin(0, 1);
	ok(!prefetched(1, got) && !migrate(LOOKASIDE_STAY, -1, 0, 0, &then) && then.stopped, "nor a second later");
	pin(0, 0);
	ok(!migrate(LOOKASIDE_MIGRATE, -1, 0, 256, NULL) && pin(0, 1) && were(1, pages, PAGES), "until it is told to anew");
	migrate(LOOKASIDE_STAY, -1, 0, 0, NULL);
	munmap(pages, PAGES * PAGE);
	supply_none(0);
}

/* Prefetches since the last time, on any core; those that were none of these pages, or that a TLB was read wrongly. */
static unsigned int strange(const char *pages, unsigned int *count)
{
	static struct event events[EVENTS];
	unsigned int some = recorded_in(PREFETCHES, events), i, wrong = 0;

	for (i = 0; i < some; i++)
		wrong += strcmp(events[i].what, "pld") || events[i].value < (uintptr_t)pages ||
			 events[i].value >= (uintptr_t)pages + PAGES * PAGE;
	*count += some;
	return wrong;
}

/* Two threads are moved about, while memory is mapped, unmapped and forked. */
static void churn_moves(void)
{
	char *pages = small_pages(PAGES * PAGE), *mapped;
	unsigned int round, wrong = 0, count = 0;

	ok(pin(0, 0), "on core 0");
	supply_pages(0, pages, own_asid(0));
	supply_pages(1, pages, own_asid(0));
	for (round = 0; round < 300; round++) {
		if (round % 30 == 0) {
			migrate(LOOKASIDE_STAY, -1, 0, 0, NULL);
			migrate(LOOKASIDE_STAY, -1, sleeper.id, 0, NULL);
			wrong += migrate(LOOKASIDE_MIGRATE, -1, 0, 7, NULL) ||
				 migrate(LOOKASIDE_MIGRATE, -1, sleeper.id, 256, NULL);
		}
		pin(0, round % 3 % 2);
		pin(sleeper.id, round % 2);
		poke(&sleeper);
		mapped = mmap(pages + round % PAGES * PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		*mapped = round;
		if (round % 20 == 0) {
			if (!fork())
				_exit(0);
			wait(NULL);
		}
		wrong += strange(pages, &count);
	}
	ok(count && !wrong, "two threads, 300 rounds, %u prefetches, all of their pages", count);
	ok(!migrate(LOOKASIDE_STAY, -1, 0, 0, NULL) && !migrate(LOOKASIDE_STAY, -1, sleeper.id, 0, NULL), "they stay");
	munmap(pages, PAGES * PAGE);
	supply_none(0);
	supply_none(1);
	strange(pages, &count);
}

void moves(void)
{
	own_move();
	on_and_back();
	by_way_of_another_processor();
	start_sleeper(&sleeper);
	woken_elsewhere();
	stale();
	forking();
	moved_before_it_runs(false);
	moved_before_it_runs(true);
	seldom_saved();
	too_often();
	churn_moves();
	end_sleeper(&sleeper);
}
