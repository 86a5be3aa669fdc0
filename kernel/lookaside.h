/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What user space and the module lookaside.ko agree on: /dev/lookaside and
 * its one ioctl, LOOKASIDE_WALK.
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
 *		pagemap, or /proc was not mounted when the module was loaded
 * EPROTO	the module has another LOOKASIDE_VERSION
 * ESRCH	the process has ended
 */
#define LOOKASIDE_WALK	_IOWR(0xBA, 0, struct lookaside_walk)

#endif
