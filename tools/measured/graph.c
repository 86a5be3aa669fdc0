/* A memory-bound graph kernel: breadth-first search over 2 M vertices of 8 random edges each. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define VERTICES 2000000u
#define EDGES 8u

int main(void)
{
	uint32_t *edges = malloc(sizeof(*edges) * VERTICES * EDGES);
	uint32_t *queue = malloc(sizeof(*queue) * VERTICES);
	uint8_t *seen = calloc(VERTICES, 1);
	uint32_t head = 0, tail = 1;
	uint64_t state = 1;

	if (!edges || !queue || !seen)
		return 1;
	for (uint64_t i = 0; i < (uint64_t)VERTICES * EDGES; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		edges[i] = (state >> 33) % VERTICES;
	}
	queue[0] = 0;
	seen[0] = 1;
	while (head < tail) {
		const uint32_t *of = edges + (uint64_t)queue[head++] * EDGES;

		for (uint32_t i = 0; i < EDGES; i++) {
			if (!seen[of[i]]) {
				seen[of[i]] = 1;
				queue[tail++] = of[i];
			}
		}
	}
	printf("%u of %u reached\n", tail, VERTICES);
	return 0;
}
