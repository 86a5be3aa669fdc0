// SPDX-License-Identifier: GPL-2.0
/* The runtime's compartments by protection keys, which this processor has: their test and their example. */
#include <signal.h>
#include <string.h>

#include "tap.h"

void compartments(void)
{
	int code = run(1000, (char *const[]){ "/bin/compartments", NULL });

	expect(!code && number("") == 64 && number(" compartments, ") == 15,
	       "64 compartments on 15 protection keys: none reads another's memory");
	note("%s", strtok(said, "\n") ?: "");
	code = run(1000, (char *const[]){ "/bin/vault", NULL });
	expect(code == -SIGSEGV && strstr(said, "a stray read of the vault"), "a stray read of a vault is caught");
}
