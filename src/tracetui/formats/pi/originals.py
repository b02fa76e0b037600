"""What a fork copied counts in its original; if that is gone, in the earliest fork that has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tracetui.formats.lines import lines
from tracetui.formats.pi.facts import Facts
from tracetui.formats.pi.records import SESSION, kind_of
from tracetui.formats.pi.run import FOLDER, original_of
from tracetui.formats.scalars import text
from tracetui.formats.tail import MAX_LINE, record_on, records_in
from tracetui.sources.base import File


class Copies(NamedTuple):
    """Which entries that a session copied count in other ones."""

    all: bool = True
    """Every one: the original is there."""
    ids: frozenset[str] = frozenset()
    """Those that earlier sessions with the same history have."""

    def count_elsewhere(self, ident: str | None) -> bool:
        """Whether an entry that was copied counts in another session."""
        return self.all or ident in self.ids


def copies_of(file: File, facts: Facts) -> Copies:
    """What counts elsewhere of a session whose first record was read."""
    if facts.original is None or original_of(facts, file)[1] is not None:
        return Copies()
    first, ids = _first_entry(file), set[str]()
    for path in _earlier(file, re.split(r"[/\\]", facts.original)[-1]) if first is not None else ():
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
    found = next((one for one in records_in(file.head, 2) if kind_of(one) != SESSION), {})
    ident = text(found.get("id"))
    return None if ident is None else (ident, text(found.get("timestamp")))


def _ids_in(file: File) -> Iterator[str]:
    for line in lines(file, limit=MAX_LINE, end=file.stat.size):
        ident = None if line.skipped else text((record_on(line.data) or {}).get("id"))
        if ident is not None:
            yield ident
