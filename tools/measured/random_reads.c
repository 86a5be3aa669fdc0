/* 32 M random reads over 1 GiB, none of which waits for another. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (1ull << 30)
#define READS (32u << 20)

int main(void)
{
	char *bytes = malloc(BYTES);
	uint64_t state = 1, sum = 0;

	if (!bytes)
		return 1;
	memset(bytes, 1, BYTES);
	for (uint32_t i = 0; i < READS; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		sum += bytes[(state >> 33) % BYTES];
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
