"""Rust source as text: without comments, literals and tests. No compiler: it relies on code as rustfmt leaves it."""

import re
from dataclasses import dataclass
from functools import cache

COMMENT_OR_LITERAL = re.compile(
    r"""//[^\n]*
    | /\*.*?\*/
    | \bb?r(?P<hashes>\#*)".*?"(?P=hashes)
    | \bb?"(?:\\.|[^"\\])*" | "(?:\\.|[^"\\])*"
    | '(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])'""",
    re.VERBOSE | re.DOTALL,
)
TEST_ATTRIBUTE = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]")
ATTRIBUTE = re.compile(r"\s*#!?\[[^\]]*\]")
ITEM = re.compile(
    r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+|const\s+|async\s+)*"
    r"(?:mod|fn|impl|struct|enum|union|trait|type|use|static|const|macro_rules|extern)\b"
)


@dataclass(frozen=True)
class Source:
    """One file. Lines and columns of `code` are those of the file."""

    code: str  # comments, literals and tests are blanks
    literals: list[str]  # the string literals outside tests, with their quotes
    test_lines: int
    lines: int


def blank(text: str) -> str:
    """As many lines and columns of nothing."""
    return re.sub(r"[^\n]", " ", text)


def closing(code: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed."""
    depth = 0
    for place in range(start, len(code)):
        if code[place] in "([{":
            depth += 1
        elif code[place] in ")]}":
            depth -= 1
            if depth == 0:
                return place
    return len(code) - 1


def end_of_item(code: str, start: int) -> int:
    """Where the item (or the field, arm or argument) ends that starts here, after its attributes."""
    while attribute := ATTRIBUTE.match(code, start):
        start = attribute.end()
    ends = ";" if ITEM.match(code, start) else ";,"
    place = start
    while place < len(code):
        if code[place] in ends:
            return place + 1
        if code[place] in "([{":
            braces = code[place] == "{"
            place = closing(code, place)
            if braces:
                return place + 1
        elif code[place] in ")]}":
            return place
        place += 1
    return place


def test_spans(code: str) -> list[tuple[int, int]]:
    """What is compiled for tests alone, from its attribute to its end."""
    spans: list[tuple[int, int]] = []
    for attribute in TEST_ATTRIBUTE.finditer(code):
        if not spans or attribute.start() >= spans[-1][1]:
            spans.append((attribute.start(), end_of_item(code, attribute.end())))
    return spans


@cache
def read(text: str) -> Source:
    """Takes a file apart."""
    found = [match for match in COMMENT_OR_LITERAL.finditer(text) if not match[0].startswith("/")]
    code = COMMENT_OR_LITERAL.sub(lambda match: blank(match[0]), text)
    spans = test_spans(code)
    literals = [
        match[0]
        for match in found
        if match[0].endswith(('"', "#")) and not any(start <= match.start() < end for start, end in spans)
    ]
    test_lines = sum(text.count("\n", start, end) + 1 for start, end in spans)
    for start, end in spans:
        code = code[:start] + blank(code[start:end]) + code[end:]
    return Source(code, literals, test_lines, text.count("\n"))
