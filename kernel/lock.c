// SPDX-License-Identifier: GPL-2.0
/*
 * Locks pages of processes in the main TLB's lockable entries (Song 2022 on
 * Cortex-A9), the same entry of each core for a page.
 *
 * A locked entry outlives nearly all of Linux's own TLB maintenance: TLBIALL
 * and TLBIMVAA leave it (TRM, Table 4-26), and with the workaround of erratum
 * 720789, as Debian builds it, Linux uses these two alone. So that nobody ever
 * uses a translation that is not his or not true any more,
 * - an entry is taken out before its page's mapping changes (MMU notifier);
 * - an entry is taken out before another process runs under its ASID, and is
 *   filled anew when its own has got another one (probe of the switch).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched/mm.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include <asm/mmu.h>

#include "internal.h"
#include "lockdown.h"

static bool record;
module_param(record, bool, 0444);
MODULE_PARM_DESC(record, "write down what the lockdown register would be told instead (for tests, on any ARMv7)");

/* What a core has in an entry: only the core itself changes it, with interrupts off. */
struct held {
	struct mm_struct *mm;	/* NULL: nothing */
	unsigned long addr;
	unsigned int asid;
	bool write;		/* it may be written: the entry has to say so */
	bool in;		/* in the TLB, as far as we know */
	bool seen;		/* and read back */
};
static DEFINE_PER_CPU(struct held[LOOKASIDE_LOCKABLE], held);

/* What an entry is for. */
static struct slot {
	struct mmu_interval_notifier notifier;
	unsigned long addr;
	bool used;		/* slots_mutex */
	bool gone;		/* its mapping has changed, or is about to */
} slots[LOOKASIDE_LOCKABLE];
static DEFINE_MUTEX(slots_mutex);

static const struct lockdown_ops *ops;
/* Why nothing can be locked, or 0. */
static int unable;
static enum cpuhp_state hotplug;

/* Takes out what this core has. */
static void drop(struct held *h)
{
	if (h->in)
		ops->invalidate(h->addr | h->asid);
	h->in = false;
	h->seen = false;
}

/*
 * Whether the entry is the page's, as far as can be known. Another's that was
 * walked for meanwhile would stay when its mapping changes.
 */
static bool is_ours(unsigned int entry, struct held *h)
{
	unsigned long mva = ops->read_back(entry);

	h->seen = (mva & PAGE_MASK) == h->addr;
	if (!h->seen && mva)
		ops->invalidate(mva);
	return h->seen || !mva;
}

/*
 * Fills this core's entry; its memory is the process's at the moment.
 *
 * The page that may be written has to be writable now: from an entry that says
 * otherwise the process would not come back, as the fault is one that Linux
 * mends by TLBIMVAA.
 */
static int fill(unsigned int entry, struct held *h)
{
	u32 off = LOCKDOWN_VICTIM(entry);
	unsigned int access;
	int err = -ENXIO;

	drop(h);
	h->asid = ASID(h->mm);
	pagefault_disable();
	access = uaccess_save_and_enable();
	/* Once without, so that code and stack are in the TLB. */
	if (lockdown_translates(h->addr, h->write) &&
	    !ops->touch(off, h->addr, off)) {
		ops->invalidate(h->addr | h->asid);
		err = ops->touch(off | LOCKDOWN_PRESERVE, h->addr, off) ? -EAGAIN : 0;
		/* Also if it was a fault: the entry is filled, with what is another question. */
		h->in = true;
		if (!is_ours(entry, h))
			err = -EAGAIN;
	}
	uaccess_restore(access);
	pagefault_enable();
	if (err) {
		drop(h);
		h->mm = NULL;
	}
	return err;
}

struct wish {
	struct slot *slot;
	struct held held;
};

static long fill_here(void *arg)
{
	struct wish *wish = arg;
	unsigned int entry = wish->slot - slots;
	struct held *h;
	unsigned long flags;
	long err = -EAGAIN;

	kthread_use_mm(wish->held.mm);
	local_irq_save(flags);
	/* If it goes from here on, changing() waits for us, and has it taken out. */
	if (!READ_ONCE(wish->slot->gone)) {
		h = this_cpu_ptr(&held[entry]);
		*h = wish->held;
		err = fill(entry, h);
	}
	local_irq_restore(flags);
	kthread_unuse_mm(wish->held.mm);
	return err;
}

static void drop_here(void *arg)
{
	struct held *h = this_cpu_ptr(&held[(struct slot *)arg - slots]);

	drop(h);
	h->mm = NULL;
}

/* Takes out what a core has, by itself, as it is switched off. */
static int drop_all(unsigned int cpu)
{
	unsigned long flags;
	unsigned int i;

	local_irq_save(flags);
	for (i = 0; i < LOOKASIDE_LOCKABLE; i++)
		drop_here(&slots[i]);
	local_irq_restore(flags);
	return 0;
}

