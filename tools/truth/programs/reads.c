// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Reads of an array of MIB mebibytes: `chain` (each address depends on the word read before), `random` (none does), or
 * `sequence` (line by line).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "reads chain|random|sequence MIB READS\n");
		return 2;
	}
	size_t words = (size_t)atol(argv[2]) << 17;
	long reads = atol(argv[3]);
	uint64_t *array = malloc(words * sizeof(*array));
	uint64_t state = 1, sum = 0;

	if (!array)
		return 1;
	for (size_t i = 0; i < words; i++)
		array[i] = i * 0x9e3779b97f4a7c15;
	for (long i = 0; i < reads; i++) {
		/* Knuth's MMIX generator. */
		state = state * 6364136223846793005 + 1442695040888963407;
		if (!strcmp(argv[1], "chain"))
			sum = array[((state >> 20) ^ sum) % words];
		else if (!strcmp(argv[1], "random"))
			sum += array[(state >> 20) % words];
		else
			sum += array[i * 8 % words];
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
