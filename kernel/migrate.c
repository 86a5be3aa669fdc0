// SPDX-License-Identifier: GPL-2.0
/* Whose threads take their translations along (Landsberg 2018 on Cortex-A7): since when, until when. */
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
static DEFINE_MUTEX(watches_mutex);
static unsigned int count;
/* Why no thread can be watched, or 0. */
static int unable;

/* Ends those on the list, which nobody adds to. */
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

/* Ends the watches of threads that are gone, or all. */
static void reap(bool all)
{
	struct watch *watch, *next;
	LIST_HEAD(ended);

	list_for_each_entry_safe(watch, next, &watches, list)
		if (all || READ_ONCE(watch->mover.gone))
			take_off(watch, &ended);
	end(&ended);
}

static void reap_later(struct work_struct *work)
{
	mutex_lock(&watches_mutex);
	reap(false);
	mutex_unlock(&watches_mutex);
}
static DECLARE_WORK(reaper, reap_later);

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

static struct watch *find(const struct task_struct *task)
{
	struct watch *watch;

	list_for_each_entry(watch, &watches, list)
		if (watch->mover.task == task)
			return watch;
	return NULL;
}

static int start(struct task_struct *task, struct mm_struct *mm, u32 cap)
{
	struct watch *watch;
	LIST_HEAD(ended);
	int err;

	if (count == LOOKASIDE_MIGRATING)
		return -ENOSPC;
	watch = kzalloc(struct_size(watch, mover.pages, cap), GFP_KERNEL);
	if (!watch)
		return -ENOMEM;
	watch->notifier.ops = &notifier_ops;
	mover_init(&watch->mover, task, mm, cap);
	err = mmu_notifier_register(&watch->notifier, mm);
	/* Any signal ends that. Nothing was done: the call begins anew behind the handler. */
	if (err == -EINTR)
		err = -ERESTARTNOINTR;
	if (err)
		goto free;
	err = moves_add(&watch->mover);
	if (err)
		goto unregister;
	get_task_struct(task);
	list_add(&watch->list, &watches);
	count++;
	/* Had it ended before we looked, nobody would tell. */
	if (has(task, mm))
		return 0;
	take_off(watch, &ended);
	end(&ended);
	return -ESRCH;

unregister:
	mmu_notifier_unregister(&watch->notifier, mm);
free:
	kfree(watch);
	return err;
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
	struct watch *watch = find(task);
	LIST_HEAD(ended);
	int err;

	/* It executes another program since, and did not leave its core yet. */
	if (watch && watch->mover.mm != mm) {
		take_off(watch, &ended);
		end(&ended);
		watch = NULL;
	}
	if (cmd == LOOKASIDE_MIGRATE) {
		if (watch)
			return -EEXIST;
		err = start(task, mm, arg->cap);
		if (err)
			return err;
		watch = find(task);
	}
	if (!watch)
		return -ENOENT;
	tell(watch, arg);
	if (cmd == LOOKASIDE_STAY) {
		take_off(watch, &ended);
		end(&ended);
	}
	return 0;
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
	if (task && has(task, mm)) {
		mutex_lock(&watches_mutex);
		reap(false);
		err = migrate(cmd, task, mm, &arg);
		mutex_unlock(&watches_mutex);
	}
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
		reap(true);
		mutex_unlock(&watches_mutex);
		moves_exit();
		cancel_work_sync(&reaper);
	}
	a7_exit();
}
