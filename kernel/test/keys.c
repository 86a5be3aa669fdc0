// SPDX-License-Identifier: GPL-2.0
/* The runtime's compartments by protection keys, which this processor has: their test and their example. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tap.h"

/*
 * The rings of `lab experiment switch`: two of compartments need no key from another, twenty take one again and again. What they take says
 * nothing here.
 */
static void switches(void)
{
	static char *const command[] = { "/bin/lookaside", "lab", "experiment", "switch", "--quick", "--participants", "2,20", "--kib", "0",
					 "--children", "2", "--pages", "1", "--rounds", "2", NULL };
	int code = run(1000, command);
	const char *of_two, *of_all;
	unsigned long long none = 1, some = 0;

	/* Its lines are filled up: a break is a space. */
	for (char *at = said; *at; at++)
		if (*at == '\n')
			*at = ' ';
	of_two = strstr(said, "with 2 (");
	of_all = strstr(said, "with 20 (");
	if (of_two && of_all) {
		of_two = strstr(of_two, "turns ");
		of_all = strstr(of_all, "turns ");
		sscanf(of_two ?: "", "turns %llu", &none);
		sscanf(of_all ?: "", "turns %llu", &some);
	}
	expect(!code && strstr(said, "compartments of one process take part") && none == 0 && some > 0,
	       "compartments switch in rings: two take no keys from each other, twenty do");
}

void compartments(void)
{
	int code = run(1000, (char *const[]){ "/bin/compartments", NULL });

	expect(!code && number("") == 64 && number(" compartments, ") == 15,
	       "64 compartments on 15 protection keys: none reads another's memory");
	note("%s", strtok(said, "\n") ?: "");
	code = run(1000, (char *const[]){ "/bin/vault", NULL });
	expect(code == -SIGSEGV && strstr(said, "a stray read of the vault"), "a stray read of a vault is caught");
	switches();
}
