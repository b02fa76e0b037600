"""Tokens of a session, counted once however often they are told.

Today each call of a model has a ``session.usage_record``. Before, a message told its output, and ``session.shutdown``
the sums since the session was begun or resumed: such a stretch counts by these, and by nothing else.
Input includes what was read from the cache and what was written to it, output includes reasoning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from tracetui.formats.scalars import child, number
from tracetui.formats.schema import Finite, Loose, loosen
from tracetui.model import Total, Usage
from tracetui.model.tally import NO_USAGE

_NAMES: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")


class Tokens(Struct, gc=False, rename="camel"):
    """Tokens of one call, or of several; some versions write them with a point."""

    input_tokens: Finite | None = None
    output_tokens: Finite | None = None
    cache_read_tokens: Finite | None = None
    cache_write_tokens: Finite | None = None
    reasoning_tokens: Finite | None = None

    def counts(self) -> Usage:
        """The tokens."""
        read, written = whole(self.cache_read_tokens), whole(self.cache_write_tokens)
        return Usage(
            whole(self.input_tokens), whole(self.output_tokens), None, read, written, whole(self.reasoning_tokens)
        )


class Account(Struct, gc=False, rename="camel"):
    """Which session paid for a call, and the number that the call has there."""

    source_session_id: str | None = None
    sequence: Finite | None = None


class Spent(Tokens):
    """What one call of a model used."""

    model: str | None = None
    api_call_id: str | None = None
    cost: Finite | None = None
    duration: Finite | None = None
    finish_reason: str | None = None
    interaction_type: str | None = None
    accounting: Account | Loose = None

    @property
    def number(self) -> str | None:
        """What tells the record from any other."""
        account = self.accounting
        if not isinstance(account, Account) or account.source_session_id is None:
            return None
        place = whole(account.sequence)
        return None if place is None else f"{place} {account.source_session_id}"


class Stretch:
    """What was used since the session was begun or resumed."""

    def __init__(self) -> None:
        self.recorded = self.said = NO_USAGE
        """By the records of the calls; and by the messages, where no record tells."""
        self.calls = 0
        """So many records."""
        self.cost = self.duration = 0.0
        """Premium requests; milliseconds."""

    def add(self, other: Stretch, *, said: bool) -> None:
        """Add what was used then; what was only `said` if that is wanted."""
        self.recorded, self.calls = self.recorded + other.recorded, self.calls + other.calls
        self.said = self.said + other.said if said else self.said
        self.cost, self.duration = self.cost + other.cost, self.duration + other.duration

    @property
    def usage(self) -> Usage:
        """What it comes to."""
        return self.recorded + self.said


class Ledger:
    """What was used so far."""

    def __init__(self) -> None:
        self.open, self.before, self.ended = Stretch(), Stretch(), Stretch()
        """What is not shut down; all that was; and what the last shutdown ended."""
        self.stated = NO_USAGE
        """What only a shutdown tells."""
        self._models: dict[str, Any] | None = None
        """What the last shutdown declares of each model."""
        self._declared = NO_USAGE
        self._spent: float | None = None

    def record(self, told: Spent, usage: Usage) -> None:
        """Count one call by its record."""
        now = self.open
        now.recorded += usage
        now.calls += 1
        now.cost += told.cost or 0.0
        now.duration += told.duration or 0.0

    def say(self, usage: Usage) -> None:
        """Count one call by its message."""
        self.open.said += usage

    def unsay(self, usage: Usage) -> None:
        """A record tells it after all."""
        said, less = msgspec.structs.astuple(self.open.said), msgspec.structs.astuple(usage)
        self.open.said = Usage(
            *[a if a is None or b is None else (a - b) or None for a, b in zip(said, less, strict=True)]
        )

    def shut(self, models: Any, snapshot: Any, details: Any, spent: float | None) -> None:
        """The session was shut down, which declares this much of each model, of kinds of tokens, and of time."""
        found = models if isinstance(models, dict) and models else child(snapshot, "modelMetrics")
        declared = NO_USAGE
        for one in found.values():
            declared += loosen(child(one, "usage"), Tokens, {}).counts()
        declared = declared or _by_kind(details)
        stated = NO_USAGE if self.open.calls else declared
        self.before.add(self.open, said=not stated)
        self.stated += stated
        self._models, self._declared, self._spent = found, declared, spent
        self.ended, self.open = self.open, Stretch()

    @property
    def usage(self) -> Usage | None:
        """What the run used, where that is more than the sum over its spans; None where it is that sum."""
        return self.stated + self.before.usage + self.open.usage if self.stated else None

    def totals(self) -> tuple[Total, ...]:
        """What the last shutdown declares, beside what was counted.

        It tells of the whole session or of what came since it was resumed, as the version has it: either is right.
        """
        if self._models is None:
            return ()
        readings = (self.ended, self.before)
        found = [
            _total(name, getattr(self._declared, name), [getattr(one.usage, name) for one in readings])
            for name in _NAMES
        ]
        requests = [child(one, "requests") for one in self._models.values()]
        count = _sum(whole(number(one.get("count"))) for one in requests)
        cost = _sum(number(one.get("cost")) for one in requests)
        is_recorded = bool(self.ended.calls)
        found.append(_total("requests", count, [one.calls if is_recorded else None for one in readings]))
        found.append(_total("premium requests", cost, [one.cost if is_recorded else None for one in readings]))
        durations = [one.duration if is_recorded else None for one in readings]
        found.append(_total("API duration in ms", self._spent, durations))
        return tuple([one for one in found if one.declared is not None])


def whole(value: float | None) -> int | None:
    """`value` if it is a whole number of at most 53 bits that counts something."""
    return int(value) if value is not None and 0 <= value < 1 << 53 and value == int(value) else None


def _by_kind(details: Any) -> Usage:
    """Tokens by their kinds, where input is only what was not cached."""
    plain, made, read, written = (
        whole(number(child(child({"": details}, ""), name).get("tokenCount")))
        for name in ("input", "output", "cache_read", "cache_write")
    )
    given = _sum((plain, read, written))
    return Usage(input_tokens=given, output_tokens=made, cache_read_tokens=read, cache_creation_tokens=written)


def _total(name: str, declared: float | int | None, readings: list[Any]) -> Total:
    """A number beside what was counted: the reading that fits, else the first."""
    counted = [round(one, 6) if isinstance(one, float) else one for one in readings]
    return Total(name, declared, next((one for one in counted if one == declared), counted[0]))


def _sum(values: Iterable[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
