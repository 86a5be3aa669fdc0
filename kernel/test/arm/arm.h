/* SPDX-License-Identifier: GPL-2.0 */
/* The tests that run on an emulated Cortex-A9, and on an A7. */
#ifndef ARM_H
#define ARM_H

#include <pthread.h>

#include "../tap.h"

/* What the module wrote down, a line of a file in debugfs. */
struct event {
	unsigned int core;
	/* register, touch, fault, invalidate, back (A9), pld, bad (A7); lost: more than one could be kept */
	char what[16];
	uint32_t value;
};

#define EVENTS	1024

/* Where the lockdown register's events are; and what is written there. */
#define LOCKDOWN	"/debug/lookaside/lockdown"

/* Reads what was written down since the last time, in order; gives how many. */
size_t recorded_in(const char *path, struct event *events);
/* The same of LOCKDOWN. */
size_t recorded(struct event *events);

/* init.c */
bool write_to(const char *path, const char *text);
bool load_with(const char *parameters);
/* Also while something is still watched or locked. */
void unload(void);

/* The calling process gets a signal after so long, of which it takes no notice. */
void signal_in(unsigned int usecs);

/* Calls: 0 or errno. @pagemap as of struct lookaside_lock. */
int lock(int pagemap, const void *page, struct lookaside_lock *answer);
int unlock(int pagemap, const void *page, struct lookaside_lock *answer);
int list(int pagemap, struct lookaside_locks *answer);

/* A process of a user that has a page of its own, written, at @page, and does what it is told. */
struct puppet {
	pid_t pid;
	int orders, done;
	int pagemap;
	char *page;
};

struct puppet puppet(uid_t user);
/*
 * 't' reads the page, 'f' forks, 'e' executes another program, 'm' has a great
 * many mappings from then on; returns when it has.
 */
bool tell(const struct puppet *puppet, char order);
void dismiss(struct puppet *puppet);
/*
 * What that user gets for a wish: errno. The wish is given his pagemap of the
 * puppet, if there is one; without the right to that, it is not asked.
 */
int as_user(uid_t user, int (*wish)(int pagemap, const struct puppet *puppet), const struct puppet *puppet);
/* The same of a user who has CAP_SYS_NICE. */
int as_nice_user(uid_t user, int (*wish)(int pagemap, const struct puppet *puppet), const struct puppet *puppet);

/* The number of the system call that a thread sleeps in, and not only is about to; -1: it does not, or in none. */
long sleeps_in(pid_t thread);

/* waits.c: calls for a process whose memory is locked for long, and @own meanwhile, which are another's. */
void waits(int (*its)(const struct puppet *puppet), int (*own)(void), const char *what);

/* sequence.c */
void sequence(unsigned int cores);
void refusals(unsigned int cores);
/* changes.c */
void mapping_changes(unsigned int cores);
void ends(unsigned int cores);
void other_asid(void);
void leaving_core(void);
/* churn.c */
void churn_locks(void);
void amid_signals(void);
/* missed.c */
void missed_switches(unsigned int cores);

/* The calling process, or a thread, runs on that core alone. */
bool pin(pid_t thread, unsigned int core);

/* A thread that sleeps unless it is poked; ended by order 1. */
struct sleeper {
	pthread_t thread;
	pid_t id;
	int orders[2], done[2];
};

void start_sleeper(struct sleeper *sleeper);
/* It runs, and has left its core when this returns. */
void poke(struct sleeper *sleeper);
/* The second half of that. */
void wait_for_it(const struct sleeper *sleeper);
void end_sleeper(struct sleeper *sleeper);

/* A7. Calls: 0 or errno. */
int dump(unsigned int core, struct lookaside_tlb *tlb);
/* LOOKASIDE_MIGRATE, and so on; @pagemap and @thread as of struct lookaside_migrate. */
int migrate(unsigned long number, int pagemap, pid_t thread, unsigned int cap,
	    struct lookaside_migrate *answer);

/* ASID of the process, which runs on that core. */
unsigned int own_asid(unsigned int core);

/* A valid entry of a small page. */
struct page {
	uint32_t addr;
	unsigned int asid;
};

/* What a core's entry, 0 to 255, is from now on; the page's index has to be the entry's. */
void supply(unsigned int core, unsigned int entry, const uint32_t data[3]);
void supply_page(unsigned int core, unsigned int way, struct page page);
/* All of a core's entries are zero. */
void supply_none(unsigned int core);
/* Sets bits of a descriptor. */
void put(uint32_t data[3], unsigned int high, unsigned int low, uint32_t value);
/* What was prefetched, and read of no TLB, on any core. */
#define PREFETCHES	"/debug/lookaside/tlb"
/* What was prefetched since the last time: addresses, all on that core; else one that is none. */
size_t prefetched(unsigned int core, uint32_t *pages);

/* a7.c */
void without_tlb(unsigned int cores);
/* dump.c */
void dumps(unsigned int cores);
void dump_refusals(unsigned int cores);
/* moves.c */
void moves(void);
/* watches.c */
void watches(void);
void unloading(void);

#endif
