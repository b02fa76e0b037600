"""The table that ``ls`` prints: one run or unreadable file a row, cleaned, in columns as wide as what is in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from tracetui.model import Problem, RunSummary, Status
from tracetui.text import Clean, cells, clean, count, duration, one_line, pad, tokens, truncate
from tracetui.views.chart import tokens_of
from tracetui.views.naming import called
from tracetui.views.quantities import moment
from tracetui.views.runs import outcome

HEADING = ("STATUS", "STARTED", "TIME", "STEPS", "TOKENS", "NAME", "ADDRESS", "OUTCOME")
_NUMBERS = frozenset({2, 3, 4})
_WIDEST = (10, 20, 6, 5, 6, 28, 400)


def listing(runs: Sequence[RunSummary], problems: Sequence[Problem]) -> Iterator[Clean]:
    """The lines of the table. The address is never cut, so that it can be used."""
    rows = chain(map(_run_cells, runs), map(_problem_cells, problems))
    yield from table(HEADING, rows, _WIDEST, _NUMBERS)


def table(
    heading: Sequence[str], found: Iterable[Sequence[Clean]], widest: Sequence[int], numbers: Collection[int]
) -> Iterator[Clean]:
    """Rows in columns as wide as what is in them, up to `widest` cells; the last column, which has no limit, may be
    ragged. `numbers` are the columns that stand at the right."""
    rows = [tuple(map(Clean, heading)), *found]
    widths = [min(most, max(cells(row[i]) for row in rows)) for i, most in enumerate(widest)]
    for row in rows:
        yield Clean("  ".join((*_padded(row, widths, numbers), row[-1])).rstrip())


def _padded(row: Sequence[Clean], widths: Sequence[int], numbers: Collection[int]) -> Iterator[Clean]:
    for i, width in enumerate(widths):
        yield row[i] if cells(row[i]) > width else pad(row[i], width, right=i in numbers)


def _run_cells(run: RunSummary) -> tuple[Clean, ...]:
    return (
        Clean(run.status.value),
        started(run),
        duration(run.duration_ms),
        count(run.steps),
        tokens(tokens_of(run.usage)),
        truncate(called(run), _WIDEST[5]),
        clean(run.ref.address),
        Clean("".join(piece.text for piece in outcome(run)) + _noted(run.problems)),
    )


def _noted(problems: int) -> str:
    return f" [{problems} problem{'' if problems == 1 else 's'} inside]" if problems else ""


def _problem_cells(problem: Problem) -> tuple[Clean, ...]:
    reason = f"{problem.where}: {problem.reason}" if problem.where else problem.reason
    unsaid = Clean("—")
    return (Clean("unreadable"), *[unsaid] * 5, clean(problem.path), one_line(reason, 200))


def started(run: RunSummary) -> Clean:
    """When a run started, to the second; ``—`` where the trace does not say."""
    return Clean((moment(run) or "—").removesuffix(" local, zone unknown"))


def newest_first(runs: Iterable[RunSummary]) -> list[RunSummary]:
    """The order of every list: by start, newest first; runs without one last; then by address."""
    return sorted(runs, key=lambda run: (run.started_at is None, -(run.started_at or 0.0), run.ref.address))


def triage(runs: Iterable[RunSummary], unreadable: int, signatures: int = 0) -> str:
    """The sentence that turns a list into an action: ``7 of 40 failed · 2 signatures``.

    Counts runs that no other run started.
    """
    top = [run for run in runs if run.parent is None]
    failed = sum(run.status is Status.ERROR for run in top)
    words = f"{failed} of {len(top)} failed"
    if unreadable:
        words += f", {unreadable} unreadable"
    return words if not signatures else f"{words} · {signatures} signature{'' if signatures == 1 else 's'}"
