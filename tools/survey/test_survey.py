"""Tests of what reads the sources, on sources of a few lines: `cd tools && python3 -m unittest survey.test_survey`."""

import unittest

from survey import guides, imports, modules, names, rooms, rust, system
from survey.tree import Tree


def tree(**texts: str) -> Tree:
    """A crate `crates/x` of these files in `src`, by name without `.rs`; `a__b` is `a/b.rs`."""
    files = {f"crates/x/src/{name.replace('__', '/')}.rs": text for name, text in texts.items()}
    files["crates/x/Cargo.toml"] = '[package]\nname = "x"\n'
    return Tree(frozenset(files), files)


def circles(files: Tree) -> list[list[str]]:
    """The circles of the crate, by the names of files."""
    (root,) = modules.roots(files, "crates/x")
    return [[file.split("/src/")[1] for file in circle] for circle in imports.circles(imports.graph(root))]


class Reading(unittest.TestCase):
    """Comments, literals and tests are no code."""

    def test_comments_and_literals(self) -> None:
        """Blanks of the same length, and lifetimes stay."""
        source = rust.read('fn f<\'a>(x: &\'a str) { g(\'"\', "struct A;", r#""/proc/x""#); } // enum B\n')
        self.assertNotIn("struct", source.code)
        self.assertNotIn("enum", source.code)
        self.assertIn("&'a str", source.code)
        self.assertEqual(source.literals, ['"struct A;"', 'r#""/proc/x""#'])

    def test_tests(self) -> None:
        """An item ends at its brace or semicolon, a field at its comma."""
        source = rust.read(
            "struct A {\n    #[cfg(test)]\n    b: u8,\n    c: u8,\n}\n#[cfg(test)]\nmod tests {\n    d\n}\nfn e() {}\n"
        )
        self.assertEqual(source.code.split(), ["struct", "A", "{", "c:", "u8,", "}", "fn", "e()", "{}"])
        self.assertEqual(source.test_lines, 6)


class Imports(unittest.TestCase):
    """Circles are found through re-exports, nested `use` and bare paths."""

    def test_circle_through_the_front_page(self) -> None:
        """`lib.rs` only passes on; the circle is that of the two files."""
        files = tree(
            lib="mod a;\nmod b;\npub use a::A;\n",
            a="use crate::b::{self, B};\npub struct A;\n",
            b="pub struct B(crate::A);\n",
        )
        self.assertEqual(circles(files), [["a.rs", "b.rs"]])

    def test_parent_with_code(self) -> None:
        """A parent that uses its child, which uses it."""
        files = tree(
            lib="mod a;\n",
            a="mod b;\npub struct A;\nfn f() { b::g() }\n",
            a__b="use super::*;\npub fn g() -> A { A }\n",
        )
        self.assertEqual(circles(files), [["a.rs", "a/b.rs"]])

    def test_another_crate_passed_on(self) -> None:
        """What the root has from another crate is none of the root's own."""
        files = tree(
            main="mod a;\nuse other::exit;\nfn main() { a::f() }\n",
            a="use crate::exit::Code;\npub fn f() -> Code { Code }\n",
        )
        self.assertEqual(circles(files), [])

    def test_no_circle(self) -> None:
        """A re-export alone is no import, nor is what a test imports."""
        files = tree(
            lib="pub mod a;\n",
            a="mod b;\npub use b::B;\npub struct A;\n#[cfg(test)]\nuse b::C;\n",
            a__b="use super::A;\npub struct B;\n",
        )
        self.assertEqual(circles(files), [])


class Rules(unittest.TestCase):
    """What must not be is found."""

    def test_order(self) -> None:
        """Against the order, and past what a room may use."""
        found = rooms.against_order(
            [
                rooms.Room("crates/engine", ["crates/trace", "crates/views"], []),
                rooms.Room("crates/runtime", ["crates/engine"], ["crates/cli"]),
                rooms.Room("crates/new", [], []),
            ]
        )
        self.assertEqual(found, ["crates/new", "crates/engine -> crates/views", "crates/runtime -> crates/engine"])

    def test_names_and_readers(self) -> None:
        """Types outside tests; paths as literals, not in comments."""
        files = tree(
            lib='mod a;\nstruct Told;\n// "/proc/self"\n', a='struct Told;\nfn f() { open("/proc/self/maps") }\n'
        )
        self.assertEqual([*names.more_than_once(names.types(files, ["crates/x"]))], ["Told"])
        self.assertEqual(system.readers(files, ["crates/x"]), ["crates/x/src/a.rs"])

    def test_guides(self) -> None:
        """Paths, patterns and names in brackets."""
        text = "`crates/x/src/lib.rs` (`A`, `B`) `crates/NAME/src/*.rs` `crates/y/src` `/proc/self` [x](docs/y.md)"
        files = {"CONTRIBUTING.md": text, "crates/x/src/lib.rs": "struct A;"}
        found = guides.missing(Tree(frozenset(files), files))
        lost = ["crates/x/src/lib.rs (B)", "crates/y/src", "docs/y.md"]
        self.assertEqual(found, [f"CONTRIBUTING.md: {one}" for one in lost])


if __name__ == "__main__":
    unittest.main()
