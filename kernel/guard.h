/* SPDX-License-Identifier: GPL-2.0 */
/* Tells cores.c of each core that goes to another memory, before anything of that is used. */
#ifndef LOOKASIDE_GUARD_H
#define LOOKASIDE_GUARD_H

#include <linux/mm_types.h>
#include <linux/types.h>

/*
 * 0; -EOPNOTSUPP: not on this kernel. @missed is called when a core went to
 * another memory and was not seen to; interrupts are off.
 */
int guard_init(void (*missed)(void));
void guard_exit(void);

/* Has @missed called if anything was missed since it was last. When this returns it was. */
void guard_check(void);

/* Whether this core was seen to go to the memory that it has. Interrupts off. */
bool guard_saw(const struct mm_struct *mm);

/* For tests: counts one that was missed. */
void guard_count_missed(void);

#endif
