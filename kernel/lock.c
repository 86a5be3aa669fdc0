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
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "cores.h"
#include "internal.h"

/* What an entry is for. */
static struct slot {
	struct mmu_interval_notifier notifier;
	unsigned long addr;
	bool used;		/* slots_mutex */
	bool gone;		/* its mapping has changed, or is about to */
} slots[LOOKASIDE_LOCKABLE];
static DEFINE_MUTEX(slots_mutex);
/* Why nothing can be locked, or 0. */
static int unable;

/* Gives an entry back. */
static void release(struct slot *slot)
{
	cores_drop(slot - slots);
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
	cores_drop(slot - slots);
	schedule_work(&reaper);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = changing,
};

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
		err = cores_fill(slot - slots, mm, slot->addr,
				 vma->vm_flags & VM_WRITE, &slot->gone);
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
	/* Any signal ends that. Nothing was done: the call begins anew behind the handler. */
	if (err)
		return err == -EINTR ? -ERESTARTNOINTR : err;
	slot->used = true;
	err = lock_in(slot, mm);
	arg->entry = slot - slots;
	cores_count(slot - slots, &arg->cores, &arg->seen);
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
	cores_count(slot - slots, &arg->cores, &arg->seen);
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
		cores_count(i, &page->cores, &page->seen);
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

int lookaside_lock_init(void)
{
	unable = cores_init();
	return unable;
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
	cores_exit();
}
