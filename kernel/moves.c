// SPDX-License-Identifier: GPL-2.0
/*
 * What a thread takes along from core to core: the addresses of its pages that
 * were in the TLB of the core it left. On the next core they are prefetched
 * (PLD), and the processor walks its page tables for each: as they are then,
 * whatever they were before.
 *
 * Saving. sched_migrate_task is told on whichever core does the moving, and a
 * TLB can be read by its own core alone. So it is read in sched_switch, as the
 * thread leaves, its memory still loaded. That is often: what was saved in the
 * last SAVE_NS stays. sched_migrate_task then reads anew, if it is told on the
 * core that the thread left, and that still has its memory: so it is for a
 * thread that ran and is moved by the stopper.
 *
 * Restoring. sched_switch is told before the thread's memory is loaded, and
 * what could be told later is not exported, or not built in. There an irq_work
 * is raised: its interrupt comes when finish_task_switch() lets interrupts in,
 * which is where the paper restores.
 */
#include <linux/hashtable.h>
#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <trace/events/sched.h>

#include <asm/mmu.h>

#include "a7.h"
#include "moves.h"

/* 256 entries take some 5,000 cycles (Landsberg 2018, Tables A.3 and A.4): below 0.1 % of a core. */
#define SAVE_NS		(10 * NSEC_PER_MSEC)

/* By task. Changed by those who sleep, one at a time; read under RCU. */
static DEFINE_HASHTABLE(movers, 6);
static struct tracepoint *on_switch, *on_move;

static DEFINE_PER_CPU(struct irq_work, catching_up);
static void (*reap)(void);
/* Somebody is gone, and @reap not called yet. */
static bool anybody_gone;

static struct mover *find(const struct task_struct *task)
{
	struct mover *m;

	hash_for_each_possible_rcu(movers, m, node, (unsigned long)task)
		if (m->task == task)
			return m;
	return NULL;
}

/* On a core that has the thread's memory. What it has stays if the core is one that cannot be read. */
static void save(struct mover *m)
{
	u32 data[A7_REGISTERS];
	u8 asid = ASID(m->mm);
	unsigned long addr;
	unsigned int i;

	if (a7_ops->check())
		return;
	m->count = 0;
	for (i = 0; i < A7_ENTRIES; i++) {
		a7_ops->read(a7_operation(i), data);
		if (!a7_is_page_of(i, data, asid, &addr))
			continue;
		if (m->count < m->cap)
			m->pages[m->count++] = addr;
		else
			m->counts.over++;
	}
	m->counts.saves++;
	m->counts.saved += m->count;
	m->saved_at_ns = ktime_get_mono_fast_ns();
}

/* On a core that has the thread's memory. */
static void restore(struct mover *m)
{
	unsigned int access = uaccess_save_and_enable();
	u32 i;

	for (i = 0; i < m->count; i++)
		a7_ops->prefetch(m->pages[i]);
	uaccess_restore(access);
	m->counts.restores++;
	m->counts.restored += m->count;
	m->core = smp_processor_id();
}

/* The thread leaves this core. */
static void leave(struct mover *m)
{
	unsigned long flags;

	/* It may have executed another program, or be about to end. */
	if (m->task->mm != m->mm) {
		WRITE_ONCE(m->gone, true);
		WRITE_ONCE(anybody_gone, true);
		irq_work_queue(this_cpu_ptr(&catching_up));
		return;
	}
	raw_spin_lock_irqsave(&m->lock, flags);
	if (!m->stopped) {
		m->fresh = !m->counts.saves ||
			   ktime_get_mono_fast_ns() - m->saved_at_ns >= SAVE_NS;
		if (m->fresh)
			save(m);
		m->core = smp_processor_id();
	}
	raw_spin_unlock_irqrestore(&m->lock, flags);
}

/* The thread is about to run on this core. */
static void arrive(struct mover *m)
{
	if (READ_ONCE(m->count) && READ_ONCE(m->core) != smp_processor_id())
		irq_work_queue(this_cpu_ptr(&catching_up));
}

static bool is_too_often(struct mover *m)
{
	u64 now_ns = ktime_get_mono_fast_ns();

	if (!m->in_second || now_ns - m->second_ns >= NSEC_PER_SEC) {
		m->second_ns = now_ns;
		m->in_second = 0;
	}
	return ++m->in_second > LOOKASIDE_MOVES_A_SECOND;
}

