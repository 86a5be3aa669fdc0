#!/usr/bin/env python3
"""What a thousand machines take over one trace, beside runs of one each.

python3 tools/measured/machines.py LOOKASIDE TRACE [MACHINES]

The machines are Skylake's with other second levels; walks are counted only. CPU seconds and peak memory of one run over
all of them, and CPU seconds of twenty of them in runs of their own, times a fiftieth of the machines each stands for.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ALONE = 20


def second_level(number: int) -> list[str]:
    """Overrides that make the machine of this number."""
    ways = 2 + number % 15
    sets = 1 << (4 + number // 15 % 7)
    policy = ("lru", "fifo", "random")[number // 105 % 3]
    return [
        'tlb.stlb.index="linear"',
        f"tlb.stlb.ways={ways}",
        f"tlb.stlb.entries={ways * sets}",
        f'tlb.stlb.replacement="{policy}"',
    ]


def describe(lookaside: str, number: int, folder: Path) -> Path:
    """A file of the machine of this number."""
    options = [part for change in second_level(number) for part in ("--set", change)]
    text = subprocess.run(
        [lookaside, "machine", "show", "--toml", "skylake", *options], check=True, capture_output=True, text=True
    ).stdout
    path = folder / f"{number}.toml"
    path.write_text(text.replace('name = "skylake"', f'name = "skylake-{number}"', 1))
    return path


def run(lookaside: str, trace: str, machines: list[Path]) -> tuple[float, float]:
    """CPU seconds and peak memory in MB of a run over these."""
    options = [part for path in machines for part in ("-m", str(path))]
    command = [lookaside, "simulate", trace, "--count-only", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"simulate ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def main() -> None:
    """Measures, and prints a line of each."""
    lookaside, trace = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory() as folder:
        machines = [describe(lookaside, number, Path(folder)) for number in range(count)]
        together, memory = run(lookaside, trace, machines)
        picked = [machines[i * count // ALONE] for i in range(ALONE)]
        alone = sum(run(lookaside, trace, [machine])[0] for machine in picked) * count / ALONE
    print(f"{count} machines over one trace: {together:.1f} s of CPU, {memory:.0f} MB; ", end="")
    print(f"by themselves {alone:.0f} s: {alone / together:.1f} times as long")


if __name__ == "__main__":
    main()
