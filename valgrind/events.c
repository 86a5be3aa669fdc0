// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory map, heap blocks, threads and processes, as events. */

#include "lookaside.h"

#include "pub_tool_aspacehl.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_hashtable.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_stacktrace.h"

/* Core's, not declared for tools: the program's file. */
extern Int VG_(cl_exec_fd);

#define MAP_STACK 0x20000 /* not in Valgrind's headers */

/* Payload of one frame. */
static HChar text[4080];
static UInt used;

/* Set where the program asks the system to end it, until it runs again. */
Bool lk_exiting;
Int lk_exit_code;

struct site {
	struct site *next;
	UWord key; /* hash of the frames */
	UInt id;
	UInt generation;
	UInt n;
	Addr frames[LK_FRAMES];
};
static VgHashTable *sites;
static UInt last_site;
/* A forked child defines the sites again when it uses them. */
static UInt generation;

struct block {
	struct block *next;
	UWord key; /* address */
	SizeT len;
};
static VgHashTable *blocks;

static Addr brk_start;
static Int fork_pipe[2];
static UInt parent;

static void put(const HChar *format, ...) PRINTF_CHECK(1, 2);
static void put(const HChar *format, ...)
{
	va_list args;

	va_start(args, format);
	used += VG_(vsnprintf)(text + used, sizeof(text) - used, format, args);
	va_end(args);
	tl_assert(used < sizeof(text));
}

/* A JSON string; cut where the frame would not hold it. */
static void put_string(const HChar *s)
{
	put("\"");
	for (; *s && used < sizeof(text) - 100; s++) {
		UChar c = *s;

		if (c == '"' || c == '\\')
			put("\\%c", c);
		else if (c < ' ')
			put("\\u%04x", c);
		else
			text[used++] = c;
	}
	put("\"");
}

static void begin(void)
{
	used = 0;
}

static void send(ThreadId tid)
{
	lk_send_event(tid, text, used);
}

/* As `send`, for what may change translations: nothing stays in the filter. */
static void send_map_event(ThreadId tid)
{
	lk_switch_thread(tid);
	lk_empty_slots();
	send(tid);
}

Bool lk_is_preload(Addr addr)
{
	const NSegment *seg = VG_(am_find_nsegment)(addr);
	const HChar *name;

	if (!seg || seg->kind != SkFileC)
		return False;
	name = VG_(am_get_filename)(seg);
	return name && VG_(strncmp)(VG_(basename)(name), "vgpreload_", 10) == 0;
}

/* The caller's call site; defines it where it is new. */
static UInt find_site(ThreadId tid)
{
	Addr stack[LK_FRAMES + 8];
	struct site *site;
	struct site probe = { 0 };
	UInt n = VG_(get_StackTrace)(tid, stack, LK_FRAMES + 8, NULL, NULL, 0);
	UInt i;

	for (i = 0; i < n && probe.n < LK_FRAMES; i++) {
		if (lk_is_preload(stack[i]))
			continue;
		/* Valgrind gives callers' addresses less one. */
		probe.frames[probe.n++] = stack[i] + (i > 0);
	}
	if (!probe.n)
		return 0;
	for (i = 0; i < probe.n; i++)
		probe.key = (probe.key ^ probe.frames[i]) * 0x9e3779b97f4a7c15;
	for (site = VG_(HT_lookup)(sites, probe.key); site; site = site->next)
		if (site->key == probe.key && site->n == probe.n &&
		    !VG_(memcmp)(site->frames, probe.frames,
				 sizeof(probe.frames)))
			break;
	if (!site) {
		site = VG_(malloc)("lookaside.site", sizeof(*site));
		*site = probe;
		site->id = ++last_site;
		site->generation = generation - 1;
		VG_(HT_add_node)(sites, site);
	}
	if (site->generation != generation) {
		site->generation = generation;
		begin();
		put("{\"site\":{\"id\":%u,\"frames\":[", site->id);
		for (i = 0; i < site->n; i++)
			put("%s%lu", i ? "," : "", site->frames[i]);
		put("]}}");
		send(tid);
	}
	return site->id;
}

/* `kind`: as in the event; or the file's path, if `is_file`. */
static void put_map(Addr addr, SizeT len, UInt prot, Bool is_file,
		    const HChar *kind, ULong offset, UInt site)
{
	begin();
	put("{\"map\":{\"addr\":%lu,\"len\":%lu,\"prot\":%u,\"site\":%u,"
	    "\"source\":", addr, len, prot & 7, site);
	if (is_file)
		put("{\"file\":{\"offset\":%llu,\"path\":", offset);
	put_string(kind ? kind : "");
	put(is_file ? "}}}}" : "}}");
}

static UInt prot_of(const NSegment *seg)
{
	return (seg->hasR ? VKI_PROT_READ : 0) |
	       (seg->hasW ? VKI_PROT_WRITE : 0) |
	       (seg->hasX ? VKI_PROT_EXEC : 0);
}

