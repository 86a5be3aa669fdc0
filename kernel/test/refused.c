// SPDX-License-Identifier: GPL-2.0
/* What a walk refuses, and how. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
	ok(ioctl(device, LOOKASIDE_WALK + 1, &walk) && errno == ENOTTY, "another number");
	ok(ioctl(device, _IOWR(0xBA, 0, char), &walk) && errno == ENOTTY, "a structure of another size");
	/* It can be read but not written. */
	void *constant = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(constant, &cases[0].walk, sizeof(walk));
	mprotect(constant, PAGE, PROT_READ);
	ok(ioctl(device, LOOKASIDE_WALK, constant) && errno == EFAULT, "a structure that cannot be written");
	munmap(constant, PAGE);
	char byte;

	ok(read(device, &byte, 1) < 0 && write(device, "", 1) < 0, "neither read nor written");
}
