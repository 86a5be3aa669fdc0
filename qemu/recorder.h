/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the parts of the recorder share: options, the state of a virtual CPU (= thread of the program), frames. */
#ifndef LOOKASIDE_RECORDER_H
#define LOOKASIDE_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MAGIC = 0x4C41,
    ACCESSES = 1, /* frame kinds */
    EVENT = 2,
    END = 3,
    HEADER = 16,
    FRAME = 4096, /* PIPE_BUF: a write of so much is atomic */
    BATCH = 16 * FRAME,
    MOST_VCPUS = 4096,
    NO_FRAME = -1
};

enum access { LOAD = 0, STORE = 1, FETCH = 2, REPEATS = 3 };

#define ADDR_MASK ((UINT64_C(1) << 48) - 1)
#define NO_UNIT UINT64_MAX

/* As the command line asks; constant after install. */
struct options {
    int fd;
    bool filtered;          /* page or line granularity: repeats are left out */
    unsigned unit_log2;     /* 12: page, 6: line */
    unsigned classes_log2;  /* slots of a filter table, log2 */
    unsigned table[3];      /* filter table of each kind of access */
    bool fetches;
    bool wide;              /* the guest has 64 address bits */
};
extern struct options options;

/* The unit (page or line) last recorded of a class, and the accesses to it that were left out since. */
struct slot {
    uint64_t unit;
    uint32_t count;
};

/* A thread of the program. Touched by that thread alone, but at its birth, and when the process ends. */
struct vcpu {
    struct slot *slots;
    uint64_t loads, stores, fetches, instructions;
    uint32_t thread;        /* the system's id; 0: has done nothing yet */
    int used;               /* bytes in the batch */
    int frame;              /* offset of the open frame of accesses, or NO_FRAME */
    int64_t call;           /* system call under way, and its arguments */
    uint64_t args[6];
    unsigned char batch[BATCH];
};
extern struct vcpu *vcpus[MOST_VCPUS];

/* Instructions counted by QEMU's inline addition, while there is one thread. */
extern uint64_t serial_instructions;
/* More than one thread has run: each batch then leaves no slot behind, so that batches of threads can mix. */
extern bool threads;
/* The first memory map is written. */
extern bool begun;
/* Guest address + this = address here. */
extern uint64_t guest_base;
/* Exit code, once the program has named it; -1 before. */
extern int exit_code;

/* wire.c */
void wire_open(int fd);
/* Before the thread's first access (at `addr`) or system call: names it, and the process's first memory map. */
void wire_begin(struct vcpu *v, uint64_t addr);
void wire_access(struct vcpu *v, enum access kind, uint64_t addr, unsigned size, uint64_t ip);
/* `more` further accesses to the page of the access just made. */
void wire_more(struct vcpu *v, enum access kind, uint64_t addr, uint32_t more);
void wire_event(struct vcpu *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes what is pending; `empty`: counts of all slots too, and empties them. */
void wire_drain(struct vcpu *v, bool empty);
void wire_totals(struct vcpu *v);
void wire_end(struct vcpu *v);
/* In the child of a fork: forgets what its parent will write. */
void wire_forked(struct vcpu *v);
/* Adds a thread that ends to the totals. */
void wire_gone(struct vcpu *v);
/* Text as it stands between the quotes of a JSON string, cut at `room` bytes. */
void wire_json(char *out, int room, const char *text);

/* maps.c */
void maps_before(void);
void maps_initial(struct vcpu *v, uint64_t first_addr);

/* calls.c */
void calls_init(const char *target);
void calls_enter(struct vcpu *v, int64_t call, const uint64_t args[6]);
void calls_leave(struct vcpu *v, int64_t call, int64_t result);

#endif
