// SPDX-License-Identifier: GPL-2.0
/*
 * Writes to the lockdown register as lines of debugfs's lookaside/lockdown
 * instead, for tests: "CORE register VALUE", "CORE invalidate ADDRESS|ASID",
 * "CORE touch ADDRESS", "CORE back ADDRESS". A line that was read is gone. What
 * is written there, "missed", is as if the guard had missed a switch.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "events.h"
#include "guard.h"
#include "lockdown.h"
#include "lookaside.h"

static struct events events = EVENTS_INIT(events);
static struct dentry *file;
/* What a core's entries would be for. */
static DEFINE_PER_CPU(unsigned long[LOOKASIDE_LOCKABLE], filled);

static void record(const char *what, u32 value)
{
	events_add(&events, what, value);
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

static ssize_t take_line(struct file *unused, const char __user *from, size_t len, loff_t *at)
{
	static const char missed[] = "missed";
	char line[sizeof(missed)] = "";

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	if (strcmp(line, missed))
		return -EINVAL;
	guard_count_missed();
	return len;
}

static const struct file_operations fops = {
	.owner	= THIS_MODULE,
	.read	= events_take,
	.write	= take_line,
	.llseek	= noop_llseek,
};

void lockdown_record_init(void)
{
	file = events_file("lockdown", 0600, &events, &fops);
}

void lockdown_record_exit(void)
{
	debugfs_remove(file);
}
