"""Asking for runs: queries over many summaries, against a list comprehension over one attribute; CPU time."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from typing import Final

from tests.bench.table import Reference, Row, median, timed
from tracetui.analysis.triage import groups
from tracetui.model import FirstError, Operation, RunRef, RunSummary, Status, Usage
from tracetui.store import query

NOW: Final = 1_790_000_000.0
_LIMIT: Final = 16.0
"""Of a query, against the comprehension."""
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
        found = query.for_runs(text, now=NOW)
        found.select(runs, columns)
        ms = measured(lambda found=found: found.select(runs, columns), rounds)  # type: ignore[misc]
        shown = text if len(text) < 30 else f"{text[:29]}…"
        yield timed(f"{count} runs: {shown}", ms, _LIMIT, floor)
    first = measured(lambda: query.for_runs("timed out", now=NOW).select(runs), rounds)
    yield timed(f"{count} runs: the first word that is typed", first, 100, floor)
    ms = measured(lambda: query.facets(query.RUN_KEYS, runs), rounds)
    yield timed(f"{count} runs: all facets", ms, 60, floor)


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
