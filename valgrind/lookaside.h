/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lookaside's Valgrind tool: what its parts share.
 *
 * The tool writes each data access and instruction fetch of the program into
 * a pipe, but for repeats of a page (or line) in its filter slot, which are
 * counted. docs/record.md describes the stream.
 */
#ifndef LOOKASIDE_H
#define LOOKASIDE_H

#include "pub_tool_basics.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"

#include "requests.h"

enum lk_kind { LK_LOAD, LK_STORE, LK_FETCH, LK_REPEATS };
enum lk_granularity { LK_BYTE, LK_LINE, LK_PAGE };

#define LK_TABLES 3
#define LK_MAX_CLASSES 12 /* log2; as MAX_LOG2_CLASSES of the reader */
#define LK_FRAMES 16	  /* return addresses of a call stack */

/* How to record; set from the command line, then constant. */
struct lk_options {
	enum lk_granularity granularity;
	Int classes; /* log2 */
	Int table[LK_TABLES];
	Bool fetches;
	Int fd;
	ULong inode;
};
extern struct lk_options lk_opt;

/*
 * A filter slot: the last address recorded in it, and how many accesses to
 * the same page were left out since. Empty: an address that no page has.
 */
struct lk_slot {
	ULong addr;
	ULong count;
};
#define LK_EMPTY (~0ULL)
/* Above this a count is sent before it could outgrow 16 bits. */
#define LK_COUNT_BIT 15
extern struct lk_slot lk_slots[LK_TABLES << LK_MAX_CLASSES];

/* Two words of the wire: address, kind, size; instruction, count. */
struct lk_record {
	ULong w0;
	ULong w1;
};
#define LK_KIND_SHIFT 48
#define LK_SIZE_SHIFT 56
#define LK_PREV_SHIFT 48

#define LK_FRAME_RECORDS 255
/* Accesses between two looks at the buffer's end, in one superblock. */
#define LK_RUN 64
extern struct lk_record lk_buffer[1 + LK_FRAME_RECORDS + 2 * LK_RUN];
#define LK_BUFFER_FIRST (&lk_buffer[1])
#define LK_BUFFER_FULL (&lk_buffer[1 + LK_FRAME_RECORDS])
extern struct lk_record *lk_pos;

/* Counted inline, taken over into 64 bits each at every time slice. */
extern ULong lk_instructions;
extern ULong lk_loads_stores; /* loads + stores << 32 */

/* wire.c */
void lk_wire_open(void);
void lk_spill(void);
void lk_empty_slots(void);
void lk_switch_thread(ThreadId tid);
void lk_forget_thread(void);
void lk_drain_counts(void);
void lk_forked(void);
void lk_send_event(ThreadId tid, const HChar *json, UInt len);
void lk_send_totals(void);
void lk_send_end(void);

/* events.c */
void lk_program_starts(ThreadId tid);
void lk_thread_starts(ThreadId tid);
void lk_thread_exits(ThreadId tid);
void lk_process_ends(Int code);
void lk_pre_syscall(ThreadId tid, UInt no, UWord *args, UInt n);
void lk_post_syscall(ThreadId tid, UInt no, UWord *args, UInt n, SysRes res);
Bool lk_client_request(ThreadId tid, UWord *args, UWord *ret);
void lk_events_init(void);
Bool lk_is_preload(Addr addr);
extern Bool lk_exiting;
extern Int lk_exit_code;

/* instrument.c */
IRSB *lk_instrument(VgCallbackClosure *closure, IRSB *in,
		    const VexGuestLayout *layout,
		    const VexGuestExtents *extents,
		    const VexArchInfo *arch, IRType guest_word,
		    IRType host_word);

#endif
