/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What compilers call at each access: gcc with -fsanitize=thread, LLVM with -sanitizer-coverage-trace-loads and
 * -sanitizer-coverage-trace-stores. Nothing of their own runtimes is linked. */
#include "recorder.h"

#define CALLER ((uint64_t)__builtin_return_address(0) - 1)
#define MADE(kind, addr, size) recorder_access(kind, (uint64_t)(addr), size, CALLER)

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

/* Accesses of one size, by all names that they go by. */
#define SIZE(n)                                                                          \
	void __tsan_read##n(void *addr) { MADE(LOAD, addr, n); }                         \
	void __tsan_write##n(void *addr) { MADE(STORE, addr, n); }                       \
	void __tsan_unaligned_read##n(void *addr) { MADE(LOAD, addr, n); }               \
	void __tsan_unaligned_write##n(void *addr) { MADE(STORE, addr, n); }             \
	void __tsan_volatile_read##n(void *addr) { MADE(LOAD, addr, n); }                \
	void __tsan_volatile_write##n(void *addr) { MADE(STORE, addr, n); }              \
	void __tsan_unaligned_volatile_read##n(void *addr) { MADE(LOAD, addr, n); }      \
	void __tsan_unaligned_volatile_write##n(void *addr) { MADE(STORE, addr, n); }    \
	void __sanitizer_cov_load##n(void *addr) { MADE(LOAD, addr, n); }                \
	void __sanitizer_cov_store##n(void *addr) { MADE(STORE, addr, n); }              \
	void __tsan_read_write##n(void *addr)                                            \
	{                                                                                \
		MADE(LOAD, addr, n);                                                     \
		MADE(STORE, addr, n);                                                    \
	}
SIZE(1)
SIZE(2)
SIZE(4)
SIZE(8)
SIZE(16)

void __tsan_vptr_read(void **addr) { MADE(LOAD, addr, 8); }

void __tsan_vptr_update(void **addr, void *value)
{
	(void)value;
	MADE(STORE, addr, 8);
}

/* Structures, in the words that they are copied by. */
static inline __attribute__((always_inline)) void range(unsigned kind, uint64_t addr, uint64_t bytes, uint64_t caller)
{
	for (uint64_t at = 0; at < bytes; at += 8)
		recorder_access(kind, addr + at, bytes - at < 8 ? (unsigned)(bytes - at) : 8, caller);
}

void __tsan_read_range(void *addr, unsigned long bytes) { range(LOAD, (uint64_t)addr, bytes, CALLER); }
void __tsan_write_range(void *addr, unsigned long bytes) { range(STORE, (uint64_t)addr, bytes, CALLER); }

/* Atomic operations, which gcc hands over whole. The order that is asked for is never stronger than this one. */
#define ORDER __ATOMIC_SEQ_CST

#define FETCH(n, T, name)                                                                \
	T __tsan_atomic##n##_fetch_##name(volatile T *addr, T value, int order)          \
	{                                                                                \
		(void)order;                                                             \
		MADE(LOAD, addr, n / 8);                                                 \
		MADE(STORE, addr, n / 8);                                                \
		return __atomic_fetch_##name(addr, value, ORDER);                        \
	}

#define EXCHANGE(n, T, name, weak)                                                       \
	int __tsan_atomic##n##_compare_exchange_##name(volatile T *addr, T *expected, T value, int order, int other) \
	{                                                                                \
		(void)order;                                                             \
		(void)other;                                                             \
		MADE(LOAD, addr, n / 8);                                                 \
		MADE(STORE, addr, n / 8);                                                \
		return __atomic_compare_exchange_n(addr, expected, value, weak, ORDER, ORDER); \
	}

#define ATOMIC(n, T)                                                                     \
	T __tsan_atomic##n##_load(const volatile T *addr, int order)                     \
	{                                                                                \
		(void)order;                                                             \
		MADE(LOAD, addr, n / 8);                                                 \
		return __atomic_load_n(addr, ORDER);                                     \
	}                                                                                \
	void __tsan_atomic##n##_store(volatile T *addr, T value, int order)              \
	{                                                                                \
		(void)order;                                                             \
		MADE(STORE, addr, n / 8);                                                \
		__atomic_store_n(addr, value, ORDER);                                    \
	}                                                                                \
	T __tsan_atomic##n##_exchange(volatile T *addr, T value, int order)              \
	{                                                                                \
		(void)order;                                                             \
		MADE(LOAD, addr, n / 8);                                                 \
		MADE(STORE, addr, n / 8);                                                \
		return __atomic_exchange_n(addr, value, ORDER);                          \
	}                                                                                \
	FETCH(n, T, add)                                                                 \
	FETCH(n, T, sub)                                                                 \
	FETCH(n, T, and)                                                                 \
	FETCH(n, T, or)                                                                  \
	FETCH(n, T, xor)                                                                 \
	FETCH(n, T, nand)                                                                \
	EXCHANGE(n, T, strong, 0)                                                        \
	EXCHANGE(n, T, weak, 1)

ATOMIC(8, unsigned char)
ATOMIC(16, unsigned short)
ATOMIC(32, unsigned int)
ATOMIC(64, unsigned long)

void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(ORDER);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	__atomic_signal_fence(ORDER);
}
