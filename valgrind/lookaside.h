/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lookaside's Valgrind tool: what its parts share.
 *
 * The tool writes each data access and instruction fetch of the program into
 * a pipe, but for repeats of a page (or line) in its filter slot, which are
 * counted. docs/explanation/recorders.md describes the stream.
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
#define LK_MOST_WINDOW 64 /* as MAX_WINDOW of the reader */
#define LK_FRAMES 16	  /* return addresses of a call stack */

/* How to record; set from the command line, then constant. */
struct lk_options {
	enum lk_granularity granularity;
	Int classes; /* log2 */
	Int window;  /* pages; 0: none, the last of each class counts */
	Int class_pages; /* of one class in a window */
	Int table[LK_TABLES];
	Bool fetches;
	Bool waits; /* only where there is a window */
	/* The pipe of the records; the memory that we share with its reader. */
	Int fd;
	ULong inode;
	Int shared_fd;
	ULong shared_inode;
	/* Memory for Valgrind's own messages. */
	Int messages_fd;
	ULong messages_inode;
	/* The first argument that the program was executed with; NULL: its file's name. */
	const HChar *argv0;
};
extern struct lk_options lk_opt;

/* An address's line, as a bit among those of its page. */
static inline ULong lk_line_bit(ULong addr)
{
	return 1ULL << (addr >> 6 & 63);
}

static inline UInt lk_unit_shift(void)
{
	return lk_opt.granularity == LK_LINE ? 6 : 12;
}

/* Two words of the wire: address, kind, size; instruction, count. */
struct lk_record {
	ULong w0;
	ULong w1;
};
#define LK_ADDR_MASK ((1ULL << 48) - 1)
#define LK_KIND_SHIFT 48
#define LK_SIZE_SHIFT 56
#define LK_PREV_SHIFT 48
/*
 * In the size field of a record of kind LK_REPEATS: a page leaves; it was used
 * after all others of its class that are known of.
 */
#define LK_LEAVES 0x80
#define LK_TOUCHED 0x40
/* Of one with a page's address: above the page's place, the pages that stay. */
#define LK_OTHERS_SHIFT 6

/*
 * What is known of an access, or of a group and its first instruction, when it
 * is instrumented.
 */
struct lk_site {
	ULong what; /* LK_WHAT */
	/* Of a group: the lines of its page that it is on, a bit each; */
	ULong lines;
	/* the stores without a guard that it makes; */
	UInt stores;
	/* its instructions (0: the last one goes on after an exit). */
	UInt instructions;
};
extern struct lk_site *lk_sites; /* by number */

/*
 * The logs, which the added code writes and lk_filter empties. An access:
 * its address; the number of its site; where waits are asked for, where the
 * load is logged that its address comes from (0: unknown, or at hand; the logs
 * lie below 4 GiB, where the tool is loaded). A group of instructions: the
 * number of its site; where the log of accesses ended before it.
 */
struct lk_access {
	ULong addr;
	UInt site;
	UInt origin;
};
struct lk_group {
	ULong site;
	const struct lk_access *before;
};
/* Instruction, kind, size, at the bits where a record has them. */
#define LK_WHAT(ip, kind, size)                                         \
	(((ULong)(ip) & LK_ADDR_MASK) | (ULong)(kind) << LK_KIND_SHIFT | \
	 (ULong)(size) << LK_SIZE_SHIFT)
/* The site of an access that did not take place, of kind LK_REPEATS. */
#define LK_NOT_TAKEN 0

/* With the accesses that usually lie between: a first-level data cache. */
#define LK_GROUPS 512
/*
 * A superblock is entered where the log has fewer, has at least one, and
 * adds at most these: VEX takes 100 instructions at once, and unrolls a loop
 * only while it stays shorter than that.
 */
#define LK_MORE 1000
#define LK_ACCESSES ((LK_GROUPS + 1) * LK_MORE)
extern struct lk_group lk_groups[LK_GROUPS + LK_MORE];
/* Before the first there is room for one. */
extern struct lk_access lk_accesses[1 + LK_ACCESSES];
#define LK_GROUPS_FULL (&lk_groups[LK_GROUPS])
#define LK_ACCESSES_FIRST (&lk_accesses[1])
extern struct lk_group *lk_groups_end;
extern struct lk_access *lk_accesses_end;
/* Some access in the log may have LK_NOT_TAKEN. */
extern ULong lk_some_not_taken;

/* filter.c */
void lk_filter_init(void);
void lk_filter(void);
void lk_finish_frame(void);
void lk_empty_slots(void);
void lk_forget_totals(void);
void lk_send_totals(ThreadId tid);

/* sites.c */
void lk_sites_init(void);
UInt lk_number_of(struct lk_site site);

/* flow.c */
/* The program's general registers, in the order of VEX's guest state. */
#define LK_REGISTERS 16
/* Where in the log the load stands that each has its value from; 0: unknown. */
extern ULong lk_flow_registers[LK_REGISTERS];

/* waits.c */
void lk_waits_visit(const struct lk_access *access);
void lk_waits_emptied(void);
void lk_forget_waits(void);
void lk_send_waits(ThreadId tid);

/* window.c */
/* Emptied into the smallest frame, where records come without shared memory. */
#define LK_SMALL_WINDOW 32
void lk_windows_init(void);
Bool lk_window_access(UInt kind, ULong addr, ULong what, ULong more,
		      ULong lines);
void lk_filter_windows(ULong totals[LK_TABLES]);
void lk_empty_windows(void);

/* wire.c */
/* A frame has room for so many records at least. */
#define LK_FEWEST_RECORDS 255
/* Where the next record goes; at the end, lk_next_frame makes room. */
extern struct lk_record *lk_out;
extern struct lk_record *lk_out_end;
void lk_wire_open(void);
void lk_close_on_exec(Bool close);
void lk_next_frame(void);
void lk_send_records(void);
void lk_switch_thread(ThreadId tid);
void lk_forget_thread(void);
void lk_forked(void);
void lk_send_event(ThreadId tid, const HChar *json, UInt len);
void lk_send_end(void);

/* exec.c */
/* The program is about to execute another, with these arguments. */
void lk_execve(UWord args);
void lk_name_program(ThreadId tid);

/* events.c */
Bool lk_program_path(HChar *path, SizeT room);
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
