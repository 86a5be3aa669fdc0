// SPDX-License-Identifier: GPL-2.0
/*
 * First process of the virtual machine: loads the module, runs the tests, tells
 * of each on the console in the manner of TAP, switches the machine off.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tap.h"

int device = -1;
struct lookaside_walk arguments(const void *start, size_t len)
{
	return (struct lookaside_walk) {
		.version = LOOKASIDE_VERSION,
		.pagemap = -1,
		.stride = 8,
		.start = (uintptr_t)start,
		.len = len,
	};
}

int walk_as_is(struct lookaside_walk *walk)
{
	return ioctl(device, LOOKASIDE_WALK, walk) ? errno : 0;
}

int walk_own(struct lookaside_walk *walk, const void *start, size_t len)
{
	*walk = arguments(start, len);
	return walk_as_is(walk);
}

struct lookaside_walk long_walk(const void *start, size_t len)
{
	struct lookaside_walk walk = arguments(start, len);

	walk.nops = LOOKASIDE_MAX_NOPS;
	return walk;
}

static void module(void)
{
	int result;

	if (!ok(load("") == 0, "the module can be loaded")) {
		note("%s", strerror(errno));
		return;
	}
	same(logged("lookaside: not supported: locking (no Cortex-A9, or its secure world has the register), "
		    "migration and TLB dumps (no Cortex-A7, or its secure world has the registers)\n"), 1,
	     "it says what it cannot do here, in a line");
	device = open(LOOKASIDE_DEVICE, O_RDWR | O_CLOEXEC);
	ok(device >= 0, LOOKASIDE_DEVICE " can be opened");
	result = syscall(SYS_delete_module, "lookaside", O_NONBLOCK);
	ok(result && errno == EAGAIN, "no unloading while it is open");
	close(device);
	result = syscall(SYS_delete_module, "lookaside", O_NONBLOCK);
	ok(!result, "it can be unloaded");
	ok(access(LOOKASIDE_DEVICE, F_OK), LOOKASIDE_DEVICE " is gone");
	ok(load("") == 0, "it can be loaded again");
	device = open(LOOKASIDE_DEVICE, O_RDWR | O_CLOEXEC);
	ok(device >= 0, LOOKASIDE_DEVICE " can be opened again");
}

int main(int argc, char **argv)
{
	const char *wanted = getenv("levels");
	struct utsname name;

	/* See others.c. */
	if (argc > 1 && !strcmp(argv[1], "wait"))
		return pause();

	mkdir("/proc", 0755), mkdir("/dev", 0755), mkdir("/tmp", 0777);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	chmod("/tmp", 01777);
	/* Where the tests are told to say it; else on the console. */
	if (!freopen("/dev/ttyS0", "w", stdout))
		printf("Bail out! no serial line\n");
	setvbuf(stdout, NULL, _IOLBF, 0);
	uname(&name);
	note("Linux %s", name.release);

	compartments();
	module();
	if (device >= 0) {
		counts();
		holes();
		huge_pages();
		going_on();
		any_layout();
		nothing_faulted_in();
		other_mappings();
		old_programs();
		levels(wanted ? atoi(wanted) : 0);
		wrong_arguments();
		any_arguments();
		other_processes();
		other_users();
		ending_processes();
		nothing_kept();
		signals();
		waiting_writers();
		terms_of_the_lock();
		churn(5);
		baker();
		baker_without_module();
	}
	kernel_log();
	plan();
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
