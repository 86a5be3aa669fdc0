// SPDX-License-Identifier: GPL-2.0
/*
 * Each core's lockable entries: filling, taking out, and what has to be done
 * when the core goes from one process to another.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include <asm/mmu.h>

#include "cores.h"
#include "events.h"
#include "guard.h"
#include "lockdown.h"
#include "lookaside.h"

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

static const struct lockdown_ops *ops;
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
	unsigned int entry;
	struct held held;
	const bool *gone;
};

static long fill_here(void *arg)
{
	struct wish *wish = arg;
	struct held *h;
	unsigned long flags;
	long err = -EAGAIN;

	kthread_use_mm(wish->held.mm);
	local_irq_save(flags);
	/* If it goes from here on, cores_drop() waits for us. */
	if (!guard_saw(wish->held.mm)) {
		err = -EOPNOTSUPP;
	} else if (!READ_ONCE(*wish->gone)) {
		h = this_cpu_ptr(&held[wish->entry]);
		*h = wish->held;
		err = fill(wish->entry, h);
	}
	local_irq_restore(flags);
	kthread_unuse_mm(wish->held.mm);
	return err;
}

static void drop_here(void *entry)
{
	struct held *h = this_cpu_ptr(&held[*(unsigned int *)entry]);

	drop(h);
	h->mm = NULL;
}

/* On a core that is to be switched off. */
static int leave_core(unsigned int cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	cores_drop_here();
	local_irq_restore(flags);
	return 0;
}

int cores_fill(unsigned int entry, struct mm_struct *mm, unsigned long addr,
	       bool write, const bool *gone)
{
	struct wish wish = {
		.entry = entry,
		.held = { mm, addr, .write = write },
		.gone = gone,
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

void cores_drop(unsigned int entry)
{
	on_each_cpu(drop_here, &entry, 1);
}

void cores_count(unsigned int entry, u32 *cores, u32 *seen)
{
	int cpu;

	*cores = 0;
	*seen = 0;
	for_each_online_cpu(cpu) {
		*cores += READ_ONCE(per_cpu(held[entry], cpu).in);
		*seen += READ_ONCE(per_cpu(held[entry], cpu).seen);
	}
}

void cores_switched(struct mm_struct *mm)
{
	unsigned int i;

	for (i = 0; i < LOOKASIDE_LOCKABLE; i++) {
		struct held *h = this_cpu_ptr(&held[i]);

		if (!h->mm)
			continue;
		if (h->mm != mm && h->asid == ASID(mm))
			drop(h);
		else if (h->mm == mm && (!h->in || h->asid != ASID(mm)))
			fill(i, h);
	}
}

bool cores_drop_here(void)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < LOOKASIDE_LOCKABLE; i++) {
		any |= !!this_cpu_read(held[i].mm);
		drop_here(&i);
	}
	return any;
}

static void check_here(void *failed)
{
	int err = ops->check();

	if (err)
		WRITE_ONCE(*(int *)failed, err);
}

int cores_init(void (*missed)(void))
{
	int err = 0;

	ops = events_only ? &lockdown_recorded : &lockdown_cortex_a9;
	on_each_cpu(check_here, &err, 1);
	if (err)
		return err;
	err = guard_init(missed);
	if (err)
		return err;
	hotplug = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "lookaside:lock", NULL, leave_core);
	if (hotplug < 0) {
		pr_warn("no page can be locked: cores that are switched off do not tell (%d)\n", hotplug);
		guard_exit();
		return -EOPNOTSUPP;
	}
	if (events_only)
		lockdown_record_init();
	return 0;
}

void cores_exit(void)
{
	cpuhp_remove_state_nocalls(hotplug);
	guard_exit();
	lockdown_record_exit();
}
