/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of lookaside.ko have of each other. */
#ifndef LOOKASIDE_INTERNAL_H
#define LOOKASIDE_INTERNAL_H

#include <linux/errno.h>
#include <linux/mm_types.h>

#include "lookaside.h"

/* device.c: the memory that @pagemap means, to be given back by mmput(). */
struct mm_struct *lookaside_target(int pagemap);

/* walk.c */
#ifdef CONFIG_64BIT
long lookaside_walk(void __user *user);
#else
static inline long lookaside_walk(void __user *user)
{
	return -EOPNOTSUPP;
}
#endif

/* lock.c */
#ifdef LOOKASIDE_LOCKDOWN
void lookaside_lock_init(void);
void lookaside_lock_exit(void);
long lookaside_lock(unsigned int cmd, void __user *user);
#else
static inline void lookaside_lock_init(void)
{
}

static inline void lookaside_lock_exit(void)
{
}

static inline long lookaside_lock(unsigned int cmd, void __user *user)
{
	return -EOPNOTSUPP;
}
#endif

#endif
