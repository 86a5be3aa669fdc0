// SPDX-License-Identifier: GPL-2.0
/* Events of record.c and contents.c, as lines of files in debugfs's folder lookaside. */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/uaccess.h>

#include "events.h"
#include "internal.h"

bool events_only;
module_param_named(record, events_only, bool, 0444);
MODULE_PARM_DESC(record, "write down what the TLB's registers would be told instead (for tests, on any ARMv7)");

static struct dentry *folder;

/* What is too much for the reader takes the place of the last. */
void events_add(struct events *events, const char *what, u32 value)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&events->lock, flags);
	if (events->written - events->read == EVENTS_MOST) {
		what = "lost";
		events->written--;
	}
	events->ring[events->written++ % EVENTS_MOST] =
		(struct event) { what, value, raw_smp_processor_id() };
	raw_spin_unlock_irqrestore(&events->lock, flags);
}

ssize_t events_take(struct file *file, char __user *to, size_t len, loff_t *at)
{
	struct events *events = file_inode(file)->i_private;
	struct event event = {};
	char line[64];

	raw_spin_lock_irq(&events->lock);
	if (events->written != events->read)
		event = events->ring[events->read++ % EVENTS_MOST];
	raw_spin_unlock_irq(&events->lock);
	if (!event.what)
		return 0;
	len = min_t(size_t, len, scnprintf(line, sizeof(line), "%u %s %08x\n", event.core, event.what, event.value));
	return copy_to_user(to, line, len) ? -EFAULT : len;
}

struct dentry *events_file(const char *name, umode_t mode, struct events *events,
			   const struct file_operations *fops)
{
	if (!folder)
		folder = debugfs_create_dir("lookaside", NULL);
	return debugfs_create_file(name, mode, folder, events, fops);
}

void lookaside_events_exit(void)
{
	debugfs_remove(folder);
}
