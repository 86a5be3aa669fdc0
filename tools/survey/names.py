"""Names of types: those defined more than once, and those that say nothing."""

import re

from survey.modules import roots
from survey.tree import Tree

TYPE = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?(?:unsafe )?(struct|enum|union|trait|type) (\w+)", re.MULTILINE)
EMPTY = {"Came", "Told", "Seen", "Found", "Ran", "Lab", "Study", "Place", "Way", "What", "Here"}

Types = dict[str, list[str]]


def types(tree: Tree, folders: list[str]) -> Types:
    """For each name of a type outside tests the files that define it, once for each definition."""
    found: Types = {}
    for folder in folders:
        for module in (module for root in roots(tree, folder) for module in root.walk()):
            for indent, kind, name in TYPE.findall(module.code):
                # Deeper `type`s are those of traits and their implementations.
                if kind != "type" or not indent:
                    found.setdefault(name, []).append(module.file)
    return dict(sorted(found.items()))


def more_than_once(defined: Types) -> Types:
    """Those with several definitions. A library and a program of one crate that share a file count it once."""
    return {name: files for name, files in defined.items() if len(files) > 1}


def saying_nothing(defined: Types) -> Types:
    """Those whose names a search is no use for."""
    return {name: files for name, files in defined.items() if name in EMPTY}
