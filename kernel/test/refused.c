// SPDX-License-Identifier: GPL-2.0
/* What a walk refuses, and how. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

#define CASE(what, error, ...) { what, error, { \
	.version = LOOKASIDE_VERSION, .pagemap = -1, .stride = 8, .start = 1 << 30, .len = PAGE, __VA_ARGS__ } }

static const struct {
	const char *what;
	int error;
	struct lookaside_walk walk;
} cases[] = {
	CASE("nothing wrong", 0),
	CASE("the largest stride", 0, .stride = LOOKASIDE_MAX_STRIDE),
	CASE("the most NOPs", 0, .nops = LOOKASIDE_MAX_NOPS),
	CASE("the most steps", 0, .steps = LOOKASIDE_MAX_STEPS),
	CASE("version 0", EPROTO, .version = 0),
	CASE("the next version", EPROTO, .version = LOOKASIDE_VERSION + 1),
	CASE("an unknown flag", EINVAL, .flags = 1),
	CASE("the last unknown flag", EINVAL, .flags = 1U << 31),
	CASE("reserved is used", EINVAL, .reserved = 1),
	CASE("stride 0", EINVAL, .stride = 0),
	CASE("too large a stride", EINVAL, .stride = LOOKASIDE_MAX_STRIDE + 1),
	CASE("the largest number as stride", EINVAL, .stride = ~0U),
	CASE("too many NOPs", EINVAL, .nops = LOOKASIDE_MAX_NOPS + 1),
	CASE("too many steps", EINVAL, .steps = LOOKASIDE_MAX_STEPS + 1),
	CASE("no bytes", EINVAL, .len = 0),
	CASE("less than a page", EINVAL, .len = PAGE - 1),
	CASE("a start within a page", EINVAL, .start = (1 << 30) + 8),
	CASE("a range that wraps", EINVAL, .start = -PAGE, .len = 2 * PAGE),
	CASE("a range that ends where addresses do", EINVAL, .start = -PAGE),
	CASE("a length that wraps", EINVAL, .start = PAGE, .len = -PAGE),
	CASE("the kernel's half", EINVAL, .start = 0xffff888000000000),
	CASE("the hole between the halves", EINVAL, .start = 1UL << 60),
	CASE("into the kernel's half", EINVAL, .start = 0, .len = 1UL << 63),
	CASE("file -2", EINVAL, .pagemap = -2),
	CASE("a file that is not open", EBADF, .pagemap = 1000),
};

void wrong_arguments(void)
{
	struct lookaside_walk walk;
	unsigned int i;
	int error, file;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		walk = cases[i].walk;
		error = walk_as_is(&walk);
		ok(error == cases[i].error, "%s: %s", cases[i].what, strerror(error));
		if (error && memcmp(&walk, &cases[i].walk, sizeof(walk)))
			ok(false, "%s: the structure is left alone", cases[i].what);
	}
	static const char *const files[] = { "/dev/null", "/dev/lookaside", "/proc/self/maps",
		"/proc/self/mem", "/proc", "/lookaside.ko" };
	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		walk = cases[0].walk;
		file = open(files[i], O_RDONLY | O_CLOEXEC);
		walk.pagemap = file;
		error = file < 0 ? 0 : walk_as_is(&walk);
		ok(error == EINVAL, "%s is no pagemap: %s", files[i], strerror(error));
		close(file);
	}
	ok(ioctl(device, LOOKASIDE_WALK, NULL) && errno == EFAULT, "no structure");
	ok(ioctl(device, LOOKASIDE_WALK, (void *)-8) && errno == EFAULT, "a structure beyond all addresses");
	ok(ioctl(device, LOOKASIDE_WALK + 4, &walk) && errno == ENOTTY, "another number");
	ok(ioctl(device, _IOWR(0xBA, 0, char), &walk) && errno == ENOTTY, "a structure of another size");
	/* What is Cortex-A9's. */
	struct lookaside_lock lock = { .version = LOOKASIDE_VERSION, .pagemap = -1, .addr = (uintptr_t)&walk & -PAGE };
	struct lookaside_locks locks = { .version = LOOKASIDE_VERSION, .pagemap = -1 };

	ok(ioctl(device, LOOKASIDE_LOCK, &lock) && errno == EOPNOTSUPP, "no page can be locked here");
	ok(ioctl(device, LOOKASIDE_UNLOCK, &lock) && errno == EOPNOTSUPP, "nor unlocked");
	ok(ioctl(device, LOOKASIDE_LOCKS, &locks) && errno == EOPNOTSUPP, "nor listed");
	/* It can be read but not written. */
	void *constant = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(constant, &cases[0].walk, sizeof(walk));
	mprotect(constant, PAGE, PROT_READ);
	ok(ioctl(device, LOOKASIDE_WALK, constant) && errno == EFAULT, "a structure that cannot be written");
	munmap(constant, PAGE);
	char byte;

	ok(read(device, &byte, 1) < 0 && write(device, "", 1) < 0, "neither read nor written");
}

