/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The memory map, from /proc/self/maps: read when an access lies in no mapping that is known. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder.h"

enum { MOST_RANGES = 16384, READ = 4096, LINE = 4608 };

struct range {
	uint64_t start, end;
	uint64_t tag; /* of offset and path: another mapping has another */
	unsigned prot;
};

/* Two lists, ascending: the last look's and the one before. Guarded by `lock`. */
static struct range *ranges[2];
static int count, which;
static char lock;
/* Lines of the file; guarded too. */
static char input[READ], line[LINE];

static void hold(void)
{
	while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
		syscall(SYS_sched_yield);
}

static void release(void)
{
	__atomic_clear(&lock, __ATOMIC_RELEASE);
}

void maps_forked(void)
{
	if (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
		count = 0;
	release();
}

/* The known mapping that an address lies in. */
static const struct range *find(uint64_t addr)
{
	int low = 0, high = count;

	while (low < high) {
		int middle = (low + high) / 2;

		if (ranges[which][middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && ranges[which][low].start <= addr ? &ranges[which][low] : NULL;
}

static uint64_t hex(const char **at)
{
	uint64_t number = 0;

	for (;; (*at)++) {
		char c = **at;

		if (c >= '0' && c <= '9')
			number = number << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			number = number << 4 | (uint64_t)(c - 'a' + 10);
		else
			return number;
	}
}

static const char *skip_word(const char *at)
{
	while (*at && *at != ' ')
		at++;
	while (*at == ' ')
		at++;
	return at;
}

static void add_range(struct thread *t, uint64_t start, uint64_t end)
{
	text_add(t, "{\"addr\":");
	text_number(t, start);
	text_add(t, ",\"len\":");
	text_number(t, end - start);
}

static void add_prot(struct thread *t, const struct range *range)
{
	text_add(t, ",\"prot\":");
	text_number(t, range->prot);
}

static uint64_t tag_of(const char *text)
{
	uint64_t tag = 0xcbf29ce484222325; /* FNV-1a */

	for (; *text; text++)
		tag = (tag ^ (unsigned char)*text) * 0x100000001b3;
	return tag;
}

/* Where a part of a mapping comes from, and that it came. */
static void send_map(struct thread *t, uint64_t start, uint64_t end, const struct range *range, const char *words)
{
	const char *at = skip_word(words), *path = at;
	uint64_t offset = hex(&at) + (start - range->start);

	for (int word = 0; word < 3; word++)
		path = skip_word(path);
	text_begin(t);
	text_add(t, "{\"map\":");
	add_range(t, start, end);
	add_prot(t, range);
	text_add(t, ",\"source\":");
	if (path[0] == '/') {
		text_add(t, "{\"file\":{\"path\":\"");
		text_quoted(t, path, strlen(path));
		text_add(t, "\",\"offset\":");
		text_number(t, offset);
		text_add(t, "}}");
	} else if (strcmp(path, "[heap]") == 0) {
		text_add(t, "\"heap\"");
	} else if (strcmp(path, "[stack]") == 0) {
		text_add(t, "\"stack\"");
	} else {
		text_add(t, "\"anonymous\"");
	}
	text_add(t, ",\"site\":0}}");
	wire_event(t);
}

static void send_unmap(struct thread *t, uint64_t start, uint64_t end)
{

	text_begin(t);
	text_add(t, "{\"unmap\":");
	add_range(t, start, end);
	text_add(t, "}}");
	wire_event(t);
}

static void send_protect(struct thread *t, uint64_t start, uint64_t end, const struct range *range)
{

	text_begin(t);
	text_add(t, "{\"protect\":");
	add_range(t, start, end);
	add_prot(t, range);
	text_add(t, "}}");
	wire_event(t);
}

/* One line of the file. `known`: the first of the last look's mappings that does not end before it. */
static void take(struct thread *t, struct range *now, int *n, int *known)
{
	struct range *before = ranges[which], range;
	const char *at = line;

	range.start = hex(&at);
	at += *at == '-';
	range.end = hex(&at);
	at += *at == ' ';
	range.prot = (unsigned)(at[0] == 'r') | (unsigned)(at[1] == 'w') << 1 | (unsigned)(at[2] == 'x') << 2;
	range.tag = tag_of(skip_word(at));
	/* The kernel's own, as of vsyscall, are nobody's memory. */
	if (range.end <= range.start || range.end > ADDR_MASK / 2 || *n == MOST_RANGES)
		return;
	now[(*n)++] = range;

	uint64_t from = range.start;

	for (; *known < count && before[*known].start < range.end; (*known)++) {
		struct range *old = &before[*known];

		if (old->start < range.start) {
			send_unmap(t, old->start, old->end < range.start ? old->end : range.start);
			if (old->end <= range.start)
				continue;
			old->start = range.start;
		}
		uint64_t end = old->end < range.end ? old->end : range.end;

		if (old->tag == range.tag) {
			if (from < old->start)
				send_map(t, from, old->start, &range, at);
			if (old->prot != range.prot)
				send_protect(t, old->start, end, &range);
			from = end;
		}
		if (old->end > range.end) {
			old->start = range.end;
			break;
		}
	}
	if (from < range.end)
		send_map(t, from, range.end, &range, at);
}

static void read_all(struct thread *t)
{
	int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct range *now = ranges[!which];
	int n = 0, known = 0, length = 0;
	long got;

	if (file < 0)
		return;
	while ((got = syscall(SYS_read, file, input, (size_t)READ)) > 0) {
		for (long i = 0; i < got; i++) {
			if (input[i] != '\n') {
				length += length < LINE - 1;
				line[length - 1] = input[i];
				continue;
			}
			line[length] = 0;
			length = 0;
			take(t, now, &n, &known);
		}
	}
	syscall(SYS_close, file);
	for (; known < count; known++)
		send_unmap(t, ranges[which][known].start, ranges[which][known].end);
	which = !which;
	count = n;
}

static bool make_room(void)
{
	if (ranges[0] == NULL) {
		size_t bytes = 2 * MOST_RANGES * sizeof(struct range);
		void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (room == MAP_FAILED)
			return false;
		ranges[0] = room;
		ranges[1] = ranges[0] + MOST_RANGES;
	}
	return true;
}

void maps_begin(struct thread *t)
{
	hold();
	if (make_room())
		read_all(t);
	release();
}

void maps_look(struct thread *t, const struct record *records, size_t n)
{
	/* The mapping that was found last for each of some addresses, which is mostly that of the next one near it. */
	enum { NEAR = 64, NEAR_SHIFT = 21 };
	static const struct range nowhere;
	const struct range *near[NEAR];
	bool is_fresh = false;

	for (size_t i = 0; i < NEAR; i++)
		near[i] = &nowhere;
	hold();
	for (size_t i = 0; i < n && make_room(); i++) {
		uint64_t addr = records[i].w0 & ADDR_MASK;
		const struct range **range = &near[addr >> NEAR_SHIFT & (NEAR - 1)];

		if (addr - (*range)->start < (*range)->end - (*range)->start || (records[i].w0 >> 48 & 3) == REPEATS)
			continue;
		*range = find(addr);
		if (*range == NULL && !is_fresh) {
			read_all(t);
			is_fresh = true;
			/* What was found is of the list before. */
			for (size_t k = 0; k < NEAR; k++)
				near[k] = &nowhere;
			*range = find(addr);
		}
		if (*range == NULL)
			*range = &nowhere;
	}
	release();
}
