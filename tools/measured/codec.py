"""Sizes of made traces: ChampSim's records through zstd, and the native format.

python3 codec.py LOOKASIDE: bytes an instruction, of each pattern; needs the zstd command and some minutes.
"""

import os
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable

INSTRUCTIONS = 1_000_000
# zstd's default and its highest ordinary level.
LEVELS = [3, 19]
# ip, is_branch, branch_taken, 2 destination and 4 source registers, 2 and 4 addresses.
RECORD = struct.Struct("<QBB2B4B2Q4Q")

# What an instruction loads and stores in a round of its loop.
Access = Callable[[int], tuple[int, int]]


def idle(_: int) -> tuple[int, int]:
    """Nothing."""
    return 0, 0


def uniform(base: int, log2_bytes: int, grain: int = 8) -> Access:
    """A load anywhere in an array."""
    return lambda _: (base + random.randrange(1 << log2_bytes) // grain * grain, 0)


def zipf(base: int, pages: int) -> Access:
    """A load from a page, the n-th most popular of which is taken one n-th as often."""
    return lambda _: (base + int(pages ** random.random()) * 2654435761 % pages * 4096, 0)


def stream(base: int, stride: int) -> Access:
    """A store after the last one."""
    return lambda number: (0, base + number * stride)


def circle(base: int, nodes: int) -> Access:
    """A load from the next node of a list that ends where it begins."""
    order = [base + random.randrange(1 << 30) // 16 * 16 for _ in range(nodes)]
    return lambda number: (order[number % nodes], 0)


PATTERNS: dict[str, list[Access]] = {
    "each instruction loads, 256 MiB": [uniform(0x7F00_0000_0000, 28)] * 5,
    "each instruction loads, 2^18 pages": [uniform(0x7F00_0000_0000, 30, 4096)] * 5,
    "one of 6 loads, 8 GiB": [idle, idle, uniform(0x7F00_0000_0000, 33), idle, idle, idle],
    "every third of 1000 loads, 1 GiB": ([uniform(0x7F00_0000_0000, 30), idle, idle] * 334)[:1000],
    "two of 5 load, an array each": [uniform(0x7F00_0000_0000, 28), idle, uniform(0x7E00_0000_0000, 28), idle, idle],
    "one of 3 loads, 2^20 pages by Zipf": [zipf(0x7F00_0000_0000, 1 << 20), idle, idle],
    "array, stack and stream": [
        uniform(0x7F00_0000_0000, 28),
        idle,
        lambda _: (0x7FFC_0000_0100, 0),
        stream(0x7D00_0000_0000, 8),
        idle,
    ],
    "small and large array, stream": [
        uniform(0x7F00_0000_0000, 18),
        idle,
        uniform(0x7E00_0000_0000, 34),
        stream(0x7D00_0000_0000, 64),
    ],
    "a list of 20,000 nodes, round and round": [circle(0x7F00_0000_0000, 20_000), idle, idle],
}


def write(path: str, loop: list[Access]) -> None:
    """Writes the loop's instructions as ChampSim's records."""
    with open(path, "wb") as out:
        for i in range(INSTRUCTIONS):
            number, place = divmod(i, len(loop))
            load, store = loop[place](number)
            out.write(RECORD.pack(0x40_1000 + 5 * place, 0, 0, *[0] * 6, store, 0, load, 0, 0, 0))


def main() -> None:
    """Prints a row for each pattern."""
    lookaside = sys.argv[1]
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        records, native, packed = (os.path.join(folder, name) for name in ("t.champsim", "t.lkt", "t.zst"))
        for name, loop in PATTERNS.items():
            write(records, loop)
            subprocess.run([lookaside, "trace", "convert", records, "-o", native], check=True, capture_output=True)
            row = [f"native {os.path.getsize(native) / INSTRUCTIONS:.2f}"]
            for level in LEVELS:
                subprocess.run(["zstd", "-q", "-f", f"-{level}", records, "-o", packed], check=True)
                row.append(f"zstd -{level} {os.path.getsize(packed) / INSTRUCTIONS:.2f}")
            print(f"{name}: {', '.join(row)} bytes an instruction", flush=True)


if __name__ == "__main__":
    main()
