// SPDX-License-Identifier: MIT OR Apache-2.0
/* Sorts 10 M random numbers by quicksort, small parts by insertion. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBERS 10000000L
#define SMALL 16

static void sort(int64_t *a, long n)
{
	while (n > SMALL) {
		int64_t pivot = a[n / 2];
		long low = 0, high = n - 1;

		while (low <= high) {
			while (a[low] < pivot)
				low++;
			while (a[high] > pivot)
				high--;
			if (low <= high) {
				int64_t other = a[low];

				a[low++] = a[high];
				a[high--] = other;
			}
		}
		sort(a, high + 1);
		a += low;
		n -= low;
	}
	for (long i = 1; i < n; i++) {
		int64_t number = a[i];
		long at = i;

		for (; at > 0 && a[at - 1] > number; at--)
			a[at] = a[at - 1];
		a[at] = number;
	}
}

int main(void)
{
	int64_t *numbers = malloc(sizeof(*numbers) * NUMBERS);
	uint64_t state = 1;

	if (!numbers)
		return 1;
	for (long i = 0; i < NUMBERS; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		numbers[i] = (int64_t)(state >> 20);
	}
	sort(numbers, NUMBERS);
	for (long i = 1; i < NUMBERS; i++)
		if (numbers[i - 1] > numbers[i])
			return 1;
	printf("%ld\n", (long)numbers[NUMBERS / 2]);
}
