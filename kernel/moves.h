/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that take their pages' translations along from core to core. */
#ifndef LOOKASIDE_MOVES_H
#define LOOKASIDE_MOVES_H

#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct moves_counts {
	u64 moves;
	u64 saves;
	u64 saved;	/* pages, as all below but restores */
	u64 over;
	u64 restores;
	u64 restored;
	u64 stale;
};

/*
 * A thread and its saved set. Probes take the lock with a run queue's held:
 * nothing may be woken inside it.
 */
struct mover {
	struct hlist_node node;
	struct task_struct *task;
	struct mm_struct *mm;
	bool gone;		/* the thread has ended, or has other memory */
	bool stopped;		/* it is moved too often */

	raw_spinlock_t lock;	/* all of the below */
	struct moves_counts counts;
	/* Moves since then, for a second. Times of 64 bits: a thread may sleep for longer than jiffies tell apart. */
	unsigned int in_second;
	u64 second_ns;
	/* The core that it left last, or has its pages since; -1: none yet. */
	int core;
	bool fresh;		/* saved as it left */
	u64 saved_at_ns;	/* if there ever was one */
	u32 cap;
	u32 count;
	u32 pages[];		/* @cap addresses, @count of them saved */
};

/* 0; -EOPNOTSUPP: this kernel has not these tracepoints. @reap is called when a thread is gone. */
int moves_init(void (*reap)(void));
/* When there are no threads any more. */
void moves_exit(void);

/* Before anybody may tell moves_forget() of it, which is before moves_add(). */
void mover_init(struct mover *mover, struct task_struct *task, struct mm_struct *mm, u32 cap);
/* From then on it takes its pages along. Sleeps. */
int moves_add(struct mover *mover);
/* Not any more: nobody uses it once an RCU grace period is over. Sleeps. */
void moves_remove(struct mover *mover);

/* The mapping of these addresses changes: they are not worth to be restored. */
void moves_forget(struct mover *mover, unsigned long start, unsigned long end);
struct moves_counts moves_count(struct mover *mover);

#endif
