"""What the tokens of a call's prompt cost, by their position, for `tracetui.analysis.context`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tracetui.analysis import prices
from tracetui.analysis.prices import Rates
from tracetui.model import Usage


class Costs:
    """What the tokens at a position of a call's prompt cost, in US dollars."""

    def __init__(self, rates: Rates, size: int, read: int, written: int, written_1h: int, missed: int) -> None:
        """`missed` tokens after the read ones were lost by a break."""
        self.rates, self._read, self._stop = rates, read, read + written
        self._edge = read + missed
        paid = (written - written_1h) * rates.write + written_1h * rates.write_1h
        self._more_written = paid / written - rates.read if written else 0.0
        self._more_uncached = rates.input - rates.read
        self.total = read * rates.read + paid + (size - read - written) * rates.input

    def surcharge(self, start: int, stop: int) -> float:
        """The cost of these positions beyond that of a read."""
        written = max(0, min(stop, self._stop) - max(start, self._read))
        uncached = max(0, stop - max(start, self._stop))
        return written * self._more_written + uncached * self._more_uncached

    def lost(self, start: int, stop: int) -> float:
        """The part of `surcharge` that a break cost."""
        return self.surcharge(start, min(stop, self._edge)) if start < self._edge else 0.0

    def zones(self, stop: int) -> Iterator[tuple[int, int]]:
        """Ranges of uniform `surcharge` and `lost` before `stop`."""
        edges = sorted({self._read, min(self._stop, stop), min(self._edge, stop), stop})
        for begin, end in pairwise(edges):
            if begin >= self._read and begin < end <= stop:
                yield begin, end


def rates_of(model: str | None, usage: Usage, at: float | None, tier: str | None = None) -> Rates | None:
    """The prices of a call's tokens, scaled to its recorded cost if it has one; `tier` as in `Span`."""
    size = usage.input_tokens or 0
    rates = prices.rates(model, size, at, tier)
    if rates is None or usage.cost_usd is None:
        return rates
    read, written = usage.cache_read_tokens or 0, usage.cache_creation_tokens or 0
    listed = read * rates.read + written * rates.write + max(0, size - read - written) * rates.input
    listed += (usage.output_tokens or 0) * rates.output
    return rates.scaled(usage.cost_usd / listed) if listed > 0 else rates
