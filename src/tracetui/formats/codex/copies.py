"""What an old fork copied: Codex wrote the records of the original again, at another time, before those of its own.

Today's forks name the history that they go on from instead (`threads`).
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.codex.records import META, Record, record_of
from tracetui.formats.lines import lines
from tracetui.formats.tail import MAX_LINE, parse
from tracetui.sources.base import File

AHEAD: Final = 16
"""So many records of the original may be missing in a row: what one version kept another did not."""


class Copies(msgspec.Struct, frozen=True):
    """The records of the original, by their checksums, and how many of them were met."""

    checks: tuple[int, ...]
    met: int = 0

    def after(self, record: Record) -> Copies | None:
        """What there may be after this copy; None where it is no copy: the rest of the fork is its own."""
        if record.kind == META:
            return self
        try:
            return Copies(self.checks, self.checks.index(_check(record), self.met, self.met + AHEAD) + 1)
        except ValueError:
            return None


def copies_of(original: File) -> Copies:
    """What a fork of that thread may have copied."""
    checks: list[int] = []
    for line in lines(original, limit=MAX_LINE, end=original.stat.size):
        try:
            value: Any = None if line.skipped else parse(line.data)[0]
        except FormatError:
            continue
        record = record_of(value) if isinstance(value, dict) else None
        if record is not None and record.kind != META:
            checks.append(_check(record))
    return Copies(tuple(checks))


def _check(record: Record) -> int:
    """Checksum of all that a record says, but for when it was written."""
    try:
        return crc32(msgspec.json.encode((record.kind, record.payload)))
    except (ValueError, TypeError, RecursionError):  # text that cannot be written again, or too deep
        return -1
