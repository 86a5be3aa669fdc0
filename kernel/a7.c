// SPDX-License-Identifier: GPL-2.0
/*
 * Cortex-A7's main TLB: its registers, and the fields of an entry, by the
 * Technical Reference Manual, r0p5 (ARM DDI 0464F), 6.6.
 */
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/smp.h>

#include <asm/barrier.h>
#include <asm/cputype.h>

#include "a7.h"
#include "events.h"
#include "secure.h"

/*
 * Bits of a descriptor (Table 6.9, and Table 3.1 of Landsberg 2018), of which
 * bit 0 is bit 0 of Data Register 0. Beside the text's [62:32] for the second
 * register is read [63:32]: 32 bits.
 */
#define VALID		0, 0
#define SIZE		3, 1
#define NS_WALK		4, 4
#define VA		17, 5
#define VMID		25, 18
#define ASID_FIELD	33, 26
#define NOT_GLOBAL	34, 34
#define AP		37, 35
#define HAP		39, 38
#define NS		40, 40
#define PA		68, 41
#define PXN		69, 69
#define XN1		70, 70
#define XN2		71, 71
#define MEMORY		77, 72
#define DOMAIN		81, 78
#define S1_SIZE		83, 82
#define S2_LEVEL	85, 84

/* Address bits of a small page: VA's lowest, and the index's. */
#define VA_SHIFT	19
#define SETS_SHIFT	12

const struct a7_ops *a7_ops;

static int registers_check(void)
{
	if (read_cpuid_part() != ARM_CPU_PART_CORTEX_A7)
		return -ENODEV;
	/* Else they are undefined instructions (6.6). */
	return is_secure() ? 0 : -ENODEV;
}

/* Table 6.2. */
static void registers_read(u32 operation, u32 data[A7_REGISTERS])
{
	asm volatile("mcr p15, 3, %0, c15, c4, 2" : : "r" (operation));
	isb();
	asm volatile("mrc p15, 3, %0, c15, c0, 0" : "=r" (data[0]));
	asm volatile("mrc p15, 3, %0, c15, c0, 1" : "=r" (data[1]));
	asm volatile("mrc p15, 3, %0, c15, c0, 2" : "=r" (data[2]));
}

void a7_prefetch(unsigned long addr)
{
	asm volatile("pld [%0]" : : "r" (addr));
}

static const struct a7_ops a7_registers = {
	.check		= registers_check,
	.read		= registers_read,
	.prefetch	= a7_prefetch,
};

static u32 field(const u32 data[A7_REGISTERS], unsigned int high, unsigned int low)
{
	u64 word = data[low / 32];

	/* One that goes on in the next register. */
	if (high / 32 > low / 32)
		word |= (u64)data[high / 32] << 32;
	return word >> low % 32 & GENMASK(high - low, 0);
}

/* By Cortex-A53's manual (ARM DDI 0500D, Table 6-13): 0b000 and 0b001 (LPAE). A7's has no codes. */
static bool is_small(const u32 data[A7_REGISTERS])
{
	return field(data, SIZE) <= 1;
}

static unsigned long address(unsigned int entry, const u32 data[A7_REGISTERS])
{
	return field(data, VA) << VA_SHIFT | (entry % A7_SETS) << SETS_SHIFT;
}

void a7_decode(unsigned int entry, const u32 data[A7_REGISTERS],
	       struct lookaside_tlb_entry *fields)
{
	*fields = (struct lookaside_tlb_entry) {
		.data		= { data[0], data[1], data[2] },
		.addr		= is_small(data) ? address(entry, data) : 0,
		.pa		= (u64)field(data, PA) << PAGE_SHIFT,
		.valid		= field(data, VALID),
		.size		= field(data, SIZE),
		.ns_walk	= field(data, NS_WALK),
		.vmid		= field(data, VMID),
		.asid		= field(data, ASID_FIELD),
		.not_global	= field(data, NOT_GLOBAL),
		.ap		= field(data, AP),
		.hap		= field(data, HAP),
		.ns		= field(data, NS),
		.pxn		= field(data, PXN),
		.xn1		= field(data, XN1),
		.xn2		= field(data, XN2),
		.memory		= field(data, MEMORY),
		.domain		= field(data, DOMAIN),
		.s1_size	= field(data, S1_SIZE),
		.s2_level	= field(data, S2_LEVEL),
	};
}

bool a7_is_page_of(unsigned int entry, const u32 data[A7_REGISTERS], u8 asid,
		   unsigned long *addr)
{
	*addr = address(entry, data);
	return field(data, VALID) && is_small(data) &&
	       field(data, NOT_GLOBAL) && field(data, ASID_FIELD) == asid &&
	       *addr < TASK_SIZE;
}

static void check_here(void *failed)
{
	int err = a7_ops->check();

	if (err)
		WRITE_ONCE(*(int *)failed, err);
}

int a7_init(void)
{
	int err = 0;

	a7_ops = events_only ? &a7_supplied : &a7_registers;
	on_each_cpu(check_here, &err, 1);
	if (!err && events_only)
		err = a7_contents_init();
	if (err)
		a7_ops = NULL;
	return err;
}

void a7_exit(void)
{
	a7_contents_exit();
}
