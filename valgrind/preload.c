// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loaded into the program by Valgrind: tells the tool of large heap blocks.
 *
 * The allocator is the program's own, so that blocks lie where they lie
 * natively; these wrappers only look on. The tool records none of their
 * accesses.
 */

#include <stddef.h>

#include "requests.h"

#define LARGE(p, n) ((n) >= LK_LARGE && (p))

/*
 * How many large blocks of each hash live, so that most calls of free need
 * not ask the tool.
 */
#define HASHES 65536
static unsigned int live[HASHES];

static unsigned int *live_of(void *p)
{
	return &live[((size_t)p >> 4) * 0x9e3779b97f4a7c15ULL >> 48];
}

static void allocated(void *p, size_t n)
{
	if (VALGRIND_DO_CLIENT_REQUEST_EXPR(0, LK_REQUEST_ALLOC, p, n, 0, 0, 0))
		__atomic_fetch_add(live_of(p), 1, __ATOMIC_RELAXED);
}

/* Before the block is freed; gives its bytes if it was a large one. */
static size_t freed(void *p)
{
	size_t n;

	if (!__atomic_load_n(live_of(p), __ATOMIC_RELAXED))
		return 0;
	n = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, LK_REQUEST_FREE, p, 0, 0, 0, 0);
	if (n)
		__atomic_fetch_sub(live_of(p), 1, __ATOMIC_RELAXED);
	return n;
}

/* Wraps `name` of any object; `Za` is Valgrind's `*`. */
#define WRAP(name) I_WRAP_SONAME_FNNAME_ZU(Za, name)

#define WRAP_ALLOC(name)                                        \
	void *WRAP(name)(size_t n);                             \
	void *WRAP(name)(size_t n)                              \
	{                                                       \
		OrigFn original;                                \
		void *p;                                        \
								\
		VALGRIND_GET_ORIG_FN(original);                 \
		CALL_FN_W_W(p, original, n);                    \
		if (LARGE(p, n))                                \
			allocated(p, n);                        \
		return p;                                       \
	}

#define WRAP_ALLOC_2(name, bytes)                               \
	void *WRAP(name)(size_t a, size_t b);                   \
	void *WRAP(name)(size_t a, size_t b)                    \
	{                                                       \
		OrigFn original;                                \
		void *p;                                        \
								\
		VALGRIND_GET_ORIG_FN(original);                 \
		CALL_FN_W_WW(p, original, a, b);                \
		if (LARGE(p, bytes))                            \
			allocated(p, bytes);                    \
		return p;                                       \
	}

#define WRAP_ALLOC_3(name)                                      \
	void *WRAP(name)(size_t n, size_t b, size_t c);         \
	void *WRAP(name)(size_t n, size_t b, size_t c)          \
	{                                                       \
		OrigFn original;                                \
		void *p;                                        \
								\
		VALGRIND_GET_ORIG_FN(original);                 \
		CALL_FN_W_WWW(p, original, n, b, c);            \
		if (LARGE(p, n))                                \
			allocated(p, n);                        \
		return p;                                       \
	}

#define WRAP_FREE(name)                                         \
	void WRAP(name)(void *p, size_t b, size_t c);           \
	void WRAP(name)(void *p, size_t b, size_t c)            \
	{                                                       \
		OrigFn original;                                \
								\
		VALGRIND_GET_ORIG_FN(original);                 \
		freed(p);                                       \
		CALL_FN_v_WWW(original, p, b, c);               \
	}

WRAP_ALLOC(malloc)
WRAP_ALLOC(valloc)
WRAP_ALLOC(pvalloc)
WRAP_ALLOC_2(calloc, a *b)
WRAP_ALLOC_2(memalign, b)
WRAP_ALLOC_2(aligned_alloc, b)
WRAP_FREE(free)
WRAP_FREE(cfree)

/* operator new: (size), (size, nothrow), (size, align), (…, nothrow). */
WRAP_ALLOC_3(_Znwm)
WRAP_ALLOC_3(_Znam)
WRAP_ALLOC_3(_ZnwmRKSt9nothrow_t)
WRAP_ALLOC_3(_ZnamRKSt9nothrow_t)
WRAP_ALLOC_3(_ZnwmSt11align_val_t)
WRAP_ALLOC_3(_ZnamSt11align_val_t)
WRAP_ALLOC_3(_ZnwmSt11align_val_tRKSt9nothrow_t)
WRAP_ALLOC_3(_ZnamSt11align_val_tRKSt9nothrow_t)

/* operator delete: (p), (p, size), (p, align), (p, size, align), … */
WRAP_FREE(_ZdlPv)
WRAP_FREE(_ZdaPv)
WRAP_FREE(_ZdlPvm)
WRAP_FREE(_ZdaPvm)
WRAP_FREE(_ZdlPvRKSt9nothrow_t)
WRAP_FREE(_ZdaPvRKSt9nothrow_t)
WRAP_FREE(_ZdlPvSt11align_val_t)
WRAP_FREE(_ZdaPvSt11align_val_t)
WRAP_FREE(_ZdlPvmSt11align_val_t)
WRAP_FREE(_ZdaPvmSt11align_val_t)

void *WRAP(realloc)(void *p, size_t n);
void *WRAP(realloc)(void *p, size_t n)
{
	OrigFn original;
	size_t before;
	void *q;

	VALGRIND_GET_ORIG_FN(original);
	before = freed(p);
	CALL_FN_W_WW(q, original, p, n);
	if (LARGE(q, n))
		allocated(q, n);
	else if (!q && n && before)
		allocated(p, before); /* it failed and left the block */
	return q;
}

int WRAP(posix_memalign)(void **p, size_t align, size_t n);
int WRAP(posix_memalign)(void **p, size_t align, size_t n)
{
	OrigFn original;
	int error;

	VALGRIND_GET_ORIG_FN(original);
	CALL_FN_W_WWW(error, original, p, align, n);
	if (!error && LARGE(*p, n))
		allocated(*p, n);
	return error;
}
