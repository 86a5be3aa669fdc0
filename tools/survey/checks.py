"""What must hold, and what is excused from it for now (tools/house.toml)."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass

from survey import guides, imports, lines, modules, names, rooms, system
from survey.tree import Tree

EXCUSES = "tools/house.toml"


@dataclass(frozen=True)
class Check:
    """One thing that must hold."""

    name: str
    rule: str
    breaches: Callable[[Tree], list[str]]


def folders(tree: Tree) -> list[str]:
    """The folders of all rooms."""
    return [room.folder for room in rooms.rooms(tree)]


def circles(tree: Tree, folder: str) -> list[list[str]]:
    """The circles of imports in one room."""
    return [circle for root in modules.roots(tree, folder) for circle in imports.circles(imports.graph(root))]


def in_circles(tree: Tree) -> list[str]:
    """The files that lie on a circle."""
    return sorted({file for folder in folders(tree) for circle in circles(tree, folder) for file in circle})


def empty_names(tree: Tree) -> list[str]:
    """The types whose names say nothing, each as its file and its name."""
    found = names.saying_nothing(names.types(tree, folders(tree)))
    return sorted(f"{file}: {name}" for name, files in found.items() for file in set(files))


CHECKS = (
    Check("order", "rooms import only from rooms above them", lambda tree: rooms.against_order(rooms.rooms(tree))),
    Check("circles", "no file imports, directly or through others, from one that imports from it", in_circles),
    Check(
        "types", "a type's name is defined once", lambda tree: [*names.more_than_once(names.types(tree, folders(tree)))]
    ),
    Check("names", "a type's name says what it is", empty_names),
    Check("lines", f"no file over {lines.LONGEST} lines", lambda tree: lines.too_long(tree, folders(tree))),
    Check("system", f"only {system.OWNER} reads /proc and /sys", lambda tree: system.readers(tree, folders(tree))),
    Check("guides", "files and names in " + " and ".join(guides.GUIDES) + " exist", guides.missing),
)


def covers(excuse: str, breach: str) -> bool:
    """Whether a line of the settings excuses a breach: it is the same, or a folder (it ends in a slash) that has it."""
    return breach == excuse or (excuse.endswith("/") and breach.startswith(excuse))


def failures(tree: Tree) -> list[str]:
    """One line for each breach that is not excused, and for each excuse that nothing needs."""
    settings = tomllib.loads(tree.texts[EXCUSES])
    found = []
    for check in CHECKS:
        excused = settings.get(check.name, {})
        breaches = check.breaches(tree)
        found += [
            f"{check.name}: {breach} ({check.rule})"
            for breach in breaches
            if not any(covers(excuse, breach) for excuse in excused)
        ]
        found += [
            f"{check.name}: {excuse} is excused in {EXCUSES} and needs no excuse: remove the line"
            for excuse in excused
            if not any(covers(excuse, breach) for breach in breaches)
        ]
    return found
