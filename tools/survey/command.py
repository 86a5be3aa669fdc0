"""The command line of `tools/house`."""

import argparse
import sys
from pathlib import Path

from survey import checks, printed, tree

TOP = Path(__file__).resolve().parents[2]
HELP = """Prints how the house stands: lines of Rust by room, circles of imports between files, rooms that import
against their order, names of types, long files, and who reads /proc and /sys.

  tools/house                   the work tree
  tools/house --rev a5d9032     a revision, to compare with
  tools/house --circles ROOM    of each file on a circle: what it imports from the same circle
  tools/house --check           exit code 1 and one line for each breach of what must hold (tools/check runs this)
"""
CHECKS = f"""What --check holds:
{"".join(f"  {check.name:<9}{check.rule}" + chr(10) for check in checks.CHECKS)}
{checks.EXCUSES} names what is excused, each with its reason. It only shrinks: a line that excuses what is no breach any
more fails the check, too."""


def main(arguments: list[str]) -> int:
    """Runs the command; its exit code."""
    parser = argparse.ArgumentParser(
        prog="tools/house", description=HELP, epilog=CHECKS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rev", metavar="REVISION", help="look at this commit in place of the work tree")
    parser.add_argument("--check", action="store_true", help="print what must not be; exit code 1 if there is any")
    parser.add_argument("--circles", metavar="ROOM", help="print the imports within circles, such as of crates/engine")
    given = parser.parse_args(arguments)
    source = tree.of_revision(TOP, given.rev) if given.rev else tree.of_work_tree(TOP)
    if given.circles:
        print(printed.circle_edges(source, given.circles.rstrip("/")))
        return 0
    if not given.check:
        print(printed.report(source))
        return 0
    found = checks.failures(source)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0
