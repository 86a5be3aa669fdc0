#!/usr/bin/env python3
"""How often trials are right: on a program that can't gain by huge pages, and on one that does.

python3 tools/measured/trials.py LOOKASIDE [TRIALS [SECONDS]]

Each trial is of a process of its own, with a seed of its own; nothing is kept. A line for each: the verdict, and the
change of CPU time a pass with its 99 % interval. Needs gcc, and the rights that `lookaside trial` needs.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).with_name("reads_within.c")
#: The programs: KiB that are read, MiB that are there, huge pages for them, and the right verdicts.
PROGRAMS = {
    "cannot gain": (200, 64, 1, {"no-effect", "cant-tell"}),
    "gains": (256 << 10, 256, 128, {"helps"}),
}


def trial(lookaside: str, program: str, name: str, seed: int, seconds: int) -> bool:
    """Makes one trial and prints what it found; whether it is right."""
    kib, mib, budget, right = PROGRAMS[name]
    process = subprocess.Popen([program, str(kib), str(mib)])
    try:
        # Its memory is set up by then.
        time.sleep(1 + mib / 50)
        options = ["--phase", "1500ms", "--settle", "300ms", "--look", "2s", "--max-stall", "10s", "--measure-only"]
        command = [lookaside, "trial", "--pid", str(process.pid), "--for", f"{seconds}s", "--seed", str(seed)]
        output = subprocess.run([*command, "--budget", str(budget), *options, "--json"], capture_output=True, text=True)
    finally:
        process.kill()
        process.wait()
    if output.returncode != 0:
        print(f"{name}, seed {seed}: {output.stderr.strip()}")
        return False
    found = json.loads(output.stdout)["trials"][0]
    if found["effect"]:
        change = {end: 100 * found["effect"]["change"][end] for end in ("value", "low", "high")}
        shown = f"{change['value']:+.1f} % ({change['low']:+.1f} to {change['high']:+.1f})"
    else:
        shown = "too few phases"
    print(f"{name}, seed {seed}: {found['verdict']}, {found['metric']} {shown}", flush=True)
    return found["verdict"] in right


def main() -> int:
    """Makes all of them; 1 where fewer than 19 of 20 are right."""
    lookaside = sys.argv[1]
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    is_right = True
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        program = str(Path(folder) / "reads_within")
        subprocess.run(["gcc", "-O2", "-o", program, str(SOURCE)], check=True)
        for name in PROGRAMS:
            right = sum(trial(lookaside, program, name, seed, seconds) for seed in range(1, trials + 1))
            print(f"{name}: {right} of {trials} right")
            is_right &= right >= 0.95 * trials
    return 0 if is_right else 1


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    sys.exit(main())
