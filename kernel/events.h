/* SPDX-License-Identifier: GPL-2.0 */
/* What processors would be told, written down for tests, to be read in debugfs. */
#ifndef LOOKASIDE_EVENTS_H
#define LOOKASIDE_EVENTS_H

#include <linux/spinlock.h>
#include <linux/types.h>

struct dentry;
struct file_operations;

#define EVENTS_MOST	1024	/* a power of two */

struct events {
	raw_spinlock_t lock;
	/* Ever written down, and read. */
	unsigned int written, read;
	struct event {
		const char *what;
		u32 value;
		u32 core;
	} ring[EVENTS_MOST];
};

#define EVENTS_INIT(name)	{ .lock = __RAW_SPIN_LOCK_UNLOCKED(name.lock) }

/* The module's parameter: write down instead. */
extern bool events_only;

/* Callable from anywhere. */
void events_add(struct events *events, const char *what, u32 value);

/* Lines "CORE WHAT VALUE", one a call; what was read is gone. For files of events_file(). */
ssize_t events_take(struct file *file, char __user *to, size_t len, loff_t *at);

/* A file in debugfs's folder lookaside; to be taken away by debugfs_remove(). */
struct dentry *events_file(const char *name, umode_t mode, struct events *events,
			   const struct file_operations *fops);

#endif
