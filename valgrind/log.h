/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the logs, and writing records: for filter.c and window.c. */
#ifndef LOOKASIDE_LOG_H
#define LOOKASIDE_LOG_H

#include "lookaside.h"

#define LK_PAGE_SHIFT 12

static inline ULong lk_what_of(const ULong *access)
{
	return access[LK_WHATS_OFFSET / sizeof(ULong)];
}

/* The access that the address comes from; NULL = none that is known. */
static inline const ULong *lk_origin_of(const ULong *access)
{
	return (const ULong *)access[LK_ORIGINS_OFFSET / sizeof(ULong)];
}

static inline ULong lk_group_size(const struct lk_group *group)
{
	return group->code >> 48 & LK_MOST_GROUPED;
}

static inline ULong lk_group_ip(const struct lk_group *group)
{
	return group->code & LK_ADDR_MASK;
}

static inline ULong lk_group_what(const struct lk_group *group)
{
	return LK_WHAT(group->code, LK_FETCH, group->code >> LK_SIZE_SHIFT);
}

/* Where the log of accesses ended before the group. */
static inline const ULong *lk_before(const struct lk_group *group)
{
	return (const ULong *)(group->before & 0xffffffff);
}

/* A logged access has brought its page into the window. */
static inline void lk_note_visit(const ULong *access)
{
	/* Nobody waits for a store. */
	if (lk_opt.waits && (lk_what_of(access) >> LK_KIND_SHIFT & 3) == LK_LOAD)
		lk_waits_visit(access);
}

/* Gives the end of the records, which is where `out` was or in a new frame. */
static inline struct lk_record *lk_put_record(struct lk_record *out, ULong w0,
					      ULong w1)
{
	if (out == lk_out_end) {
		lk_out = out;
		lk_next_frame();
		out = lk_out;
	}
	out->w0 = w0;
	out->w1 = w1;
	return out + 1;
}

#endif
