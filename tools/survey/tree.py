"""The files of the repository: of the work tree, or of a revision."""

import io
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

# Kinds of files whose text is read; of the others only the path is known.
TEXT = (".rs", ".toml", ".md", ".py", ".c", ".h", ".json")


@dataclass(frozen=True, eq=False)
class Tree:
    """Paths from the top of the repository, and the texts of those that are text."""

    paths: frozenset[str]
    texts: dict[str, str]

    def under(self, folder: str, suffix: str) -> list[str]:
        """The texts in a folder whose names end so, in order."""
        return sorted(path for path in self.texts if path.startswith(folder + "/") and path.endswith(suffix))


def git(top: Path, *arguments: str) -> bytes:
    """What a git command prints."""
    return subprocess.run(["git", "-C", str(top), *arguments], check=True, capture_output=True).stdout


def of_work_tree(top: Path) -> Tree:
    """What is checked out, and new files that git does not ignore."""
    listed = git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
    paths = frozenset(path for path in listed if path and (top / path).is_file())
    return Tree(paths, {path: (top / path).read_text() for path in paths if path.endswith(TEXT)})


def of_revision(top: Path, revision: str) -> Tree:
    """What a commit holds."""
    paths, texts = set(), {}
    with tarfile.open(fileobj=io.BytesIO(git(top, "archive", revision))) as archive:
        for member in archive:
            if not member.isfile():
                continue
            paths.add(member.name)
            content = archive.extractfile(member) if member.name.endswith(TEXT) else None
            if content is not None:
                texts[member.name] = content.read().decode()
    return Tree(frozenset(paths), texts)
