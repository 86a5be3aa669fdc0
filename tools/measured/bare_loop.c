/*
 * The least that simulating two LRU levels costs: 64 entries of 4 ways and 1536 of 12, each set in order of use,
 * addresses in memory, one counter a level; no walks, no statistics. Prints million accesses a second, best of 20.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ACCESSES (1u << 20)
#define PAGES (1u << 20)

static uint64_t state = 1;
static uint32_t first[16][4], second[128][12];

static uint64_t next_random(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline int look_up(uint32_t *set, int ways, uint32_t page)
{
	int way, hit;

	if (set[0] == page)
		return 1;
	for (way = 1; way < ways && set[way] != page; way++)
		;
	hit = way < ways;
	if (!hit)
		way = ways - 1;
	for (; way > 0; way--)
		set[way] = set[way - 1];
	set[0] = page;
	return hit;
}

static uint64_t address(int pattern, uint64_t i)
{
	/* Zipf's law of exponent 0.99 by inverting the distribution's integral, ranks scattered over the pages. */
	double whole = pow(PAGES + 1, 0.01) - 1;
	double u = next_random() / 18446744073709551616.0;
	uint64_t rank = pow(1 + u * whole, 100) - 1;

	if (pattern == 0)
		return next_random() >> 48 << 12;
	if (pattern == 2)
		return i << 6;
	return (((rank < PAGES ? rank : PAGES - 1) * 0x9e3779b1u) & (PAGES - 1)) << 12;
}

int main(void)
{
	static const char *const name[] = { "uniform over 65,536 pages", "zipf 0.99 over 1 M pages", "64-byte stride" };
	uint64_t *addresses = malloc(ACCESSES * sizeof(*addresses));
	uint64_t hits[2] = { 0, 0 };

	for (int pattern = 0; addresses && pattern < 3; pattern++) {
		double best = 1e9;

		for (uint64_t i = 0; i < ACCESSES; i++)
			addresses[i] = address(pattern, i);
		for (int round = 0; round < 20; round++) {
			struct timespec from, to;

			clock_gettime(CLOCK_MONOTONIC, &from);
			for (uint64_t i = 0; i < ACCESSES; i++) {
				uint32_t page = addresses[i] >> 12;

				if (look_up(first[page & 15], 4, page))
					hits[0]++;
				else
					hits[1] += look_up(second[page & 127], 12, page);
			}
			clock_gettime(CLOCK_MONOTONIC, &to);
			double seconds = (to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1e9;
			if (seconds < best)
				best = seconds;
		}
		printf("bare loop, %s: %.0f M accesses/s\n", name[pattern], ACCESSES / best / 1e6);
	}
	return hits[0] + hits[1] == 0;
}
