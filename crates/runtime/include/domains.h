/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Compartments in one address space, by the protection keys of x86-64: memory that a thread can use only while it is in. Any other
 * access is a SIGSEGV. A key is the domain, and WRPKRU the write of the DACR, of "Implementation of Fast Address-Space Switching and
 * TLB Sharing on the StrongARM Processor" (Wiggins et al. 2003).
 *
 *     domain_id vault = domain_create(4096);
 *     if (!vault)
 *         fprintf(stderr, "%s\n", domain_error());
 *     struct secret *secret = domain_memory(vault, NULL);
 *     domain_enter(vault);
 *     secret->n++;
 *     domain_leave(vault);
 *
 * There may be more compartments than the 15 keys: a key is taken from a compartment that no thread is in, whose pages are closed until it
 * is entered again. What a thread is in, and what that shares, keeps its key. A key that others in the process got by pkey_alloc is never
 * touched. Keys once got are kept.
 *
 * Rights are a thread's own. A thread that ends leaves everything. After a fork the child's thread is where it was, in a copy of the
 * memory; the parent's other threads are in nothing there. But:
 * - A thread made by one that is in a compartment starts with its maker's rights (the kernel copies PKRU), and nobody counts it: leave first.
 * - A signal handler starts without a right to any compartment, and the interrupted thread gets its own back when it returns. Out of a
 *   handler by siglongjmp they are lost until the thread's next enter or leave. Handlers must call nothing here but domain_fault.
 * - The kernel checks the caller's rights when a system call copies (EFAULT). What works behind it does not (/proc/self/mem,
 *   process_vm_readv, io_uring's workers, DMA).
 * - Code is not held back from executing WRPKRU or from calling mprotect: it guards against errors, not against attackers.
 *
 * Any thread may call. All calls take one lock. Memory is allocated by create, share, destroy, the first call of a thread, an enter that nests
 * deeper than this thread's ever did, where keys are taken, and by every call that fails, for its sentence. An enter without a system call is one
 * whose compartment, and all that it shares, still have a key. In a thread that is ending, and from within another of these calls (a
 * signal handler), all calls but domain_fault give EDEADLK.
 *
 * Link with -llookaside_runtime, as pt_baker.h says.
 */
#ifndef DOMAINS_H
#define DOMAINS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A compartment; 0 is none. Numbers are not used again. */
typedef uint64_t domain_id;

/* Makes a compartment of `size` bytes, rounded up to pages, all zero, which only who enters it can use. 0 with errno:
 * ENOTSUP: this processor has no protection keys; ENOSYS: the kernel does not use them; ENOSPC: others in the process have taken all;
 * EINVAL: size is 0; ENOMEM. */
domain_id domain_create(size_t size);

/* Gives its memory back; no other shares it any more. 0, or -1 with errno: ENOENT: no such compartment, as it was destroyed; EBUSY: a thread is in it,
 * or in one that shares its memory; ENOMEM (munmap). */
int domain_destroy(domain_id domain);

/* Its first byte, and its bytes in `*size` unless that is NULL. NULL with errno ENOENT. */
void *domain_memory(domain_id domain, size_t *size);

/* The calling thread may use this compartment's memory and what it shares, and no other compartment's, until it leaves or enters another.
 * Enters nest, to 1024; the same one may be entered again. 0, or -1 with errno: ENOENT; EAGAIN: compartments that threads are in keep so
 * many keys that too few are left; E2BIG: too deep; ENOMEM (pkey_mprotect). */
int domain_enter(domain_id domain);

/* The calling thread is where it was before it entered this compartment, which is the last that it entered. 0, or -1 with errno:
 * ENOENT; EPERM: the thread is not in it, or has entered another since. */
int domain_leave(domain_id domain);

enum {
    DOMAIN_NONE = 0,  /* not any more */
    DOMAIN_READ = 1,  /* read only */
    DOMAIN_WRITE = 2, /* read and write */
};

/* Who enters `with` may use the memory of `domain`, too, in this way; not what `domain` shares. 0, or -1 with errno: ENOENT; EINVAL: the
 * same, or no such access; EBUSY: a thread is in `with`; E2BIG: it shares the memory of 14 others. */
int domain_share(domain_id domain, domain_id with, int access);

/* For a handler of SIGSEGV (SA_SIGINFO): counts the fault, and says whose memory it was; 0: no compartment's, or no fault of rights.
 * `code` is si_code, `address` is si_addr. Not for a signal that interrupted a call of these functions, which touch no compartment's memory. */
domain_id domain_fault(int code, const void *address);

/* Counts of the process. */
typedef struct domain_stats {
    uint64_t compartments;  /* that there are */
    uint64_t keys;          /* that it got for them */
    uint64_t switches;      /* enters and leaves */
    uint64_t recycled;      /* keys taken from a compartment that goes on */
    uint64_t flushes;       /* rounds in which keys were taken */
    uint64_t protect_calls; /* calls of pkey_mprotect */
    uint64_t key_faults;    /* domain_fault: memory of a compartment that had a key (SEGV_PKUERR) */
    uint64_t closed_faults; /* domain_fault: of one that had none (SEGV_ACCERR) */
} domain_stats;

void domain_get_stats(domain_stats *stats);

/* The sentence about the last call that failed in this thread; empty if there was none. Valid until the next one fails. */
const char *domain_error(void);

#ifdef __cplusplus
}
#endif

#endif