/* How many cores have it in their TLB, and how many by their own word. */
static void count_cores(const struct slot *slot, u32 *cores, u32 *seen)
{
	int cpu;

	*cores = 0;
	*seen = 0;
	for_each_online_cpu(cpu) {
		*cores += READ_ONCE(per_cpu(held[slot - slots], cpu).in);
		*seen += READ_ONCE(per_cpu(held[slot - slots], cpu).seen);
	}
}

/* A core is about to run in another memory: the kernel's check_and_switch_context(memory, task). */
static int before_switch(struct kretprobe_instance *probe, struct pt_regs *regs)
{
	*(struct mm_struct **)probe->data = (struct mm_struct *)regs->ARM_r0;
	return 0;
}

/* It has another now, and perhaps an ASID that was another's before. Nothing of it was used yet. */
static int after_switch(struct kretprobe_instance *probe, struct pt_regs *regs)
{
	struct mm_struct *mm = *(struct mm_struct **)probe->data;
	unsigned long flags;
	unsigned int i;

	local_irq_save(flags);
	for (i = 0; i < LOOKASIDE_LOCKABLE; i++) {
		struct held *h = this_cpu_ptr(&held[i]);

		if (!h->mm)
			continue;
		if (h->mm != mm && h->asid == ASID(mm))
			drop(h);
		else if (h->mm == mm && (!h->in || h->asid != ASID(mm)))
			fill(i, h);
	}
	local_irq_restore(flags);
	return 0;
}
NOKPROBE_SYMBOL(before_switch);
NOKPROBE_SYMBOL(after_switch);

static struct kretprobe switch_probe = {
	.kp.symbol_name	= "check_and_switch_context",
	.entry_handler	= before_switch,
	.handler	= after_switch,
	.data_size	= sizeof(struct mm_struct *),
};

/* Gives an entry back. */
static void release(struct slot *slot)
{
	on_each_cpu(drop_here, slot, 1);
	mmu_interval_notifier_remove(&slot->notifier);
	slot->used = false;
	slot->gone = false;
}

/* Gives back what is of no use any more. */
static void reap(void)
{
	unsigned int i;

	lockdep_assert_held(&slots_mutex);
	for (i = 0; i < LOOKASIDE_LOCKABLE; i++)
		if (slots[i].used && READ_ONCE(slots[i].gone))
			release(&slots[i]);
}

static void reap_later(struct work_struct *work)
{
	mutex_lock(&slots_mutex);
	reap();
	mutex_unlock(&slots_mutex);
}
static DECLARE_WORK(reaper, reap_later);

/* The page's mapping is about to change, or the process to end. Cannot wait for slots_mutex. */
static bool changing(struct mmu_interval_notifier *notifier,
		     const struct mmu_notifier_range *range, unsigned long seq)
{
	struct slot *slot = container_of(notifier, struct slot, notifier);

	mmu_interval_set_seq(notifier, seq);
	WRITE_ONCE(slot->gone, true);
	on_each_cpu(drop_here, slot, 1);
	schedule_work(&reaper);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = changing,
};

/* Fills the entry of each core, one after the other. */
static int fill_all(struct slot *slot, bool write)
{
	struct wish wish = {
		.slot = slot,
		.held = { slot->notifier.mm, slot->addr, .write = write },
	};
	int cpu, err = 0;

	cpus_read_lock();
	for_each_online_cpu(cpu) {
		err = work_on_cpu(cpu, fill_here, &wish);
		if (err)
			break;
	}
	cpus_read_unlock();
	return err;
}

/* The slot of a page that is locked, or NULL. */
static struct slot *find(const struct mm_struct *mm, unsigned long addr)
{
	unsigned int i;

	for (i = 0; i < LOOKASIDE_LOCKABLE; i++)
		if (slots[i].used && slots[i].notifier.mm == mm &&
		    slots[i].addr == addr)
			return &slots[i];
	return NULL;
}

static struct slot *find_unused(void)
{
	unsigned int i;

	for (i = 0; i < LOOKASIDE_LOCKABLE; i++)
		if (!slots[i].used)
			return &slots[i];
	return NULL;
}

static int lock_in(struct slot *slot, struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	int err = -ENXIO;

	/* Of changes under way already we are not told: they have to be over. */
	mmu_interval_read_begin(&slot->notifier);
	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = find_vma(mm, slot->addr);
	/* Reading what is a device's may do something. */
	if (vma && vma->vm_start <= slot->addr &&
	    !(vma->vm_flags & (VM_IO | VM_PFNMAP | VM_HUGETLB)))
		err = fill_all(slot, vma->vm_flags & VM_WRITE);
	mmap_read_unlock(mm);
	return err ?: READ_ONCE(slot->gone) ? -EAGAIN : 0;
}

