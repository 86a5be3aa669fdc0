"""The report: what `tools/house` prints."""

from collections.abc import Iterator

from survey import checks, imports, lines, modules, names, rooms, system
from survey.tree import Tree


def line_table(tree: Tree, folders: list[str]) -> Iterator[str]:
    """Lines a room."""
    yield f"LINES OF RUST            {'source':>9}{'tests':>9}{'examples':>9}"
    total, papers = lines.Lines(0, 0, 0), lines.Lines(0, 0, 0)
    for folder in folders:
        counted = lines.of_room(tree, folder)
        total += counted
        papers += counted if folder.startswith("papers/") else lines.Lines(0, 0, 0)
        yield row(folder, counted)
    yield row("all", total)
    if papers != lines.Lines(0, 0, 0):
        yield row("of these papers/", papers)


def row(name: str, counted: lines.Lines) -> str:
    """One line of the table; the longest name makes it wider."""
    return f"{name:<25}{counted.source:>9,}{counted.tests:>9,}{counted.other:>9,}"


def circle_table(tree: Tree, folders: list[str]) -> Iterator[str]:
    """Circles a room, with their files."""
    found = {folder: checks.circles(tree, folder) for folder in folders}
    sizes = [len(circle) for circles in found.values() for circle in circles]
    yield f"CIRCLES OF IMPORTS: {len(sizes)}, with {sum(sizes)} files"
    for folder, circles in found.items():
        for circle in circles:
            short = " ".join(file.removeprefix(f"{folder}/src/") for file in circle)
            yield f"{folder}: {len(circle)} files: {short}"


def circle_edges(tree: Tree, folder: str) -> str:
    """What each file on a circle of a room imports from the same circle."""
    shown = []
    for root in modules.roots(tree, folder):
        edges = imports.graph(root)
        for circle in imports.circles(edges):
            shown.append(f"{len(circle)} files")
            for file in circle:
                targets = " ".join(sorted(edges[file] & set(circle))).replace(f"{folder}/src/", "")
                shown.append(f"  {file.removeprefix(f'{folder}/src/')} -> {targets}")
    return "\n".join(shown)


def listed(title: str, items: list[str]) -> Iterator[str]:
    """A heading with the number of items, and the items."""
    yield f"{title}: {len(items)}"
    yield from items


def report(tree: Tree) -> str:
    """All of it."""
    all_rooms = rooms.rooms(tree)
    folders = [room.folder for room in all_rooms]
    types = names.types(tree, folders)

    def where(found: names.Types) -> list[str]:
        return [f"{name} ×{len(files)}: {' '.join(dict.fromkeys(files))}" for name, files in found.items()]

    parts = [
        line_table(tree, folders),
        circle_table(tree, folders),
        listed("ROOMS THAT IMPORT AGAINST THE ORDER, OR HAVE NO PLACE IN IT", rooms.against_order(all_rooms)),
        listed("TYPE NAMES DEFINED MORE THAN ONCE, OUTSIDE TESTS", where(names.more_than_once(types))),
        listed("TYPE NAMES THAT SAY NOTHING", where(names.saying_nothing(types))),
        listed(f"FILES OVER {lines.LONGEST} LINES", lines.too_long(tree, folders)),
        listed(f"READERS OF /proc AND /sys OUTSIDE {system.OWNER}", system.readers(tree, folders)),
    ]
    return "\n\n".join("\n".join(part) for part in parts)
