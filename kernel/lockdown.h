/* SPDX-License-Identifier: GPL-2.0 */
/* The lockdown register of Cortex-A9: by the processor, or written down. */
#ifndef LOOKASIDE_LOCKDOWN_H
#define LOOKASIDE_LOCKDOWN_H

#include <linux/types.h>

/* Cortex-A9 TRM r4p1, 4.3.15, TLB Lockdown Register. */
#define LOCKDOWN_PRESERVE	1U	/* walks fill the lockable entry */
#define LOCKDOWN_VICTIM_SHIFT	28
#define LOCKDOWN_VICTIM(entry)	((u32)(entry) << LOCKDOWN_VICTIM_SHIFT)

/*
 * Called on the core that is meant, interrupts and page faults off. An
 * address is one of the memory that this core has at the time.
 */
struct lockdown_ops {
	/* 0, or the error why this core cannot; without memory of a process. */
	int (*check)(void);
	/* Takes a page's entry, lockable or not, out: its address and ASID. */
	void (*invalidate)(unsigned long mva);
	/*
	 * Writes @on to the register, reads a byte at @addr, writes @off.
	 * What else were walked for in between would take the entry: that is
	 * why this is one operation. 0 or -EFAULT.
	 */
	int (*touch)(u32 on, unsigned long addr, u32 off);
	/* The address that an entry is for, and its ASID; 0 if it is not known, or none. */
	unsigned long (*read_back)(unsigned int entry);
};

/* lockdown.c */
extern const struct lockdown_ops lockdown_cortex_a9;
/* Whether the process may read, or write, there now, by the page tables. */
bool lockdown_translates(unsigned long addr, bool write);

/* record.c: writes down what would be done, in the order that it is. */
extern const struct lockdown_ops lockdown_recorded;
void lockdown_record_init(void);
void lockdown_record_exit(void);

#endif
