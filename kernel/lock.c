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
 *   filled anew when its own has got another one (guard.c);
 * - all are taken out if a core changed its process and nobody said so.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "cores.h"
#include "guard.h"
#include "internal.h"

/* What an entry is for. */
static struct slot {
	/* slots_lock */
	enum { FREE, FILLING, LOCKED } state;
	struct mm_struct *mm;
	unsigned long addr;
	/* Its page is not to be locked, or not any more: @leave gives it back. */
	bool gone;
	struct mmu_interval_notifier notifier;
	struct work_struct leave;
} slots[LOOKASIDE_LOCKABLE];
#define for_each_slot(slot)	for (slot = slots; slot < slots + LOOKASIDE_LOCKABLE; slot++)
/* Nothing is waited for under it: a process whose memory is locked for long holds up nobody else. */
static DEFINE_SPINLOCK(slots_lock);
/* An entry was given back. */
static DECLARE_WAIT_QUEUE_HEAD(left);
/* Why nothing can be locked, or 0. */
static int unable;

static bool is_leaving(const struct slot *slot)
{
	return slot->state == LOCKED && READ_ONCE(slot->gone);
}

static void give_back(struct slot *slot)
{
	spin_lock(&slots_lock);
	slot->state = FREE;
	spin_unlock(&slots_lock);
	wake_up_all(&left);
}

/* Has work of its own for each: what one process is waited for holds up no other's. */
static void leave(struct work_struct *work)
{
	struct slot *slot = container_of(work, struct slot, leave);
	bool leaves;

	spin_lock(&slots_lock);
	leaves = is_leaving(slot);
	spin_unlock(&slots_lock);
	if (!leaves)
		return;
	cores_drop(slot - slots);
	mmu_interval_notifier_remove(&slot->notifier);
	give_back(slot);
}

/* The page's mapping is about to change, or the process to end. Cannot wait for anybody. */
static bool changing(struct mmu_interval_notifier *notifier,
		     const struct mmu_notifier_range *range, unsigned long seq)
{
	struct slot *slot = container_of(notifier, struct slot, notifier);

	mmu_interval_set_seq(notifier, seq);
	WRITE_ONCE(slot->gone, true);
	cores_drop(slot - slots);
	schedule_work(&slot->leave);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = changing,
};

/* Gives all back, whether there were any; from any context. */
static bool unlock_all(void)
{
	struct slot *slot;
	bool any = false;

	for_each_slot(slot) {
		any |= READ_ONCE(slot->state) != FREE && !READ_ONCE(slot->gone);
		WRITE_ONCE(slot->gone, true);
		schedule_work(&slot->leave);
	}
	return any;
}

/* Somebody may have run under an entry's ASID: none is trusted. */
static void missed(void)
{
	if (unlock_all())
		pr_warn_ratelimited("all pages are unlocked: a core changed its process without the probe's knowing\n");
}

/* The slot of a page that is locked, or is to be; or NULL. */
static struct slot *find(const struct mm_struct *mm, unsigned long addr)
{
	struct slot *slot;

	for_each_slot(slot)
		if (slot->state != FREE && !is_leaving(slot) && slot->mm == mm && slot->addr == addr)
			return slot;
	return NULL;
}

/* A free one; NULL: one is about to be given back; or an error pointer. */
static struct slot *find_free(void)
{
	struct slot *slot, *found = ERR_PTR(-ENOSPC);

	for_each_slot(slot) {
		if (slot->state == FREE)
			return slot;
		if (is_leaving(slot))
			found = NULL;
	}
	return found;
}

/* The same, taken for a page. */
static struct slot *take(struct mm_struct *mm, unsigned long addr)
{
	struct slot *slot;

	spin_lock(&slots_lock);
	slot = find(mm, addr) ? ERR_PTR(-EEXIST) : find_free();
	if (!IS_ERR_OR_NULL(slot)) {
		slot->state = FILLING;
		slot->mm = mm;
		slot->addr = addr;
		WRITE_ONCE(slot->gone, false);
	}
	spin_unlock(&slots_lock);
	return slot;
}

/* From then on changes of the page's mapping are told. With mmap_lock, if it is 0. */
static int watch(struct slot *slot)
{
	int err;

	if (mmap_write_lock_killable(slot->mm))
		return -EINTR;
	err = mmu_interval_notifier_insert_locked(&slot->notifier, slot->mm, slot->addr,
						  PAGE_SIZE, &notifier_ops);
	if (err) {
		mmap_write_unlock(slot->mm);
		/* Any signal ends that. Nothing was done: the call begins anew behind the handler. */
		return err == -EINTR ? -ERESTARTNOINTR : err;
	}
	mmap_write_downgrade(slot->mm);
	/* Of changes under way already we are not told: those that need no mmap_lock. They have to be over. */
	mmu_interval_read_begin(&slot->notifier);
	return 0;
}

