"""Asking for runs: queries over many summaries, against a list comprehension over one attribute; CPU time."""

from __future__ import annotations

import gc
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import orjson

from tests.bench.table import Reference, Row, median, timed
from tracetui.analysis.triage import groups
from tracetui.model import FirstError, Operation, RunRef, RunSummary, Status, Usage
from tracetui.store import query
from tracetui.store.judgement import Judgement
from tracetui.store.sidecar import Sidecar
from tracetui.ui.services.causes import Grouping
from tracetui.views.triage import QueueRows

NOW: Final = 1_790_000_000.0
_LIMIT: Final = 16.0
"""Of a query, against the comprehension."""
_DOCUMENT: Final = orjson.dumps({"steps": [{"id": number, "tool": "search", "ok": True} for number in range(40)]})
_AGENTS: Final = ("researcher", "planner", "support_router", "code_reviewer", "translator")
_MODELS: Final = (("gpt-4o",), ("claude-opus",), ("gpt-4o", "gpt-4o-mini"))
_TOOLS: Final = (("Bash", "Read"), ("search",), ("fetch", "search"), ())
MESSAGES: Final = (
    "search timed out after {} s",
    "upstream returned HTTP 503: id {:x} at /srv/{}/x.py",
    "no column named 'tide' in row {} of {}",
    "failed with exit code 3 (job-{}): see https://a.b/{}",
    "request req_{:020x} refused: budget {} > 3",
)
QUERIES: Final = (
    "status:error",
    "timed out",
    "!researcher",
    "since:30d dur>5s tokens>10k",
    'error:"timed out" tool:bash,search model:gpt*',
    "status:error agent:researcher tool:search model:gpt* dur>5s tokens>10k steps<30 -tag:known timed",
    "(status:ok or tool:fetch) -tag:nightly verdict:none",
)


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about queries; the number of runs is divided by `scale`."""
    count = 100_000 // scale
    runs = summaries(count)
    floor = comprehension(runs, rounds)
    columns: query.Columns[RunSummary] = query.Columns()
    for text in QUERIES:
        grouping = query.for_runs(text, now=NOW)
        grouping.select(runs, columns)
        ms = measured(lambda grouping=grouping: grouping.select(runs, columns), rounds)  # type: ignore[misc]
        label = text if len(text) < 30 else f"{text[:29]}…"
        yield timed(f"{count} runs: {label}", ms, _LIMIT, floor)
    first = measured(lambda: query.for_runs("timed out", now=NOW).select(runs), rounds)
    yield timed(f"{count} runs: the first word that is typed", first, 100, floor)
    ms = measured(lambda: query.facets(query.RUN_KEYS, runs), rounds)
    yield timed(f"{count} runs: all facets", ms, 60, floor)
    yield from _causes(count, rounds)


def _causes(count: int, rounds: int) -> Iterator[Row]:
    """Causes of so many failures, no two of which have one text, against the decoding of as many JSON documents."""
    from tracetui.analysis import cause, error_text

    runs = failures(count)
    decoding = measured(lambda: [orjson.loads(_DOCUMENT) for _ in runs], rounds)
    floor = Reference(f"orjson.loads of {len(_DOCUMENT)} bytes for each", decoding)
    cached = (
        cause._failure_of,
        cause._causes,
        cause._digest,
        error_text._shaped,
        error_text._settle,
        error_text._short,
    )
    times = []
    for _ in range(rounds):
        for function in cached:
            function.cache_clear()
        gc.collect()
        times.append(_causes_ms(runs))
    yield timed(f"{count} failed runs: their causes, in a worker", median(times), 1.0, floor)
    yield timed(f"{count} failed runs: their causes again", measured(lambda: groups(runs), rounds), 0.5, floor)
    some, every = (Grouping(0, failed, Sidecar(Path(tempfile.mkdtemp()))) for failed in (runs[:1_000], runs))
    floor = Reference("of 1000 failed runs", _page_ms(some, rounds))
    yield timed(f"{count} failed runs: a page of the queue after a verdict", _page_ms(every, rounds), 2, floor)


def _page_ms(grouping: Grouping, rounds: int) -> float:
    """The rows of the queue, made again with the first cause unfolded, and a page of them."""
    unfolded = {grouping.groups[0].digest}

    def draw() -> None:
        rows = QueueRows(grouping.order, {}, lambda _: Judgement(), unfolded=unfolded, now=NOW)
        for index in range(40):
            rows.line(index, 100)
        rows.index(grouping.groups[-1].digest)

    return measured(draw, rounds)


def failures(count: int) -> list[RunSummary]:
    """So many failed runs, no two of which say the same."""
    chance = random.Random(count)
    return [_failure(number, MESSAGES[number % len(MESSAGES)], chance) for number in range(count)]


def _failure(number: int, message: str, chance: random.Random) -> RunSummary:
    values = [chance.getrandbits(30) for _ in range(message.count("{"))]
    kind = ("TimeoutError", "ValueError", None)[number % 3]
    error = FirstError(message.format(*values), kind, "7", "search", Operation.EXECUTE_TOOL)
    return _summary(number, chance).replace(status=Status.ERROR, first_error=error)


def _causes_ms(runs: list[RunSummary]) -> float:
    began = time.process_time()
    groups(runs)
    return (time.process_time() - began) * 1000


def summaries(count: int) -> list[RunSummary]:
    """So many runs of which everything is known, a tenth of them failed."""
    chance = random.Random(count)
    return [_summary(number, chance) for number in range(count)]


def _summary(number: int, chance: random.Random) -> RunSummary:
    failed = number % 10 == 3
    return RunSummary.of(
        ref=RunRef("any", f"/home/me/runs/{number // 1000:03}/{number:06}.json"),
        id=f"{chance.getrandbits(64):016x}",
        name=_AGENTS[number % 5],
        agent=_AGENTS[number % 5],
        model=_MODELS[number % 3][0],
        status=Status.ERROR if failed else Status.OK,
        status_word="error" if failed else "completed",
        started_at=NOW - 37.0 * number,
        duration_ms=chance.uniform(1, 60_000),
        usage=Usage(chance.randrange(50_000), chance.randrange(5_000)),
        steps=chance.randrange(60),
        errors=int(failed),
        first_error=FirstError(f"search timed out after {number % 90} s", "TimeoutError", "7") if failed else None,
        prompt=f"Find the subsidies that item {number} is about, and sum them up with sources",
        tools=_TOOLS[number % 4],
        models=_MODELS[number % 3],
        nodes=(),
        tags=("nightly",) if number % 7 == 0 else (),
        deep=True,
    )


def comprehension(runs: list[RunSummary], rounds: int) -> Reference:
    """The least that Python can do with every run."""
    least = measured(lambda: [run for run in runs if run.agent == "researcher"], rounds)
    return Reference("a list comprehension over one attribute", least)


def measured(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds of CPU time that it takes: the median of so many rounds, after one that does not count."""
    times = []
    for number in range(rounds + 1):
        gc.collect()
        began = time.process_time()
        work()
        if number:
            times.append((time.process_time() - began) * 1000)
    return median(times)
