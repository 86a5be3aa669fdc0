"""Which file of a crate imports from which, and the circles among them."""

import re
from collections.abc import Iterator

from survey.modules import Module

PATH = re.compile(r"(?<![\w:.])\$?(\w+(?:::\w+)+)")
WORD = re.compile(r"[A-Za-z_]\w*")
# Re-exports followed before it gives up: they may lead round.
DEEPEST = 20

Graph = dict[str, set[str]]


def start(module: Module, path: list[str], depth: int) -> tuple[Module, list[str]] | None:
    """The module that a path begins in, and the rest of the path; None where another crate is meant."""
    first, rest = path[0], path[1:]
    if first == "crate":
        return module.top(), rest
    if first == "self":
        return module, rest
    if first == "super":
        return (module.parent, rest) if module.parent else None
    if first in module.children:
        return module.children[first], rest
    for use in module.uses:
        if use.name == first and use.path != path[:1]:
            bound = resolve(module, use.path, depth + 1)
            return (bound, rest) if bound else None
    return None


def step(module: Module, name: str, depth: int) -> Module | None:
    """Where a name is defined that a module gives; None if it does not give it."""
    if name in module.children:
        return module.children[name]
    if name in module.defined:
        return module
    for use in module.uses:
        if use.name == name:
            return resolve(module, use.path, depth + 1)
    for use in module.uses:
        target = resolve(module, use.path, depth + 1) if use.name == "*" else None
        if target and target is not module and depth < DEEPEST and (defined := step(target, name, depth + 1)):
            return defined
    return None


def resolve(module: Module, path: list[str], depth: int = 0) -> Module | None:
    """The module that defines what a path names, through re-exports; None if that is in another crate."""
    if depth > DEEPEST or not path or not (begin := start(module, path, depth)):
        return None
    current, rest = begin
    while rest and rest[0] == "super" and current.parent:
        current, rest = current.parent, rest[1:]
    for name in rest:
        following = step(current, name, depth)
        if following is None and any(use.name == name for use in current.uses):
            return None  # another crate's, passed on
        if following is None or following is current:
            break
        current = following
    return current


def imported(module: Module) -> Iterator[Module]:
    """The modules that define what a module uses."""
    words = set(WORD.findall(module.code))
    paths = [match[1].split("::") for match in PATH.finditer(module.code)]
    for use in module.uses:
        if use.name == "*" and (target := resolve(module, use.path)):
            given = {*target.defined, *target.children, *(other.name for other in target.uses)}
            paths += [[*use.path, name] for name in given & words]
        elif not use.public or use.name in words:
            paths.append(use.path)
    for path in paths:
        if target := resolve(module, path):
            yield target


def graph(root: Module) -> Graph:
    """For each file what it imports from; files that only pass on what others define are left out."""
    with_code = {module.file for module in root.walk() if not module.only_passes_on()}
    edges: Graph = {file: set() for file in with_code}
    for module in root.walk():
        if module.file in with_code:
            edges[module.file] |= {target.file for target in imported(module)} & with_code - {module.file}
    return edges


def circles(edges: Graph) -> list[list[str]]:
    """The strongly connected components of more than one file, the largest first (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(file: str) -> None:
        index[file] = low[file] = len(index)
        stack.append(file)
        for target in sorted(edges[file]):
            if target not in index:
                visit(target)
                low[file] = min(low[file], low[target])
            elif target in stack:
                low[file] = min(low[file], index[target])
        if low[file] == index[file]:
            place = stack.index(file)
            if len(stack) - place > 1:
                found.append(sorted(stack[place:]))
            del stack[place:]

    for file in sorted(edges):
        if file not in index:
            visit(file)
    return sorted(found, key=lambda circle: (-len(circle), circle))
