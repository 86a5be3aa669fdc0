/* SPDX-License-Identifier: GPL-2.0 */
/* The lockable entries of all cores. */
#ifndef LOOKASIDE_CORES_H
#define LOOKASIDE_CORES_H

#include <linux/mm_types.h>
#include <linux/types.h>

/* 0; -ENODEV: not on this processor; -EOPNOTSUPP: not on this kernel. */
int cores_init(void);
/* When all entries were dropped. */
void cores_exit(void);

/*
 * Fills an entry of each core with a page, one core after the other, as long as
 * *@gone is not set. @write: the process may write there. Sleeps. 0; -ENXIO: the
 * page is not there, or to be written but cannot be now; -EAGAIN: something came
 * in between. Then some have it.
 */
int cores_fill(unsigned int entry, struct mm_struct *mm, unsigned long addr,
	       bool write, const bool *gone);

/* Takes an entry out of each core. When this returns none has it, nor will again. */
void cores_drop(unsigned int entry);

/* How many cores have it in their TLB, and how many of these by their own word. */
void cores_count(unsigned int entry, u32 *cores, u32 *seen);

#endif
