"""What the benchmarks print: a row for every promise, what was measured, what is promised, and a verdict."""

from __future__ import annotations

import gc
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Reference(NamedTuple):
    """A time that was measured in the same run."""

    name: str
    ms: float


class Row(NamedTuple):
    """One promise. `value` and `limit` are in the same unit; smaller is better."""

    what: str
    value: float
    limit: float
    unit: str
    """``×`` for a ratio, else what the number counts."""
    detail: str = ""
    """What it was made of, for people."""
    why: str = ""
    """Why the limit is not met, as long as it isn't."""

    @property
    def met(self) -> bool:
        """Whether the promise is kept."""
        return self.possible and self.value <= self.limit

    @property
    def possible(self) -> bool:
        """False where the benchmark itself failed: nothing takes less than no time, or no number of milliseconds."""
        return math.isfinite(self.value) and self.value >= 0

    def __str__(self) -> str:
        sign = "met   " if self.met else "MISSED" if self.possible else "BROKEN"
        value, limit = (f"{_short(number)} {self.unit}" for number in (self.value, self.limit))
        detail = f"{self.detail}; {self.why}" if self.why and not self.met else self.detail
        return f"{sign}  {self.what:<58} {value:>10}  of {limit:>10}   {detail}".rstrip()


def _short(number: float) -> str:
    return f"{number:.2f}" if number < 10 else f"{number:,.0f}".replace(",", " ")


def timed(what: str, ms: float, limit: float, reference: Reference, detail: str = "", why: str = "") -> Row:
    """A row for a time: the ratio to a reference, which is at most `limit`, and the milliseconds as a remark."""
    ratio = ms / reference.ms if ms >= 0 and reference.ms > 0 else math.nan
    remark = f"{ms:.1f} ms; {reference.name} {reference.ms:.1f} ms"
    return Row(what, ratio, limit, "×", f"{remark}; {detail}" if detail else remark, why)


def say(text: object = "") -> None:
    """Print at once, so that what takes long shows how far it is."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def median(values: Sequence[float]) -> float:
    """The median; not a number where nothing was measured."""
    return statistics.median(values) if values else float("nan")


def p95(values: Sequence[float]) -> float:
    """The value that 95 of 100 do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))] if ordered else float("nan")


def cpu_ms(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds of CPU time: the median of so many rounds after one that only warms up."""
    return median(interleaved({"": work}, rounds)[""])


def interleaved(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of CPU time of each way without garbage collection; the ways take turns, after a warm-up round."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, work in ways.items():
            gc.collect()
            gc.disable()
            began = time.process_time()
            work()
            if number:
                times[name].append((time.process_time() - began) * 1000)
            gc.enable()
    return times
