/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the preloaded library asks of the tool. */
#ifndef LOOKASIDE_REQUESTS_H
#define LOOKASIDE_REQUESTS_H

#include "valgrind.h"

/* Heap blocks below this are not told. */
#define LK_LARGE 65536

enum lk_request {
	/* A block (address, bytes) was allocated; gives 0 where it was told before. */
	LK_REQUEST_ALLOC = VG_USERREQ_TOOL_BASE('L', 'K'),
	/* A block (address) is about to be freed; gives its bytes, or 0. */
	LK_REQUEST_FREE,
};

#endif
