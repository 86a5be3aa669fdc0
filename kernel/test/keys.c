// SPDX-License-Identifier: GPL-2.0
/* The runtime's compartments by protection keys, which this processor has: their test and their example. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

/*
 * The rings of `lab experiment switch`: two of compartments need no key from another, twenty
 * take one again and again. How long they take says nothing here, and on a busy host their
 * times tell nothing (exit code 1); the keys are counted all the same.
 */
static void switches(void)
{
	static char *const command[] = { "/bin/lookaside", "lab", "experiment", "switch", "--quick", "--participants", "2,20", "--kib", "0",
					 "--children", "2", "--pages", "1", "--rounds", "2", "--json", NULL };
	static const char participants[] = "\"participants\": ", recycled[] = "\"recycled_per_kilo_step\": ";
	int code = run(1000, command);
	unsigned int of_two = 0, of_twenty = 0, wrong = 0;
	const char *at = said, *keys;
	long ring = 0;

	while ((keys = strstr(at, recycled))) {
		double taken = strtod(keys + strlen(recycled), NULL);

		/* The ring's own, which stands last before its keys. */
		for (; (at = strstr(at, participants)) && at < keys; at += strlen(participants))
			ring = strtol(at + strlen(participants), NULL, 10);
		of_two += ring == 2;
		of_twenty += ring == 20;
		wrong += ring == 2 ? taken != 0 : !(taken > 0);
		at = keys + strlen(recycled);
	}
	expect((code == 0 || code == 1) && of_two && of_twenty && !wrong,
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