/* Valgrind keeps room above the heap, and below the stack. */
static Bool is_heap(const NSegment *seg)
{
	const NSegment *above = VG_(am_find_nsegment)(seg->end + 1);

	return seg->kind == SkAnonC && above && above->kind == SkResvn &&
	       above->smode == SmLower;
}

static void send_segment(ThreadId tid, const NSegment *seg)
{
	Addr start = seg->start;
	SizeT len = seg->end - start + 1;
	Addr sp = VG_(get_SP)(tid);

	if (seg->kind == SkFileC) {
		put_map(start, len, prot_of(seg), True,
			VG_(am_get_filename)(seg), seg->offset, 0);
	} else if (is_heap(seg)) {
		return; /* brk tells */
	} else if (sp >= start && sp <= seg->end) {
		/* The stack, with the room below that it may grow into. */
		const NSegment *below = VG_(am_find_nsegment)(start - 1);

		if (below && below->kind == SkResvn) {
			len += start - below->start;
			start = below->start;
		}
		put_map(start, len, prot_of(seg), False, "stack", 0, 0);
	} else {
		put_map(start, len, prot_of(seg), False, "anonymous", 0, 0);
	}
	send_map_event(tid);
}

static void send_all_segments(ThreadId tid)
{
	UInt kinds = SkFileC | SkAnonC | SkShmC;
	Addr *starts = NULL;
	Int room = 256;
	Int n;
	Int i;

	do {
		room *= 2;
		starts = VG_(realloc)("lookaside.starts", starts,
				      room * sizeof(*starts));
		n = VG_(am_get_segment_starts)(kinds, starts, room);
	} while (n < 0);
	for (i = 0; i < n; i++)
		send_segment(tid, VG_(am_find_nsegment)(starts[i]));
	VG_(free)(starts);
}

/* The path of the program's file; False, and none, where the system has none. */
Bool lk_program_path(HChar *path, SizeT room)
{
	HChar link[40];
	SSizeT len;

	VG_(snprintf)(link, sizeof(link), "/proc/self/fd/%d", VG_(cl_exec_fd));
	len = VG_(readlink)(link, path, room - 1);
	path[len < 0 ? 0 : len] = 0;
	return len > 0;
}

/* The first moment when the program's image is complete. */
void lk_program_starts(ThreadId tid)
{
	HChar path[3000];

	lk_program_path(path, sizeof(path));
	begin();
	put("{\"exec\":{\"path\":");
	put_string(path);
	put("}}");
	send_map_event(tid);
	lk_thread_starts(tid);
	send_all_segments(tid);
}

void lk_thread_starts(ThreadId tid)
{
	static Bool main_started;

	/* Core calls us for the first thread too, before its image is told. */
	if (!main_started) {
		main_started = True;
		return;
	}
	begin();
	put("{\"thread-start\":{\"thread\":%d}}", VG_(gettid)());
	send(tid);
}

void lk_thread_exits(ThreadId tid)
{
	begin();
	put("{\"thread-exit\":{\"thread\":%d}}", VG_(gettid)());
	send(tid);
	lk_forget_thread();
}

void lk_process_ends(Int code)
{
	HChar json[60];
	UInt len = VG_(snprintf)(json, sizeof(json),
				 "{\"process-exit\":{\"code\":%d}}", code);

	lk_send_event(VG_INVALID_THREADID, json, len);
	lk_send_end();
}

void lk_pre_syscall(ThreadId tid, UInt no, UWord *args, UInt n)
{
	switch (no) {
	case __NR_exit:
	case __NR_exit_group:
		lk_exiting = True;
		lk_exit_code = args[0] & 0xff;
		break;
	case __NR_execve:
	case __NR_execveat:
		lk_execve(args[no == __NR_execve ? 1 : 2]);
		/* If it succeeds, nothing more comes from this image. */
		lk_switch_thread(tid);
		lk_empty_slots();
		lk_send_totals(tid);
		lk_send_waits(tid);
		break;
	}
}

static void mapped(ThreadId tid, Addr addr, const UWord *args)
{
	SizeT len = VG_PGROUNDUP(args[1]);
	const NSegment *seg = VG_(am_find_nsegment)(addr);
	UInt site;

	if (seg && seg->kind == SkFileC && !(args[3] & VKI_MAP_ANONYMOUS)) {
		put_map(addr, len, args[2], True, VG_(am_get_filename)(seg),
			args[5], 0);
	} else {
		site = find_site(tid);
		put_map(addr, len, args[2], False,
			args[3] & MAP_STACK ? "stack" : "anonymous", 0, site);
	}
	send_map_event(tid);
}

