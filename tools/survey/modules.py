"""The modules of a crate, what they define and what they import."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath

from survey import rust
from survey.tree import Tree

MODULE = re.compile(r"(?:pub(?:\([^)]*\))?\s+)?\bmod\s+(\w+)\s*(;|\{)")
USE = re.compile(r"(?P<public>pub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
DEFINED = re.compile(r"\b(?:struct|enum|union|trait|type|fn|const|static|macro_rules!)\s+(?:mut\s+)?(\w+)")
TOKEN = re.compile(r"\w+|::|[{},*]")


@dataclass(frozen=True)
class Use:
    """One name that a `use` binds: `use a::b as c` binds c to [a, b]; `use a::*` binds `*` to [a]."""

    path: list[str]
    name: str
    public: bool


@dataclass
class Module:
    """A module, in a file of its own or in its parent's."""

    file: str
    parent: "Module | None"
    code: str = ""  # without `use`, `mod` and the modules within
    children: dict[str, "Module"] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)

    def walk(self) -> Iterator["Module"]:
        """It and all below it."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    def top(self) -> "Module":
        """The crate's own module."""
        return self.parent.top() if self.parent else self

    def only_passes_on(self) -> bool:
        """Whether it declares and re-exports modules, and has no code of its own."""
        return not rust.ATTRIBUTE.sub("", self.code).strip()


def use_tree(tokens: list[str], before: list[str]) -> Iterator[tuple[list[str], str]]:
    """The paths and names of a `use`, whose tokens it takes from the front."""
    path = list(before)
    while tokens:
        token = tokens.pop(0)
        if token == "{":
            while tokens and tokens[0] != "}":
                yield from use_tree(tokens, path)
                if tokens and tokens[0] == ",":
                    tokens.pop(0)
            del tokens[:1]
            return
        if token == "*":
            yield path, "*"
            return
        if token == "::":
            continue
        if token != "self" or not path:
            path = [*path, token]
        if tokens[:1] == ["as"]:
            yield path, tokens[1]
            del tokens[:2]
            return
        if tokens[:1] != ["::"]:
            yield path, path[-1]
            return


def parse_uses(code: str) -> list[Use]:
    """What the `use` items bind."""
    uses = []
    for item in USE.finditer(code):
        tokens = TOKEN.findall(item["tree"])
        for path, name in use_tree(tokens, []):
            uses.append(Use(path, name, bool(item["public"])))
    return uses


def fill(tree: Tree, module: Module, code: str, folder: PurePosixPath) -> None:
    """Reads a module's code and the modules that it declares, which lie in a folder."""
    own, place = [], 0
    while declared := MODULE.search(code, place):
        own.append(code[place : declared.start()])
        name = declared[1]
        if declared[2] == "{":
            end = rust.closing(code, declared.end() - 1)
            child = module.children[name] = Module(module.file, module)
            fill(tree, child, code[declared.end() : end], folder / name)
            place = end + 1
            continue
        place = declared.end()
        for file in (folder / f"{name}.rs", folder / name / "mod.rs"):
            if str(file) in tree.texts:
                child = module.children[name] = Module(str(file), module)
                fill(tree, child, rust.read(tree.texts[str(file)]).code, folder / name)
    rest = "".join([*own, code[place:]])
    module.uses = parse_uses(rest)
    module.code = USE.sub("", rest)
    module.defined = set(DEFINED.findall(module.code))


@cache
def roots(tree: Tree, crate: str) -> list[Module]:
    """The library and the programs of a crate, each a tree of modules without those of tests."""
    manifest = tomllib.loads(tree.texts[f"{crate}/Cargo.toml"])
    files = [f"{crate}/src/lib.rs", f"{crate}/src/main.rs", *tree.under(f"{crate}/src/bin", ".rs")]
    files += [f"{crate}/{program['path']}" for program in manifest.get("bin", []) if "path" in program]
    if "path" in manifest.get("lib", {}):
        files.append(f"{crate}/{manifest['lib']['path']}")
    found = []
    for file in dict.fromkeys(files):
        if file in tree.texts:
            root = Module(file, None)
            fill(tree, root, rust.read(tree.texts[file]).code, PurePosixPath(file).parent)
            found.append(root)
    return found
