"""Asking for runs, in process and on the screen: queries, causes, and the queue of the triage.

Queries are measured in CPU time, against a list comprehension over one attribute.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson

from tests.bench import data, references, screen
from tests.bench.table import Reference, Row, cpu_ms, median, timed
from tests.night import Night
from tracetui.analysis import cause, error_text
from tracetui.analysis.cause import digests_of
from tracetui.analysis.triage import QueryContext, groups
from tracetui.model import FirstError, Operation, RunRef, RunSummary, Status, Usage
from tracetui.store import query
from tracetui.store.judgement import CauseRef, Judgement, Verdict
from tracetui.store.sidecar import Sidecar
from tracetui.ui.services.causes import Grouping
from tracetui.views.triage import QueueRows

NOW: Final = 1_790_000_000.0
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
    "timed out",
    "status:error agent:researcher tool:search model:gpt* dur>5s tokens>10k steps<30 -tag:known timed",
    "(status:ok or tool:fetch) -tag:nightly verdict:none",
)
FAILED: Final = 10
"""One run in so many."""
_CACHED: Final = (
    *(cause._failure_of, cause._causes, cause._digest),
    *(error_text._shaped, error_text._settle, error_text._short),
)


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about queries, causes and the triage; the number of runs is divided by `scale`."""
    yield from _queries(100_000 // scale, rounds)
    yield from _causes(100_000 // scale, rounds)
    yield from _screen(10_000 // scale, rounds)


def _queries(count: int, rounds: int) -> Iterator[Row]:
    runs = summaries(count)
    least = cpu_ms(lambda: [run for run in runs if run.agent == "researcher"], rounds)
    floor = Reference("a list comprehension over one attribute", least)
    with tempfile.TemporaryDirectory() as folder:
        sidecar = Sidecar(Path(folder))
        for digest in {digest for run in runs[:2_000] for digest in digests_of(run)}:
            sidecar.judge(CauseRef(digest, f"F-{digest[:4]}", "a known failure"), Verdict.KNOWN)
        known = QueryContext(sidecar, lambda: runs)
        columns: query.Columns[RunSummary] = query.Columns()
        for text in QUERIES:
            parsed = query.for_runs(text, known, now=NOW)
            parsed.select(runs, columns)
            ms = cpu_ms(lambda parsed=parsed: parsed.select(runs, columns), rounds)  # type: ignore[misc]
            yield timed(f"{count} runs: {text if len(text) < 30 else f'{text[:29]}…'}", ms, 16, floor)
        yield _first_word(runs, rounds, floor)
        ms = cpu_ms(lambda: query.complete("res", 3, query.RUN_KEYS, runs, known), rounds)
        yield timed(f"{count} runs: completions of `res`", ms, 16, floor)
    ms = cpu_ms(lambda: query.facets(query.RUN_KEYS, runs), rounds)
    yield timed(f"{count} runs: all facets", ms, 60, floor)


def _first_word(runs: list[RunSummary], rounds: int, floor: Reference) -> Row:
    """The first word after `f`; its columns are built before the user types."""

    def selected() -> float:
        columns: query.Columns[RunSummary] = query.Columns()
        ahead = columns.ahead("", query.RUN_KEYS.hay, runs)
        while next(ahead, ahead) is None:
            pass
        began = time.process_time()
        query.for_runs("timed", now=NOW).select(runs, columns)
        return (time.process_time() - began) * 1000

    return timed(f"{len(runs)} runs: the first word after f", median([selected() for _ in range(rounds)]), 16, floor)


def _causes(count: int, rounds: int) -> Iterator[Row]:
    """Causes of so many failures, no two of which have one text, against the decoding of as many JSON documents."""
    runs = failures(count)

    def find_causes() -> None:
        for function in _CACHED:
            function.cache_clear()
        groups(runs)

    decoding = cpu_ms(lambda: [orjson.loads(_DOCUMENT) for _ in runs], rounds)
    floor = Reference(f"orjson.loads of {len(_DOCUMENT)} bytes for each", decoding)
    yield timed(f"{count} failed runs: their causes, in a worker", cpu_ms(find_causes, rounds), 1.0, floor)
    some, every = (Grouping(0, failed, Sidecar(Path(tempfile.mkdtemp()))) for failed in (runs[:1_000], runs))
    floor = Reference("of 1000 failed runs", _page_ms(some, rounds))
    yield timed(f"{count} failed runs: a page of the queue after a verdict", _page_ms(every, rounds), 2, floor)


def _screen(count: int, rounds: int) -> Iterator[Row]:
    """From `T` to the painted queue, all counted before; then from one cause to the next."""

    def write(folder: Path) -> None:
        Night(folder).fill(count // FAILED, count - count // FAILED)

    folder, times, downs = data.cached_folder(f"night-{count}", write), list[float](), list[screen.Key]()
    shown = r"0 of \d+ causes reviewed(?:.*\n)+.*\bruns +time lost"
    for _ in range(rounds):
        with screen.loaded(folder) as terminal:
            at = terminal.send("T")
            times.append((terminal.wait_for(shown) - at) * 1000)
            terminal.wait_quiet(0.8)
            downs += [screen.press(terminal, "down", quiet=0.1) for _ in range(4)]
    what = f"T on {count} runs, {count // FAILED} failed: the queue"
    yield timed(what, median(times), 120, references.key(), "median, from the key")
    yield screen.p95_row("  down in the queue, cause and failure following", downs, 24)


def _page_ms(grouping: Grouping, rounds: int) -> float:
    """The rows of the queue, made again with the first cause unfolded, and a page of them."""
    unfolded = {grouping.groups[0].digest}

    def draw() -> None:
        rows = QueueRows(grouping.order, {}, lambda _: Judgement(), unfolded=unfolded, now=NOW)
        for index in range(40):
            rows.line(index, 100)
        rows.index(grouping.groups[-1].digest)

    return cpu_ms(draw, rounds)


def failures(count: int) -> list[RunSummary]:
    """So many failed runs, no two of which say the same."""
    chance = random.Random(count)
    return [_failure(number, MESSAGES[number % len(MESSAGES)], chance) for number in range(count)]


def _failure(number: int, message: str, chance: random.Random) -> RunSummary:
    values = [chance.getrandbits(30) for _ in range(message.count("{"))]
    kind = ("TimeoutError", "ValueError", None)[number % 3]
    error = FirstError(message.format(*values), kind, "7", "search", Operation.EXECUTE_TOOL)
    return _summary(number, chance).replace(status=Status.ERROR, first_error=error)


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
    least = cpu_ms(lambda: [run for run in runs if run.agent == "researcher"], rounds)
    return Reference("a list comprehension over one attribute", least)
