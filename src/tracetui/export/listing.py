"""The table that ``ls`` prints: one run or unreadable file a row, cleaned, in columns as wide as what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os.path import basename
from shlex import quote
from typing import Final, NamedTuple

from tracetui.export.table import Column, Table
from tracetui.model import Problem, RunRef, RunSummary, Status
from tracetui.store.relations import split_traces, uncounted_parts
from tracetui.text import Clean, age, cells, clean, count, duration, one_line, pad, tokens, truncate, truncate_middle
from tracetui.views.labels import run_label, start_label
from tracetui.views.list.runs import outcome
from tracetui.views.timeline.chart import tokens_of

_OUTCOME: Final = Column("OUTCOME", least=20)
_WHOLE: Final = (
    Column("STATUS", 10),
    Column("STARTED", 20),
    Column("TIME", 6, right=True),
    Column("STEPS", 5, right=True),
    Column("TOKENS", 6, right=True),
    Column("NAME", 28),
    Column("ADDRESS"),
    _OUTCOME,
)
_NARROW: Final = (
    Column("STATUS", 10),
    Column("AGE", 4, right=True),
    Column("TIME", 6, right=True),
    Column("STEPS", 5, right=True, leaves=2),
    Column("TOKENS", 6, right=True, leaves=1),
    Column("NAME", 28, least=12, middle=True),
    Column("ID", least=8, middle=True),
    _OUTCOME,
)


class Screen(NamedTuple):
    """The terminal that a list is printed to."""

    width: int
    """Cells of a line."""
    now: float
    """UTC seconds."""
    places: Sequence[str]
    """Where the runs are; none: where they are looked for anyway."""
    names: Mapping[RunRef, str]
    """What every run there can be named by (`tracetui.views.labels.short_names`)."""

    @property
    def usage(self) -> Clean:
        """How one of these names is used: ``tracetui show traces#ID``."""
        place = "PLACE#" if len(self.places) > 1 else "".join(f"{quote(place)}#" for place in self.places)
        return clean(f"tracetui show {place}ID")


def listing(
    runs: Sequence[RunSummary],
    problems: Sequence[Problem],
    screen: Screen | None = None,
    notes: Mapping[RunRef, str] | None = None,
) -> Iterator[Clean]:
    """The lines of the table. Addresses are never cut, so that they can be used: where `screen` has no room for them,
    there are ids instead, and a line above says how to use one. `notes` are put after the outcome of a run."""
    notes = notes or {}
    whole = Table(_WHOLE, chain((_run_cells(run, notes) for run in runs), map(_problem_cells, problems)))
    if screen is None or whole.room <= screen.width:
        return whole.lines(None if screen is None else screen.width)
    rows = [_narrow_cells(run, screen, notes) for run in runs]
    broken = (_narrow_problem(problem, screen) for problem in problems)
    return chain(_above(runs, problems, screen), Table(_NARROW, rows).lines(screen.width) if rows else (), broken)


def _above(runs: Sequence[RunSummary], problems: Sequence[Problem], screen: Screen) -> Iterator[Clean]:
    """``40 runs, 1 unreadable · tracetui show traces#ID``."""
    counts = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    counts += f", {len(problems)} unreadable" if problems else ""
    yield truncate_middle(Clean(f"{counts} · {screen.usage}"), screen.width)


def part_notes(runs: Iterable[RunSummary]) -> dict[RunRef, str]:
    """What to say of runs that are parts of one trace: ``[part 1 of 2 of its trace, also in b.jsonl]``."""
    notes = {}
    for refs in split_traces(runs).values():
        for place, ref in enumerate(refs, 1):
            others = ", ".join(basename(other.path) for other in refs if other != ref)
            notes[ref] = f"[part {place} of {len(refs)} of its trace, also in {others}]"
    return notes


def _narrow_cells(run: RunSummary, screen: Screen, notes: Mapping[RunRef, str]) -> tuple[Clean, ...]:
    whole = _run_cells(run, notes)
    return (whole[0], since(run, screen.now), *whole[2:6], clean(screen.names[run.ref]), whole[-1])


def _narrow_problem(problem: Problem, screen: Screen) -> Clean:
    """``unreadable  2026/run.json  byte 0: empty file``: the reason is read, so the path is cut first."""
    status, *_, reason = _problem_cells(problem)
    below = next((problem.path[len(one) :] for one in screen.places if problem.path.startswith(one)), problem.path)
    head = pad(status, _NARROW[0].most)
    room = max(screen.width - cells(head) - 4, 0)
    path = truncate_middle(clean(below.lstrip("/") or problem.path), max(room - cells(reason), room // 2))
    return Clean(f"{head}  {path}  {truncate(reason, room - cells(path))}".rstrip())


def _run_cells(run: RunSummary, notes: Mapping[RunRef, str]) -> tuple[Clean, ...]:
    return (
        Clean(run.status.value),
        started(run),
        duration(run.duration_ms),
        count(run.steps),
        tokens(tokens_of(run.usage)),
        truncate(run_label(run), _WHOLE[5].most),
        clean(run.ref.address),
        Clean("".join(piece.text for piece in outcome(run)) + _put_after(notes.get(run.ref)) + _noted(run.problems)),
    )


def _put_after(note: str | None) -> str:
    return f" {one_line(note, 200)}" if note else ""


def _noted(problems: int) -> str:
    return f" [{problems} problem{'' if problems == 1 else 's'} inside]" if problems else ""


def _problem_cells(problem: Problem) -> tuple[Clean, ...]:
    reason = f"{problem.where}: {problem.reason}" if problem.where else problem.reason
    unsaid = Clean("—")
    return (Clean("unreadable"), *[unsaid] * 5, clean(problem.path), one_line(reason, 200))


def started(run: RunSummary) -> Clean:
    """When a run started, to the second; ``—`` where the trace does not say."""
    return Clean((start_label(run) or "—").removesuffix(" local, zone unknown"))


def since(run: RunSummary | None, now: float) -> Clean:
    """How long ago a run started; ``—`` where the trace does not say."""
    return age(None if run is None or run.started_at is None else max(0.0, now - run.started_at))


def newest_first(runs: Iterable[RunSummary]) -> list[RunSummary]:
    """The order of every list: by start, newest first; runs without one last; then by address."""
    return sorted(runs, key=lambda run: (run.started_at is None, -(run.started_at or 0.0), run.ref.address))


def triage(runs: Iterable[RunSummary], unreadable: int, causes: int = 0) -> str:
    """The sentence that turns a list into an action: ``7 of 40 failed · 2 causes``.

    Counts runs that no other run started; a trace in several files is one run.
    """
    known = list(runs)
    parts = uncounted_parts(known)
    top = [run for run in known if run.parent is None and run.ref not in parts]
    failed = sum(run.status is Status.ERROR for run in top)
    words = f"{failed} of {len(top)} failed"
    if unreadable:
        words += f", {unreadable} unreadable"
    return words if not causes else f"{words} · {causes} cause{'' if causes == 1 else 's'}"
