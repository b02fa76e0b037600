"""What a cache of an hour would have saved a run that wrote to caches of 5 minutes, and cost for its writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tracetui.analysis.context import DEFAULT_CACHE_SECONDS, Break, Call
from tracetui.model.context import Cause

_HOUR: Final = 3600


class HourCache(NamedTuple):
    """A run with a cache of an hour in place of 5 minutes, in US dollars."""

    breaks: int
    """Breaks that it would not have had: those by 5 minutes to an hour of idling."""
    saved: float
    """What these cost."""
    extra: float
    """What all other writes would have cost more."""


def hour_cache(calls: Iterable[Call]) -> HourCache | None:
    """What the calls would have cost with a cache of an hour; None without a break that it saves, the recorded life
    of the caches, or the prices of both for every write.
    """
    breaks, saved, extra = 0, 0.0, 0.0
    for call in calls:
        if not call.written:
            continue
        if call.written_1h is None or call.rates is None or call.rates.write_1h <= call.rates.write:
            return None
        short, missed = max(0, call.written - call.written_1h), call.missed
        if missed is not None and missed.usd is not None and _is_saved(missed):
            breaks, saved = breaks + 1, saved + missed.usd
            short = max(0, short - missed.missed)
        extra += short * (call.rates.write_1h - call.rates.write)
    return HourCache(breaks, saved, extra) if breaks else None


def _is_saved(missed: Break) -> bool:
    is_short = missed.cache_known and missed.cache_seconds == DEFAULT_CACHE_SECONDS
    return missed.cause == Cause.IDLE and is_short and (missed.idle or 0.0) <= _HOUR
