// SPDX-License-Identifier: GPL-2.0-or-later
/* Programs that a process executes. Core is told otherwise in two places: the linker is told to --wrap these. */

#include "lookaside.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_replacemalloc.h"

/* Core's, not declared for tools: the file that every recorded process runs, as its path is in the environment. */
extern const HChar *VG_(name_of_launcher);
extern const HChar *VG_(args_the_exename);
Int VG_(access)(const HChar *path, Bool read, Bool write, Bool execute);

/*
 * Whether a program that is about to be executed is recorded on. Where our own
 * file can't be reached any more (another root folder, a user who may execute
 * nothing where it lies) the program would not run at all: it runs by itself,
 * and our descriptors are closed for it.
 */
Bool __real_vgPlain_should_we_trace_this_child(const HChar *name,
					       const HChar **args);
Bool __wrap_vgPlain_should_we_trace_this_child(const HChar *name,
					       const HChar **args);
Bool __wrap_vgPlain_should_we_trace_this_child(const HChar *name,
					       const HChar **args)
{
	if (VG_(access)(VG_(name_of_launcher), False, False, True) == 0)
		return __real_vgPlain_should_we_trace_this_child(name, args);
	VG_(umsg)("%s runs on unrecorded: from its root folder, or as its user, the recorder can't be reached\n",
		  name ? name : "a program");
	lk_close_on_exec(True);
	return False;
}

/* The name by which a process executes its own file. */
static Bool is_self(const HChar *name)
{
	HChar own[40];

	VG_(snprintf)(own, sizeof(own), "/proc/%d/exe", VG_(getpid)());
	return VG_(strcmp)(name, "/proc/self/exe") == 0 ||
	       VG_(strcmp)(name, "/proc/thread-self/exe") == 0 ||
	       VG_(strcmp)(name, own) == 0;
}

/* The arguments that the program executes another with. */
static const HChar *const *asked;

void lk_execve(UWord args)
{
	asked = (const HChar *const *)args;
}

/*
 * The program's word for what it executes. Where it gives none, Linux makes
 * it an empty one (5.18).
 */
static const HChar *asked_name(void)
{
	if (!VG_(am_is_valid_for_client)((Addr)asked, sizeof(*asked),
					 VKI_PROT_READ))
		return NULL;
	if (!asked[0])
		return "";
	if (!VG_(am_is_valid_for_client)((Addr)asked[0], 1, VKI_PROT_READ))
		return NULL;
	return asked[0];
}

#define NAME_OPTION "--argv0="
static Bool is_name(const HChar *arg)
{
	return VG_(strncmp)(arg, NAME_OPTION, sizeof(NAME_OPTION) - 1) == 0;
}

/*
 * Core executes itself: its options, then the program's file, then the
 * program's arguments but for the first. That one, which may be another than
 * the file's name (applets, login shells), goes with an option of ours. A name
 * that means the caller's own file would be core's, and becomes that of the
 * program's file.
 */
static const HChar **with_names(const HChar *const *args)
{
	static HChar path[4096];
	const HChar *name = asked_name();
	const HChar **list;
	HChar *option;
	SizeT n = 0, to = 0, i = 1;

	while (args[n])
		n++;
	list = VG_(malloc)("lookaside.exec", (n + 2) * sizeof(*list));
	list[to++] = args[0];
	for (; args[i] && args[i][0] == '-'; i++)
		if (!is_name(args[i]))
			list[to++] = args[i];
	if (args[i] && name) {
		option = VG_(malloc)("lookaside.exec", sizeof(NAME_OPTION) +
						VG_(strlen)(name));
		VG_(strcpy)(option, NAME_OPTION);
		VG_(strcat)(option, name);
		list[to++] = option;
	}
	if (args[i])
		list[to++] = is_self(args[i]) &&
			     lk_program_path(path, sizeof(path)) ?
				     path : args[i];
	while (args[i] && args[++i])
		list[to++] = args[i];
	list[to] = NULL;
	return list;
}

SysRes __real_vgPlain_do_syscall(UWord no, UWord a, UWord b, UWord c, UWord d,
				 UWord e, UWord f, UWord g, UWord h);
SysRes __wrap_vgPlain_do_syscall(UWord no, UWord a, UWord b, UWord c, UWord d,
				 UWord e, UWord f, UWord g, UWord h);
SysRes __wrap_vgPlain_do_syscall(UWord no, UWord a, UWord b, UWord c, UWord d,
				 UWord e, UWord f, UWord g, UWord h)
{
	if (no == __NR_execve && b && asked && VG_(name_of_launcher) &&
	    VG_(strcmp)((const HChar *)a, VG_(name_of_launcher)) == 0)
		b = (UWord)with_names((const HChar *const *)b);
	return __real_vgPlain_do_syscall(no, a, b, c, d, e, f, g, h);
}

/*
 * Gives the program the first argument that it was executed with. A script's
 * interpreter keeps its own.
 */
void lk_name_program(ThreadId tid)
{
	UWord *stack = (UWord *)VG_(get_SP)(tid);
	const HChar *name = lk_opt.argv0;
	HChar *ours;

	if (!name || stack[0] == 0 || !VG_(args_the_exename) ||
	    VG_(strcmp)((const HChar *)stack[1], VG_(args_the_exename)) != 0)
		return;
	ours = VG_(cli_malloc)(16, VG_(strlen)(name) + 1);
	if (!ours)
		return;
	VG_(strcpy)(ours, name);
	stack[1] = (UWord)ours;
}
