// SPDX-License-Identifier: GPL-2.0
/* Whose threads take their translations along (Landsberg 2018 on Cortex-A7): since when, until when. */
#include <linux/capability.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "a7.h"
#include "internal.h"
#include "moves.h"

struct watch {
	struct list_head list;
	struct mmu_notifier notifier;
	struct mover mover;	/* the last: it has the pages */
};

static LIST_HEAD(watches);
/* Taken off these: the reaper ends them. */
static LIST_HEAD(gone);
/*
 * No memory's locks and no grace periods are waited for under it: a process
 * whose memory is locked for long holds up nobody else.
 */
static DEFINE_MUTEX(watches_mutex);
static unsigned int count;
/* Why no thread can be watched, or 0. */
static int unable;

/* Ends those on the list, which nobody adds to. Without the mutex. */
static void end(struct list_head *ended)
{
	struct watch *watch, *next;

	if (list_empty(ended))
		return;
	/* No probe has one of them any more. */
	synchronize_rcu();
	list_for_each_entry_safe(watch, next, ended, list) {
		mmu_notifier_unregister(&watch->notifier, watch->mover.mm);
		put_task_struct(watch->mover.task);
		kfree(watch);
	}
}

static void take_off(struct watch *watch, struct list_head *ended)
{
	lockdep_assert_held(&watches_mutex);
	moves_remove(&watch->mover);
	list_move(&watch->list, ended);
	count--;
}

/* Takes off threads that are gone, or all. */
static void take_off_gone(bool all)
{
	struct watch *watch, *next;

	list_for_each_entry_safe(watch, next, &watches, list)
		if (all || READ_ONCE(watch->mover.gone))
			take_off(watch, &gone);
}

static void reap(struct work_struct *work)
{
	LIST_HEAD(ended);

	mutex_lock(&watches_mutex);
	take_off_gone(false);
	list_splice_init(&gone, &ended);
	mutex_unlock(&watches_mutex);
	end(&ended);
}

static DECLARE_WORK(reaper, reap);

static void call_reaper(void)
{
	schedule_work(&reaper);
}

static int changing(struct mmu_notifier *notifier, const struct mmu_notifier_range *range)
{
	struct watch *watch = container_of(notifier, struct watch, notifier);

	moves_forget(&watch->mover, range->start, range->end);
	return 0;
}

/* All of its processes have ended, or execute other programs. */
static void ending(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct watch *watch = container_of(notifier, struct watch, notifier);

	WRITE_ONCE(watch->mover.gone, true);
	call_reaper();
}

static const struct mmu_notifier_ops notifier_ops = {
	.release		= ending,
	.invalidate_range_start	= changing,
};

static bool has(struct task_struct *task, const struct mm_struct *mm)
{
	bool is;

	task_lock(task);
	is = task->mm == mm;
	task_unlock(task);
	return is;
}

/* Of the thread, which has the memory. */
static struct watch *find(const struct task_struct *task, const struct mm_struct *mm)
{
	struct watch *watch, *next;

	list_for_each_entry_safe(watch, next, &watches, list) {
		if (watch->mover.task != task)
			continue;
		if (watch->mover.mm == mm)
			return watch;
		/* It executes another program since, and did not leave its core yet. */
		take_off(watch, &gone);
	}
	return NULL;
}

/* As mmu_notifier_register(), which cannot be killed while it waits. */
static int watch_memory(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	int err;

	if (mmap_write_lock_killable(mm))
		return -EINTR;
	err = __mmu_notifier_register(notifier, mm);
	mmap_write_unlock(mm);
	/* Any signal ends that. Nothing was done: the call begins anew behind the handler. */
	return err == -EINTR ? -ERESTARTNOINTR : err;
}

static struct watch *make(struct task_struct *task, struct mm_struct *mm, u32 cap)
{
	struct watch *watch = kzalloc(struct_size(watch, mover.pages, cap), GFP_KERNEL);
	int err;

	if (!watch)
		return ERR_PTR(-ENOMEM);
	watch->notifier.ops = &notifier_ops;
	mover_init(&watch->mover, task, mm, cap);
	err = watch_memory(&watch->notifier, mm);
	if (err) {
		kfree(watch);
		return ERR_PTR(err);
	}
	get_task_struct(task);
	return watch;
}

