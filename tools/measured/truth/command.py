"""The command line of `tools/truth`."""

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measured.truth import place, printed, programs
from measured.truth.programs import Program
from measured.truth.summary import summary
from measured.truth.trials import Trial, trial
from measured.truth.workshop import FailedError, Workshop

TOP = Path(__file__).resolve().parents[3]
BUILT = TOP / "target" / "release" / "lookaside"
INTERRUPTED = 130
HELP = """Prints, of programs of many kinds, how many times as fast `lookaside analyze` predicts them to be with huge
pages, beside what `lookaside compare` measures directly after it; then how far both differ. A quiet machine; some
hours for all.

  tools/truth                                      all programs
  tools/truth --only hash --rounds 5               some of them, fewer rounds
  tools/truth --markdown docs/results/truth.md     write the page of the book
"""
EPILOG = """Exit codes: 0 all were tried, but for those that are not installed; 1 one failed; 2 bad arguments;
130 interrupted (what was done is printed)."""


@dataclass
class Outcome:
    """What was tried, and what was left out, each with its reason."""

    trials: list[Trial] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    code: int = 0

    def leave_out(self, program: Program, reason: str) -> None:
        """Says that a program is not in the table."""
        self.left_out.append(f"{program.name}: {reason}")
        print(f"{program.name}: {reason}, left out", file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    found = argparse.ArgumentParser(
        prog="tools/truth", description=HELP, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--list", action="store_true", help="print the programs, and what they need that is missing")
    found.add_argument("--only", metavar="SUBSTRING", default="", help="those with this in their name or kind")
    found.add_argument("--rounds", metavar="N", type=rounds, default=9, help="runs with and without (default 9)")
    found.add_argument("--lookaside", metavar="PATH", type=Path, help="try this one in place of building it")
    found.add_argument("--markdown", metavar="FILE", type=Path, help="write the results as a page of the book")
    return found


def rounds(text: str) -> int:
    """A number of rounds."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least one round")
    return number


def main(arguments: list[str]) -> int:
    """Runs the command; its exit code."""
    asked = parser()
    given = asked.parse_args(arguments)
    chosen = programs.of(given.only)
    if not chosen:
        asked.error(f"no program has {given.only!r} in its name or kind: see tools/truth --list")
    if given.list:
        listed(chosen)
        return 0
    if given.markdown and not given.markdown.parent.is_dir():
        asked.error(f"{given.markdown.parent} is not a folder")
    lookaside = given.lookaside.resolve() if given.lookaside else built()
    if not lookaside.is_file():
        asked.error(f"{lookaside} is not there")
    # Ended by `kill`, it also ends what it runs and removes its folder.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began, load = place.now(), place.load()
    outcome = tried(chosen, lookaside, given.rounds)
    print("", *summary(outcome.trials), sep="\n")
    if given.markdown:
        conditions = place.conditions(lookaside, began, [load, place.load()])
        page = printed.markdown(outcome.trials, outcome.left_out, conditions, asked_for(arguments))
        given.markdown.write_text(page, encoding="utf-8")
    return outcome.code


def asked_for(arguments: Sequence[str]) -> str:
    """The command as it was given."""
    return " ".join(["tools/truth", *arguments])


def built() -> Path:
    """Lookaside, built from the sources."""
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=TOP, check=True)
    return BUILT


def listed(chosen: Sequence[Program]) -> None:
    """Prints the programs."""
    for program in chosen:
        missing = program.missing()
        print(f"{program.name:<20}{program.kind:<16}{install(missing) if missing else ''}".rstrip())


def install(missing: Sequence[str]) -> str:
    """What to type to get packages."""
    return f"not installed (apt-get install -y {' '.join(missing)})"


def tried(chosen: Sequence[Program], lookaside: Path, rounds: int) -> Outcome:
    """Tries each program, and prints its row at once. The folder of programs and inputs is removed at the end."""
    outcome = Outcome()
    print(printed.head(), flush=True)
    with tempfile.TemporaryDirectory(prefix="lookaside-truth-") as folder:
        shop = Workshop(Path(folder), lookaside)
        try:
            for program in chosen:
                try_one(program, shop, rounds, outcome)
        except KeyboardInterrupt:
            outcome.left_out.append("what comes after: interrupted")
            outcome.code = INTERRUPTED
    return outcome


def try_one(program: Program, shop: Workshop, rounds: int, outcome: Outcome) -> None:
    """Tries one program."""
    missing = program.missing()
    if missing:
        outcome.leave_out(program, install(missing))
        return
    try:
        found = trial(program, shop, rounds)
    except FailedError as error:
        outcome.leave_out(program, str(error))
        outcome.code = 1
        return
    outcome.trials.append(found)
    print(printed.line(printed.cells(found)), flush=True)
