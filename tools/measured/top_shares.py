#!/usr/bin/env python3
"""What `top` estimates of programs' time in translation, beside what `analyze --exact` counts.

python3 tools/measured/top_shares.py [NAME...]   Needs a release build, gcc, Valgrind; half an hour.

Each program runs exactly twice, with fewer and with more rounds: what the second run has more is its main loop, without
its start. Then it runs by itself, and `top` looks at its main loop for ten seconds.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOOKASIDE = str(HERE.parent.parent / "target" / "release" / "lookaside")
SECONDS = 10
PYTHON = """
import random, sys
random.seed(1)
d = {i * 7919: i for i in range(600000)}
k = list(d)
s = 0
for r in range(int(sys.argv[1])):
    random.shuffle(k)
    for x in k: s += d[x]
"""
PERL = "my %h; $h{int rand 1e9} = $_ for 1..300_000; my $s = 0; for (1..shift) { $s += $h{$_} for keys %h; }"
SQL = """
create table t(k integer primary key, v);
with recursive r(i) as (select 1 union all select i + 1 from r where i < 400000)
  insert into t select i, 'value ' || i from r;
with recursive r(i) as (select 1 union all select i + 1 from r where i < {n})
  select sum((select length(v) from t where k = 1 + abs(random() + r.i) % 400000)) from r;
"""


@dataclass
class Program:
    """A program whose last argument, or statement, is how much it does."""

    command: list[str]
    few: int
    more: int
    starts: float = 2.0
    """Seconds until it is in its main loop."""
    endless: int = 10**11
    """Rounds that it is not done with when it is ended."""

    def of(self, rounds: int) -> list[str]:
        """Its command with so many rounds."""
        return [word.replace("{n}", str(rounds)) for word in self.command]


def workload(name: str, size: str, rounds: tuple[int, int], starts: float) -> Program:
    """A program of `lookaside lab workload`, in the pages that the system gives."""
    command = [LOOKASIDE, "lab", "workload", name, "--size", size, "--pages", "asis", "--rounds", "{n}"]
    return Program(command, *rounds, starts, 10**6)


def programs(folder: Path) -> dict[str, Program]:
    """All of them; those in C are built there."""
    for name in ("reads", "hash"):
        source = HERE / "truth" / f"{name}.c"
        subprocess.run(["gcc", "-O2", "-o", folder / name, source], check=True)
    reads, table = str(folder / "reads"), str(folder / "hash")
    return {
        "gups, 256 MiB": workload("gups", "256M", (1, 4), 4),
        "reads, 256 MiB": workload("reads", "256M", (1, 4), 4),
        "random reads, 24 MiB": Program([reads, "random", "24", "{n}"], 1_000_000, 5_000_000),
        "hashjoin, 128 MiB": workload("hashjoin", "128M", (1, 3), 6),
        "canneal, 128 MiB": workload("canneal", "128M", (1, 2), 8),
        "hash table, 64 MiB": Program([table, "64", "{n}"], 1_000_000, 4_000_000),
        "perl, a hash": Program(["perl", "-e", PERL, "{n}"], 2, 6, 4),
        "liblinear, 128 MiB": workload("liblinear", "128M", (1, 2), 8),
        "python3, a dictionary": Program(["python3", "-c", PYTHON, "{n}"], 1, 3, 6),
        "reads in order, 64 MiB": Program([reads, "sequence", "64", "{n}"], 2_000_000, 8_000_000),
        "sqlite3, look-ups": Program(["sqlite3", ":memory:", SQL], 20_000, 120_000, 5),
    }


def counted(command: list[str], folder: Path) -> tuple[float, float]:
    """Cycles of translation and all modelled cycles of a program."""
    file = folder / "exact.json"
    exact = [LOOKASIDE, "analyze", "--exact", "--once", f"--json={file}", "--", *command]
    subprocess.run(exact, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    outcome = json.loads(file.read_text())["outcome"]
    sides = [outcome["data"], outcome["fetch"]]
    translation = sum(side["cost"]["tlb_hit_cycles"] + side["cost"]["walk_cycles"] for side in sides)
    other = sum(side["accesses"] + side["data_stall_cycles"] for side in sides)
    return translation, translation + other


def group(pid: int) -> int:
    """The process group of a process; 0 when it has ended."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def estimated(program: Program) -> dict[str, float] | None:
    """What `top` says of it."""
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(program.of(program.endless), stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        time.sleep(program.starts)
        top = [LOOKASIDE, "top", "--json", "--interval", str(SECONDS)]
        rows = json.loads(subprocess.run(top, check=True, capture_output=True, text=True).stdout)["processes"]
        found = [row["translation"] for row in rows if row["translation"] and group(row["pid"]) == child.pid]
        return found[0] if found else None
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def main() -> None:
    """Prints a row for each program as soon as it is there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = sys.argv[1:]
        print("| program | counted | top | off, points | samples |\n|---|---|---|---|---|", flush=True)
        for label, program in programs(folder).items():
            if wanted and not any(word in label for word in wanted):
                continue
            few, more = (counted(program.of(rounds), folder) for rounds in (program.few, program.more))
            exact = 100 * (more[0] - few[0]) / (more[1] - few[1])
            share = estimated(program)
            if share is None:
                print(f"| {label} | {exact:.1f} % | too few samples | | |", flush=True)
                continue
            value, low, high = (100 * share[key] for key in ("share", "low", "high"))
            off = value - exact
            print(
                f"| {label} | {exact:.1f} % | {value:.1f} % ({low:.1f}–{high:.1f}) | {off:+.1f} | {share['samples']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
