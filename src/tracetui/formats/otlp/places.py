"""On which lines of a file each trace is: found out once where many traces of one file are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tracetui.formats.lines import lines
from tracetui.formats.otlp.records import NO_TRACE, normal_id
from tracetui.formats.tail import MAX_LINE
from tracetui.sources.base import KEPT, File, Stat

_TRACE: Final = re.compile(rb'"trace(?:I|_i)d"\s*:\s*(?:"([^"\\]*)"|())')
_KEPT: Final = "otlp places"
AT_ONCE: Final = 4 << 20
"""Bytes of the lines of a trace that is read at once; a larger one is read a little at a time."""


class Finished(NamedTuple):
    """A finished line."""

    offset: int
    number: int
    size: int


class Places(NamedTuple):
    """The lines of each trace, as a file was; None where that cannot be told without decoding them."""

    stat: Stat
    lines: dict[str, list[Finished]] | None


def traces_on(data: bytes) -> Iterator[str | None]:
    """The traces that a line names; None for one that is written with escapes, or not in UTF-8."""
    for match in _TRACE.finditer(data):
        try:
            yield None if match[1] is None else normal_id(match[1].decode())
        except UnicodeDecodeError:
            yield None


def places_of(file: File, key: str) -> list[Finished] | None:
    """The lines of one trace, where somebody reads many of them; None where all lines must be looked at."""
    kept = file.memo.get(KEPT)
    if kept is None or key == NO_TRACE:
        return None
    known = kept.get(_KEPT)
    if not isinstance(known, Places) or known.stat != file.stat:
        known = kept[_KEPT] = Places(file.stat, _places(file))
    found = known.lines.get(key) if known.lines is not None else None
    return None if found is None or sum(place.size for place in found) > AT_ONCE else found


def _places(file: File) -> dict[str, list[Finished]] | None:
    found: dict[str, list[Finished]] = {}
    for line in lines(file, limit=MAX_LINE, end=file.stat.size):
        if line.skipped or not line.whole or b"\0" in line.data:
            return None
        place = Finished(line.offset, line.number, len(line.data))
        for key in dict.fromkeys(traces_on(line.data)):
            if key is None:
                return None
            found.setdefault(key, []).append(place)
    return found
