// SPDX-License-Identifier: GPL-2.0
/* What is in the main TLB of a core (Cortex-A7). */
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/uaccess.h>

#include <asm/mmu.h>

#include "a7.h"
#include "internal.h"

struct wish {
	struct lookaside_tlb *tlb;
	int err;
};

/* All registers of one moment: nothing else runs on the core meanwhile. */
static void dump_here(void *arg)
{
	struct wish *wish = arg;
	struct lookaside_tlb *tlb = wish->tlb;
	unsigned int i;

	wish->err = a7_ops->check();
	if (wish->err)
		return;
	tlb->asid = ASID(current->active_mm);
	for (i = 0; i < A7_ENTRIES; i++)
		a7_ops->read(a7_operation(i), tlb->entries[i].data);
}

static int dump(struct lookaside_tlb *tlb)
{
	struct wish wish = { .tlb = tlb };
	unsigned int i;
	int err;

	if (tlb->core >= nr_cpu_ids)
		return -ENXIO;
	err = smp_call_function_single(tlb->core, dump_here, &wish, 1) ?: wish.err;
	if (err)
		return err;
	tlb->valid = 0;
	for (i = 0; i < A7_ENTRIES; i++) {
		u32 data[A7_REGISTERS];

		memcpy(data, tlb->entries[i].data, sizeof(data));
		a7_decode(i, data, &tlb->entries[i]);
		tlb->valid += tlb->entries[i].valid;
	}
	return 0;
}

long lookaside_dump(void __user *user)
{
	struct lookaside_tlb *tlb;
	long err = 0;

	if (!a7_ops)
		return -ENODEV;
	/* It has everybody's addresses, the kernel's and physical ones, too. */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	tlb = kzalloc(sizeof(*tlb), GFP_KERNEL);
	if (!tlb)
		return -ENOMEM;
	if (copy_from_user(tlb, user, offsetof(struct lookaside_tlb, entries)))
		err = -EFAULT;
	else if (tlb->version != LOOKASIDE_VERSION)
		err = -EPROTO;
	else if (tlb->flags || tlb->reserved)
		err = -EINVAL;
	else
		err = dump(tlb);
	if (!err && copy_to_user(user, tlb, sizeof(*tlb)))
		err = -EFAULT;
	kfree(tlb);
	return err;
}
