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

/* What is in the kernel's log. */
static char *log_text(void)
{
	static char text[1 << 20];
	int len = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, text, sizeof(text) - 1);

	text[len < 0 ? 0 : len] = 0;
	return text;
}

unsigned int logged(const char *what)
{
	const char *at = log_text();
	unsigned int count = 0;

	while ((at = strstr(at, what))) {
		at += strlen(what);
		count++;
	}
	return count;
}

void forget_log(void)
{
	klogctl(5 /* SYSLOG_ACTION_CLEAR */, NULL, 0);
}

void kernel_log(void)
{
	static const char *const words[] = { "BUG:", "WARNING:", "Oops", "general protection fault", "Bad page",
		"bad pmd", "bad pud", "Call Trace", "blocked for more than", "lookaside:" };
	unsigned int i, complaints = 0;
	char *line, *end;

	for (line = log_text(); *line; line = end + 1) {
		end = strchrnul(line, '\n');
		if (!*end)
			break;
		*end = 0;
		/* Debian says so of every module that it has not signed; ours says what it cannot do. */
		if (strstr(line, "taint") || strstr(line, "lookaside: not supported: "))
			continue;
		for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
			if (strstr(line, words[i])) {
				note("%s", line);
				complaints++;
				break;
			}
		}
	}
	same(complaints, 0, "the kernel has no complaints");
}
