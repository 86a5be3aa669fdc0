// SPDX-License-Identifier: GPL-2.0
/* Runs this repository's programs, which say what they did. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

char said[1 << 16];

int run(uid_t user, char *const command[])
{
	int file = memfd_create("said", 0), status;
	ssize_t len;
	pid_t pid = fork();

	if (!pid) {
		dup2(file, 1);
		dup2(file, 2);
		become(user, true);
		execv(command[0], command);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	len = pread(file, said, sizeof(said) - 1, 0);
	said[len > 0 ? len : 0] = 0;
	close(file);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

unsigned long long number(const char *name)
{
	const char *at = strstr(said, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

void expect(bool holds, const char *what)
{
	char *line, *rest = said;

	if (ok(holds, "%s", what))
		return;
	while ((line = strsep(&rest, "\n")))
		note("%s", line);
}
