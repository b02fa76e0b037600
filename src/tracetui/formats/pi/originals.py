"""The session that a session was forked from, and what of it counts there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tracetui.formats.forks import Copies, Order, sessions_beside
from tracetui.formats.lines import record_on, records_in
from tracetui.formats.scalars import text
from tracetui.sources.base import Entry, File, file_name

_NAME: Final = re.compile(r"[\w.@+-]{1,200}\.jsonl")
FOLDER: Final = re.compile(r"--.{0,250}--")
"""The folder of a project."""


def copies_of(file: File, original: str | None) -> Copies:
    """What counts elsewhere of a session whose first record was read; `original` is the path in that."""
    copies = Copies(_keys_on)
    copies.has_all = original is None or original_of(file, original)[1] is not None
    first = None if copies.has_all else _first_entry(file)
    if original is not None and first is not None:

        def order_of(path: str, entry: Entry) -> Order | None:
            with file.other(path) as other:
                return (entry.name,) if _first_entry(other) == first else None

        copies.look(file, _earlier(file, file_name(original)), order_of, lambda: (file.name,))
    return copies


def _earlier(file: File, original: str) -> dict[str, Entry]:
    """Sessions of this project and of those beside it that may have been forked from the same original before.

    A name begins with the time at which its session began; other names still put all forks in the same order.
    """
    *_, project, _ = ["", *re.split(r"[/\\]", file.path)]
    folders = {file_name(path) for path in file.folder("..").folders} if FOLDER.fullmatch(project) else set()
    since = original if original[:4].isdigit() and file.name[:4].isdigit() else ""
    found = sessions_beside(file)
    for name in sorted(folders - {project}):
        found |= sessions_beside(file, f"../{name}") if FOLDER.fullmatch(name) else {}
    return {path: entry for path, entry in found.items() if since < entry.name < file.name}


def _first_entry(file: File) -> tuple[str, str | None] | None:
    """Id and time of the first entry; None if it has no id."""
    found = next((one for one in records_in(file.head, 2) if one.get("type") != "session"), {})
    ident = text(found.get("id"))
    return None if ident is None else (ident, text(found.get("timestamp")))


def _keys_on(data: bytes) -> Iterator[str]:
    ident = text((record_on(data) or {}).get("id"))
    return iter(() if ident is None else (ident,))


def original_of(file: File, original: str | None) -> tuple[str | None, str | None]:
    """Id and path of the session with the path `original` on the machine that wrote this one.

    Only the last two parts of that count: a file of that name beside this one, or in the folder of another project
    beside this one's.
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
        found = sessions_beside(file, f"../{folder}").get(relative)
        path = None if found is None else found.path
    ident = None
    if path is not None:
        try:
            with file.other(relative) as other:
                ident = text((record_on(other.head.partition(b"\n")[0]) or {}).get("id"))
        except OSError:
            pass
    return ident or stem.rpartition("_")[2], path
