"""Tokens of a session, counted once however often they are told.

Today each call of a model has a ``session.usage_record``. Before, a message told its output, and ``session.shutdown``
the sums since the session was begun or resumed: such a stretch counts by these, and by nothing else.
Input includes what was read from the cache and what was written to it, output includes reasoning.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.copilot.records import whole
from tracetui.formats.scalars import child, number
from tracetui.model import Total, Usage
from tracetui.model.tally import NO_USAGE

_NAMES: Final = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_tokens",
    "cacheWriteTokens": "cache_creation_tokens",
    "reasoningTokens": "reasoning_tokens",
}


class Stretch(msgspec.Struct, frozen=True):
    """What was used since the session was begun or resumed."""

    recorded: Usage = NO_USAGE
    """By the records of the calls."""
    calls: int = 0
    """So many records."""
    said: Usage = NO_USAGE
    """By the messages, where no record tells."""
    cost: float = 0.0
    """Premium requests."""
    duration: float = 0.0
    """Milliseconds."""

    def __add__(self, other: Stretch) -> Stretch:
        return Stretch(
            self.recorded + other.recorded,
            self.calls + other.calls,
            self.said + other.said,
            self.cost + other.cost,
            self.duration + other.duration,
        )

    @property
    def usage(self) -> Usage:
        """What it comes to."""
        return self.recorded + self.said


class Ledger(msgspec.Struct, frozen=True):
    """What was used so far."""

    open: Stretch = Stretch()
    before: Stretch = Stretch()
    """All that was shut down."""
    stated: Usage = NO_USAGE
    """What only a shutdown tells."""
    end: dict[str, Any] | None = None
    """The last shutdown."""
    ended: Stretch = Stretch()
    """What it ended."""

    def record(self, told: dict[str, Any], usage: Usage) -> Ledger:
        """Count one call by its record."""
        cost, duration = number(told.get("cost")) or 0.0, number(told.get("duration")) or 0.0
        return self._more(Stretch(usage, 1, NO_USAGE, cost, duration))

    def say(self, usage: Usage) -> Ledger:
        """Count one call by its message."""
        return self._more(Stretch(said=usage))

    def unsay(self, usage: Usage) -> Ledger:
        """A record tells it after all."""
        said = Usage(*[_less(a, b) for a, b in zip(_tuple(self.open.said), _tuple(usage), strict=True)])
        return msgspec.structs.replace(self, open=msgspec.structs.replace(self.open, said=said))

    def shut(self, data: dict[str, Any]) -> Ledger:
        """The session was shut down."""
        stated = NO_USAGE if self.open.calls else metrics(data)
        before = self.before + (msgspec.structs.replace(self.open, said=NO_USAGE) if stated else self.open)
        return Ledger(before=before, stated=self.stated + stated, end=data, ended=self.open)

    def _more(self, stretch: Stretch) -> Ledger:
        return msgspec.structs.replace(self, open=self.open + stretch)

    @property
    def usage(self) -> Usage | None:
        """What the run used, where that is more than the sum over its spans; None where it is that sum."""
        return self.stated + self.before.usage + self.open.usage if self.stated else None

    def totals(self) -> tuple[Total, ...]:
        """What the last shutdown declares, beside what was counted.

        It tells of the whole session or of what came since it was resumed, as the version has it: either is right.
        """
        if self.end is None:
            return ()
        declared, readings = metrics(self.end), (self.ended, self.before)
        found = [
            _total(name, getattr(declared, name), [getattr(one.usage, name) for one in readings])
            for name in _NAMES.values()
        ]
        requests = [child(one, "requests") for one in _models(self.end).values()]
        count, cost = (
            _sum(whole(one.get("count")) for one in requests),
            _sum(number(one.get("cost")) for one in requests),
        )
        recorded = bool(self.ended.calls)
        found.append(_total("requests", count, [one.calls if recorded else None for one in readings]))
        found.append(_total("premium requests", cost, [one.cost if recorded else None for one in readings]))
        spent = number(self.end.get("totalApiDurationMs"))
        found.append(_total("API duration in ms", spent, [one.duration if recorded else None for one in readings]))
        return tuple([one for one in found if one.declared is not None])


def usage_of(told: dict[str, Any]) -> Usage:
    """Tokens of one call, or of several, under the names that Copilot has for them."""
    return Usage(**{ours: whole(told.get(theirs)) for theirs, ours in _NAMES.items()})


def metrics(shutdown: dict[str, Any]) -> Usage:
    """All tokens that a shutdown declares, over all models."""
    found = NO_USAGE
    for one in _models(shutdown).values():
        found = found + usage_of(child(one, "usage"))
    return found or _details(shutdown)


def _models(shutdown: dict[str, Any]) -> dict[str, Any]:
    return child(shutdown, "modelMetrics") or child(child(shutdown, "accountingSnapshot"), "modelMetrics")


def _details(shutdown: dict[str, Any]) -> Usage:
    """The same by kinds of tokens, where input is only what was not cached."""
    details = child(shutdown, "tokenDetails")
    plain, made, read, written = (
        whole(child(details, name).get("tokenCount")) for name in ("input", "output", "cache_read", "cache_write")
    )
    given = _sum((plain, read, written))
    return Usage(input_tokens=given, output_tokens=made, cache_read_tokens=read, cache_creation_tokens=written)


def _field(model: Any, name: str) -> Any:
    """What is told of the requests to one model; old versions tell only how many there were."""
    requests = model.get("requests") if isinstance(model, dict) else None
    return requests.get(name) if isinstance(requests, dict) else requests if name == "count" else None


def _total(name: str, declared: float | int | None, readings: list[Any]) -> Total:
    """A number beside what was counted: the reading that fits, else the first."""
    counted = [round(one, 6) if isinstance(one, float) else one for one in readings]
    return Total(name, declared, next((one for one in counted if one == declared), counted[0]))


def _sum(values: Any) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _tuple(usage: Usage) -> tuple[Any, ...]:
    return msgspec.structs.astuple(usage)


def _less(a: Any, b: Any) -> Any:
    return a if a is None or b is None else (a - b) or None
