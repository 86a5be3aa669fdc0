// SPDX-License-Identifier: MIT OR Apache-2.0
/* A hash table with open addressing: filled to a half, then looked up; a probe's address depends on the key alone. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x7fb5d329728ea185;
	x ^= x >> 27;
	x *= 0x81dadef4bc2dd44d;
	return x ^ x >> 33;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "hash MIB LOOKUPS\n");
		return 2;
	}
	size_t slots = (size_t)atol(argv[1]) << 16; /* 16 bytes each */
	long lookups = atol(argv[2]);
	struct { uint64_t key, value; } *table = calloc(slots, sizeof(*table));
	uint64_t keys = slots / 2, found = 0;

	if (!table)
		return 1;
	for (uint64_t key = 1; key <= keys; key++) {
		size_t at = mix(key) % slots;

		while (table[at].key)
			at = (at + 1) % slots;
		table[at].key = key;
		table[at].value = key;
	}
	for (long i = 0; i < lookups; i++) {
		uint64_t key = mix(i) % (2 * keys) + 1;
		size_t at = mix(key) % slots;

		while (table[at].key && table[at].key != key)
			at = (at + 1) % slots;
		found += table[at].value;
	}
	printf("%llu\n", (unsigned long long)found);
	return 0;
}
