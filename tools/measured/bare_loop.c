/*
 * The least that simulating two LRU levels costs: 64 entries of 4 ways and 1536 of 12, each set in order of use,
 * addresses in memory, one counter a level; no walks, no statistics. Then the same with walks as one would write them at
 * first: walk caches of 32 entries in 4 ways, 4 and 2, and data caches of 32 KiB, 256 KiB and 8 MiB in 8, 4 and 16 ways,
 * which hold page-table entries too. Prints million accesses a second, best of 20. Machines and patterns are those of
 * crates/engine/benches/engine.rs.
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
static uint32_t pde[8][4], pdpte[4], pml4e[2];
static uint32_t level1[64][8], level2[1024][4], level3[8192][16];
static uint64_t hits[2], served[4];

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
	uint64_t line = next_random() >> 58 << 6;

	if (pattern == 0)
		return next_random() >> 48 << 12 | line;
	if (pattern == 2)
		return i << 6;
	return (((rank < PAGES ? rank : PAGES - 1) * 0x9e3779b1u) & (PAGES - 1)) << 12 | line;
}

static int is_translated(uint64_t address)
{
	uint32_t page = address >> 12;

	if (look_up(first[page & 15], 4, page))
		hits[0]++;
	else if (look_up(second[page & 127], 12, page))
		hits[1]++;
	else
		return 0;
	return 1;
}

/* The lines that a physical address's caches hold; a line's number is stored plus one, so that 0 is none. */
static void serve(uint64_t physical)
{
	uint32_t line = (physical >> 6) + 1;

	if (look_up(level1[line & 63], 8, line))
		served[0]++;
	else if (look_up(level2[line & 1023], 4, line))
		served[1]++;
	else if (look_up(level3[line & 8191], 16, line))
		served[2]++;
	else
		served[3]++;
}

/* Reads the entries of the levels from the one below what a walk cache holds, each table a flat array. */
static void walk(uint64_t address)
{
	uint32_t region = (address >> 21) + 1;
	int level = 4;

	if (look_up(pde[region & 7], 4, region))
		level = 1;
	if (level == 4 && look_up(pdpte, 4, (address >> 30) + 1))
		level = 2;
	if (level == 4 && look_up(pml4e, 2, (address >> 39) + 1))
		level = 3;
	for (; level > 0; level--)
		serve(((uint64_t)level << 36) + (address >> (3 + 9 * level) << 3));
}

static void run(const uint64_t *addresses, int walks)
{
	for (uint64_t i = 0; i < ACCESSES; i++) {
		int known = is_translated(addresses[i]);

		if (walks) {
			if (!known)
				walk(addresses[i]);
			serve(addresses[i]);
		}
	}
}

static double seconds(const uint64_t *addresses, int walks)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	run(addresses, walks);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1e9;
}

int main(void)
{
	static const char *const name[] = { "uniform over 65,536 pages", "zipf 0.99 over 1 M pages", "64-byte stride" };
	uint64_t *addresses = malloc(ACCESSES * sizeof(*addresses));

	for (int pattern = 0; addresses && pattern < 3; pattern++) {
		for (uint64_t i = 0; i < ACCESSES; i++)
			addresses[i] = address(pattern, i);
		for (int walks = 0; walks < 2; walks++) {
			double best = 1e9;

			for (int round = 0; round < 20; round++) {
				double now = seconds(addresses, walks);

				if (now < best)
					best = now;
			}
			printf("bare loop%s, %s: %.0f M accesses/s\n", walks ? " with walks" : "", name[pattern],
			       ACCESSES / best / 1e6);
		}
	}
	return hits[0] + hits[1] + served[0] + served[3] == 0;
}
