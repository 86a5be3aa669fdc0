/* SPDX-License-Identifier: GPL-2.0 */
/* The lockable entries of all cores. */
#ifndef LOOKASIDE_CORES_H
#define LOOKASIDE_CORES_H

#include <linux/mm_types.h>
#include <linux/types.h>

/* 0; -ENODEV: not on this processor; -EOPNOTSUPP: not on this kernel. @missed as of guard_init(). */
int cores_init(void (*missed)(void));
/* When all entries were dropped. */
void cores_exit(void);

/*
 * Fills an entry of each core with a page, one core after the other, as long as
 * *@gone is not set. @write: the process may write there. Sleeps. 0; -ENXIO: the
 * page is not there, or to be written but cannot be now; -EAGAIN: something came
 * in between; -EOPNOTSUPP: a core went to the memory and was not seen to. Then
 * some have it.
 */
int cores_fill(unsigned int entry, struct mm_struct *mm, unsigned long addr,
	       bool write, const bool *gone);

/* Takes an entry out of each core. When this returns none has it, nor will again. */
void cores_drop(unsigned int entry);

/*
 * This core has another memory now, and perhaps an ASID that was another's.
 * Nothing of it was used yet. Interrupts off.
 */
void cores_switched(struct mm_struct *mm);
/* Takes all entries out of this core; whether there were any. Interrupts off. */
bool cores_drop_here(void);

/* How many cores have it in their TLB, and how many of these by their own word. */
void cores_count(unsigned int entry, u32 *cores, u32 *seen);

#endif
