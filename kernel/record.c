// SPDX-License-Identifier: GPL-2.0
/*
 * Writes to the lockdown register as lines of debugfs's lookaside/lockdown
 * instead, for tests: "CORE register VALUE", "CORE invalidate ADDRESS|ASID",
 * "CORE touch ADDRESS". Writing to the file empties it.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "lockdown.h"

#define MOST	1024

static DEFINE_RAW_SPINLOCK(lock);
static struct {
	const char *what;
	u32 value;
	u32 core;
} events[MOST];
static unsigned int count, lost;
static struct dentry *folder;

static void record(const char *what, u32 value)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	if (count < MOST) {
		events[count].what = what;
		events[count].value = value;
		events[count++].core = raw_smp_processor_id();
	} else {
		lost++;
	}
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
	return err;
}

const struct lockdown_ops lockdown_recorded = {
	.check		= record_check,
	.invalidate	= record_invalidate,
	.touch		= record_touch,
};

static int show(struct seq_file *file, void *unused)
{
	unsigned int i, most = READ_ONCE(count);

	for (i = 0; i < most; i++)
		seq_printf(file, "%u %s %08x\n", events[i].core,
			   events[i].what, events[i].value);
	if (lost)
		seq_printf(file, "lost %u\n", lost);
	return 0;
}

static int show_open(struct inode *inode, struct file *file)
{
	return single_open(file, show, NULL);
}

static ssize_t empty(struct file *file, const char __user *text, size_t len,
		     loff_t *at)
{
	raw_spin_lock_irq(&lock);
	count = 0;
	lost = 0;
	raw_spin_unlock_irq(&lock);
	return len;
}

static const struct file_operations fops = {
	.owner		= THIS_MODULE,
	.open		= show_open,
	.read		= seq_read,
	.write		= empty,
	.llseek		= seq_lseek,
	.release	= single_release,
};

void lockdown_record_init(void)
{
	folder = debugfs_create_dir("lookaside", NULL);
	debugfs_create_file("lockdown", 0600, folder, NULL, &fops);
}

void lockdown_record_exit(void)
{
	debugfs_remove_recursive(folder);
	folder = NULL;
}
