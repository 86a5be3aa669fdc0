// SPDX-License-Identifier: GPL-2.0-or-later
/* Lookaside's Valgrind tool: options, and what Valgrind calls. */

#include "lookaside.h"

#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_options.h"

struct lk_options lk_opt = {
	.granularity = LK_PAGE,
	.class_pages = LK_MOST_WINDOW,
	.table = { 0, 0, 2 },
	.fetches = True,
	.fd = -1,
	.shared_fd = -1,
	.messages_fd = -1,
};

static Bool stores_apart;
static Bool unified;

static Bool process_option(const HChar *arg)
{
	Int fd;
	Long inode;

	if VG_XACT_CLO (arg, "--granularity=byte", lk_opt.granularity, LK_BYTE)
		;
	else if VG_XACT_CLO (arg, "--granularity=line", lk_opt.granularity,
			     LK_LINE)
		;
	else if VG_XACT_CLO (arg, "--granularity=page", lk_opt.granularity,
			     LK_PAGE)
		;
	else if VG_BINT_CLO (arg, "--classes", lk_opt.classes, 0,
			     LK_MAX_CLASSES)
		;
	else if VG_BINT_CLO (arg, "--window", lk_opt.window, 0, LK_MOST_WINDOW)
		;
	else if VG_BINT_CLO (arg, "--class-pages", lk_opt.class_pages, 1,
			     LK_MOST_WINDOW)
		;
	else if VG_BOOL_CLO (arg, "--stores-apart", stores_apart)
		;
	else if VG_BOOL_CLO (arg, "--unified", unified)
		;
	else if VG_BOOL_CLO (arg, "--fetches", lk_opt.fetches)
		;
	else if VG_BOOL_CLO (arg, "--waits", lk_opt.waits)
		;
	else if VG_INT_CLO (arg, "--wire-fd", fd)
		lk_opt.fd = fd;
	else if VG_INT_CLO (arg, "--wire-inode", inode)
		lk_opt.inode = inode;
	else if VG_INT_CLO (arg, "--shared-fd", fd)
		lk_opt.shared_fd = fd;
	else if VG_INT_CLO (arg, "--shared-inode", inode)
		lk_opt.shared_inode = inode;
	else if VG_INT_CLO (arg, "--messages-fd", fd)
		lk_opt.messages_fd = fd;
	else if VG_INT_CLO (arg, "--messages-inode", inode)
		lk_opt.messages_inode = inode;
	else if VG_STR_CLO (arg, "--argv0", lk_opt.argv0)
		;
	else
		return False;
	return True;
}

static void print_usage(void)
{
	VG_(printf)(
"    --granularity=byte|line|page  leave out repeats of a line or page [page]\n"
"    --classes=N                   classes of pages, log2 [0]\n"
"    --window=N                    leave out repeats of the last N pages [0]\n"
"    --class-pages=N               of these at most so many of a class [64]\n"
"    --stores-apart=yes|no         stores have a table of their own [no]\n"
"    --unified=yes|no              one table for all accesses [no]\n"
"    --fetches=yes|no              record instruction fetches [yes]\n"
"    --waits=yes|no                tell which visits wait for others [no]\n"
"    --wire-fd=N --wire-inode=N    the pipe to write to\n"
"    --shared-fd=N --shared-inode=N  the memory shared with its reader\n"
"    --messages-fd=N --messages-inode=N  memory for Valgrind's messages\n"
"    --argv0=TEXT                  the program's first argument\n");
}

static void print_debug_usage(void)
{
	VG_(printf)("    (none)\n");
}

static void post_clo_init(void)
{
	if (stores_apart)
		lk_opt.table[LK_STORE] = 1;
	if (unified)
		lk_opt.table[LK_STORE] = lk_opt.table[LK_FETCH] = 0;
	if (lk_opt.granularity != LK_PAGE)
		lk_opt.window = 0;
	if (!lk_opt.window)
		lk_opt.waits = False;
	lk_sites_init();
	lk_filter_init();
	lk_wire_open();
}

static void start_client_code(ThreadId tid, ULong blocks)
{
	static Bool started;

	lk_exiting = False;
	if (!started) {
		started = True;
		lk_name_program(tid);
		lk_program_starts(tid);
	}
	lk_switch_thread(tid);
}

/* Core's code is always 0. */
static void fini(Int code)
{
	lk_empty_slots();
	lk_send_totals(VG_INVALID_THREADID);
	lk_send_waits(VG_INVALID_THREADID);
	/* Else a signal kills us: its number comes with kill_self. */
	if (lk_exiting)
		lk_process_ends(lk_exit_code);
}

/*
 * Core's last act when the program dies of a signal, after fini: no callback
 * tells its number. The linker is told to --wrap it.
 */
void __real_vgPlain_kill_self(Int signal);
void __wrap_vgPlain_kill_self(Int signal);
void __wrap_vgPlain_kill_self(Int signal)
{
	lk_process_ends(128 + signal);
	__real_vgPlain_kill_self(signal);
}

/*
 * Core reads the line numbers of each object that the program loads, half of
 * what a short program's recording takes. The reader of our stream looks for
 * its own. (Symbols, which redirect malloc, and the tables that unwind stacks
 * are read elsewhere.)
 */
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void);
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void)
{
}

static void pre_clo_init(void)
{
	VG_(details_name)("Lookaside");
	VG_(details_version)(NULL);
	VG_(details_description)("records a program's memory accesses");
	VG_(details_copyright_author)("GPL-2.0-or-later");
	VG_(details_bug_reports_to)("the Lookaside project");
	VG_(details_avg_translation_sizeB)(700);

	VG_(basic_tool_funcs)(post_clo_init, lk_instrument, fini);
	VG_(needs_command_line_options)(process_option, print_usage,
					print_debug_usage);
	VG_(needs_syscall_wrapper)(lk_pre_syscall, lk_post_syscall);
	VG_(needs_client_requests)(lk_client_request);
	VG_(track_start_client_code)(start_client_code);
	VG_(track_pre_thread_first_insn)(lk_thread_starts);
	VG_(track_pre_thread_ll_exit)(lk_thread_exits);
	lk_events_init();
}

VG_DETERMINE_INTERFACE_VERSION(pre_clo_init)
