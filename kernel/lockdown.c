// SPDX-License-Identifier: GPL-2.0
/* Cortex-A9's registers, by the section of its Technical Reference Manual, r4p1 (ARM DDI 0388I). */
#include <linux/errno.h>

#include <asm/barrier.h>
#include <asm/cputype.h>

#include "lockdown.h"
#include "secure.h"

/* Non-secure Access Control Register: lockable entries for both worlds. */
#define NSACR_TL	(1U << 17)
/* Physical Address Register: the translation was aborted. */
#define PAR_FAULT	1U
/* Main TLB PA register (Table 4-52): the entry is one. */
#define TLB_PA_VALID	1U
/* Main TLB VA register (Table 4-51): page number and, of the space's identifier, the ASID. */
#define TLB_VA_MVA	0xfffff0ffU

static int a9_check(void)
{
	u32 nsacr;

	if (read_cpuid_part() != ARM_CPU_PART_CORTEX_A9)
		return -ENODEV;
	/* Else the register is an undefined instruction (4.3.15). */
	asm volatile("mrc p15, 0, %0, c1, c1, 2" : "=r" (nsacr));
	return is_secure() || nsacr & NSACR_TL ? 0 : -ENODEV;
}

/* TLBIMVA: the only one but TLBIASID that locked entries heed (Table 4-26). */
static void a9_invalidate(unsigned long mva)
{
	dsb(nsh);
	asm volatile("mcr p15, 0, %0, c8, c7, 1" : : "r" (mva) : "memory");
	dsb(nsh);
	isb();
}

/*
 * Between the two writes are neither a call nor the stack, and no page border:
 * the six instructions are in one block of 64 bytes.
 */
static noinline int a9_touch(u32 on, unsigned long addr, u32 off)
{
	int err = 0;
	u32 byte;

	asm volatile(
	"	.balign	64\n"
	"	mcr	p15, 0, %[on], c10, c0, 0\n"
	"	isb\n"
	"1:	ldrbt	%[byte], [%[addr]]\n"
	"2:	dsb\n"
	"	mcr	p15, 0, %[off], c10, c0, 0\n"
	"	isb\n"
	"	.pushsection .text.fixup, \"ax\"\n"
	"	.align	2\n"
	"3:	mov	%[err], %[fault]\n"
	"	b	2b\n"
	"	.popsection\n"
	"	.pushsection __ex_table, \"a\"\n"
	"	.align	3\n"
	"	.long	1b, 3b\n"
	"	.popsection"
	: [err] "+r" (err), [byte] "=&r" (byte), [addr] "+&r" (addr)
	: [on] "r" (on), [off] "r" (off), [fault] "i" (-EFAULT)
	: "memory");
	return err;
}

/* There it is an undefined instruction to the non-secure world (Table 4-26). PA has to be the last. */
static unsigned long a9_read_back(unsigned int entry)
{
	u32 va, pa;

	if (!is_secure())
		return 0;
	asm volatile("mcr p15, 5, %0, c15, c4, 2" : : "r" (entry));
	isb();
	asm volatile("mrc p15, 5, %0, c15, c5, 2" : "=r" (va));
	asm volatile("mrc p15, 5, %0, c15, c6, 2" : "=r" (pa));
	return pa & TLB_PA_VALID ? va & TLB_VA_MVA : 0;
}

/* ATS1CUR, ATS1CUW: any processor of ARMv7 has them. */
bool lockdown_translates(unsigned long addr, bool write)
{
	u32 par;

	if (write)
		asm volatile("mcr p15, 0, %0, c7, c8, 3" : : "r" (addr));
	else
		asm volatile("mcr p15, 0, %0, c7, c8, 2" : : "r" (addr));
	isb();
	asm volatile("mrc p15, 0, %0, c7, c4, 0" : "=r" (par));
	return !(par & PAR_FAULT);
}

const struct lockdown_ops lockdown_cortex_a9 = {
	.check		= a9_check,
	.invalidate	= a9_invalidate,
	.touch		= a9_touch,
	.read_back	= a9_read_back,
};
