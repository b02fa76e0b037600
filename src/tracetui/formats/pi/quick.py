"""The list stage of a session: its first lines for the names, its last ones for how it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tracetui.formats.lines import lines
from tracetui.formats.pi.facts import Facts
from tracetui.formats.pi.records import SESSION, kind_of
from tracetui.formats.scalars import moment
from tracetui.formats.tail import MAX_LINE, record_on
from tracetui.sources.base import HEAD_SIZE, File

_FURTHER: Final = 16
"""So many times more of the end is read, where a part of it does not tell."""


def skim(file: File) -> Facts | None:
    """What the first and the last lines tell; None where there is no first record."""
    facts, end, size = Facts(), 0, file.stat.size
    for data, end in _lines(file):  # noqa: B007
        record = record_on(data) or {}
        if kind_of(record) == SESSION and facts.head is None:
            facts.begin(record)
        elif record:
            facts.take(record, None)
        if facts.known:
            break
    if facts.head is None:
        return None
    window = HEAD_SIZE
    while end < size and not _end(file, facts, max(end, size - window), whole=size - window <= end):
        window *= _FURTHER
    return facts


def _lines(file: File) -> Iterator[tuple[bytes, int]]:
    """Each line, and where the next one begins: those in the head, then the others, as far as they are asked for."""
    head, size = file.head, file.stat.size
    end = len(head) if size <= len(head) else head.rfind(b"\n") + 1
    begin = 0
    while begin < end:
        newline = head.find(b"\n", begin, end)
        newline = end if newline < 0 else newline
        yield head[begin:newline], newline + 1
        begin = newline + 1
    for line in lines(file, end, limit=MAX_LINE, end=size) if end < size else ():
        yield (b"" if line.skipped else line.data), line.next_offset


def _end(file: File, facts: Facts, start: int, *, whole: bool) -> bool:
    """Take in how the session stands by what comes after byte `start`; False if that does not tell.

    Unless that is the `whole` rest, the first line there is but a part of one.
    """
    data = file.read(start, file.stat.size - start)
    told = timed = whole
    for line in data.split(b"\n")[0 if whole else 1 :]:
        if record := record_on(line):
            when = moment(record.get("timestamp"))
            facts.time(when)
            timed |= when is not None
            told |= facts.end(record, None)
    return told and timed
