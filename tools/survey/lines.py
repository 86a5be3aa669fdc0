"""Lines of Rust by room, and files that are too long."""

from dataclasses import dataclass

from survey import rust
from survey.modules import Module, roots
from survey.tree import Tree

LONGEST = 500


@dataclass(frozen=True)
class Lines:
    """Lines of a room, with comments and blank lines: its code, its tests (in `src` too), its examples and benches."""

    source: int
    tests: int
    other: int

    def __add__(self, more: "Lines") -> "Lines":
        return Lines(self.source + more.source, self.tests + more.tests, self.other + more.other)


def files_of(modules: list[Module]) -> set[str]:
    """The files that are compiled without tests."""
    return {module.file for root in modules for module in root.walk()}


def of_room(tree: Tree, folder: str) -> Lines:
    """The lines of one room."""
    compiled = files_of(roots(tree, folder))
    source = tests = other = 0
    for path in tree.under(folder, ".rs"):
        lines = tree.texts[path].count("\n")
        if path in compiled:
            test_lines = rust.read(tree.texts[path]).test_lines
            source, tests = source + lines - test_lines, tests + test_lines
        elif path.startswith((f"{folder}/examples/", f"{folder}/benches/")):
            other += lines
        else:
            tests += lines
    return Lines(source, tests, other)


def too_long(tree: Tree, folders: list[str]) -> list[str]:
    """Rust files of more than LONGEST lines."""
    paths = [path for folder in folders for path in tree.under(folder, ".rs")]
    return [path for path in paths if tree.texts[path].count("\n") > LONGEST]
