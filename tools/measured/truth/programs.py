"""The programs that are tried, each of a kind."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from measured.truth.workshop import SOURCES, Workshop

Command = Callable[[Workshop], list[str]]

# The Debian package of each executable.
PACKAGES = {
    "g++": "g++",
    "gcc": "gcc",
    "gzip": "gzip",
    "java": "default-jre-headless",
    "javac": "default-jdk-headless",
    "node": "nodejs",
    "perl": "perl",
    "redis-benchmark": "redis-tools",
    "redis-cli": "redis-tools",
    "redis-server": "redis-server",
    "rustc": "rustc",
    "sort": "coreutils",
    "sqlite3": "sqlite3",
}
PERL = r'my %h; $h{int rand 1e9} = $_ for 1..400_000; my $s = 0; $s += $h{$_} for keys %h; print "$s\n"'
JAVA = ("java", "-Xmx1g", "-XX:+UseSerialGC")


@dataclass(frozen=True)
class Program:
    """A program, what it needs installed, and how to make its command."""

    name: str
    kind: str
    needs: tuple[str, ...]
    command: Command

    def missing(self) -> list[str]:
        """The packages that it needs and that are not installed."""
        return sorted({PACKAGES[name] for name in self.needs if not shutil.which(name)})


def in_c(name: str, kind: str, source: str, *arguments: object) -> Program:
    """A program in C of this folder."""
    return Program(name, kind, ("gcc",), lambda shop: [shop.c(source), *map(str, arguments)])


def reads(mode: str, mebibytes: int, number: int) -> Program:
    """Reads of an array."""
    return in_c(f"reads {mode} {mebibytes}M", f"{mode} reads", "reads.c", mode, mebibytes, number)


def workload(name: str, size: str, rounds: int) -> Program:
    """A program of PT-Baker's evaluation, whose pages are as the system gives them."""
    arguments = ["lab", "workload", name, "--size", size, "--rounds", str(rounds), "--pages", "asis"]
    return Program(f"{name} {size}", "PT-Baker's", (), lambda shop: [str(shop.lookaside), *arguments])


def map_in_cpp(which: str, keys: int, lookups: int) -> Program:
    """A map of the C++ library."""
    return Program(
        f"map {which}",
        "library's map",
        ("g++",),
        lambda shop: [shop.built("map.cpp", "g++", "-O2"), which, str(keys), str(lookups)],
    )


def python(name: str, *before: str) -> Program:
    """A Python program, with a command before it."""
    return Program(
        name,
        "interpreter",
        (),
        lambda _: [*before, sys.executable, str(SOURCES / "objects.py"), "700000", "1500000"],
    )


def java(name: str, *options: str) -> Program:
    """A Java program, with options of the machine it runs on."""
    return Program(
        name,
        "just-in-time",
        ("java", "javac"),
        lambda shop: [*JAVA, *options, "-cp", shop.classes("Counts.java"), "Counts", "1500000", "6000000"],
    )


PROGRAMS = (
    Program("perl", "interpreter", ("perl",), lambda _: ["perl", "-e", PERL]),
    python("python3"),
    python("python3 malloc", "env", "PYTHONMALLOC=malloc"),
    workload("bc", "128M", 1),
    workload("canneal", "256M", 2),
    workload("graph500", "128M", 1),
    workload("gups", "256M", 24),
    workload("hashjoin", "256M", 4),
    workload("liblinear", "256M", 4),
    workload("gups", "1G", 6),
    reads("chain", 16, 12_000_000),
    reads("chain", 64, 10_000_000),
    reads("chain", 256, 8_000_000),
    reads("chain", 1024, 6_000_000),
    reads("chain", 4096, 4_000_000),
    reads("random", 64, 80_000_000),
    reads("random", 256, 80_000_000),
    reads("random", 1024, 60_000_000),
    reads("sequence", 1024, 400_000_000),
    in_c("hash 64M", "hash table", "hash.c", 64, 12_000_000),
    in_c("hash 256M", "hash table", "hash.c", 256, 8_000_000),
    in_c("list", "linked list", "list.c", 1_000_000, 8),
    map_in_cpp("hash", 1_000_000, 3_000_000),
    map_in_cpp("tree", 500_000, 1_000_000),
    Program(
        "hash_map",
        "library's map",
        ("rustc", "gcc"),
        lambda shop: [shop.built("hash_map.rs", "rustc", "-O", "--edition=2021"), "2000000", "6000000"],
    ),
    in_c("two_phases", "phases", "two_phases.c", 200_000_000, 6_000_000),
    in_c("threads", "threads", "threads.c", 4, 64, 6_000_000),
    Program(
        "sort", "sorting", ("sort",), lambda shop: ["sort", "--parallel=1", "-o", shop.path("sorted"), shop.lines()]
    ),
    Program("gcc", "compiler", ("gcc",), lambda shop: ["gcc", "-O2", "-c", "-o", shop.path("code.o"), shop.code()]),
    Program("sqlite3", "database", ("sqlite3",), lambda _: ["sqlite3", ":memory:", f".read '{SOURCES / 'rows.sql'}'"]),
    Program(
        "redis",
        "database",
        ("redis-server", "redis-benchmark", "redis-cli"),
        lambda shop: ["sh", str(SOURCES / "redis.sh"), str(shop.folder), "500000"],
    ),
    java("java"),
    java("java THP", "-XX:+UseTransparentHugePages"),
    Program("node", "just-in-time", ("node",), lambda _: ["node", str(SOURCES / "objects.js"), "1000000", "5000000"]),
    Program("gzip", "compression", ("gzip",), lambda shop: ["gzip", "-c", shop.lines()]),
    in_c("touch 1024M", "page faults", "touch.c", 1024),
)


def of(only: str) -> list[Program]:
    """The programs whose names or kinds have a text in them."""
    return [program for program in PROGRAMS if only in program.name or only in program.kind]
