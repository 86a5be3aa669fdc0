// SPDX-License-Identifier: GPL-2.0
/* Mappings of all kinds against a model of what is touched of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

#define TABLES	24
#define PAGES	(TABLES * 512)

/* Whether a page is the first of its mapping; whether a table is there. */
static bool begins[PAGES], there[TABLES];

/* Mappings of random lengths, tables here and there. */
static void lay_out(char *at, unsigned int *state)
{
	unsigned int page, pages, table;
	int protection = PROT_READ;

	memset(begins, 0, sizeof(begins));
	for (page = 0; page < PAGES; page += pages) {
		pages = rand_r(state) % (rand_r(state) % 4 ? 3 * 512 : 9) + 1;
		if (pages > PAGES - page)
			pages = PAGES - page;
		begins[page] = true;
		/* Neighbours that differ do not become one. */
		protection ^= PROT_WRITE;
		mprotect(at + page * PAGE, pages * PAGE, protection);
	}
	for (table = 0; table < TABLES; table++) {
		there[table] = rand_r(state) % 3;
		/* Reading does: it maps the page of zeros. */
		if (there[table])
			(void)*(volatile char *)(at + table * HUGE + rand_r(state) % 512 * PAGE);
	}
}

/* What a walk of these pages touches. */
static unsigned int model(const char *at, unsigned int first, unsigned int pages, unsigned int stride)
{
	unsigned int page, touched = 0;

	for (page = first; page < first + pages; page++)
		touched += there[page / 512] && (page == first || begins[page] ||
						 ((uintptr_t)at / PAGE + page) % stride == 0);
	return touched;
}

void any_layout(void)
{
	static const unsigned int strides[] = { 1, 2, 7, 8, 100, 512, 513, 1000, 1024, 5000 };
	unsigned int state = 1, layout, i, first, pages, walks = 0, wrong = 0, touched = 0;
	struct lookaside_walk walk;

	for (layout = 0; layout < 20; layout++) {
		char *at = reserve(TABLES * HUGE);

		lay_out(at, &state);
		for (i = 0; i < 10; i++) {
			first = rand_r(&state) % PAGES;
			pages = rand_r(&state) % (PAGES - first) + 1;
			walk = arguments(at + first * PAGE, pages * PAGE);
			walk.stride = strides[i];
			walks++;
			wrong += walk_as_is(&walk) || walk.touched != model(at, first, pages, strides[i]) ||
				 walk.next != walk.start + walk.len;
			touched += walk.touched;
		}
		munmap(at, TABLES * HUGE);
	}
	ok(walks == 200 && touched > 1000, "%u walks of mappings of all lengths: %u touches", walks, touched);
	same(wrong, 0, "walks that touched something else than the model");
}

void nothing_faulted_in(void)
{
	static unsigned char resident[8 * 512];
	const size_t len = 8 * HUGE;
	char *at = reserve(len);
	struct lookaside_walk walk;
	unsigned int i, pages = 0;

	for (i = 0; i < 8; i += 2)
		at[i * HUGE] = 1;
	walk = arguments(at, len);
	walk.stride = 1;
	ok(!walk_as_is(&walk) && walk.present == 4 && walk.tables == 4, "a few pages are there");
	mincore(at, len, resident);
	for (i = 0; i < sizeof(resident); i++)
		pages += resident[i] & 1;
	same(pages, 4, "after a walk no more are");
	ok(!walk_as_is(&walk) && walk.present == 4 && walk.tables == 4, "and no table is");
	munmap(at, len);
}

static void write_to(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, text, strlen(text)) < 0)
		note("%s: %s", path, strerror(errno));
	close(file);
}

void other_mappings(void)
{
	const int both = PROT_READ | PROT_WRITE;
	const size_t len = 2 * HUGE;
	struct lookaside_walk walk;
	char *at, *shared;
	int file;

	/* hugetlb: stepped over, what is beside it is not. */
	write_to("/proc/sys/vm/nr_hugepages", "2");
	at = small_pages(2 * len);
	ok(mmap(at, len, both, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) == at, "hugetlb pages");
	memset(at, 1, len);
	ok(!walk_own(&walk, at, 2 * len) && !walk.huge && walk.touched == 128 && walk.next == walk.start + 2 * len,
	   "hugetlb pages are stepped over");
	munmap(at, 2 * len);
	write_to("/proc/sys/vm/nr_hugepages", "0");

	/* A file in memory, twice: its pages are there, in this mapping or not. */
	file = memfd_create("shared", MFD_CLOEXEC);
	if (ftruncate(file, len))
		ok(false, "a file in memory: %s", strerror(errno));
	shared = mmap(reserve(len), len, both, MAP_FIXED | MAP_SHARED, file, 0);
	memset(shared, 1, len);
	ok(!walk_own(&walk, shared, len) && walk.present == 128, "a shared mapping");
	at = mmap(reserve(len), len, both, MAP_FIXED | MAP_SHARED, file, 0);
	ok(!walk_own(&walk, at, len) && !walk.present, "its pages are not brought into another one");
	munmap(at, len);
	munmap(shared, len);
	close(file);

	file = open("/init", O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, 16 * PAGE, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
	walk = arguments(at, 16 * PAGE);
	walk.stride = 1;
	ok(!walk_as_is(&walk) && walk.touched == 16 && walk.present == 16, "a file");
	munmap(at, 16 * PAGE);
	close(file);

	at = small_pages(len);
	mprotect(at, len, PROT_NONE);
	ok(!walk_own(&walk, at, len) && walk.touched == 128, "what may not be touched has entries all the same");
	munmap(at, len);
}

/* The way that programs of 32 bits come. */
void old_programs(void)
{
	struct lookaside_walk *walk = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	const long ioctl_32 = 54;
	const size_t len = 2 * HUGE;
	char *at = small_pages(len);
	long result;

	*walk = arguments(at, len);
	asm volatile("int $0x80" : "=a"(result) : "a"(ioctl_32), "b"(device), "c"(LOOKASIDE_WALK), "d"(walk) : "memory");
	ok(!result && walk->touched == 128 && walk->present == 128, "the call of 32-bit programs");
	walk->flags = 1;
	asm volatile("int $0x80" : "=a"(result) : "a"(ioctl_32), "b"(device), "c"(LOOKASIDE_WALK), "d"(walk) : "memory");
	same(-result, EINVAL, "which is refused as well");
	munmap(at, len);
	munmap(walk, PAGE);
}
