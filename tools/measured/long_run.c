/* 10 billion loads and stores: sweeps over 320 MB with a table beside, and every 64th step a jump anywhere. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS 40000000u
#define SWEEPS 83 /* at -O1: of 3.03 loads and stores a word */

int main(void)
{
	uint64_t *words = calloc(WORDS, sizeof(*words));
	volatile uint64_t table[512] = { 0 };
	uint64_t state = 1;

	if (!words)
		return 1;
	for (int sweep = 0; sweep < SWEEPS; sweep++) {
		for (uint32_t i = 0; i < WORDS; i++) {
			words[i] += table[words[i] & 511] + i;
			if (i % 64 == 0) {
				state = state * 6364136223846793005ull + 1442695040888963407ull;
				words[(state >> 33) % WORDS]++;
			}
		}
	}
	printf("%llu\n", (unsigned long long)words[state % WORDS]);
	return 0;
}
