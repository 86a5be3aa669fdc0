/* Some 0.6 s of multiplications, without memory; says its own CPU seconds. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

int main(void)
{
	volatile uint64_t result;
	uint64_t x = 1;
	struct timespec t;

	for (long i = 0; i < 600000000; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	result = x;
	(void)result;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	printf("%ld.%09ld\n", (long)t.tv_sec, t.tv_nsec);
	return 0;
}
