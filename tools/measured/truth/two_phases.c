// SPDX-License-Identifier: MIT OR Apache-2.0
/* First arithmetic in registers and a small table, then random reads of 256 MiB: halves that have nothing in common. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "two_phases STEPS READS\n");
		return 2;
	}
	long steps = atol(argv[1]), reads = atol(argv[2]);
	size_t words = (size_t)256 << 17;
	uint64_t table[512], state = 1, sum = 0;

	for (int i = 0; i < 512; i++)
		table[i] = i * 0x9e3779b97f4a7c15;
	for (long i = 0; i < steps; i++) {
		state = state * 6364136223846793005 + table[sum % 512];
		sum ^= state >> 29;
	}
	uint64_t *array = malloc(words * sizeof(*array));

	if (!array)
		return 1;
	for (size_t i = 0; i < words; i++)
		array[i] = i ^ state;
	for (long i = 0; i < reads; i++) {
		state = state * 6364136223846793005 + 1442695040888963407;
		sum = array[((state >> 20) ^ sum) % words];
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
