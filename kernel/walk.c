// SPDX-License-Identifier: GPL-2.0
/*
 * Reads page-table entries of a range of addresses, so that page walks find
 * them in a cache (PT-Baker at kernel level, Chatzopoulos 2024, Algorithms 3
 * and 4). lookaside.h says what a call does.
 */
#include <linux/delay.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "internal.h"

/*
 * Steps with mmap_lock held: below 100 us if every touch goes to memory. The
 * process's mmap and munmap wait that long.
 */
#define LOCK_STEPS	512
#define NOPS_A_STEP	32
/* Pause for those who wait for the lock, else we would be first again. */
#define LET_IN_US	50
/* Beside why a walk ended. */
#define GO_ON		UINT_MAX

struct walker {
	struct mm_struct *mm;
	/* To be looked at next: on the stride, or the first of a mapping. */
	unsigned long addr;
	unsigned long end;
	unsigned long stride;	/* bytes */
	u32 nops;
	/* Until the lock is given up; the last touch may overdraw it. */
	s64 steps;
	/* The last-level table counted last. */
	unsigned long table;
	u64 touched;
	u64 present;
	u64 tables;
	u64 huge;
};

/* Goes on at the first place to touch that is not below @to. */
static void skip(struct walker *w, unsigned long to, unsigned long end)
{
	w->addr = min(DIV_ROUND_UP(to, w->stride) * w->stride, end);
}

/*
 * Touches entries of one last-level table: up to @end, which is neither beyond
 * the table nor beyond the mapping, which goes to @vma_end.
 *
 * mmap_lock keeps a mapping's tables in place but for this one: a file's pages
 * may be collapsed into a huge page meanwhile (Linux 6.6), an empty table may
 * be freed (6.14). Both leave it to RCU.
 */
static void touch(struct walker *w, pmd_t *pmd, unsigned long end,
		  unsigned long vma_end)
{
	unsigned long step = w->stride - w->addr % w->stride;
	pmd_t entry;
	pte_t *pte;
	bool huge;
	u32 nop;

	rcu_read_lock();
	entry = READ_ONCE(*pmd);
	huge = pmd_leaf(entry) || pmd_trans_huge(entry);
	w->huge += huge;
	/* A bad one is being split, or damaged: others will say so. */
	if (huge || !pmd_present(entry) || pmd_bad(entry)) {
		skip(w, end, vma_end);
		goto unlock;
	}
	if (w->table != w->addr >> PMD_SHIFT) {
		w->table = w->addr >> PMD_SHIFT;
		w->tables++;
	}
	pte = pte_offset_kernel(&entry, w->addr);
	do {
		w->present += !!pte_present(READ_ONCE(*pte));
		w->touched++;
		for (nop = 0; nop < w->nops; nop++)
			asm volatile("nop");
		w->steps -= 1 + w->nops / NOPS_A_STEP;
		w->addr += step;
		pte += step >> PAGE_SHIFT;
		step = w->stride;
	} while (w->addr < end && w->steps > 0);
	w->addr = min(w->addr, vma_end);
unlock:
	rcu_read_unlock();
}

/* Touches in one last-level table, or steps over what has none. */
static void descend(struct walker *w, unsigned long vma_end)
{
	unsigned long addr = w->addr;
	pgd_t *pgd = pgd_offset(w->mm, addr);
	p4d_t *p4d;
	pud_t *pud, entry;

	w->steps--;
	if (pgd_none(READ_ONCE(*pgd)) || pgd_bad(READ_ONCE(*pgd)))
		return skip(w, pgd_addr_end(addr, vma_end), vma_end);
	p4d = p4d_offset(pgd, addr);
	if (p4d_none(READ_ONCE(*p4d)) || p4d_bad(READ_ONCE(*p4d)))
		return skip(w, p4d_addr_end(addr, vma_end), vma_end);
	pud = pud_offset(p4d, addr);
	entry = READ_ONCE(*pud);
	if (pud_none(entry) || !pud_present(entry))
		return skip(w, pud_addr_end(addr, vma_end), vma_end);
	if (pud_leaf(entry) || pud_trans_huge(entry)) {
		w->huge++;
		return skip(w, pud_addr_end(addr, vma_end), vma_end);
	}
	if (pud_bad(entry))
		return skip(w, pud_addr_end(addr, vma_end), vma_end);
	touch(w, pmd_offset(pud, addr), pmd_addr_end(addr, vma_end), vma_end);
}

