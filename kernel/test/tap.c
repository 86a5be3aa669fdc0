// SPDX-License-Identifier: GPL-2.0
/* Lines in the manner of TAP, and what the kernel says. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tap.h"

static unsigned int lines;

bool ok(bool holds, const char *what, ...)
{
	va_list args;

	va_start(args, what);
	printf("%s %u - ", holds ? "ok" : "not ok", ++lines);
	vprintf(what, args);
	putchar('\n');
	va_end(args);
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

void plan(void)
{
	printf("1..%u\n", lines);
	fflush(stdout);
}

int load(const char *parameters)
{
	int file = open("/lookaside.ko", O_RDONLY | O_CLOEXEC);
	int result = syscall(SYS_finit_module, file, parameters, 0);

	close(file);
	return result;
}

/* What the kernel complained about; what makes it stop is seen from outside. */
void kernel_log(void)
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
