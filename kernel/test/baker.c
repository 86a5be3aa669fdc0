// SPDX-License-Identifier: GPL-2.0
/* The baker of this repository's programs by way of the module: they are run and say what they did. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tap.h"

#define PROGRAM "/bin/lookaside"
#define LEN (8 * HUGE)	/* a baker leaves out what has less than 4 MiB */

#define RUN(user, ...) run(user, (char *const[]){ PROGRAM, __VA_ARGS__, NULL })

#define BAKED_BY_AUTO "bake", "run", "--stats", "--", PROGRAM, "lab", "workload", "reads", "--size", "64M", "--rounds", "4"

/*
 * Runs a program of two to three seconds beside its baker; the baker starts within these, or the machine was held up
 * and it is done again.
 */
#define RUN_BAKED(code, ...)                                                              \
	do {                                                                              \
		int tries_ = 0;                                                           \
		do {                                                                      \
			(code) = RUN(1000, __VA_ARGS__);                                  \
		} while (!(code) && strstr(said, "baked 0 of 1 processes") && ++tries_ < 5); \
	} while (0)

void baker(void)
{
	char pid_text[16], *at;
	pid_t pid;
	int code, tries = 0;

	code = RUN(1000, "lab", "workload", "reads", "--size", "32M", "--bake", "module,nops=2", "--json");
	expect(!code && strstr(said, "\"failed_calls\": 0") && number("\"touches\":") >= 32 * 256 / 8,
	       "a program bakes itself by the module");

	pid = holder(1000, true, LEN, &at);
	snprintf(pid_text, sizeof(pid_text), "%d", pid);
	/* Again where the machine was held up for these seconds. */
	do {
		code = RUN(0, "bake", "pid", pid_text, "--settings", "module,stride=8", "--time", "2", "--json");
	} while (!code && number("\"rounds\":") < 2 && ++tries < 5);
	expect(!code && strstr(said, "\"failed_calls\": 0") && number("\"rounds\":") > 1 &&
	       number("\"small_bytes\":") >= LEN && number("\"touches\":") >= LEN / PAGE / 8 * number("\"rounds\":"),
	       "root bakes another process by the module");
	code = RUN(1001, "bake", "pid", pid_text, "--settings", "module", "--time", "1");
	expect(code == 2 && strstr(said, "another user's"), "user 1001 may not");
	end(pid);

	RUN_BAKED(code, "bake", "run", "--settings=module,stride=16", "--stats", "--", PROGRAM, "lab", "workload", "reads",
		  "--size", "64M", "--rounds", "4");
	/* Crowded where the machine under this one took its CPU away in the last second. */
	expect(!code && strstr(said, "baked 1 of 1 processes") && strstr(said, " by module; at the end: ") &&
	       (strstr(said, "at the end: baking") || strstr(said, "at the end: crowded")),
	       "an unmodified program is baked by the module");
	RUN_BAKED(code, BAKED_BY_AUTO);
	expect(!code && strstr(said, "baked 1 of 1 processes") && strstr(said, "by module;"),
	       "and auto chooses it where it is");
}

void baker_without_module(void)
{
	static const char hint[] = "make -C kernel load";
	int code;

	close(device);
	ok(!syscall(SYS_delete_module, "lookaside", O_NONBLOCK), "the module can be unloaded at the end");
	code = RUN(0, "bake", "pid", "1", "--settings", "module", "--time", "1");
	expect(code == 2 && strstr(said, hint), "without it baking says how to load it");
	code = RUN(0, "bake", "run", "--settings=module", "--", PROGRAM, "lab", "workload", "list");
	expect(code == 2 && strstr(said, hint), "and so does running");
	RUN_BAKED(code, BAKED_BY_AUTO);
	expect(!code && strstr(said, "baked 1 of 1 processes") && strstr(said, "by prefetch:t0;"),
	       "auto does without it");
}