/* With mmap_lock. */
static int fill(struct slot *slot)
{
	struct vm_area_struct *vma = find_vma(slot->mm, slot->addr);

	/* Reading what is a device's may do something. */
	if (!vma || vma->vm_start > slot->addr ||
	    vma->vm_flags & (VM_IO | VM_PFNMAP | VM_HUGETLB))
		return -ENXIO;
	return cores_fill(slot - slots, slot->mm, slot->addr,
			  vma->vm_flags & VM_WRITE, &slot->gone);
}

static int lock_page_of(struct mm_struct *mm, struct lookaside_lock *arg)
{
	struct slot *slot;
	int err;

	err = wait_event_killable(left, (slot = take(mm, arg->addr)));
	if (err)
		return -EINTR;
	if (IS_ERR(slot))
		return PTR_ERR(slot);
	err = watch(slot);
	if (err) {
		give_back(slot);
		return err;
	}
	err = fill(slot);
	mmap_read_unlock(mm);
	arg->entry = slot - slots;
	cores_count(arg->entry, &arg->cores, &arg->seen);
	if (err) {
		cores_drop(arg->entry);
		WRITE_ONCE(slot->gone, true);
	}
	spin_lock(&slots_lock);
	slot->state = LOCKED;
	if (is_leaving(slot)) {
		err = err ?: -EAGAIN;
		schedule_work(&slot->leave);
	}
	spin_unlock(&slots_lock);
	return err;
}

static int unlock_page_of(const struct mm_struct *mm, struct lookaside_lock *arg)
{
	struct slot *slot;

	spin_lock(&slots_lock);
	slot = find(mm, arg->addr);
	if (!slot || slot->state != LOCKED) {
		spin_unlock(&slots_lock);
		return -ENOENT;
	}
	arg->entry = slot - slots;
	cores_count(arg->entry, &arg->cores, &arg->seen);
	WRITE_ONCE(slot->gone, true);
	schedule_work(&slot->leave);
	spin_unlock(&slots_lock);
	/* It is done also without us. */
	return wait_event_killable(left, !is_leaving(slot)) ? -EINTR : 0;
}

static void list(const struct mm_struct *mm, struct lookaside_locks *arg)
{
	struct lookaside_locked *page;
	struct slot *slot;

	arg->count = 0;
	arg->free = 0;
	memset(arg->pages, 0, sizeof(arg->pages));
	spin_lock(&slots_lock);
	for_each_slot(slot) {
		if (slot->state == FREE || is_leaving(slot)) {
			arg->free++;
		} else if (slot->state == LOCKED && slot->mm == mm) {
			page = &arg->pages[arg->count++];
			page->addr = slot->addr;
			page->entry = slot - slots;
			cores_count(page->entry, &page->cores, &page->seen);
		}
	}
	spin_unlock(&slots_lock);
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
	/*
	 * All processes of the machine share four entries. Who has one gains time
	 * at the others' cost, as by a priority in real time: it takes the right
	 * to raise priorities. CAP_IPC_LOCK is for memory that is held, which none
	 * is; CAP_SYS_ADMIN would be too much to give. To unlock is to take the
	 * entry from whoever was given it. Lists take nothing from anybody.
	 */
	if (cmd != LOOKASIDE_LOCKS && !capable(CAP_SYS_NICE))
		return -EPERM;
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
	guard_check();
	if (cmd == LOOKASIDE_LOCK)
		err = lock_page_of(mm, &arg.lock);
	else if (cmd == LOOKASIDE_UNLOCK)
		err = unlock_page_of(mm, &arg.lock);
	else
		list(mm, &arg.locks);
	mmput(mm);
	if (err)
		return err;
	return copy_to_user(user, &arg, len) ? -EFAULT : 0;
}

int lookaside_lock_init(void)
{
	struct slot *slot;

	for_each_slot(slot)
		INIT_WORK(&slot->leave, leave);
	unable = cores_init(missed);
	return unable;
}

void lookaside_lock_exit(void)
{
	struct slot *slot;

	if (unable)
		return;
	unlock_all();
	for_each_slot(slot)
		flush_work(&slot->leave);
	cores_exit();
	for_each_slot(slot)
		cancel_work_sync(&slot->leave);
}