/* Walks until there is nothing left or the steps are used up. */
static void walk_locked(struct walker *w)
{
	struct vm_area_struct *vma;
	unsigned long vma_end = 0;

	/* mmap_assert_locked() wants more than modules get (DEBUG_VM). */
	lockdep_assert_held(&w->mm->mmap_lock);
	while (w->addr < w->end && w->steps > 0) {
		if (w->addr >= vma_end) {
			w->steps--;
			vma = find_vma(w->mm, w->addr);
			if (!vma || vma->vm_start >= w->end) {
				w->addr = w->end;
				return;
			}
			w->addr = max(w->addr, vma->vm_start);
			vma_end = min(vma->vm_end, w->end);
			/* Its tables may be shared, under locks of its own. */
			if (is_vm_hugetlb_page(vma)) {
				w->addr = vma_end;
				continue;
			}
		}
		descend(w, vma_end);
	}
}

/* Walks @steps steps at most, the lock given up now and then. */
static int walk(struct walker *w, s64 steps, u32 *ended)
{
	while (true) {
		s64 most = min_t(s64, steps, LOCK_STEPS);

		if (mmap_read_lock_killable(w->mm))
			return -EINTR;
		w->steps = most;
		walk_locked(w);
		mmap_read_unlock(w->mm);
		if (mmap_lock_is_contended(w->mm))
			usleep_range(LET_IN_US, 2 * LET_IN_US);
		steps -= most - w->steps;

		if (w->addr >= w->end)
			*ended = LOOKASIDE_END;
		else if (steps <= 0)
			*ended = LOOKASIDE_STEPS;
		else if (signal_pending(current))
			*ended = LOOKASIDE_SIGNAL;
		else if (atomic_read(&w->mm->mm_users) == 1)
			*ended = LOOKASIDE_EXIT;	/* we are all it has */
		else
			*ended = GO_ON;
		if (*ended != GO_ON)
			return 0;
		cond_resched();
	}
}

static bool is_valid(const struct lookaside_walk *arg)
{
	return !arg->flags && !arg->reserved &&
	       arg->stride && arg->stride <= LOOKASIDE_MAX_STRIDE &&
	       arg->nops <= LOOKASIDE_MAX_NOPS &&
	       arg->steps <= LOOKASIDE_MAX_STEPS &&
	       arg->len && arg->start + arg->len > arg->start &&
	       PAGE_ALIGNED(arg->start) && PAGE_ALIGNED(arg->len);
}

long lookaside_walk(void __user *user)
{
	struct lookaside_walk arg;
	struct walker w = {};
	int err = -EINVAL;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.version != LOOKASIDE_VERSION)
		return -EPROTO;
	if (!is_valid(&arg))
		return -EINVAL;
	w.mm = lookaside_target(arg.pagemap);
	if (IS_ERR(w.mm))
		return PTR_ERR(w.mm);
	w.addr = arg.start;
	w.end = arg.start + arg.len;
	w.stride = (unsigned long)arg.stride << PAGE_SHIFT;
	w.nops = arg.nops;
	w.table = ULONG_MAX;
	if (w.end <= w.mm->task_size)
		err = walk(&w, arg.steps ?: LOOKASIDE_MAX_STEPS, &arg.ended);
	mmput(w.mm);
	if (err)
		return err;
	arg.next = w.addr;
	arg.touched = w.touched;
	arg.present = w.present;
	arg.tables = w.tables;
	arg.huge = w.huge;
	return copy_to_user(user, &arg, sizeof(arg)) ? -EFAULT : 0;
}
