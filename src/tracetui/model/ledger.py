"""The parse ledger: coverage of a run or directory, and its unknown records.

Formats evolve: a record of an unknown kind is shown and counted, and isn't a problem. Understood bytes are all bytes of
a file except records of unknown kinds and data that can't be shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

MOST_KINDS: Final = 64
"""Maximum unknown kinds listed by name, in alphabetical order."""
MORE_KINDS: Final = "…"
"""The name under which the others are counted."""
MOST_WRITERS: Final = 16

Kinds = tuple[tuple[str, int], ...]
"""Unknown kinds in alphabetical order, with their record counts."""


class Unread(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The data of a run that was not understood."""

    kinds: Kinds = ()
    torn: int = 0
    """Number of truncated or broken lines."""
    size: int = 0
    """Bytes of both, and of other data that can't be shown."""
    fields: Kinds = ()
    """Unknown fields of supported record kinds, as ``KIND.FIELD``. They are shown, so they don't count as lost."""


class Ledger(msgspec.Struct, frozen=True):
    """Coverage of a run, a file or a directory. Ledgers can be added."""

    size: int | None = None
    """Bytes read; None if they can't be attributed."""
    lost: int = 0
    """Bytes not understood."""
    kinds: Kinds = ()
    torn: int = 0
    writers: tuple[str, ...] = ()
    """Versions of the programs that wrote the data, deduplicated and sorted; the last `MOST_WRITERS`."""
    fields: Kinds = ()

    @property
    def understood(self) -> int | None:
        """Bytes understood."""
        return None if self.size is None else self.size - self.lost

    @property
    def share(self) -> float | None:
        """Share of understood bytes, 0 to 1; 1 only if all are."""
        if self.understood is None:
            return None
        return self.understood / self.size if self.size else 1.0

    def __add__(self, other: Ledger) -> Ledger:
        return total((self, other))


def ledger(size: int | None, unread: Unread | None = None, writer: str | None = None) -> Ledger:
    """The ledger of one run. Without a size nothing counts as lost."""
    writers = () if writer is None else (writer,)
    if unread is None:
        return Ledger(size, writers=writers)
    lost_bytes = 0 if size is None else min(size, unread.size)
    return Ledger(size, lost_bytes, unread.kinds, unread.torn, writers, unread.fields)


def total(ledgers: Iterable[Ledger]) -> Ledger:
    """The sum of all ledgers, in one pass."""
    size: int | None = None
    lost_bytes = torn = 0
    kinds: list[tuple[str, int]] = []
    fields: list[tuple[str, int]] = []
    writers: set[str] = set()
    for ledger in ledgers:
        if ledger.size is not None:
            size = ledger.size + (size or 0)
        lost_bytes, torn = lost_bytes + ledger.lost, torn + ledger.torn
        kinds += ledger.kinds
        fields += ledger.fields
        writers.update(ledger.writers)
    latest = tuple(sorted(writers, key=_by_number)[-MOST_WRITERS:])
    return Ledger(size, lost_bytes, kinds_of(kinds), torn, latest, kinds_of(fields))


def unread(kinds: Mapping[str, int], torn: int, size: int, fields: Kinds = ()) -> Unread | None:
    """An `Unread` for these counts; None if all are zero."""
    return Unread(kinds_of(kinds.items()), torn, size, fields) if kinds or torn or size or fields else None


def _by_number(version: str) -> list[tuple[int, int, str]]:
    """A sort key in which 2.1.9 is before 2.1.10, and words are before numbers."""
    parts = re.findall(r"([0-9]{1,18})|([^0-9]+)", version)
    return [(1, int(digits), "") if digits else (0, 0, rest) for digits, rest in parts]


def kinds_of(counted: Iterable[tuple[str, int]]) -> Kinds:
    """Kinds in order, those beyond `MOST_KINDS` under one name."""
    counts: dict[str, int] = {}
    for kind, count in counted:
        counts[kind] = counts.get(kind, 0) + count
    more = counts.pop(MORE_KINDS, 0)
    listed = sorted(counts.items())
    more += sum(count for _, count in listed[MOST_KINDS:])
    return (*listed[:MOST_KINDS], *(((MORE_KINDS, more),) if more else ()))


def size_of(at: Any) -> int | None:
    """Bytes of a `Span.at`: ``(offset, size)`` or an object with a `size`; None otherwise."""
    size = at[1] if isinstance(at, tuple) and len(at) == 2 else getattr(at, "size", None)
    return size if isinstance(size, int) else None
