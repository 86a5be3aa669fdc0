"""The folder in which programs and their inputs are made."""

import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
LINES = 600_000
FUNCTIONS = 200


class FailedError(Exception):
    """What failed, in one line."""


@dataclass(frozen=True)
class Workshop:
    """A temporary folder, and the Lookaside that is tried."""

    folder: Path
    lookaside: Path

    def built(self, source: str, *compiler: str) -> str:
        """A program of this folder's sources, compiled unless it is there."""
        program = self.folder / source.partition(".")[0]
        if not program.exists():
            run([*compiler, "-o", str(program), str(SOURCES / source)])
        return str(program)

    def c(self, source: str) -> str:
        """A program in C."""
        return self.built(source, "gcc", "-O2", "-pthread")

    def classes(self, source: str) -> str:
        """The folder of a program in Java, compiled."""
        run(["javac", "-d", str(self.folder), str(SOURCES / source)])
        return str(self.folder)

    def lines(self) -> str:
        """A file of lines in no order."""
        file = self.folder / "lines"
        if not file.exists():
            draw = random.Random(1)
            file.write_text("".join(f"{draw.getrandbits(64):016x} {number}\n" for number in range(LINES)))
        return str(file)

    def code(self) -> str:
        """A file of C functions."""
        file = self.folder / "code.c"
        file.write_text("".join(function(number) for number in range(FUNCTIONS)))
        return str(file)

    def path(self, name: str) -> str:
        """A file of this folder that a program may write."""
        return str(self.folder / name)


def function(number: int) -> str:
    """A function of C that no other equals."""
    return (
        f"int f{number}(int*a,int n){{int s={number};for(int i=0;i<n;i++){{"
        f"if(a[i]%{number % 7 + 2}==0)s+=a[i]*{number + 3};else s^=a[(i*{number % 13 + 1})%n];}}return s;}}\n"
    )


def run(command: list[str]) -> None:
    """Runs what makes a program or an input."""
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ended.returncode != 0:
        raise FailedError(f"{command[0]} ended with {ended.returncode}: {first_line(ended.stderr)}")


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "it said nothing")


def last_line(text: str) -> str:
    """The last line that says something."""
    return first_line("\n".join(reversed(text.splitlines())))
