// SPDX-License-Identifier: GPL-2.0
/*
 * First process of the virtual machine: loads the module, runs the tests, tells
 * of each on the console in the manner of TAP, switches the machine off.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tap.h"

int device = -1;
static unsigned int lines, failed;

bool ok(bool holds, const char *what, ...)
{
	va_list args;

	va_start(args, what);
	printf("%s %u - ", holds ? "ok" : "not ok", ++lines);
	vprintf(what, args);
	putchar('\n');
	va_end(args);
	failed += !holds;
	return holds;
}

bool same(uint64_t is, uint64_t should, const char *what)
{
	if (is == should)
		return ok(true, "%s", what);
	return ok(false, "%s: %llu instead of %llu", what, (unsigned long long)is,
		  (unsigned long long)should);
}

void note(const char *what, ...)
{
	va_list args;

	va_start(args, what);
	printf("# ");
	vprintf(what, args);
	putchar('\n');
	va_end(args);
}

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

char *reserve(size_t len)
{
	char *at = mmap(NULL, len + HUGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED) {
		ok(false, "%zu bytes can be had: %s", len, strerror(errno));
		exit(1);
	}
	at = (char *)(((uintptr_t)at + HUGE - 1) & ~(HUGE - 1));
	madvise(at, len, MADV_NOHUGEPAGE);
	return at;
}

char *small_pages(size_t len)
{
	char *at = reserve(len);

	memset(at, 1, len);
	return at;
}

struct lookaside_walk long_walk(const void *start, size_t len)
{
	struct lookaside_walk walk = arguments(start, len);

	walk.nops = LOOKASIDE_MAX_NOPS;
	return walk;
}

static int load(void)
{
	int file = open("/lookaside.ko", O_RDONLY | O_CLOEXEC);
	int result = syscall(SYS_finit_module, file, "", 0);

	close(file);
	return result;
}

static void module(void)
{
	int result;

	if (!ok(load() == 0, "the module can be loaded")) {
		note("%s", strerror(errno));
		return;
	}
	device = open(LOOKASIDE_DEVICE, O_RDWR | O_CLOEXEC);
	ok(device >= 0, LOOKASIDE_DEVICE " can be opened");
	result = syscall(SYS_delete_module, "lookaside", O_NONBLOCK);
	ok(result && errno == EAGAIN, "no unloading while it is open");
	close(device);
	result = syscall(SYS_delete_module, "lookaside", O_NONBLOCK);
	ok(!result, "it can be unloaded");
	ok(access(LOOKASIDE_DEVICE, F_OK), LOOKASIDE_DEVICE " is gone");
	ok(load() == 0, "it can be loaded again");
	device = open(LOOKASIDE_DEVICE, O_RDWR | O_CLOEXEC);
	ok(device >= 0, LOOKASIDE_DEVICE " can be opened again");
}

/* What the kernel complained about; what makes it stop is seen from outside. */
static void kernel_log(void)
{
	static const char *const words[] = { "BUG:", "WARNING:", "Oops", "general protection fault", "Bad page",
		"bad pmd", "bad pud", "Call Trace", "blocked for more than", "lookaside:" };
	static char text[1 << 20];
	int len = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, text, sizeof(text) - 1);
	unsigned int i, complaints = 0;
	char *line, *end;

	ok(len > 0, "the kernel's log can be read");
	for (line = text; *line; line = end + 1) {
		end = strchrnul(line, '\n');
		if (!*end)
			break;
		*end = 0;
		for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
			/* Debian says so of every module that it has not signed. */
			if (strstr(line, words[i]) && !strstr(line, "taint")) {
				note("%s", line);
				complaints++;
				break;
			}
		}
	}
	same(complaints, 0, "the kernel has no complaints");
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
	printf("1..%u\n", lines);
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
