"""Tokens of a session, counted once however often they are recorded.

Today each call of a model has a ``session.usage_record``. Before, a message had its output, and ``session.shutdown``
the sums since the session was begun or resumed: such a period counts by these, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tracetui.formats.copilot.records import CallUsage, Tokens, whole
from tracetui.formats.scalars import child, mapping, number
from tracetui.formats.schema import loosen
from tracetui.model import Total, Usage
from tracetui.model.tally import NO_USAGE

_NAMES: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")


class Period:
    """What was used between a start of the program and its shutdown."""

    def __init__(self) -> None:
        self.by_records = self.by_messages = NO_USAGE
        """By the records of the calls; and by the messages of calls without a record."""
        self.calls = 0
        """Records."""
        self.cost = self.duration = 0.0
        """Premium requests; milliseconds."""

    def add(self, other: Period, *, messages: bool) -> None:
        """Add another period, with what it has by `messages` or without."""
        self.by_records, self.calls = self.by_records + other.by_records, self.calls + other.calls
        self.by_messages = self.by_messages + other.by_messages if messages else self.by_messages
        self.cost, self.duration = self.cost + other.cost, self.duration + other.duration

    @property
    def usage(self) -> Usage:
        """The sum."""
        return self.by_records + self.by_messages


class Ledger:
    """What was used so far."""

    def __init__(self) -> None:
        self.open, self.before, self.ended = Period(), Period(), Period()
        """Since the last shutdown; before it; and the period that it ended."""
        self.declared_only = NO_USAGE
        """Declared by shutdowns of periods without records."""
        self._models: dict[str, Any] | None = None
        """What the last shutdown declares of each model,"""
        self._declared = NO_USAGE
        """the sum of that,"""
        self._duration: float | None = None
        """and the time that it declares (milliseconds)."""

    def add_record(self, call: CallUsage, usage: Usage) -> None:
        """Count one call by its record."""
        period = self.open
        period.by_records += usage
        period.calls += 1
        period.cost += call.cost or 0.0
        period.duration += call.duration or 0.0

    def add_message(self, usage: Usage) -> None:
        """Count one call by its message."""
        self.open.by_messages += usage

    def remove_message(self, usage: Usage) -> None:
        """Take a message back whose call has a record after all."""
        counted, less = msgspec.structs.astuple(self.open.by_messages), msgspec.structs.astuple(usage)
        self.open.by_messages = Usage(
            *[a if a is None or b is None else (a - b) or None for a, b in zip(counted, less, strict=True)]
        )

    def shut_down(self, models: Any, snapshot: Any, details: Any, duration: float | None) -> None:
        """End the period; the shutdown declares tokens by model, or by kind, and the time of all calls."""
        found = models if isinstance(models, dict) and models else child(snapshot, "modelMetrics")
        declared = NO_USAGE
        for one in found.values():
            declared += loosen(child(one, "usage"), Tokens, {}).counts()
        declared = declared or _by_kind(details)
        declared_only = NO_USAGE if self.open.calls else declared
        self.before.add(self.open, messages=not declared_only)
        self.declared_only += declared_only
        self._models, self._declared, self._duration = found, declared, duration
        self.ended, self.open = self.open, Period()

    @property
    def usage(self) -> Usage | None:
        """What the run used, where that is more than the sum over its spans; None where it is that sum."""
        return self.declared_only + self.before.usage + self.open.usage if self.declared_only else None

    def totals(self) -> tuple[Total, ...]:
        """What the last shutdown declares, with what was counted.

        It is about the whole session or about its last period, as the version has it: either is right.
        """
        if self._models is None:
            return ()
        periods = (self.ended, self.before)
        totals = [
            _total(name, getattr(self._declared, name), [getattr(one.usage, name) for one in periods])
            for name in _NAMES
        ]
        requests = [child(one, "requests") for one in self._models.values()]
        count = _sum(whole(number(one.get("count"))) for one in requests)
        cost = _sum(number(one.get("cost")) for one in requests)
        for name, declared, field in (
            ("requests", count, "calls"),
            ("premium requests", cost, "cost"),
            ("API duration in ms", self._duration, "duration"),
        ):
            counted = [getattr(one, field) if self.ended.calls else None for one in periods]
            totals.append(_total(name, declared, counted))
        return tuple([one for one in totals if one.declared is not None])


def _by_kind(details: Any) -> Usage:
    """Tokens by their kinds, where input is only what was not cached."""
    plain, made, read, written = (
        whole(number(child(mapping(details), name).get("tokenCount")))
        for name in ("input", "output", "cache_read", "cache_write")
    )
    given = _sum((plain, read, written))
    return Usage(input_tokens=given, output_tokens=made, cache_read_tokens=read, cache_creation_tokens=written)


def _total(name: str, declared: float | int | None, readings: list[Any]) -> Total:
    """A declared number with what was counted: the reading that fits, else the first."""
    counted = [round(one, 6) if isinstance(one, float) else one for one in readings]
    return Total(name, declared, next((one for one in counted if one == declared), counted[0]))


def _sum(values: Iterable[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
