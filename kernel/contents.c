// SPDX-License-Identifier: GPL-2.0
/*
 * TLB entries that a test supplies: each line written to debugfs's
 * lookaside/tlb, "CORE WAY INDEX DATA0 DATA1 DATA2" (the last three in
 * hexadecimal), one a call, is what reading this entry on that core gives from
 * then on. "CORE other" makes the core another processor, "CORE a7" an A7 as
 * they are at first. Read, the file has lines "CORE pld ADDRESS", and "CORE bad
 * OPERATION" for entries that no TLB has, or that a core has not. A line that
 * was read is gone.
 */
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "a7.h"
#include "events.h"

static struct events events = EVENTS_INIT(events);
static struct dentry *file;
/* Of each core. */
static u32 (*contents)[A7_ENTRIES][A7_REGISTERS];
/* Those that are another processor. */
static struct cpumask others;

static int supplied_check(void)
{
	return cpumask_test_cpu(smp_processor_id(), &others) ? -ENODEV : 0;
}

static void supplied_read(u32 operation, u32 data[A7_REGISTERS])
{
	unsigned int entry = operation >> A7_WAY_SHIFT ? A7_SETS : 0;
	u32 index = operation & ~(1U << A7_WAY_SHIFT);

	memset(data, 0, A7_REGISTERS * sizeof(*data));
	if (index >= A7_SETS || supplied_check())
		events_add(&events, "bad", operation);
	else
		memcpy(data, contents[smp_processor_id()][entry + index], A7_REGISTERS * sizeof(*data));
}

static void supplied_prefetch(unsigned long addr)
{
	events_add(&events, "pld", addr);
	a7_prefetch(addr);
}

const struct a7_ops a7_supplied = {
	.check		= supplied_check,
	.read		= supplied_read,
	.prefetch	= supplied_prefetch,
};

/* A line about a core, or about an entry. */
static bool take_line(const char *line)
{
	unsigned int core, way, index;
	u32 data[A7_REGISTERS];
	char kind[8];

	if (sscanf(line, "%u %7s", &core, kind) != 2 || core >= nr_cpu_ids)
		return false;
	if (!strcmp(kind, "other") || !strcmp(kind, "a7")) {
		if (kind[0] == 'o')
			cpumask_set_cpu(core, &others);
		else
			cpumask_clear_cpu(core, &others);
		return true;
	}
	if (sscanf(line, "%u %u %u %x %x %x", &core, &way, &index, &data[0], &data[1], &data[2]) != 6 ||
	    way >= A7_WAYS || index >= A7_SETS)
		return false;
	memcpy(contents[core][way * A7_SETS + index], data, sizeof(data));
	return true;
}

static ssize_t supply(struct file *unused, const char __user *from, size_t len, loff_t *at)
{
	char line[80];

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = 0;
	return take_line(line) ? len : -EINVAL;
}

static const struct file_operations fops = {
	.owner	= THIS_MODULE,
	.read	= events_take,
	.write	= supply,
	.llseek	= noop_llseek,
};

int a7_contents_init(void)
{
	contents = kcalloc(nr_cpu_ids, sizeof(*contents), GFP_KERNEL);
	if (!contents)
		return -ENOMEM;
	file = events_file("tlb", 0600, &events, &fops);
	return 0;
}

void a7_contents_exit(void)
{
	debugfs_remove(file);
	kfree(contents);
}
