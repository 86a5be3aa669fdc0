#!/usr/bin/env python3
"""The engine beside a bare loop in C over the same addresses: python3 tools/measured/engine.py [ROUNDS]

Some minutes; a quiet machine. One after the other, round by round; medians of the rounds, in million accesses a second.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CASES = "(uniform|zipf|stride).*/(two-levels/(totals|rows)|walks/totals)$"
PATTERNS = {"uniform": "uniform-64Ki-pages", "zipf": "zipf-0.99-1Mi-pages", "64-byte": "stride-64B"}
WAYS = {"two levels": "two-levels/totals", "two levels, every row": "two-levels/rows", "walks, caches": "walks/totals"}


def bench() -> str:
    """Builds the engine's bench; its path."""
    command = ["cargo", "bench", "-p", "lookaside-engine", "--bench", "engine", "--no-run", "--message-format=json"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE).stdout.splitlines()
    built = [message["executable"] for message in map(json.loads, lines) if message.get("executable")]
    return str(built[-1])


def of_engine(binary: str) -> dict[str, float]:
    """M accesses a second, by case."""
    command = [binary, "--bench", CASES, "--warm-up-time", "0.5", "--measurement-time", "2", "--sample-size", "10"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^(\S+/\S+/\S+)\s+time:.*?thrpt:\s+\[\S+ \S+ (\S+) (\S)elem/s", text, re.MULTILINE | re.DOTALL)
    return {case: float(value) * (1000 if unit == "G" else 1) for case, value, unit in found}


def of_loop(binary: str) -> dict[tuple[bool, str], float]:
    """M accesses a second, with walks or not, by pattern."""
    text = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"^bare loop( with walks)?, (\S+) .*: (\d+) M", text, re.MULTILINE)
    return {(bool(walks), pattern): float(value) for walks, pattern, value in found}


def main() -> None:
    """Measures, and prints a row of each way."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    engine = bench()
    with tempfile.TemporaryDirectory() as folder:
        loop = f"{folder}/bare"
        subprocess.run(["gcc", "-O3", "-o", loop, str(HERE / "bare_loop.c"), "-lm"], check=True)
        pairs = [(of_loop(loop), of_engine(engine)) for _ in range(rounds)]
    for name, way in WAYS.items():
        for word, pattern in PATTERNS.items():
            beside = (way.startswith("walks"), word)
            bare = statistics.median(loop[beside] for loop, _ in pairs)
            ours = statistics.median(cases[f"{pattern}/{way}"] for _, cases in pairs)
            print(f"{name}, {word}: {ours:.0f}, bare loop {bare:.0f}: {ours / bare:.2f}")


if __name__ == "__main__":
    main()
