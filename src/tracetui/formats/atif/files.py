"""The files that make one run: a trajectory, those in which it continues, and those of its sub-agents.

A file is referred to by its name, relative to the folder of the file that refers to it; of a path of another machine, a
container or a folder that is not below, so much of its end counts as leads somewhere. No file names those that refer
to it: they are looked for among the files around.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.atif.records import Document, document, refs_in
from tracetui.formats.document import Fingerprint, unchanged
from tracetui.sources.base import File, Stat

CONTINUED: Final = "continued_trajectory_ref"
_ENDS: Final = 4
"""Ends of a path that are looked for where all of it leads nowhere."""
CHAIN: Final = 64
"""Files that refer to files are followed so far."""
_NEAR: Final = 8
"""Files of a folder that may refer to one of another name."""
_BUDGET: Final = 16 << 20
"""Bytes of them that are read to see."""
_HINTS: Final = (b"trajectory_path", CONTINUED.encode())


class Folders:
    """The files around a run's file, each folder listed once."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._listed: dict[str, dict[str, Stat]] = {}

    def names(self, folder: str) -> dict[str, Stat]:
        """Files that may be read, by name, in a folder relative to that of the run's file."""
        if folder not in self._listed:
            entries = self._file.folder(folder).entries
            self._listed[folder] = {_name(one.path): one.stat for one in entries if one.skipped is None and one.stat}
        return self._listed[folder]

    def find(self, ref: str, path: str) -> str | None:
        """Path of another file that `ref` means in the trajectory at `path`, None if there is none."""
        parts = [part for part in re.split(r"[/\\]", ref) if part not in ("", ".")]
        for i in range(len(parts) - 1, -1, -1):
            if parts[i] == ".." or ":" in parts[i]:
                parts = parts[i + 1 :]
                break
        for i in (0, *range(max(1, len(parts) - _ENDS), len(parts))) if parts else ():
            below, _, name = posixpath.join(posixpath.dirname(path), *parts[i:]).rpartition("/")
            found = f"{below}/{name}" if below else name
            if found != path and name in self.names(below):
                return found
        return None


def file_refs(doc: Document) -> Iterator[str]:
    """All references to files in a trajectory and in those within it, but for those of copied steps."""
    yield from filter(None, (doc.about.continued_trajectory_ref,))
    for step, _ in doc.steps():
        for result in step.results if step is not None and not step.is_copied_context else ():
            yield from (ref.trajectory_path for ref in refs_in(result) if ref.trajectory_path)
    for agent in doc.agents or ():
        yield from file_refs(agent)


def whole_of(file: File) -> str | None:
    """Path of the file whose run `file` is a part of, None for a run of its own (or a circle of references)."""
    folders, seen, at = Folders(file), [file.name], file.name
    while len(seen) < CHAIN:
        above = _referrer(file, folders, at)
        if above is None:
            break
        if above in seen:
            return None
        seen.append(above)
        at = above
    if len(seen) == 1:
        return None
    with file.other(at) as main:
        return main.path


def _referrer(file: File, folders: Folders, path: str) -> str | None:
    """The file that refers to the one at `path`, in the folder of `file` or above: it is there, or one further up."""
    folder, _, name = path.rpartition("/")
    for other in _candidates(folders.names(folder), name):
        found = f"{folder}/{other}" if folder else other
        if _refers(file, found, name):
            return found
    parents = re.split(r"[/\\]", file.path)[:-1]
    own = parents[-1 - folder.count("..")] if len(parents) > folder.count("..") else ""
    above = posixpath.join(folder, "..")
    for other in _candidates(folders.names(above), "") if own else ():
        if _refers(file, f"{above}/{other}", f"{own}/{name}"):
            return f"{above}/{other}"
    return None


def _candidates(names: dict[str, Stat], name: str) -> Iterator[str]:
    """Files that may refer to `name`: those that are called like it up to the first dot, and a few others."""
    family = name.split(".")[0] + "." if name.count(".") > 1 else "\0"
    near = sorted((one for one in names if one.endswith(".json") and one != name), key=lambda one: (len(one), one))
    yield from (one for one in near if one.startswith(family))
    if len(near) <= _NEAR and sum(names[one].size for one in near) <= _BUDGET:
        yield from (one for one in near if not one.startswith(family))


def _refers(file: File, path: str, target: str) -> bool:
    """Whether the trajectory at `path` refers to the file `target`, relative to its own folder."""
    try:
        with file.other(path) as other:
            data = other.read_all()
            if os.fsencode(_name(target)) not in data or not any(hint in data for hint in _HINTS):
                return False
            around = Folders(other)
            return any(around.find(ref, other.name) == target for ref in file_refs(document(data, {})))
    except (OSError, FormatError):
        return False


def _name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


# ---- versions


class Mark(msgspec.Struct):
    """All files of a run as they were read."""

    own: Fingerprint
    parts: dict[str, Fingerprint | None]
    """By path, relative to the folder of the run's file; None for one that could not be read."""
    missing: list[tuple[str, str]]
    """References to what was not there, and the files that they are in."""
    moving: bool
    """They were being written."""


def read_again(file: File, before: Mark) -> Mark | None:
    """The mark of what was read, if no file of the run has changed since; None if they must be read again."""
    own, folders, parts = unchanged(file, before.own), Folders(file), dict(before.parts)
    if own is None or any(folders.find(ref, path) is not None for ref, path in before.missing):
        return None
    for path, version in before.parts.items():
        try:
            with file.other(path) as other:
                file.other(path, other.stat)
                parts[path] = unchanged(other, version)
        except OSError:  # perhaps it never could be read
            if version is not None:
                return None
        else:
            if parts[path] is None:
                return None
    return Mark(own, parts, before.missing, file.moving) if file.moving == before.moving else None
