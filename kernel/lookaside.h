/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What user space and the module lookaside.ko agree on: /dev/lookaside and
 * its ioctls, LOOKASIDE_WALK on 64-bit machines, LOOKASIDE_LOCK, _UNLOCK and
 * _LOCKS on Cortex-A9, LOOKASIDE_TLB, _MIGRATE, _STAY and _MIGRATED on
 * Cortex-A7.
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
 * unmapped, moved, protected, copied on write, migrated, reclaimed, forked. If
 * the module was not told of a switch between processes, all pages are unlocked.
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
 *		not what it takes, such as kprobes that are switched on; or as
 *		above
 * EPERM	LOOKASIDE_LOCK and _UNLOCK take CAP_SYS_NICE
 *
 * A deadly signal ends any wait (EINTR). LOOKASIDE_UNLOCK has its effect then,
 * too.
 */
#define LOOKASIDE_LOCK		_IOWR(0xBA, 1, struct lookaside_lock)
#define LOOKASIDE_UNLOCK	_IOWR(0xBA, 2, struct lookaside_lock)
#define LOOKASIDE_LOCKS		_IOWR(0xBA, 3, struct lookaside_locks)

/* Entries of a Cortex-A7's main TLB: 128 indices of way 0, then those of way 1. */
#define LOOKASIDE_TLB_ENTRIES	256

/**
 * struct lookaside_tlb - what is in a core's main TLB
 * @version:	LOOKASIDE_VERSION
 * @flags:	0
 * @core:	its number
 * @asid:	filled in: the ASID of the process whose memory the core had at
 *		that moment; 0: none
 * @valid:	filled in: how many entries are valid
 * @reserved:	0
 * @entries:	filled in: entry i is index i % 128 of way i / 128. @data is
 *		Data Register 0 to 2 as read, what follows its fields (Cortex-A7
 *		TRM, ARM DDI 0464F, Table 6.9); if it is not valid they mean
 *		nothing. @addr is the address of a page of 4 KiB, by field VA
 *		and the index; 0 if @size, above 1, says that it is larger: what
 *		VA then means is not published. @pa is field PA as an address.
 */
struct lookaside_tlb {
	__u32 version;
	__u32 flags;
	__u32 core;
	__u32 asid;
	__u32 valid;
	__u32 reserved;
	struct lookaside_tlb_entry {
		__u32 data[3];
		__u32 addr;
		__u64 pa;
		__u8 valid;
		__u8 size;
		__u8 ns_walk;
		__u8 vmid;
		__u8 asid;
		__u8 not_global;
		__u8 ap;
		__u8 hap;
		__u8 ns;
		__u8 pxn;
		__u8 xn1;
		__u8 xn2;
		__u8 memory;
		__u8 domain;
		__u8 s1_size;
		__u8 s2_level;
	} entries[LOOKASIDE_TLB_ENTRIES];
};

/* Threads at most, of all processes, that are watched at a time. */
#define LOOKASIDE_MIGRATING		64
/* A thread that is moved more often in a second is left alone from then on. */
#define LOOKASIDE_MOVES_A_SECOND	100

/**
 * struct lookaside_migrate - a thread that takes its translations along when
 *			      it is moved to another core, or not any more
 * @version:	LOOKASIDE_VERSION
 * @flags:	0
 * @pagemap:	the process of the thread, as of struct lookaside_walk
 * @thread:	its id, as gettid(2) tells it; 0 for the calling thread
 * @cap:	pages at most that are saved, 1 to LOOKASIDE_TLB_ENTRIES; 0 for
 *		LOOKASIDE_STAY and LOOKASIDE_MIGRATED, which fill it in
 * @stopped:	filled in: 1 if it was moved more than LOOKASIDE_MOVES_A_SECOND
 *		times in a second, which begins with a move, and takes nothing
 *		along since
 * @moves:	filled in: times that it was moved to another core's run queue
 * @saves:	filled in: times that a TLB was read for it, and
 * @saved:	pages that were saved then, valid entries of its ASID and of
 *		4 KiB,
 * @over:	and entries that were not, for there were @cap already
 * @restores:	filled in: times that pages were prefetched on another core, and
 * @restored:	how many in all
 * @stale:	filled in: saved pages that were dropped, as their mapping changed
 *
 * It is on until it is switched off, the thread ends or executes another
 * program, or the module is unloaded. Threads and processes that it makes are
 * not watched.
 */
struct lookaside_migrate {
	__u32 version;
	__u32 flags;
	__s32 pagemap;
	__s32 thread;
	__u32 cap;
	__u32 stopped;
	__u64 moves;
	__u64 saves;
	__u64 saved;
	__u64 over;
	__u64 restores;
	__u64 restored;
	__u64 stale;
};

/*
 * Return 0, or -1 and errno: of those of LOOKASIDE_WALK EBADF, EFAULT, EINTR,
 * EINVAL, EPROTO, ESRCH, which is also said if the process has not the thread,
 * and
 *
 * EEXIST	the thread is watched
 * ENODEV	some core is no Cortex-A7, or not in the secure world, to which
 *		the registers are; of LOOKASIDE_TLB, that core
 * ENOENT	the thread is not watched
 * ENOMEM	there is no memory
 * ENOSPC	LOOKASIDE_MIGRATING threads are watched
 * ENXIO	the core is not there, or is switched off
 * EOPNOTSUPP	the module is one for another machine, or for a kernel that has
 *		not what it takes; or as above
 * EPERM	LOOKASIDE_TLB takes CAP_SYS_ADMIN, _MIGRATE and _STAY take
 *		CAP_SYS_NICE
 */
#define LOOKASIDE_TLB		_IOWR(0xBA, 4, struct lookaside_tlb)
#define LOOKASIDE_MIGRATE	_IOWR(0xBA, 5, struct lookaside_migrate)
#define LOOKASIDE_STAY		_IOWR(0xBA, 6, struct lookaside_migrate)
#define LOOKASIDE_MIGRATED	_IOWR(0xBA, 7, struct lookaside_migrate)

#endif