static int add(struct watch *watch, struct list_head *ended)
{
	struct mover *mover = &watch->mover;
	int err;

	if (find(mover->task, mover->mm))
		err = -EEXIST;
	else if (count == LOOKASIDE_MIGRATING)
		err = -ENOSPC;
	else
		err = moves_add(mover);
	if (err) {
		list_add(&watch->list, ended);
		return err;
	}
	list_add(&watch->list, &watches);
	count++;
	/* Had it ended before we looked, nobody would tell. */
	if (has(mover->task, mover->mm))
		return 0;
	take_off(watch, ended);
	return -ESRCH;
}

static void tell(struct watch *watch, struct lookaside_migrate *arg)
{
	struct moves_counts counts = moves_count(&watch->mover);

	arg->cap = watch->mover.cap;
	arg->stopped = READ_ONCE(watch->mover.stopped);
	arg->moves = counts.moves;
	arg->saves = counts.saves;
	arg->saved = counts.saved;
	arg->over = counts.over;
	arg->restores = counts.restores;
	arg->restored = counts.restored;
	arg->stale = counts.stale;
}

/* The thread has the memory. */
static int migrate(unsigned int cmd, struct task_struct *task, struct mm_struct *mm,
		   struct lookaside_migrate *arg)
{
	struct watch *watch = NULL;
	LIST_HEAD(ended);
	int err = 0;

	if (cmd == LOOKASIDE_MIGRATE) {
		watch = make(task, mm, arg->cap);
		if (IS_ERR(watch))
			return PTR_ERR(watch);
	}
	if (mutex_lock_killable(&watches_mutex)) {
		if (watch)
			list_add(&watch->list, &ended);
		end(&ended);
		return -EINTR;
	}
	take_off_gone(false);
	if (watch)
		err = add(watch, &ended);
	else
		watch = find(task, mm);
	if (!watch)
		err = -ENOENT;
	if (!err)
		tell(watch, arg);
	if (!err && cmd == LOOKASIDE_STAY)
		take_off(watch, &ended);
	if (!list_empty(&gone))
		call_reaper();
	mutex_unlock(&watches_mutex);
	end(&ended);
	return err;
}

static bool is_valid(unsigned int cmd, const struct lookaside_migrate *arg)
{
	if (arg->flags || arg->thread < 0)
		return false;
	if (cmd == LOOKASIDE_MIGRATE)
		return arg->cap && arg->cap <= LOOKASIDE_TLB_ENTRIES;
	return !arg->cap;
}

static struct task_struct *thread(pid_t id)
{
	struct task_struct *task = NULL;
	struct pid *pid;

	if (!id)
		return get_task_struct(current);
	pid = find_get_pid(id);
	task = get_pid_task(pid, PIDTYPE_PID);
	put_pid(pid);
	return task;
}

long lookaside_migrate(unsigned int cmd, void __user *user)
{
	struct lookaside_migrate arg;
	struct task_struct *task;
	struct mm_struct *mm;
	int err = -ESRCH;

	if (unable)
		return unable;
	/*
	 * All users share LOOKASIDE_MIGRATING watches, and each costs the cores
	 * that its thread comes to time with interrupts off: as much a matter of
	 * priority as a locked entry (lock.c). Counts take nothing from anybody.
	 */
	if (cmd != LOOKASIDE_MIGRATED && !capable(CAP_SYS_NICE))
		return -EPERM;
	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.version != LOOKASIDE_VERSION)
		return -EPROTO;
	if (!is_valid(cmd, &arg))
		return -EINVAL;
	mm = lookaside_target(arg.pagemap);
	if (IS_ERR(mm))
		return PTR_ERR(mm);
	task = thread(arg.thread);
	/* Whose memory one may look at, his threads one may watch. */
	if (task && has(task, mm))
		err = migrate(cmd, task, mm, &arg);
	if (task)
		put_task_struct(task);
	mmput(mm);
	if (err)
		return err;
	return copy_to_user(user, &arg, sizeof(arg)) ? -EFAULT : 0;
}

int lookaside_migrate_init(void)
{
	unable = a7_init() ?: moves_init(call_reaper);
	return unable;
}

void lookaside_migrate_exit(void)
{
	if (!unable) {
		mutex_lock(&watches_mutex);
		take_off_gone(true);
		mutex_unlock(&watches_mutex);
		moves_exit();
		reap(&reaper);
		cancel_work_sync(&reaper);
	}
	a7_exit();
}
