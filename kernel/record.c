// SPDX-License-Identifier: GPL-2.0
/*
 * Writes to the lockdown register as lines of debugfs's lookaside/lockdown
 * instead, for tests: "CORE register VALUE", "CORE invalidate ADDRESS|ASID",
 * "CORE touch ADDRESS", "CORE back ADDRESS". A line that was read is gone.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "lockdown.h"
#include "lookaside.h"

#define MOST	1024	/* a power of two */

struct event {
	const char *what;
	u32 value;
	u32 core;
};

static DEFINE_RAW_SPINLOCK(lock);
static struct event events[MOST];
/* Events ever written down, and read. */
static unsigned int written, read;
static struct dentry *folder;
/* What a core's entries would be for. */
static DEFINE_PER_CPU(unsigned long[LOOKASIDE_LOCKABLE], filled);

/* What is too much for the reader takes the place of the last. */
static void record(const char *what, u32 value)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	if (written - read == MOST) {
		what = "lost";
		written--;
	}
	events[written++ % MOST] = (struct event) { what, value, raw_smp_processor_id() };
	raw_spin_unlock_irqrestore(&lock, flags);
}

static int record_check(void)
{
	return 0;
}

static void record_invalidate(unsigned long mva)
{
	record("invalidate", mva);
}

static int record_touch(u32 on, unsigned long addr, u32 off)
{
	u8 byte;
	int err;

	record("register", on);
	err = __get_user(byte, (u8 __user *)addr) ? -EFAULT : 0;
	record(err ? "fault" : "touch", addr);
	record("register", off);
	if (on & LOCKDOWN_PRESERVE)
		__this_cpu_write(filled[on >> LOCKDOWN_VICTIM_SHIFT], err ? 0 : addr);
	return err;
}

static unsigned long record_read_back(unsigned int entry)
{
	record("back", __this_cpu_read(filled[entry]));
	return __this_cpu_read(filled[entry]);
}

const struct lockdown_ops lockdown_recorded = {
	.check		= record_check,
	.invalidate	= record_invalidate,
	.touch		= record_touch,
	.read_back	= record_read_back,
};

/* One line a call. */
static ssize_t take(struct file *file, char __user *to, size_t len, loff_t *at)
{
	struct event event = {};
	char line[64];

	raw_spin_lock_irq(&lock);
	if (written != read)
		event = events[read++ % MOST];
	raw_spin_unlock_irq(&lock);
	if (!event.what)
		return 0;
	len = min_t(size_t, len, scnprintf(line, sizeof(line), "%u %s %08x\n", event.core, event.what, event.value));
	return copy_to_user(to, line, len) ? -EFAULT : len;
}

static const struct file_operations fops = {
	.owner	= THIS_MODULE,
	.read	= take,
	.llseek	= noop_llseek,
};

void lockdown_record_init(void)
{
	folder = debugfs_create_dir("lookaside", NULL);
	debugfs_create_file("lockdown", 0400, folder, NULL, &fops);
}

void lockdown_record_exit(void)
{
	debugfs_remove_recursive(folder);
	folder = NULL;
}
