// SPDX-License-Identifier: GPL-2.0
/* /dev/lookaside: who asks for what, of whose memory. lookaside.h says what can be asked for. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compat.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/magic.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/mm.h>

#include "internal.h"

/* That of every open /proc/PID/pagemap; NULL: not known. */
static const struct file_operations *pagemap_fops;

/*
 * A pagemap is opened where the kernel's own ptrace_may_access() agrees, which
 * modules cannot ask, and keeps the memory that it was opened for.
 */
struct mm_struct *lookaside_target(int pagemap)
{
	struct mm_struct *mm = ERR_PTR(-EINVAL);
	struct file *file;

	if (pagemap == -1) {
		if (!current->mm)
			return ERR_PTR(-ESRCH);
		mmget(current->mm);
		return current->mm;
	}
	if (pagemap < 0)
		return mm;
	if (!pagemap_fops)
		return ERR_PTR(-EOPNOTSUPP);
	file = fget(pagemap);
	if (!file)
		return ERR_PTR(-EBADF);
	if (file->f_op == pagemap_fops) {
		mm = file->private_data;
		if (!mm || !mmget_not_zero(mm))
			mm = ERR_PTR(-ESRCH);
	}
	fput(file);
	return mm;
}

static long lookaside_ioctl(struct file *file, unsigned int cmd,
			    unsigned long to)
{
	void __user *user = (void __user *)to;

	switch (cmd) {
	case LOOKASIDE_WALK:
		return lookaside_walk(user);
	case LOOKASIDE_LOCK:
	case LOOKASIDE_UNLOCK:
	case LOOKASIDE_LOCKS:
		return lookaside_lock(cmd, user);
	case LOOKASIDE_TLB:
		return lookaside_dump(user);
	case LOOKASIDE_MIGRATE:
	case LOOKASIDE_STAY:
	case LOOKASIDE_MIGRATED:
		return lookaside_migrate(cmd, user);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations lookaside_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= lookaside_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.llseek		= noop_llseek,
};

static struct miscdevice lookaside_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "lookaside",
	.fops	= &lookaside_fops,
	.mode	= 0666,	/* one's own tables are anyone's to read */
};

/* What a pagemap is, learned from our own; and that it keeps what we think. */
static void __init learn_pagemap(void)
{
	struct file *file = filp_open("/proc/self/pagemap", O_RDONLY, 0);

	if (!IS_ERR(file)) {
		if (file_inode(file)->i_sb->s_magic == PROC_SUPER_MAGIC &&
		    current->mm && file->private_data == current->mm)
			pagemap_fops = file->f_op;
		filp_close(file, NULL);
	}
	if (!pagemap_fops)
		pr_warn("no /proc/self/pagemap: calls for other processes are refused\n");
}

/* What cannot be done here is refused; the device is there all the same. */
static void __init init_parts(void)
{
	int lock = lookaside_lock_init();
	int migrate = lookaside_migrate_init();
	const char *const missing[] = {
		IS_ENABLED(CONFIG_64BIT) ? NULL : "walking (32 bits)",
		!lock ? NULL : lock == -ENODEV ?
			"locking (no Cortex-A9, or its secure world has the register)" :
			"locking (not by this kernel)",
		!migrate ? NULL : migrate == -ENODEV ?
			"migration and TLB dumps (no Cortex-A7, or its secure world has the registers)" :
			"migration and TLB dumps (not by this kernel)",
	};
	unsigned int i, len = 0;
	char line[200];

	for (i = 0; i < ARRAY_SIZE(missing); i++)
		if (missing[i])
			len += scnprintf(line + len, sizeof(line) - len, "%s%s", len ? ", " : "", missing[i]);
	/* There is always something: no processor has all of it. */
	pr_info("not supported: %s\n", line);
}

static void exit_parts(void)
{
	lookaside_migrate_exit();
	lookaside_lock_exit();
	lookaside_events_exit();
}

static int __init lookaside_init(void)
{
	int err;

	learn_pagemap();
	init_parts();
	err = misc_register(&lookaside_device);
	if (err)
		exit_parts();
	return err;
}
module_init(lookaside_init);

static void __exit lookaside_exit(void)
{
	misc_deregister(&lookaside_device);
	exit_parts();
}
module_exit(lookaside_exit);

MODULE_DESCRIPTION("Reads page-table entries so that page walks find them in a cache; locks pages in Cortex-A9's TLB; lets threads take their TLB entries along on Cortex-A7");
MODULE_AUTHOR("The Lookaside authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(__stringify(LOOKASIDE_VERSION));
