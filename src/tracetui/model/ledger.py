"""The parse ledger: how much of a run or a directory was understood, and what was not.

Formats grow: a record of a kind that is not known is kept, shown and counted, and is no problem. What the ledger calls
understood is every byte of a file but those of records of unknown kinds and those of which nothing can be shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

MOST_KINDS: Final = 64
"""So many unknown kinds are told by name, the first ones in alphabetical order."""
MORE_KINDS: Final = "…"
"""What the others are counted under, together."""
MOST_WRITERS: Final = 16

Kinds = tuple[tuple[str, int], ...]
"""Unknown kinds in alphabetical order, each with the number of its records."""


class Unread(msgspec.Struct, frozen=True, gc=False):
    """What of a run was not understood."""

    kinds: Kinds = ()
    torn: int = 0
    """Lines that are cut off or broken."""
    size: int = 0
    """Bytes of both, and of what else nothing is shown of."""
    fields: Kinds = ()
    """Unknown fields of records whose kind is known, as ``KIND.FIELD``. They are shown: no byte is lost by them."""


class Ledger(msgspec.Struct, frozen=True):
    """What was made of the bytes of a run, a file or a directory; ledgers are added up."""

    size: int | None = None
    """Bytes that were looked at; None where it cannot be told which are meant."""
    lost: int = 0
    """Those of them that were not understood."""
    kinds: Kinds = ()
    torn: int = 0
    writers: tuple[str, ...] = ()
    """Versions of the programs that wrote them, each once, in the order of their numbers; the last `MOST_WRITERS`."""
    fields: Kinds = ()

    @property
    def understood(self) -> int | None:
        """Bytes that were understood."""
        return None if self.size is None else self.size - self.lost

    @property
    def share(self) -> float | None:
        """The part of the bytes that was understood, 0 … 1. It is 1 only where that is all of them."""
        if self.understood is None:
            return None
        return self.understood / self.size if self.size else 1.0

    def __add__(self, other: Ledger) -> Ledger:
        return total((self, other))


def ledger(size: int | None, unread: Unread | None = None, writer: str | None = None) -> Ledger:
    """The ledger of one run. Of a size that is not known no part can be lost."""
    writers = () if writer is None else (writer,)
    if unread is None:
        return Ledger(size, writers=writers)
    lost = 0 if size is None else min(size, unread.size)
    return Ledger(size, lost, unread.kinds, unread.torn, writers, unread.fields)


def total(ledgers: Iterable[Ledger]) -> Ledger:
    """All of them added up, in one pass."""
    size: int | None = None
    lost = torn = 0
    kinds: list[tuple[str, int]] = []
    fields: list[tuple[str, int]] = []
    writers: set[str] = set()
    for one in ledgers:
        if one.size is not None:
            size = one.size + (size or 0)
        lost, torn = lost + one.lost, torn + one.torn
        kinds += one.kinds
        fields += one.fields
        writers.update(one.writers)
    latest = tuple(sorted(writers, key=_by_number)[-MOST_WRITERS:])
    return Ledger(size, lost, kinds_of(kinds), torn, latest, kinds_of(fields))


def unread(kinds: Mapping[str, int], torn: int, size: int, fields: Kinds = ()) -> Unread | None:
    """What was not understood, None if that is nothing."""
    return Unread(kinds_of(kinds.items()), torn, size, fields) if kinds or torn or size or fields else None


def _by_number(version: str) -> list[tuple[int, int, str]]:
    """A sort key in which 2.1.9 is before 2.1.10, and words are before numbers."""
    parts = re.findall(r"([0-9]{1,18})|([^0-9]+)", version)
    return [(1, int(digits), "") if digits else (0, 0, rest) for digits, rest in parts]


def kinds_of(counted: Iterable[tuple[str, int]]) -> Kinds:
    """Kinds in order, what there are too many of under one name."""
    found: dict[str, int] = {}
    for kind, count in counted:
        found[kind] = found.get(kind, 0) + count
    more = found.pop(MORE_KINDS, 0)
    listed = sorted(found.items())
    more += sum(count for _, count in listed[MOST_KINDS:])
    return (*listed[:MOST_KINDS], *(((MORE_KINDS, more),) if more else ()))


def size_of(at: Any) -> int | None:
    """How many bytes a place in a file has: ``(offset, size)`` or what has a `size`; None where it does not tell."""
    size = at[1] if isinstance(at, tuple) and len(at) == 2 else getattr(at, "size", None)
    return size if isinstance(size, int) else None
