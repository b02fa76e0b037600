"""The session that a session was forked from. What a fork copied counts there; if that is gone, in the earliest fork
that has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tracetui.errors import FormatError
from tracetui.formats.lines import MAX_LINE, lines, parse, record_on, records_in
from tracetui.formats.scalars import mapping, text
from tracetui.sources.base import File

_NAME: Final = re.compile(r"[\w.@+-]{1,200}\.jsonl")
FOLDER: Final = re.compile(r"--.{0,250}--")
"""The folder of a project."""


class Copies(NamedTuple):
    """Which entries that a session copied count in other ones."""

    all: bool = True
    """Every one: the original is there."""
    ids: frozenset[str] = frozenset()
    """Those that earlier sessions with the same history have."""

    def count_elsewhere(self, ident: str | None) -> bool:
        """Whether an entry that was copied counts in another session."""
        return self.all or ident in self.ids


def copies_of(file: File, original: str | None) -> Copies:
    """What counts elsewhere of a session whose first record was read."""
    if original is None or original_of(file, original)[1] is not None:
        return Copies()
    first, ids = _first_entry(file), set[str]()
    for path in _earlier(file, re.split(r"[/\\]", original)[-1]) if first is not None else ():
        try:
            with file.other(path) as other:
                if _first_entry(other) == first:
                    ids.update(_ids_in(other))
        except OSError:
            continue
    return Copies(all=False, ids=frozenset(ids))


def _earlier(file: File, original: str) -> Iterator[str]:
    """Sessions of this project and of those beside it that may have been forked from the same original before.

    Their names tell when they began; names that don't still put all forks in the same order everywhere.
    """
    own = re.split(r"[/\\]", file.path)[-2:-1]
    beside = file.folder("..").folders if own and FOLDER.fullmatch(own[0]) else []
    names = {re.split(r"[/\\]", path)[-1] for path in beside} - {*own}
    since = original if original[:4].isdigit() and file.name[:4].isdigit() else ""
    for folder in ("", *(f"../{name}" for name in sorted(names) if FOLDER.fullmatch(name))):
        for entry in file.folder(folder).entries:
            name = re.split(r"[/\\]", entry.path)[-1]
            if entry.skipped is None and name.endswith(".jsonl") and since < name < file.name:
                yield f"{folder}/{name}" if folder else name


def _first_entry(file: File) -> tuple[str, str | None] | None:
    """Id and time of the first entry; None if it has no id."""
    found = next((one for one in records_in(file.head, 2) if one.get("type") != "session"), {})
    ident = text(found.get("id"))
    return None if ident is None else (ident, text(found.get("timestamp")))


def _ids_in(file: File) -> Iterator[str]:
    for line in lines(file, limit=MAX_LINE, end=file.stat.size):
        ident = None if line.skipped else text((record_on(line.data) or {}).get("id"))
        if ident is not None:
            yield ident


def original_of(file: File, original: str | None) -> tuple[str | None, str | None]:
    """Id and path of the session that this one comes from.

    It is told by the path that it had on the machine that wrote this one. Only the last two parts of that count: a file
    of that name beside this one, or in a folder of another project beside this one's.
    """
    if original is None:
        return None, None
    *_, folder, name = ["", *re.split(r"[/\\]", original)]
    stem = name.removesuffix(".jsonl")
    if not _NAME.fullmatch(name) or name == file.name:
        return stem.rpartition("_")[2] or None, None
    relative, path = name, file.sibling(name)
    if path is None and FOLDER.fullmatch(folder):
        relative = f"../{folder}/{name}"
        there = file.folder(f"../{folder}").entries
        path = next((one.path for one in there if one.skipped is None and _last(one.path) == name), None)
    return (_ident(file, relative) if path is not None else None) or stem.rpartition("_")[2], path


def _last(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _ident(file: File, relative: str) -> str | None:
    """The id of the session in another file, as that tells it."""
    try:
        with file.other(relative) as other:
            record, _ = parse(other.head.partition(b"\n")[0])
    except (OSError, FormatError):
        return None
    return text(mapping(record).get("id"))
