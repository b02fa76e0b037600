"""Tokens, each counted once: they are told per response, per turn and for the whole thread, and some of it twice."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.codex.records import USAGE, Record
from tracetui.formats.scalars import child, whole
from tracetui.model import Usage

_NAMES: Final = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "reasoning_output_tokens",
)
"""In the order of the fields of `Usage`. Cached input is within the input, reasoning within the output."""
_Counts = tuple[int | None, ...]
_NOTHING: Final = (None,) * len(_NAMES)


class Meter(msgspec.Struct, frozen=True):
    """What was told so far."""

    total: _Counts | None = None
    """All tokens of the thread as last told."""
    last: _Counts | None = None
    """Those of the last response."""
    own: bool = False
    """The last response told its tokens in a record of its own; an event that repeats them follows."""

    def read(self, record: Record) -> tuple[Usage | None, Meter]:
        """The tokens that `record` adds (None where it repeats what was told, or tells nothing), and the next meter."""
        own = record.kind == USAGE
        told = record.payload if own else child(record.payload, "info")
        last = _counts(told.get("usage" if own else "last_token_usage"))
        total = _counts(told.get("thread_token_usage" if own else "total_token_usage"))
        if last is None and total is None:
            return None, self
        if total is not None and total == self.total:
            return None, self
        if self.own and not own and last is not None and last == self.last:
            return None, Meter(total or self.total, last)
        if last is None and total is not None:
            last = _less(total, self.total)
        meter = Meter(total or self.total, last, own)
        return (_usage(last) if last is not None and any(last) else None), meter


def _counts(value: Any) -> _Counts | None:
    if not isinstance(value, dict):
        return None
    found = tuple([whole(value.get(name)) for name in _NAMES])
    return None if found == _NOTHING else found


def _less(total: _Counts, before: _Counts | None) -> _Counts:
    """What came since; a total that went down was begun anew."""
    if before is None or any((a or 0) < (b or 0) for a, b in zip(total, before, strict=True)):
        return total
    return tuple(None if a is None else a - (b or 0) for a, b in zip(total, before, strict=True))


def _usage(counts: _Counts) -> Usage:
    return Usage(*counts)
