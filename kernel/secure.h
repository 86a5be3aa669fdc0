/* SPDX-License-Identifier: GPL-2.0 */
/* Which world of ARM's Security Extensions Linux runs in. */
#ifndef LOOKASIDE_SECURE_H
#define LOOKASIDE_SECURE_H

#include <linux/types.h>

/* Debug Status and Control Register (ARM DDI 0406, C11). */
#define DBGDSCR_NS	(1U << 18)

static inline bool is_secure(void)
{
	u32 dbgdscr;

	asm volatile("mrc p14, 0, %0, c0, c1, 0" : "=r" (dbgdscr));
	return !(dbgdscr & DBGDSCR_NS);
}

#endif