static void moved_brk(ThreadId tid, Addr end, Addr asked)
{
	if (!brk_start) {
		/* libc first asks where it is; else the segment knows. */
		const NSegment *seg = VG_(am_find_nsegment)(end - 1);

		brk_start = asked && seg ? seg->start : end;
	}
	begin();
	put("{\"brk\":{\"start\":%lu,\"end\":%lu}}", brk_start, end);
	send_map_event(tid);
}

void lk_post_syscall(ThreadId tid, UInt no, UWord *args, UInt n, SysRes res)
{
	UWord result = sr_Res(res);

	if (sr_isError(res)) {
		/* The next one may be recorded on. */
		if (no == __NR_execve || no == __NR_execveat)
			lk_close_on_exec(False);
		return;
	}
	begin();
	switch (no) {
	case __NR_mmap:
		mapped(tid, result, args);
		break;
	case __NR_munmap:
		put("{\"unmap\":{\"addr\":%lu,\"len\":%lu}}", args[0],
		    VG_PGROUNDUP(args[1]));
		send_map_event(tid);
		break;
	case __NR_mremap:
		put("{\"remap\":{\"old_addr\":%lu,\"old_len\":%lu,"
		    "\"new_addr\":%lu,\"new_len\":%lu}}", args[0],
		    VG_PGROUNDUP(args[1]), result, VG_PGROUNDUP(args[2]));
		send_map_event(tid);
		break;
	case __NR_mprotect:
	case __NR_pkey_mprotect:
		put("{\"protect\":{\"addr\":%lu,\"len\":%lu,\"prot\":%lu}}",
		    args[0], VG_PGROUNDUP(args[1]), args[2] & 7);
		send_map_event(tid);
		break;
	case __NR_madvise:
		put("{\"advise\":{\"addr\":%lu,\"len\":%lu,\"advice\":%d}}",
		    args[0], VG_PGROUNDUP(args[1]), (Int)args[2]);
		send_map_event(tid);
		break;
	case __NR_brk:
		moved_brk(tid, result, args[0]);
		break;
	case __NR_shmat: {
		const NSegment *seg = VG_(am_find_nsegment)(result);

		if (seg)
			send_segment(tid, seg);
		break;
	}
	}
}

static Bool allocated(ThreadId tid, Addr addr, SizeT len)
{
	struct block *block = VG_(HT_lookup)(blocks, addr);
	UInt site;

	/* `operator new` within which `malloc` has told us already. */
	if (block)
		return False;
	block = VG_(malloc)("lookaside.block", sizeof(*block));
	block->key = addr;
	block->len = len;
	VG_(HT_add_node)(blocks, block);
	site = find_site(tid);
	begin();
	put("{\"alloc\":{\"addr\":%lu,\"len\":%lu,\"site\":%u}}", addr, len,
	    site);
	send(tid);
	return True;
}

static SizeT freed(ThreadId tid, Addr addr)
{
	struct block *block = VG_(HT_remove)(blocks, addr);
	SizeT len;

	if (!block)
		return 0;
	len = block->len;
	VG_(free)(block);
	begin();
	put("{\"free\":{\"addr\":%lu}}", addr);
	send(tid);
	return len;
}

Bool lk_client_request(ThreadId tid, UWord *args, UWord *ret)
{
	*ret = 0;
	switch (args[0]) {
	case LK_REQUEST_ALLOC:
		*ret = allocated(tid, args[1], args[2]);
		return True;
	case LK_REQUEST_FREE:
		*ret = freed(tid, args[1]);
		return True;
	default:
		return False;
	}
}

static void before_fork(ThreadId tid)
{
	lk_switch_thread(tid);
	lk_empty_slots();
	parent = VG_(getpid)();
	if (VG_(pipe)(fork_pipe) != 0)
		fork_pipe[0] = fork_pipe[1] = -1;
}

/*
 * The child's map is a copy of ours as of now, so its Fork event has to come
 * before any of ours: wait until it is sent (the child closes the pipe).
 */
static void parent_forked(ThreadId tid)
{
	HChar byte;

	if (fork_pipe[0] < 0)
		return;
	VG_(close)(fork_pipe[1]);
	while (VG_(read)(fork_pipe[0], &byte, 1) == -VKI_EINTR)
		;
	VG_(close)(fork_pipe[0]);
}

static void child_forked(ThreadId tid)
{
	lk_forked();
	generation++;
	begin();
	put("{\"fork\":{\"parent\":%u,\"child\":%d}}", parent, VG_(getpid)());
	send_map_event(tid);
	if (fork_pipe[0] < 0)
		return;
	VG_(close)(fork_pipe[0]);
	VG_(close)(fork_pipe[1]);
}

void lk_events_init(void)
{
	sites = VG_(HT_construct)("lookaside.sites");
	blocks = VG_(HT_construct)("lookaside.blocks");
	VG_(atfork)(before_fork, parent_forked, child_forked);
}
