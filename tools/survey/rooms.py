"""The rooms (crates), their order, and which of them import against it."""

import tomllib
from dataclasses import dataclass

from survey.tree import Tree

# A room imports from those above it alone. ARCHITECTURE.md says what each owns.
ORDER = (
    "crates/stats",
    "crates/host",
    "crates/machine",
    "crates/trace",
    "crates/engine",
    "crates/timing",
    "crates/techniques",
    "crates/workloads",
    "crates/probe",
    "crates/capture",
    "crates/runtime",
    "crates/preload",
    "crates/malloc",
    "crates/report",
    "crates/views",
    "crates/cli",
    "papers/harness",
    "papers/pt-baker",
    "papers/tlb-coloring",
    "papers/tlb-lockdown",
    "papers/tlb-migration",
    "papers/fast-address-space-switching",
    "papers/lab",
)
# Rooms that may use fewer: the renderers know plain data, and what runs in a real program knows no model.
ONLY = {
    "crates/stats": set[str](),
    "crates/host": set[str](),
    "crates/timing": {"crates/stats"},
    "crates/report": set[str](),
    "crates/runtime": {"crates/stats", "crates/host", "crates/machine"},
}


@dataclass(frozen=True)
class Room:
    """A crate, and the rooms that it depends on."""

    folder: str
    uses: list[str]
    tests_use: list[str]


def rooms(tree: Tree) -> list[Room]:
    """All crates of the workspace, in their order; those that have no place in it come last."""
    folders = {path.rpartition("/")[0] for path in tree.texts if path.endswith("/Cargo.toml")}
    manifests = {
        folder: tomllib.loads(tree.texts[f"{folder}/Cargo.toml"])
        for folder in folders
        if folder.count("/") == 1 and folder.startswith(("crates/", "papers/"))
    }
    by_name = {manifest["package"]["name"]: folder for folder, manifest in manifests.items()}

    def used(folder: str, kind: str) -> list[str]:
        return sorted(by_name[name] for name in manifests[folder].get(kind, {}) if name in by_name)

    found = [
        Room(
            folder, used(folder, "dependencies") + used(folder, "build-dependencies"), used(folder, "dev-dependencies")
        )
        for folder in manifests
    ]
    return sorted(
        found, key=lambda room: (ORDER.index(room.folder) if room.folder in ORDER else len(ORDER), room.folder)
    )


def against_order(all_rooms: list[Room]) -> list[str]:
    """One line for each room without a place and for each import that the order forbids."""
    breaches = [room.folder for room in all_rooms if room.folder not in ORDER]
    for room in all_rooms:
        for used in room.uses:
            if room.folder not in ORDER or used not in ORDER:
                continue
            above = ORDER.index(used) < ORDER.index(room.folder)
            if not above or used not in ONLY.get(room.folder, {used}):
                breaches.append(f"{room.folder} -> {used}")
    return breaches
