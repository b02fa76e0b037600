"""The jobs that read many runs: full-text search, statistics, contrast. `Engine.survey` does them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence, Set
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from tracetui.analysis.contrast import Contrast, Feature, Features, Kind, contrast, features
from tracetui.analysis.statistics import By, Row, Statistics
from tracetui.diff.comparison import Comparison
from tracetui.live.load import Reader, Shared
from tracetui.live.surveying.grep import Hit, Options, Outcome, grep_runs
from tracetui.live.surveying.needle import Needle
from tracetui.live.surveying.surveyed import Job, Step
from tracetui.model import Run, RunRef
from tracetui.model.ownership import nested_runs
from tracetui.sources.base import LinkLost, Source
from tracetui.store.span_names import span_title

MOST_HITS: Final = 50_000
_HOW: Final = {"only_a": "left out", "only_b": "new"}
"""How a replay differs, in words that need no A and B."""
MOST_RUNS: Final = 200
"""Runs of each side that are read to tell one from the other."""
GROWTH: Final = 1.5
"""What is known so far is worked out anew each time so much more was read."""


def grep_job(refs: Sequence[RunRef], needle: Needle, options: Options, *, most: int = MOST_HITS) -> Job:
    """Search these runs in this order, those of a file together.

    `Survey.new` holds each `Hit` and each `Problem`, `done` counts files.
    """
    ordered = by_file(refs)

    def work(source: Source) -> Generator[Step, None, None]:
        hits = 0
        for item in grep_runs(source, ordered, needle, options):
            if isinstance(item, Hit):
                hits += 1
                if hits > most:
                    yield Step(more=True)
                    return
            if isinstance(item, Outcome):
                yield Step(done=1)
            else:
                yield Step(() if item is None else (item,))

    return Job("grep", len({ref.path for ref in refs}), work)


def by_file(refs: Sequence[RunRef]) -> list[RunRef]:
    """These runs, each file's where its first one is: a file of many is opened once for all that are read in turn."""
    found: dict[str, list[RunRef]] = {}
    for ref in refs:
        found.setdefault(ref.path, []).append(ref)
    return [ref for same in found.values() for ref in same]


# ---- statistics


class Counted(NamedTuple):
    """Statistics of so many runs."""

    runs: int
    rows: dict[By, list[Row]]


def statistics_job(refs: Sequence[RunRef]) -> Job:
    """Count these runs; `Survey.result` holds a `Counted`, `new` each `Problem`."""
    listed = {*refs}
    kept = {by: Statistics(by, listed) for by in By}
    made, ended = Counted(0, {}), False

    def work(source: Source) -> Generator[Step, None, None]:
        nonlocal ended
        shared = Shared()
        for ref in by_file(refs):
            run = yield from _read(source, ref, shared.of(ref))
            if run is not None:
                for one in kept.values():
                    one.add(run)
            yield Step(done=1)
        ended = True

    def result() -> Counted:
        nonlocal made
        runs = kept[By.TOOL].runs
        if (ended and runs != made.runs) or runs >= max(1, made.runs * GROWTH):
            made = Counted(runs, {by: one.rows() for by, one in kept.items()})
        return made

    return Job("statistics", len(refs), work, result)


# ---- contrast


Original = Callable[[RunRef], RunRef | None]
"""The run that another one replays or repeats, None if there is none."""


def nobody(ref: RunRef) -> None:
    """The original of a run of which none is known."""


def contrast_job(
    a: Sequence[RunRef], b: Sequence[RunRef], *, original: Original = nobody, most: int = MOST_RUNS
) -> Job:
    """Tell A from B; `Survey.result` holds a `Contrast`, `new` each `Problem`. Both sides are read in turn.

    Of a replay, where it first went differently is one of the things that it may share.
    """
    sides = _Sides(a, b, most, original=original)
    return Job("contrast", sides.total, sides.work, sides.result)


class Contrasts:
    """Tells one group of runs after the other from others, for a command: no run is read twice."""

    def __init__(self, source: Source, *, original: Original = nobody, most: int = MOST_RUNS) -> None:
        self._source, self._original, self._most = source, original, most
        self._known: dict[RunRef, _Known] = {}

    def of(self, a: Sequence[RunRef], b: Sequence[RunRef]) -> Contrast:
        """What runs of A share that those of B lack. What cannot be read counts on neither side. Raises `LinkLost`."""
        sides = _Sides(a, b, self._most, self._known, original=self._original)
        for _ in sides.work(self._source):
            pass
        return sides.result()


