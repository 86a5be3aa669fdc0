"""What ARCHITECTURE.md and CONTRIBUTING.md name must exist.

A path is a code span with a slash, or a link to a file. `crates/NAME/src/*.rs` stands for any that fit. Names in
brackets after a path, as in `crates/engine/src/os.rs` (`Os`, `Fault`), must occur in that file.
"""

import re
from fnmatch import fnmatchcase

from survey.tree import Tree

GUIDES = ("ARCHITECTURE.md", "CONTRIBUTING.md")
SPAN = re.compile(r"`([^`\s]+/[^`\s]*)`(?:\s+\(((?:`[^`]+`(?:,\s+)?)+)\))?")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
NAME = re.compile(r"`([^`]+)`")
PLACEHOLDER = re.compile(r"\b[A-Z][A-Z_]+\b")
# Of the machine, of a build, of the network: not files of the repository.
ELSEWHERE = ("/", "~", "target/", "http", "main/", "<")


def matching(tree: Tree, path: str) -> list[str]:
    """The files and folders that a path stands for."""
    pattern = path.rstrip("/")
    if pattern in tree.paths:
        return [pattern]
    pattern = re.sub(r"\*+", "*", PLACEHOLDER.sub("*", pattern))
    folders = {path[:place] for path in tree.paths for place in range(len(path)) if path[place] == "/"}
    return [known for known in sorted(tree.paths | folders) if fnmatchcase(known, pattern)]


def missing(tree: Tree) -> list[str]:
    """One line for each path and each name that is not there."""
    breaches = []
    for guide in (guide for guide in GUIDES if guide in tree.texts):
        text = tree.texts[guide]
        for path, names in [*SPAN.findall(text), *((link, "") for link in LINK.findall(text))]:
            if path.startswith(ELSEWHERE) or "::" in path:
                continue
            files = matching(tree, path)
            if not files:
                breaches.append(f"{guide}: {path}")
            elif names:
                there = "\n".join(tree.texts.get(file, "") for file in files)
                lost = [
                    name for name in NAME.findall(names) if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", there)
                ]
                breaches += [f"{guide}: {path} ({name})" for name in lost]
    return breaches
