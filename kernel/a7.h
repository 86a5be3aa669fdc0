/* SPDX-License-Identifier: GPL-2.0 */
/* The main TLB of Cortex-A7: read from the processor, or what a test supplies. */
#ifndef LOOKASIDE_A7_H
#define LOOKASIDE_A7_H

#include <linux/build_bug.h>
#include <linux/types.h>

#include "lookaside.h"

/* Cortex-A7 TRM (ARM DDI 0464F), Tables 6.7 and 6.8: behind these indexes are other RAMs. */
#define A7_WAYS		2
#define A7_SETS		128
#define A7_ENTRIES	(A7_WAYS * A7_SETS)
#define A7_WAY_SHIFT	31
#define A7_REGISTERS	3

static_assert(A7_ENTRIES == LOOKASIDE_TLB_ENTRIES);

/* Called on the core that is meant, interrupts off. */
struct a7_ops {
	/* 0, or the error why this core cannot: @read then is an undefined instruction, perhaps. */
	int (*check)(void);
	/* Writes the TLB Data Read Operation Register, reads Data Register 0 to 2. */
	void (*read)(u32 operation, u32 data[A7_REGISTERS]);
	/*
	 * PLD of an address of the memory that this core has at the time: never
	 * faults. The kernel may access user memory.
	 */
	void (*prefetch)(unsigned long addr);
};

/* What is used, from a7_init() on; NULL: nothing can be. */
extern const struct a7_ops *a7_ops;
/* 0; -ENODEV: some core that is online is none, or not in the secure world. Others may come online later. */
int a7_init(void);
void a7_exit(void);

/* The processor's. */
void a7_prefetch(unsigned long addr);

/* The register's value for an entry, 0 to A7_ENTRIES - 1, way by way. */
static inline u32 a7_operation(unsigned int entry)
{
	return (u32)(entry / A7_SETS) << A7_WAY_SHIFT | entry % A7_SETS;
}

/* The fields of an entry. */
void a7_decode(unsigned int entry, const u32 data[A7_REGISTERS],
	       struct lookaside_tlb_entry *fields);
/* Whether it is for a small page of that address space alone; then *@addr is the page's address. */
bool a7_is_page_of(unsigned int entry, const u32 data[A7_REGISTERS], u8 asid,
		   unsigned long *addr);

/* contents.c: entries are what was written to lookaside/tlb in debugfs, prefetches are written down. */
extern const struct a7_ops a7_supplied;
int a7_contents_init(void);
void a7_contents_exit(void);

#endif
