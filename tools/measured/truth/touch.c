// SPDX-License-Identifier: MIT OR Apache-2.0
/* MIB mebibytes from malloc, each page touched once by memset: what it takes is page faults. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "touch MIB\n");
		return 2;
	}
	size_t bytes = (size_t)atol(argv[1]) << 20;
	char *memory = malloc(bytes);

	if (!memory)
		return 1;
	memset(memory, 1, bytes);
	printf("%d\n", memory[bytes / 2]);
	return 0;
}
