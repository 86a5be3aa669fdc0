// SPDX-License-Identifier: GPL-2.0
/*
 * All that give a core another memory call check_and_switch_context(): switches
 * of threads, exec, kernel threads that use a process's memory, EFI's services.
 * The ASID is chosen inside, so that it has to be a return probe. (What loads
 * it, cpu_v7_switch_mm(), cannot have a probe: a core that comes online calls
 * it before it can take exceptions.)
 *
 * A probe can be missed: all instances are in use, or another probe's handler
 * runs, which the kernel counts; kprobes are switched off in debugfs, which it
 * does not. What cannot be missed is the thread notifier, which __switch_to()
 * and exec call when the memory is there and nothing of it was used yet. It
 * looks whether the probe was there before; if not, nothing is trusted any more.
 * Kernel threads and EFI do not call it: what they miss is seen at the next
 * switch of threads.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/irq_work.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include <asm/thread_notify.h>

#include "cores.h"
#include "guard.h"

/* The memory that this core was seen to go to; NULL: none yet. */
static DEFINE_PER_CPU(struct mm_struct *, seen);
/* Times that the thread notifier did not find what the probe should have seen. */
static atomic_long_t unseen;
/* Times in all that were told of: who finds them told, finds what @tell has done. */
static unsigned long told;
static DEFINE_RAW_SPINLOCK(telling);
static void (*tell)(void);

static int before_switch(struct kretprobe_instance *probe, struct pt_regs *regs)
{
	*(struct mm_struct **)probe->data = (struct mm_struct *)regs->ARM_r0;
	return 0;
}

static int after_switch(struct kretprobe_instance *probe, struct pt_regs *regs)
{
	struct mm_struct *mm = *(struct mm_struct **)probe->data;
	unsigned long flags;

	local_irq_save(flags);
	__this_cpu_write(seen, mm);
	cores_switched(mm);
	local_irq_restore(flags);
	return 0;
}
NOKPROBE_SYMBOL(before_switch);
NOKPROBE_SYMBOL(after_switch);

static struct kretprobe probe = {
	.kp.symbol_name	= "check_and_switch_context",
	.entry_handler	= before_switch,
	.handler	= after_switch,
	.data_size	= sizeof(struct mm_struct *),
};

static unsigned long count_missed(void)
{
	return READ_ONCE(probe.nmissed) + READ_ONCE(probe.kp.nmissed) + atomic_long_read(&unseen);
}

void guard_check(void)
{
	unsigned long flags, count;

	raw_spin_lock_irqsave(&telling, flags);
	count = count_missed();
	if (told != count) {
		tell();
		WRITE_ONCE(told, count);
	}
	raw_spin_unlock_irqrestore(&telling, flags);
}

static void check_soon(struct irq_work *work)
{
	guard_check();
}

/* Run queues are locked in a switch of threads: nothing can be woken there. */
static DEFINE_IRQ_WORK(soon, check_soon);

static int switched(struct notifier_block *unused, unsigned long what, void *thread)
{
	struct mm_struct *mm, *saw;
	unsigned long flags;

	if (what != THREAD_NOTIFY_SWITCH && what != THREAD_NOTIFY_FLUSH)
		return NOTIFY_DONE;
	local_irq_save(flags);
	mm = thread_task(thread)->active_mm;
	saw = __this_cpu_read(seen);
	if (saw && saw != mm) {
		__this_cpu_write(seen, mm);
		if (cores_drop_here())
			atomic_long_inc(&unseen);
	}
	if (READ_ONCE(told) != count_missed())
		irq_work_queue(&soon);
	local_irq_restore(flags);
	return NOTIFY_DONE;
}

static struct notifier_block notifier = { .notifier_call = switched };

bool guard_saw(const struct mm_struct *mm)
{
	return __this_cpu_read(seen) == mm;
}

void guard_count_missed(void)
{
	probe.nmissed++;
}

static void begin_here(void *unused)
{
	__this_cpu_write(seen, current->active_mm);
}

int guard_init(void (*missed)(void))
{
	int err;

	tell = missed;
	/*
	 * One for each core would do: it goes on to the end, whatever comes
	 * in between, but on PREEMPT_RT in exec.
	 */
	probe.maxactive = 2 * num_possible_cpus();
	err = register_kretprobe(&probe);
	if (err) {
		pr_warn("no page can be locked: no probe of %s (%d)\n", probe.kp.symbol_name, err);
		return -EOPNOTSUPP;
	}
	on_each_cpu(begin_here, NULL, 1);
	thread_register_notifier(&notifier);
	return 0;
}

void guard_exit(void)
{
	thread_unregister_notifier(&notifier);
	unregister_kretprobe(&probe);
	irq_work_sync(&soon);
}
