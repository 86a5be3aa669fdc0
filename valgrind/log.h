/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the logs, and writing records: for filter.c and window.c. */
#ifndef LOOKASIDE_LOG_H
#define LOOKASIDE_LOG_H

#include "lookaside.h"

#define LK_PAGE_SHIFT 12

/*
 * Fillings of the log after which the windows are emptied: what the model
 * hears of a page is not older than some 400,000 accesses.
 */
#define LK_FILLINGS 128

static inline ULong lk_what_of(const struct lk_access *access)
{
	return lk_sites[access->site].what;
}

/* The access that the address comes from; NULL = none that is known. */
static inline const struct lk_access *
lk_origin_of(const struct lk_access *access)
{
	return (const struct lk_access *)(Addr)access->origin;
}

static inline ULong lk_ip_of(const struct lk_site *site)
{
	return site->what & LK_ADDR_MASK;
}

/* A logged access has brought its page into the window. */
static inline void lk_note_visit(const struct lk_access *access)
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