static int lock_page_of(struct mm_struct *mm, struct lookaside_lock *arg)
{
	struct slot *slot;
	int err;

	if (find(mm, arg->addr))
		return -EEXIST;
	slot = find_unused();
	if (!slot)
		return -ENOSPC;
	slot->addr = arg->addr;
	err = mmu_interval_notifier_insert(&slot->notifier, mm, slot->addr,
					   PAGE_SIZE, &notifier_ops);
	if (err)
		return err;
	slot->used = true;
	err = lock_in(slot, mm);
	arg->entry = slot - slots;
	count_cores(slot, &arg->cores, &arg->seen);
	if (err)
		release(slot);
	return err;
}

static int unlock_page_of(struct mm_struct *mm, struct lookaside_lock *arg)
{
	struct slot *slot = find(mm, arg->addr);

	if (!slot)
		return -ENOENT;
	arg->entry = slot - slots;
	count_cores(slot, &arg->cores, &arg->seen);
	release(slot);
	return 0;
}

static void list(const struct mm_struct *mm, struct lookaside_locks *arg)
{
	struct lookaside_locked *page;
	unsigned int i;

	arg->count = 0;
	arg->free = 0;
	memset(arg->pages, 0, sizeof(arg->pages));
	for (i = 0; i < LOOKASIDE_LOCKABLE; i++) {
		arg->free += !slots[i].used;
		if (!slots[i].used || slots[i].notifier.mm != mm)
			continue;
		page = &arg->pages[arg->count++];
		page->addr = slots[i].addr;
		page->entry = i;
		count_cores(&slots[i], &page->cores, &page->seen);
	}
}

long lookaside_lock(unsigned int cmd, void __user *user)
{
	/* They begin alike. */
	union {
		struct lookaside_lock lock;
		struct lookaside_locks locks;
	} arg;
	size_t len = cmd == LOOKASIDE_LOCKS ? sizeof(arg.locks) : sizeof(arg.lock);
	struct mm_struct *mm;
	int err = 0;

	if (unable)
		return unable;
	if (copy_from_user(&arg, user, len))
		return -EFAULT;
	if (arg.lock.version != LOOKASIDE_VERSION)
		return -EPROTO;
	if (arg.lock.flags)
		return -EINVAL;
	if (cmd == LOOKASIDE_LOCKS ? arg.locks.reserved :
	    !PAGE_ALIGNED(arg.lock.addr) ||
	    arg.lock.addr >= TASK_SIZE)
		return -EINVAL;
	mm = lookaside_target(arg.lock.pagemap);
	if (IS_ERR(mm))
		return PTR_ERR(mm);
	mutex_lock(&slots_mutex);
	reap();
	if (cmd == LOOKASIDE_LOCK)
		err = lock_page_of(mm, &arg.lock);
	else if (cmd == LOOKASIDE_UNLOCK)
		err = unlock_page_of(mm, &arg.lock);
	else
		list(mm, &arg.locks);
	mutex_unlock(&slots_mutex);
	mmput(mm);
	if (err)
		return err;
	return copy_to_user(user, &arg, len) ? -EFAULT : 0;
}

static void check_here(void *failed)
{
	int err = ops->check();

	if (err)
		WRITE_ONCE(*(int *)failed, err);
}

int lookaside_lock_init(void)
{
	int err;

	ops = record ? &lockdown_recorded : &lockdown_cortex_a9;
	on_each_cpu(check_here, &unable, 1);
	if (unable) {
		pr_info("no page can be locked: no Cortex-A9, or its secure world has the lockdown register\n");
		return 0;
	}
	switch_probe.maxactive = 2 * num_possible_cpus();
	err = register_kretprobe(&switch_probe);
	if (err) {
		pr_warn("no page can be locked: no probe of %s (%d)\n", switch_probe.kp.symbol_name, err);
		unable = -EOPNOTSUPP;
		return 0;
	}
	hotplug = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "lookaside:lock", NULL, drop_all);
	if (hotplug < 0) {
		unregister_kretprobe(&switch_probe);
		return hotplug;
	}
	if (record)
		lockdown_record_init();
	return 0;
}

void lookaside_lock_exit(void)
{
	unsigned int i;

	if (unable)
		return;
	mutex_lock(&slots_mutex);
	for (i = 0; i < LOOKASIDE_LOCKABLE; i++)
		if (slots[i].used)
			release(&slots[i]);
	mutex_unlock(&slots_mutex);
	cancel_work_sync(&reaper);
	cpuhp_remove_state_nocalls(hotplug);
	unregister_kretprobe(&switch_probe);
	lockdown_record_exit();
}
