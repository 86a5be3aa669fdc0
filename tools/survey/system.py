"""Readers of the running system outside the room that owns that."""

import re

from survey import rust
from survey.lines import files_of
from survey.modules import roots
from survey.tree import Tree

OWNER = "crates/host"
PATH = re.compile(r'^b?r?#*"/(?:proc|sys)(?:/|")')
CALL = re.compile(r"\bprocfs::")


def readers(tree: Tree, folders: list[str]) -> list[str]:
    """Files with a path in /proc or /sys, or a use of procfs."""
    found = []
    for folder in folders:
        for path in sorted(files_of(roots(tree, folder))) if folder != OWNER else []:
            source = rust.read(tree.texts[path])
            if any(PATH.match(literal) for literal in source.literals) or CALL.search(source.code):
                found.append(path)
    return found
