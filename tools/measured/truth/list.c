// SPDX-License-Identifier: MIT OR Apache-2.0
/* A linked list of NODES nodes from malloc, in an order of its own, walked ROUNDS times; each node is worked on. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct node {
	struct node *next;
	uint64_t value[5];
};

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "list NODES ROUNDS\n");
		return 2;
	}
	long nodes = atol(argv[1]), rounds = atol(argv[2]);
	struct node **order = malloc(nodes * sizeof(*order));
	uint64_t state = 1, sum = 0;

	for (long i = 0; i < nodes; i++)
		order[i] = malloc(sizeof(**order));
	for (long i = nodes - 1; i > 0; i--) {
		state = state * 6364136223846793005 + 1442695040888963407;
		long j = (state >> 33) % (i + 1);
		struct node *other = order[j];

		order[j] = order[i];
		order[i] = other;
	}
	for (long i = 0; i < nodes; i++) {
		order[i]->next = order[(i + 1) % nodes];
		for (int k = 0; k < 5; k++)
			order[i]->value[k] = i + k;
	}
	struct node *at = order[0];

	for (long i = 0; i < nodes * rounds; i++) {
		for (int k = 0; k < 5; k++)
			sum = sum * 31 + at->value[k];
		at = at->next;
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
