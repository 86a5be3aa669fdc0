// SPDX-License-Identifier: MIT OR Apache-2.0
/* THREADS threads, each with random reads of an array of its own of MIB mebibytes. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static size_t words;
static long reads;

static void *work(void *seed)
{
	uint64_t *array = malloc(words * sizeof(*array));
	uint64_t state = (uintptr_t)seed, sum = 0;

	if (!array)
		return NULL;
	for (size_t i = 0; i < words; i++)
		array[i] = i;
	for (long i = 0; i < reads; i++) {
		state = state * 6364136223846793005 + 1442695040888963407;
		sum += array[((state >> 20) + (sum & 1)) % words];
	}
	free(array);
	return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "threads THREADS MIB READS\n");
		return 2;
	}
	int n = atoi(argv[1]);
	pthread_t *threads = calloc(n, sizeof(*threads));
	uintptr_t sum = 0;

	words = (size_t)atol(argv[2]) << 17;
	reads = atol(argv[3]);
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1));
	for (int i = 0; i < n; i++) {
		void *one;

		pthread_join(threads[i], &one);
		sum += (uintptr_t)one;
	}
	printf("%lu\n", (unsigned long)sum);
	return 0;
}
