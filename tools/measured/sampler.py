"""What sampling costs, and the share of samples whose data address is found.

python3 sampler.py LOOKASIDE MULTIPLY FOLDER [NAME=COMMAND...]: interleaved runs, medians.
"""

import os
import resource
import shlex
import statistics
import subprocess
import sys
import time

ROUNDS = 11
RATES = [0, 1000, 2000]


def tree_seconds() -> float:
    """CPU seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def recorded(lookaside: str, hz: int, file: str, command: list[str]) -> list[str]:
    """The command that samples another."""
    return [lookaside, "record", "--backend", "sample", "--hz", str(hz), "-o", file, "--", *command]


def run(command: list[str]) -> tuple[float, float, float]:
    """The program's own CPU seconds (its output), those of all processes together, and wall seconds."""
    tree, wall = tree_seconds(), time.monotonic()
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return float(output), tree_seconds() - tree, time.monotonic() - wall


def cost(lookaside: str, multiply: str, folder: str) -> None:
    """Prints the time that sampling adds, at each rate."""
    file = os.path.join(folder, "multiply.lkt")
    runs: dict[int, list[tuple[float, float, float]]] = {hz: [] for hz in RATES}
    for _ in range(ROUNDS):
        for hz in RATES:
            runs[hz].append(run(recorded(lookaside, hz, file, [multiply]) if hz else [multiply]))
    medians = {hz: [statistics.median(column) for column in zip(*runs[hz], strict=True)] for hz in RATES}
    base = medians[0]
    for hz in RATES[1:]:
        added = [100 * (now / before - 1) for now, before in zip(medians[hz], base, strict=True)]
        print(
            f"sampler at {hz} Hz, over {base[0]:.2f} s: program's own CPU time +{added[0]:.1f} %, "
            f"with lookaside's +{added[1]:.1f} %, wall time +{added[2]:.1f} %"
        )


def found(lookaside: str, folder: str, name: str, command: list[str]) -> None:
    """Prints the share of a program's samples that have an address."""
    file = os.path.join(folder, "samples.lkt")
    quiet = subprocess.DEVNULL
    subprocess.run(recorded(lookaside, 2000, file, command), check=True, stdout=quiet, stderr=quiet)
    text = subprocess.run([lookaside, "trace", "cat", file], check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [line.split()[1] for line in text.splitlines() if line[:2] in ("R ", "W ")]
    known = sum(int(address, 16) != 0 for address in rows)
    share = 100 * known / max(1, len(rows))
    print(f"sampler, samples whose data address is found: {name}: {share:.0f} % of {len(rows)}")


def main() -> None:
    """Runs what the first lines say."""
    lookaside, multiply, folder, *programs = sys.argv[1:]
    cost(lookaside, multiply, folder)
    for program in programs:
        name, command = program.split("=", 1)
        found(lookaside, folder, name, shlex.split(command))


main()
