/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What user space and the module lookaside.ko agree on: /dev/lookaside and
 * its ioctls, LOOKASIDE_WALK on 64-bit machines, LOOKASIDE_LOCK, _UNLOCK and
 * _LOCKS on Cortex-A9.
 */
#ifndef LOOKASIDE_H
#define LOOKASIDE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define LOOKASIDE_DEVICE	"/dev/lookaside"
#define LOOKASIDE_VERSION	1

/* The most that a call takes. */
#define LOOKASIDE_MAX_STRIDE	(1U << 18)	/* pages: 1 GiB of 4 KiB each */
#define LOOKASIDE_MAX_NOPS	(1U << 16)
#define LOOKASIDE_MAX_STEPS	(1U << 20)

/* Why a walk ended. */
#define LOOKASIDE_END		0	/* all of the range was walked */
#define LOOKASIDE_STEPS		1	/* as many steps as were asked for */
#define LOOKASIDE_SIGNAL	2	/* the caller has a signal to see to */
#define LOOKASIDE_EXIT		3	/* the process is about to end */

/**
 * struct lookaside_walk - a walk through page tables
 * @version:	LOOKASIDE_VERSION
 * @flags:	0
 * @pagemap:	-1 for the caller's own tables; for those of another process
 *		its /proc/PID/pagemap, opened for reading: who may open it,
 *		by the rules of ptrace(2), may have it walked
 * @stride:	pages from one entry touched to the next,
 *		1 to LOOKASIDE_MAX_STRIDE; 8 entries of 8 bytes are one cache
 *		line of 64
 * @nops:	NOP instructions after each touch, at most LOOKASIDE_MAX_NOPS
 * @steps:	the call ends after so many steps, of which a touch, an upper
 *		entry looked at, a mapping looked up and 32 NOPs are one each;
 *		at most LOOKASIDE_MAX_STEPS; 0 = that many
 * @start:	first address, a multiple of the page size
 * @len:	bytes, a multiple of the page size, at least one page
 * @next:	filled in: where to go on; @start + @len if nothing is left
 * @touched:	filled in: last-level entries read
 * @present:	filled in: of these, entries of pages that have a frame
 * @tables:	filled in: last-level tables that they are in
 * @huge:	filled in: entries that map a huge page, read and stepped over
 * @ended:	filled in: why it ended, LOOKASIDE_END and the like
 * @reserved:	0
 *
 * Of each mapping in the range the entry of the first page is touched, and
 * that of each page whose number is a multiple of @stride. What has no table
 * is stepped over, as are hugetlb mappings. Going on at @next touches what one
 * longer walk would have touched; a table that a call left in the middle is
 * counted again.
 *
 * Nothing is faulted in. Counts are told and how far it came, no frame, nothing
 * of the kernel.
 */
struct lookaside_walk {
	__u32 version;
	__u32 flags;
	__s32 pagemap;
	__u32 stride;
	__u32 nops;
	__u32 steps;
	__u64 start;
	__u64 len;
	__u64 next;
	__u64 touched;
	__u64 present;
	__u64 tables;
	__u64 huge;
	__u32 ended;
	__u32 reserved;
};

/*
 * Returns 0, or -1 and errno:
 *
 * EBADF	@pagemap is not open
 * EFAULT	the structure cannot be read or written
 * EINTR	a deadly signal came before anything was done
 * EINVAL	something is not as said above, or is beyond the process's
 *		address space; @pagemap is another file
 * EOPNOTSUPP	other processes' tables cannot be had: the kernel has no
 *		pagemap, or /proc was not mounted when the module was loaded;
 *		or the kernel is one of 32 bits
 * EPROTO	the module has another LOOKASIDE_VERSION
 * ESRCH	the process has ended
 */
#define LOOKASIDE_WALK	_IOWR(0xBA, 0, struct lookaside_walk)

/* Lockable entries of a main TLB, which all processes share. */
#define LOOKASIDE_LOCKABLE	4

/**
 * struct lookaside_lock - a page to lock in the TLB, or not any more
 * @version:	LOOKASIDE_VERSION
 * @flags:	0
 * @pagemap:	whose page, as of struct lookaside_walk
 * @entry:	filled in: the lockable entry, below LOOKASIDE_LOCKABLE, the same
 *		of each core
 * @addr:	the page's address, a multiple of the page size
 * @cores:	filled in: the cores whose TLB the sequence was run on; of
 *		LOOKASIDE_UNLOCK, those that had it until now
 * @seen:	filled in: of these, the cores whose entry, read back, is the page's;
 *		it cannot be read back in the non-secure world
 *
 * The page stays locked until it is unlocked, its process ends or executes
 * another program, the module is unloaded, or anything is done to its mapping:
 * unmapped, moved, protected, copied on write, migrated, reclaimed, forked.
 */
struct lookaside_lock {
	__u32 version;
	__u32 flags;
	__s32 pagemap;
	__u32 entry;
	__u64 addr;
	__u32 cores;
	__u32 seen;
};

/**
 * struct lookaside_locks - the pages of a process that are locked
 * @version:	LOOKASIDE_VERSION
 * @flags:	0
 * @pagemap:	whose pages, as of struct lookaside_walk
 * @count:	filled in: how many
 * @free:	filled in: entries that nobody has
 * @reserved:	0
 * @pages:	filled in: the first @count, by entry; the others are zero
 */
struct lookaside_locks {
	__u32 version;
	__u32 flags;
	__s32 pagemap;
	__u32 count;
	__u32 free;
	__u32 reserved;
	struct lookaside_locked {
		__u64 addr;
		__u32 entry;
		__u32 cores;
		__u32 seen;
		__u32 reserved;
	} pages[LOOKASIDE_LOCKABLE];
};

/*
 * Return 0, or -1 and errno: of the above EBADF, EFAULT, EINTR, EINVAL, EPROTO,
 * ESRCH, and
 *
 * EAGAIN	the page's mapping was changed meanwhile, or the entry went to
 *		another page that the processor looked up
 * EEXIST	the page is locked
 * ENODEV	the processor is no Cortex-A9, or the secure world keeps its
 *		lockdown register to itself
 * ENOENT	the page is not locked
 * ENOSPC	all entries are taken
 * ENXIO	there is no page, or none that can be locked: it has to be
 *		present and no device's; if it may be written, it has to have
 *		been written
 * EOPNOTSUPP	the module is one for another machine, or for a kernel that has
 *		not what it takes; or as above
 */
#define LOOKASIDE_LOCK		_IOWR(0xBA, 1, struct lookaside_lock)
#define LOOKASIDE_UNLOCK	_IOWR(0xBA, 2, struct lookaside_lock)
#define LOOKASIDE_LOCKS		_IOWR(0xBA, 3, struct lookaside_locks)

#endif
