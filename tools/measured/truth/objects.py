# SPDX-License-Identifier: MIT OR Apache-2.0
"""A dict of KEYS lists by number, then LOOKUPS lookups, half of which find nothing."""

import random
import sys


def main() -> None:
    """Prints the sum of what was found."""
    keys, lookups = map(int, sys.argv[1:])
    draw = random.Random(1)
    table = {number: [number, number + 1] for number in range(keys)}
    found = 0
    for _ in range(lookups):
        one = table.get(int(draw.random() * 2 * keys))
        found += one[1] if one else 1
    order = sorted(table, key=lambda number: number * 40503 % 65537)
    print(found, sum(table[number][0] for number in order[::2]))


main()
