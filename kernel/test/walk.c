// SPDX-License-Identifier: GPL-2.0
/* What a walk counts: whole ranges, holes, huge pages. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

/* Of @pages pages from number @first on: the first one and the multiples of @stride. */
static unsigned int expected(uint64_t first, uint64_t pages, uint64_t stride)
{
	unsigned int count = 0;
	uint64_t page;

	for (page = first; page < first + pages; page++)
		count += page == first || page % stride == 0;
	return count;
}

static uint64_t page(const void *at)
{
	return (uintptr_t)at / PAGE;
}

void counts(void)
{
	static const unsigned int strides[] = { 1, 2, 3, 8, 64, 511, 512, 513, 4096, LOOKASIDE_MAX_STRIDE };
	const size_t len = 4 * HUGE;
	char *at = small_pages(len);
	struct lookaside_walk walk;
	unsigned int i, should;

	ok(!walk_own(&walk, at, len), "own tables can be walked");
	same(walk.touched, 4 * 64, "a touch a line of 8 entries");
	same(walk.present, walk.touched, "all pages are there");
	same(walk.tables, 4, "tables");
	same(walk.huge, 0, "nothing huge");
	same(walk.next, walk.start + walk.len, "nothing is left");
	same(walk.ended, LOOKASIDE_END, "it ended because it was done");

	for (i = 0; i < sizeof(strides) / sizeof(*strides); i++) {
		/* Begins and ends in the middle of tables and lines. */
		char *start = at + 5 * PAGE;
		size_t part = len - 12 * PAGE;

		walk = arguments(start, part);
		walk.stride = strides[i];
		walk.nops = 3 * i;
		should = expected(page(start), part / PAGE, strides[i]);
		ok(!walk_as_is(&walk) && walk.touched == should && walk.present == should &&
		   walk.next == walk.start + part, "stride %u: %u touches", strides[i], should);
	}
	munmap(at, len);
}

void holes(void)
{
	const size_t len = 64UL << 30;
	char *at = reserve(len);
	struct lookaside_walk walk;

	ok(!walk_own(&walk, at, len) && !walk.touched && walk.next == walk.start + len,
	   "a range without tables is stepped over");
	/* A page here and there; its table is there with it. */
	at[0] = at[3 * HUGE + 100 * PAGE] = at[40UL << 30] = 1;
	ok(!walk_own(&walk, at, len), "a range with few tables");
	same(walk.tables, 3, "its tables");
	same(walk.touched, 3 * 64, "all lines of these");
	/* The third page is in a touched entry as well: 100 is no multiple of 8. */
	same(walk.present, 2, "pages that are there");
	same(walk.next, walk.start + len, "up to its end");
	walk = arguments(at, len);
	walk.stride = 4;
	ok(!walk_as_is(&walk) && walk.present == 3, "with a stride of 4 the third page as well");
	/* What is unmapped has neither tables nor a first page. */
	munmap(at + PAGE, HUGE - PAGE);
	munmap(at + 3 * HUGE, 8 * PAGE);
	ok(!walk_own(&walk, at, len), "with holes between mappings");
	same(walk.touched, 1 + 63 + 64, "what is left is touched");
	same(walk.tables, 3, "in as many tables");
	munmap(at, len);
	ok(!walk_own(&walk, at, len) && !walk.touched && !walk.tables, "nothing mapped: nothing touched");
}

void huge_pages(void)
{
	const size_t len = 8 * HUGE;
	char *at = reserve(len);
	struct lookaside_walk walk;

	madvise(at + HUGE, 2 * HUGE, MADV_HUGEPAGE);
	madvise(at + 5 * HUGE, HUGE, MADV_HUGEPAGE);
	memset(at, 1, len);
	ok(!walk_own(&walk, at, len), "huge pages among small ones");
	same(walk.huge, 3, "huge pages");
	same(walk.touched, 5 * 64, "the others' entries");
	same(walk.tables, 5, "the others' tables");
	/* Splits one. */
	munmap(at + HUGE, PAGE);
	ok(!walk_own(&walk, at, len) && walk.huge == 2 && walk.tables == 6 && walk.touched == 6 * 64,
	   "one of them split");
	munmap(at, len);
}

/* Many short walks touch what one long one does. */
void going_on(void)
{
	static const unsigned int strides[] = { 1, 8, 13, 700 };
	const size_t len = 6 * HUGE;
	char *at = small_pages(len);
	struct lookaside_walk whole, part;
	uint64_t touched, present, calls;
	unsigned int i, steps;

	/* Holes of all kinds: between mappings, in tables, whole tables. */
	munmap(at + 3 * PAGE, PAGE);
	munmap(at + HUGE + 77 * PAGE, HUGE);
	madvise(at + 4 * HUGE, HUGE + 9 * PAGE, MADV_DONTNEED);
	for (i = 0; i < sizeof(strides) / sizeof(*strides); i++) {
		for (steps = 1; steps < 1000; steps = 3 * steps + 1) {
			whole = arguments(at + PAGE, len - PAGE);
			whole.stride = strides[i];
			if (walk_as_is(&whole) || whole.ended != LOOKASIDE_END)
				break;
			part = arguments(at + PAGE, len - PAGE);
			part.stride = strides[i];
			part.steps = steps;
			touched = present = calls = 0;
			do {
				if (walk_as_is(&part) || ++calls > 100000)
					break;
				touched += part.touched;
				present += part.present;
				/* A mapping is found and an entry touched whatever the bound is. */
				if (part.touched > steps + 2)
					break;
				part.len -= part.next - part.start;
				part.start = part.next;
			} while (part.ended == LOOKASIDE_STEPS);
			if (part.len || touched != whole.touched || present != whole.present)
				break;
		}
		ok(steps >= 1000, "stride %u, step by step: %u touches", strides[i], (unsigned int)whole.touched);
	}
	munmap(at, len);
}

void levels(int expected)
{
	const size_t len = 2 * HUGE;
	struct lookaside_walk walk;
	bool five = false;
	char line[4096], *at;
	FILE *file = fopen("/proc/cpuinfo", "re");

	while (file && fgets(line, sizeof(line), file))
		five |= strstr(line, " la57") != NULL;
	if (file)
		fclose(file);
	same(five ? 5 : 4, expected, "levels of page tables as asked for");
	/* Above what four levels reach, which is only had where asked for. */
	at = mmap((void *)(1UL << 52), len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(at, len, MADV_NOHUGEPAGE);
	memset(at, 1, len);
	ok(((uintptr_t)at == 1UL << 52) == five, "addresses above 2^47: %s", five ? "yes" : "no");
	ok(!walk_own(&walk, at, len) && walk.touched >= 128 && walk.present == walk.touched,
	   "entries are found there");
	munmap(at, len);
	/* From the first page to the last that there can be. */
	ok(!walk_own(&walk, (void *)PAGE, (five ? 1UL << 56 : 1UL << 47) - 2 * PAGE) &&
	   walk.touched > 0 && walk.ended == LOOKASIDE_END, "the whole address space");
}
