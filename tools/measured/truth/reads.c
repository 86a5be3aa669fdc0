// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Reads of an array of MIB mebibytes: `chain` (each address depends on the word read before), `random` (none does), or
 * `sequence` (line by line).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Knuth's MMIX generator. */
static uint64_t step(uint64_t state)
{
	return state * 6364136223846793005 + 1442695040888963407;
}

static uint64_t chain(const uint64_t *array, size_t words, long reads)
{
	uint64_t state = 1, word = 0;

	for (long i = 0; i < reads; i++) {
		state = step(state);
		word = array[((state >> 20) ^ word) % words];
	}
	return word;
}

static uint64_t random_reads(const uint64_t *array, size_t words, long reads)
{
	uint64_t state = 1, sum = 0;

	for (long i = 0; i < reads; i++) {
		state = step(state);
		sum += array[(state >> 20) % words];
	}
	return sum;
}

static uint64_t sequence(const uint64_t *array, size_t words, long reads)
{
	uint64_t sum = 0;

	for (long i = 0; i < reads; i++)
		sum += array[(size_t)i * 8 % words];
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t (*mode)(const uint64_t *array, size_t words, long reads) = NULL;

	if (argc == 4 && !strcmp(argv[1], "chain"))
		mode = chain;
	else if (argc == 4 && !strcmp(argv[1], "random"))
		mode = random_reads;
	else if (argc == 4 && !strcmp(argv[1], "sequence"))
		mode = sequence;
	if (!mode) {
		fprintf(stderr, "reads chain|random|sequence MIB READS\n");
		return 2;
	}
	size_t words = (size_t)atol(argv[2]) << 17;
	long reads = atol(argv[3]);
	uint64_t *array = malloc(words * sizeof(*array));

	if (!array)
		return 1;
	for (size_t i = 0; i < words; i++)
		array[i] = i * 0x9e3779b97f4a7c15;
	printf("%llu\n", (unsigned long long)mode(array, words, reads));
	return 0;
}