class _Known(NamedTuple):
    """The features of a run, which depend on the runs nested in it that are compared as well."""

    nested: frozenset[RunRef]
    features: dict[frozenset[RunRef], Features]

    def of(self, listed: Set[RunRef]) -> Features | None:
        """Those that it has beside the runs of `listed`, if they were found out."""
        return self.features.get(self.nested & listed)


class _Sides:
    """The features of two sides, as far as they were read."""

    def __init__(
        self,
        a: Sequence[RunRef],
        b: Sequence[RunRef],
        most: int,
        known: dict[RunRef, _Known] | None = None,
        *,
        original: Original = nobody,
    ) -> None:
        self._original = original
        self._refs = _spread(a, most), _spread(b, most)
        self._listed = {*self._refs[0], *self._refs[1]}
        self._notes = [_note(len(chosen), len(all_)) for chosen, all_ in zip(self._refs, (a, b), strict=True)]
        self._read: tuple[list[tuple[RunRef, Features]], list[tuple[RunRef, Features]]] = ([], [])
        self._known = {} if known is None else known
        self._kept: tuple[RunRef, Run | None] | None = None
        """The original that was read last: repetitions of a task have one."""
        self._ended = False
        self._made = 0, Contrast()
        self.total = sum(map(len, self._refs))

    def work(self, source: Source) -> Generator[Step, None, None]:
        """Read both sides."""
        sides = Shared(), Shared()
        for pair in zip_longest(*self._refs):
            for ref, read, shared in zip(pair, self._read, sides, strict=True):
                if ref is None:
                    continue
                its = self._known[ref].of(self._listed) if ref in self._known else None
                if its is None:
                    run = yield from _read(source, ref, shared.of(ref))
                    if run is not None:
                        first = yield from self._divergence(source, run)
                        its = {**features(run, run.load, self._listed), **first}
                        known = self._known.setdefault(ref, _Known(nested_runs(run), {}))
                        known.features[known.nested & self._listed] = its
                if its is not None:
                    read.append((ref, its))
                yield Step(done=1)
        self._ended, self._kept = True, None

    def _divergence(self, source: Source, run: Run) -> Generator[Step, None, Features]:
        """Where a replay first went differently, if it did."""
        original = self._original(run.summary.ref)
        if original is None:
            return {}
        if self._kept is None or self._kept[0] != original:
            self._kept = original, (yield from _read(source, original))
        other = self._kept[1]
        if other is None:
            return {}
        found = None
        for found in Comparison(other, run, relation=run.summary.relation).steps():
            yield Step()
            if found.first is not None and found.compared:
                break
        if found is None or found.first is None or found.same:
            return {}
        row = found.rows[found.first.row]
        span = found.span_b(row) or found.span_a(row)
        assert span is not None
        kind = found.first.kind.value
        place = span_title(other if row.b is None else run, span)
        words = f"first differs from its original at {place} ({_HOW.get(kind, kind)})"
        return {Feature(Kind.DIVERGENCE, words): None if row.b is None else span.id}

    def result(self) -> Contrast:
        """What tells them apart; of both sides something must be known, unless all was read."""
        a, b = self._read
        known, made = self._made
        grown = len(a) + len(b)
        if (self._ended and grown != known) or (a and b and grown >= known * GROWTH):
            made = Contrast(tuple(contrast(a, b)), "; ".join(filter(None, self._notes)))
            self._made = grown, made
        return made


def _spread(refs: Sequence[RunRef], most: int) -> Sequence[RunRef]:
    """So many of them, evenly from all."""
    return refs if len(refs) <= most else [refs[i * len(refs) // most] for i in range(most)]


def _note(read: int, of: int) -> str:
    return f"{read} of {of} runs were read" if read < of else ""


# ---- reading


def _read(source: Source, ref: RunRef, kept: dict[str, Any] | None = None) -> Generator[Step, None, Run | None]:
    """A whole run, read a little at a time; None, and a problem, where nothing of it can be read. Raises `LinkLost`.

    `kept`: see `Reader`.
    """
    reader = Reader(source, ref, kept=kept)
    while reader.more:
        reader.read()
        if reader.lost:
            raise LinkLost(reader.lost)
        yield Step()
    if reader.failure is not None:
        yield Step((reader.failure,))
        if not len(reader):
            return None
    return reader.build()
