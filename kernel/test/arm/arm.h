/* SPDX-License-Identifier: GPL-2.0 */
/* The tests that run on an emulated Cortex-A9. */
#ifndef ARM_H
#define ARM_H

#include "../tap.h"

/* What the module wrote down, a line of its file lookaside/lockdown of debugfs. */
struct event {
	unsigned int core;
	char what[16];	/* register, touch, fault, invalidate, back; lost: more than one could be kept */
	uint32_t value;
};

#define EVENTS	1024

/* Reads what was written down since the last time, in order; gives how many. */
size_t recorded(struct event *events);

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
/* 't' reads the page, 'f' forks, 'e' executes another program; returns when it has. */
bool tell(const struct puppet *puppet, char order);
void dismiss(struct puppet *puppet);

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

#endif