/* One of the numbers at which something may go wrong, or any. */
static uint64_t some(unsigned int *state)
{
	static const uint64_t edges[] = { 0, 1, 8, PAGE - 1, PAGE, HUGE, 1UL << 30, LOOKASIDE_MAX_STRIDE,
		LOOKASIDE_MAX_NOPS, LOOKASIDE_MAX_STEPS, 1UL << 31, 1UL << 32, (1UL << 47) - PAGE, 1UL << 47,
		(1UL << 56) - PAGE, 1UL << 56, 1UL << 57, 1UL << 63, -PAGE, -1 };
	uint64_t any = (uint64_t)rand_r(state) << 33 ^ (uint64_t)rand_r(state) << 12;

	switch (rand_r(state) % 4) {
	case 0:
		return any >> rand_r(state) % 52;
	case 1:
		return any >> rand_r(state) % 52 & -PAGE;
	default:
		return edges[rand_r(state) % (sizeof(edges) / sizeof(*edges))] + rand_r(state) % 3 - 1;
	}
}

void any_arguments(void)
{
	unsigned int state = 1, i, kinds = 0, done = 0, wrong = 0;
	int own = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), error;
	const size_t len = 2 * HUGE;
	char *at = small_pages(len);
	struct lookaside_walk walk, before;

	for (i = 0; i < 50000; i++) {
		/* Most of them right, or none would get anywhere. */
		walk = arguments(at, len);
		walk.steps = rand_r(&state) % 4096;
		for (kinds = rand_r(&state) % 4; kinds; kinds--) {
			switch (rand_r(&state) % 9) {
			case 0: walk.start = some(&state); break;
			case 1: walk.len = some(&state); break;
			case 2: walk.start += some(&state) & -PAGE; break;
			case 3: walk.stride = some(&state); break;
			case 4: walk.nops = some(&state) % 9; break;
			case 5: walk.pagemap = rand_r(&state) % 2 ? own : (int)some(&state); break;
			case 6: walk.flags = some(&state); break;
			case 7: walk.version = some(&state); break;
			case 8: walk.next = walk.touched = walk.present = some(&state); break;
			}
		}
		before = walk;
		error = walk_as_is(&walk);
		done += !error;
		if (error)
			wrong += (error != EINVAL && error != EPROTO && error != EBADF) ||
				 memcmp(&walk, &before, sizeof(walk));
		else
			wrong += walk.next <= walk.start || walk.next > walk.start + walk.len ||
				 walk.present > walk.touched || walk.touched > walk.len / PAGE ||
				 (walk.ended == LOOKASIDE_END) != (walk.next == walk.start + walk.len) ||
				 walk.ended > LOOKASIDE_EXIT || walk.stride != before.stride;
	}
	ok(done > 10000 && done < 40000, "calls with any arguments: %u of %u are walks", done, i);
	same(wrong, 0, "calls whose answer cannot be");
	close(own);
	munmap(at, len);
}
