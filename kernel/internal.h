/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of lookaside.ko have of each other. */
#ifndef LOOKASIDE_INTERNAL_H
#define LOOKASIDE_INTERNAL_H

#include <linux/errno.h>
#include <linux/kconfig.h>
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

/* Inits give 0, or why it can never be done: -ENODEV for another processor. */
#define NOT_BUILT	(IS_ENABLED(CONFIG_ARM) ? -EOPNOTSUPP : -ENODEV)

/* lock.c */
#ifdef LOOKASIDE_LOCKDOWN
int lookaside_lock_init(void);
void lookaside_lock_exit(void);
long lookaside_lock(unsigned int cmd, void __user *user);
#else
static inline int lookaside_lock_init(void)
{
	return NOT_BUILT;
}

static inline void lookaside_lock_exit(void)
{
}

static inline long lookaside_lock(unsigned int cmd, void __user *user)
{
	return -EOPNOTSUPP;
}
#endif

/* migrate.c, dump.c */
#ifdef LOOKASIDE_MIGRATION
int lookaside_migrate_init(void);
void lookaside_migrate_exit(void);
long lookaside_migrate(unsigned int cmd, void __user *user);
long lookaside_dump(void __user *user);
#else
static inline int lookaside_migrate_init(void)
{
	return NOT_BUILT;
}

static inline void lookaside_migrate_exit(void)
{
}

static inline long lookaside_migrate(unsigned int cmd, void __user *user)
{
	return -EOPNOTSUPP;
}

static inline long lookaside_dump(void __user *user)
{
	return -EOPNOTSUPP;
}
#endif

/* events.c */
#if defined(LOOKASIDE_LOCKDOWN) || defined(LOOKASIDE_MIGRATION)
void lookaside_events_exit(void);
#else
static inline void lookaside_events_exit(void)
{
}
#endif

#endif