/* Told for each thread that leaves a core and each that comes. */
static void switching(void *unused, bool preempt, struct task_struct *prev,
		      struct task_struct *next, unsigned int prev_state)
{
	struct mover *m;

	rcu_read_lock();
	m = find(prev);
	if (m)
		leave(m);
	m = find(next);
	if (m)
		arrive(m);
	rcu_read_unlock();
}

/* Told on whichever core. */
static void moving(void *unused, struct task_struct *task, int to)
{
	unsigned long flags;
	struct mover *m;

	rcu_read_lock();
	m = find(task);
	if (!m)
		goto unlock;
	raw_spin_lock_irqsave(&m->lock, flags);
	m->counts.moves++;
	if (is_too_often(m))
		WRITE_ONCE(m->stopped, true);
	if (m->stopped) {
		m->count = 0;
	} else if (!m->fresh && m->core == smp_processor_id() && current->active_mm == m->mm) {
		save(m);
		m->fresh = true;
	}
	raw_spin_unlock_irqrestore(&m->lock, flags);
unlock:
	rcu_read_unlock();
}

/* The first interrupt of a thread that has come: its memory is there. */
static void catch_up(struct irq_work *work)
{
	unsigned long flags;
	struct mover *m;

	rcu_read_lock();
	m = find(current);
	if (m && current->mm == m->mm) {
		raw_spin_lock_irqsave(&m->lock, flags);
		if (m->count && m->core != smp_processor_id())
			restore(m);
		raw_spin_unlock_irqrestore(&m->lock, flags);
	}
	rcu_read_unlock();
	if (xchg(&anybody_gone, false))
		reap();
}

void moves_forget(struct mover *m, unsigned long start, unsigned long end)
{
	unsigned long flags;
	u32 i, kept = 0;

	raw_spin_lock_irqsave(&m->lock, flags);
	for (i = 0; i < m->count; i++)
		if (m->pages[i] < start || m->pages[i] >= end)
			m->pages[kept++] = m->pages[i];
	m->counts.stale += m->count - kept;
	m->count = kept;
	raw_spin_unlock_irqrestore(&m->lock, flags);
}

struct moves_counts moves_count(struct mover *m)
{
	struct moves_counts counts;
	unsigned long flags;

	raw_spin_lock_irqsave(&m->lock, flags);
	counts = m->counts;
	raw_spin_unlock_irqrestore(&m->lock, flags);
	return counts;
}

void mover_init(struct mover *m, struct task_struct *task, struct mm_struct *mm, u32 cap)
{
	raw_spin_lock_init(&m->lock);
	m->task = task;
	m->mm = mm;
	m->cap = cap;
	m->core = -1;
}

int moves_add(struct mover *m)
{
	int err;

	if (hash_empty(movers)) {
		err = tracepoint_probe_register(on_move, moving, NULL);
		if (err)
			return err;
		err = tracepoint_probe_register(on_switch, switching, NULL);
		if (err) {
			tracepoint_probe_unregister(on_move, moving, NULL);
			return err;
		}
	}
	hash_add_rcu(movers, &m->node, (unsigned long)m->task);
	return 0;
}

void moves_remove(struct mover *m)
{
	hash_del_rcu(&m->node);
	if (!hash_empty(movers))
		return;
	tracepoint_probe_unregister(on_switch, switching, NULL);
	tracepoint_probe_unregister(on_move, moving, NULL);
}

static void look_at(struct tracepoint *point, void *unused)
{
	if (!strcmp(point->name, "sched_switch"))
		on_switch = point;
	else if (!strcmp(point->name, "sched_migrate_task"))
		on_move = point;
}

int moves_init(void (*call)(void))
{
	int cpu;

	/* A module's per-CPU data is not relocated: no pointer can be in it from the start. */
	for_each_possible_cpu(cpu)
		*per_cpu_ptr(&catching_up, cpu) = IRQ_WORK_INIT_HARD(catch_up);
	/* They are not exported by name, so that the compiler has to be asked. */
	check_trace_callback_type_sched_switch(switching);
	check_trace_callback_type_sched_migrate_task(moving);
	for_each_kernel_tracepoint(look_at, NULL);
	reap = call;
	return on_switch && on_move ? 0 : -EOPNOTSUPP;
}

void moves_exit(void)
{
	int cpu;

	tracepoint_synchronize_unregister();
	for_each_possible_cpu(cpu)
		irq_work_sync(per_cpu_ptr(&catching_up, cpu));
}
