"""Header, sentence and footer: pure functions from state to lines."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from tracetui import text
from tracetui.analysis.liveness import State
from tracetui.live.mailbox import WatchState
from tracetui.masking import clean, one_line
from tracetui.model import RUNNING_STATES, Run, RunRef, RunState, RunSummary, Status
from tracetui.store.facts import total_tokens
from tracetui.store.store import Overview, Store
from tracetui.text import Clean
from tracetui.ui.commands import COMMANDS, DETAIL, FACTS, RUNS, Command, key_label, of_pane
from tracetui.ui.widgets.lines import named_keys
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs, status_glyph
from tracetui.views.goal import goal_sentence, has_turns
from tracetui.views.labels import (
    UNGRADED,
    WRONG_ANSWER,
    WRONG_STYLE,
    errors_inside,
    run_label,
    short_id,
    short_model,
    standing_of,
)
from tracetui.views.rows import Line, Piece, fit, width_of
from tracetui.views.timeline.header import FRAME, causes_line, cost_of

if TYPE_CHECKING:
    from tracetui.analysis.assessment import Assessment
    from tracetui.analysis.triage import Group
    from tracetui.ui.services.causes import Grouping

NARROW_HEADER: Final = 100
ROOMY_HEADER: Final = 112
WIDE_HEADER: Final = 180


class Progress(Protocol):
    """How far the scan is."""

    @property
    def stage(self) -> str: ...
    @property
    def seen(self) -> int: ...
    @property
    def total(self) -> int | None: ...


class Opened(Protocol):
    """A pane that shows the steps of a run."""

    @property
    def run(self) -> Run | None: ...
    @property
    def assessment(self) -> Assessment | None: ...


class ListedRuns(NamedTuple):
    """The listed runs, where a filter hides others."""

    overview: Overview
    failed: Sequence[RunRef]
    number: int
    """Child runs count too, unlike in the overview."""


class Vitals(NamedTuple):
    """Current state of the watcher, the listed runs and the open run."""

    watching: WatchState
    state_counts: Counter[RunState | None]
    """Number of runs without an end record, by state."""
    state: State
    """Liveness of the open run."""
    now: float | None = None
    """Time of that state, in UTC seconds."""


def header(
    roots: Sequence[str],
    store: Store,
    glyphs: Glyphs,
    vitals: Vitals,
    run: RunSummary | None,
    width: int,
    *,
    spent: str = "",
    listed: ListedRuns | None = None,
) -> tuple[Line, Line]:
    """The header as (path, status): counts or the status of the open run, spending, and how files are watched.

    `listed`: the listed runs, if a filter hides others.
    """
    watched = _watch_status(vitals.watching, glyphs, width)
    if run is None:
        parts = [
            *_list_status(store, glyphs, vitals.state_counts, width, listed and listed.overview),
            *_spent_part(spent, width),
            *watched,
        ]
    else:
        parts = [*_run_status(run, vitals, glyphs, width), *watched]
    path = width_of(_path(roots, glyphs, run, width, width))
    right = _fitting(parts, width - path - 4)
    return _path(roots, glyphs, run, width, width - width_of(right) - 4), right


class _Part(NamedTuple):
    """A part of the right side of the header."""

    line: Line
    drop: int = 0
    """The highest is dropped first where there is no room for all; 0: never."""


def _fitting(parts: list[_Part], room: int) -> Line:
    """The parts that fit beside the path."""
    while sum(width_of(part.line) for part in parts) > room and (priority := max(part.drop for part in parts)):
        parts = [part for part in parts if part.drop != priority]
    return tuple(piece for part in parts for piece in part.line)


def _spent_part(label: str, width: int) -> list[_Part]:
    """Tokens and cost of the listed runs, where there is room."""
    return [_Part((Piece(Clean(f"   {label}"), "text"),), 1)] if label and width >= NARROW_HEADER else []


def _watch_status(watching: WatchState, glyphs: Glyphs, width: int) -> list[_Part]:
    """How files are watched: by events, by polling, or not."""
    if watching.lost:
        return [_Part((Piece(Clean("   ")), Piece(Clean(f"{glyphs.note} link lost"), "status.error bold")))]
    if not watching.mode:
        return []
    parts = [_Part((Piece(Clean("   ")), Piece(Clean(f"{glyphs.live} live"), "status.ok")))]
    if width >= NARROW_HEADER:
        number, word = (watching.folders, "folder") if watching.folders else (watching.files, "file")
        label = f" {text.quantity(number, word)}"
        parts.append(_Part((Piece(Clean(label), "dim"),), 6))
        if watching.mode != "events":
            reason = f" ({watching.reason})" if watching.reason and width >= WIDE_HEADER else ""
            parts.append(_Part((Piece(Clean(" " + one_line(watching.mode + reason, 80)), "dim"),), 5))
    return parts


def _path(roots: Sequence[str], glyphs: Glyphs, run: RunSummary | None, width: int, room: int) -> Line:
    """Where this is: of the folder as much as the name of the open run leaves room for."""
    place = clean(short_path(roots[0]) + (f" +{len(roots) - 1}" if len(roots) > 1 else ""), 300) if roots else Clean("")
    program = (Piece(Clean("tracetui"), "accent bold"), Piece(Clean("  ")))
    crumb: Line = ()
    if run is not None:
        crumb = (
            Piece(Clean(f" {glyphs.path} "), "dim"),
            Piece(text.truncate(run_label(run), 60), "text bold"),
            *((Piece(Clean(f" {short_id(run.id)}"), "sec"),) if run.id != run.name else ()),
        )
    max_width = min(width // 3, room - width_of((*program, *crumb)))
    return (*program, Piece(text.truncate_middle(place, max(10, max_width)), "sec"), *crumb)


def _run_status(run: RunSummary, vitals: Vitals, glyphs: Glyphs, width: int) -> list[_Part]:
    status = standing_of(run, vitals.state, vitals.now, glyphs)
    word = status.label
    if not status.by_last_event and run.status_word and run.status_word.lower() != word and width >= NARROW_HEADER:
        word = Clean(f"{word} ({one_line(run.status_word, 30)})")
    named = [_Part((Piece(Clean(run.ref.format), "dim"), Piece(Clean("   "))), 4)] if width >= NARROW_HEADER else []
    pieces = [Piece(Clean(f"{status.sign} {word}"), status.style + " bold")]
    if run.errors and run.status in (Status.OK, Status.UNKNOWN):
        failed = errors_inside(run) if width >= NARROW_HEADER else f"{run.errors}{glyphs.error}"
        pieces.append(Piece(Clean(f" {glyphs.dot} {failed}"), "status.warn"))
    if run.duration_ms is not None:
        pieces.append(Piece(Clean(f" {text.duration(run.duration_ms)}"), "text"))
    return [*named, _Part(tuple(pieces))]


def _list_status(
    store: Store, glyphs: Glyphs, state_counts: Counter[RunState | None], width: int, listed: Overview | None
) -> list[_Part]:
    overview, dot = listed or store.overview, Piece(Clean(f" {glyphs.dot} "), "sec")
    parts: list[_Part] = []

    def add(label: str, drop: int, *more: Piece) -> None:
        gap = (dot,) if parts else ()
        parts.append(_Part((*gap, Piece(Clean(label), "sec"), *more), drop))

    if listed is not None:
        add(f"{text.grouped(listed.runs)} of {text.quantity(store.overview.runs, 'run')}", 0)
    elif width >= WIDE_HEADER and overview.by_format:
        by_count = sorted(overview.by_format.items(), key=lambda pair: -pair[1])
        counts = [f"{name} {number}" for name, number in by_count[:5]]
        if len(by_count) > 5:
            counts.append(f"+{len(by_count) - 5} formats")
        add(f" {glyphs.dot} ".join(counts), 0)
    else:
        add(text.quantity(overview.runs, "run"), 0)
        if (children := len(store.runs) - overview.runs) and width >= ROOMY_HEADER:
            parts.append(_Part((Piece(Clean(f" + {text.quantity(children, 'child run')}"), "sec"),), 3))
        if len(overview.by_format) > 1 and width >= NARROW_HEADER:
            add(text.quantity(len(overview.by_format), "format"), 4)
    if listed is None and store.ignored and width >= ROOMY_HEADER:
        add(f"{text.grouped(len(store.ignored))} ignored", 2, dot, Piece(Clean("i"), "key bold"))
    pieces: list[Piece] = []
    for status in (Status.ERROR, Status.RUNNING, Status.OK):
        number = (
            sum(state_counts[state] for state in RUNNING_STATES)
            if status is Status.RUNNING
            else overview.by_status.get(status, 0)
        )
        if status is Status.OK:
            number = overview.outcomes.ok
        elif status is Status.ERROR:
            number = overview.outcomes.errors
        if number:
            glyph, style = status_glyph(status, glyphs)
            pieces += [Piece(Clean("  ")), Piece(Clean(f"{glyph} {text.grouped(number)}"), style)]
        if status is Status.ERROR and (wrong := overview.outcomes.wrong):
            pieces += [Piece(Clean("  ")), Piece(Clean(f"{glyphs.wrong} {text.grouped(wrong)}"), WRONG_STYLE)]
        if status is Status.ERROR and (ungraded := overview.outcomes.ungraded):
            pieces += [Piece(Clean("  ")), Piece(Clean(f"{glyphs.ungraded} {text.grouped(ungraded)}"), WRONG_STYLE)]
    return [*parts, _Part(tuple(pieces))]


def sentence(
    store: Store,
    progress: Progress,
    vitals: Vitals,
    run: RunSummary | None,
    opened: Opened,
    causes: Grouping | None,
    width: int,
    listed: ListedRuns | None = None,
) -> Line:
    """The conclusion, and the next key. `listed`: the listed runs, if a filter hides others."""
    if run is not None:
        group = causes.by_run.get(run.ref) if causes is not None else None
        return _run_sentence(run, group, opened, vitals, width - FRAME)
    overview = store.overview if listed is None else listed.overview
    runs, failed, outcomes = overview.runs, overview.failed, overview.outcomes
    kinds = outcomes.kinds if width >= NARROW_HEADER else ""
    pieces: list[Piece] = []
    if failed:
        pieces += [
            Piece(Clean(f"{text.grouped(failed)} of {text.grouped(runs)} failed{kinds}"), "status.error bold"),
            Piece(Clean("  ·  "), "dim"),
            *_key("T", "triage"),
            Piece(Clean("   ")),
            *_key("e", "first failure"),
        ]
    elif runs and not outcomes.ungraded:
        label = "no failures" if not progress.stage else "no failures so far"
        pieces += [
            Piece(Clean(f"{text.quantity(runs, 'run')}, {label}"), "text"),
            Piece(Clean("  ·  "), "dim"),
            *_key("↵", "open"),
        ]
    elif listed is not None and not listed.number:
        label = f"0 of {text.quantity(store.overview.runs, 'run')} match"
        pieces += [Piece(Clean(label), "text"), Piece(Clean("  ·  "), "dim"), *_key("Esc", "clear filter")]
    elif store.problems and not progress.stage:
        pieces += [Piece(Clean("no readable traces"), "status.warn bold")]
    if ungraded := outcomes.ungraded:
        label = f"{text.grouped(ungraded)}{'' if failed else f' of {text.grouped(runs)}'} not graded"
        pieces += [Piece(Clean("  ·  " if pieces else ""), "dim"), Piece(Clean(label), f"{WRONG_STYLE} bold")]
        if not failed:
            pieces += [Piece(Clean("  ·  "), "dim"), *_key("T", "triage")]
    if vitals.state_counts[RunState.STALLED]:
        label = f"{text.grouped(vitals.state_counts[RunState.STALLED])} stalled?"
        pieces += [Piece(Clean("   ")), Piece(Clean(label), "status.warn bold")]
    if store.problems and listed is None:
        gap = Piece(Clean("   " if pieces else ""))
        pieces += [gap, Piece(Clean(f"{text.quantity(len(store.problems), 'file')} unreadable"), "status.warn")]
    if progress.stage:
        pieces += [Piece(Clean("   " if pieces else "")), Piece(Clean(progress_text(progress)), "status.running")]
    if failed and causes is not None and width >= NARROW_HEADER:
        groups = causes.groups if listed is None else causes.among(listed.failed)
        pieces[1:1] = causes_line(groups, width - FRAME - width_of(pieces))
    return tuple(pieces)


def progress_text(progress: Progress) -> str:
    """How far the scan is."""
    activity = "scanning" if progress.stage == "list" else "counting"
    if progress.total:
        return f"{activity} {text.grouped(progress.seen)} / {text.quantity(progress.total, 'file')}"
    return f"{activity} {text.quantity(progress.seen, 'file')}"


def _run_sentence(run: RunSummary, group: Group | None, opened: Opened, vitals: Vitals, width: int) -> Line:
    """The result or prompt of a run, and as many facts as fit beside it."""
    error = run.first_error
    if opened.run is not None and opened.run.summary.ref == run.ref and has_turns(opened.run):
        goal = goal_sentence(opened.run)
        facts = next((line for line in _run_facts(run, group, opened, vitals) if width_of((*goal, *line)) <= width), ())
        return (*fit(goal, width), *facts)
    if run.is_ungraded and not run.failed:
        headline = Piece(one_line(f"{UNGRADED}: {run.outcome_source}", 200), f"{WRONG_STYLE} bold")
    elif run.status is Status.ERROR and error is not None:
        headline = Piece(one_line(error.text or "failed", 200), "status.error bold")
    elif run.is_wrong:
        headline = Piece(one_line(f"{WRONG_ANSWER}: {run.result or run.outcome_source}", 200), f"{WRONG_STYLE} bold")
    elif run.result:
        headline = Piece(one_line(run.result, 200), "text bold")
    else:
        headline = Piece(one_line(run.prompt or _status(run, vitals), 200), "text")
    max_width = width * 2 // 3 if run.failed else width // 3  # why it failed is worth more than its facts
    wanted = min(width_of((headline,)), max(24, max_width))
    facts = next(
        (line for line in _run_facts(run, group, opened, vitals, headline.text) if width_of(line) + wanted <= width),
        (),
    )
    return (*fit([headline], max(0, width - width_of(facts))), *facts)


def _status(run: RunSummary, vitals: Vitals) -> str:
    """The status of an ended run with its source, or the state of another."""
    standing = standing_of(run, vitals.state, vitals.now)
    if vitals.state is not State.ENDED:
        return standing.label
    source = f" ({run.status_source.label})" if run.status_source is not None else ""
    return f"status {run.status.value}{source}" if standing.says_status(run) else f"state {standing.basis}"


def _run_facts(
    run: RunSummary, group: Group | None, opened: Opened, vitals: Vitals, headline: str = ""
) -> Iterator[Line]:
    """The facts of a run after `headline`, then fewer and fewer: the status is dropped first, the cause last."""
    facts = [
        short_model(run.model or ""),
        text.quantity(run.steps, "step"),
        f"{text.tokens(total)} tok" if (total := total_tokens(run)) is not None else "",
        *cost_of(run, opened.assessment),
    ]
    if opened.run is not None and opened.run.problems:
        notes = len(opened.run.problems)
        facts.append(f"{text.quantity(notes, 'note')} in run")
    if group is not None and len(group.runs) > 1:
        facts.append(f"cause {group.id}: {text.quantity(len(group.runs), 'run')}")
    status = _status(run, vitals)
    tail: Line = ()
    if vitals.state is not State.ENDED:
        tail = tuple(_key("i", f"why {standing_of(run, vitals.state, vitals.now).short_label}"))
    elif status != headline:
        tail = (Piece(Clean(status), "dim"),)
    texts = [fact for fact in facts if fact]
    if tail:
        yield (Piece(Clean("  ·  " + " · ".join(texts)), "sec"), Piece(Clean("  ·  "), "dim"), *tail)
    for first in range(len(texts)):
        yield (Piece(Clean("  ·  " + " · ".join(texts[first:])), "sec"),)


def _key(key: str, word: str) -> list[Piece]:
    return [Piece(Clean(key), "key bold"), Piece(Clean(f" {word}"), "sec")]


def with_hints(facts: Sequence[Piece], hints: Sequence[tuple[str, str]], width: int) -> Line:
    """Facts, and as many hints (key, words) as fit whole; without one, the separator after the facts is left out."""
    pieces = [*facts]
    for key, label in hints:
        gap = [Piece(Clean("   "))] if len(pieces) > len(facts) else []
        hint = [*gap, *_key(key, label)]
        if width_of((*pieces, *hint)) > width - FRAME:
            break
        pieces += hint
    is_separated = len(pieces) == len(facts) and bool(pieces) and not pieces[-1].text.strip(" ·")
    return tuple(pieces[:-1] if is_separated else pieces)


_PANE_HINTS: Final = {DETAIL: ("open", "next-tab", "copy", "search", "zoom"), FACTS: ("open", "copy", "search", "zoom")}
"""Commands hinted first in a pane of text."""
_OF_FAILURES: Final = frozenset({"next-error", "triage", "failures", "contrast"})
_OF_RUNS: Final = frozenset(
    {"diff-original", "follow", "note", "next-tab", "context-page", "export"}
    | {"next-finding", "jump", "tree", "origin", "blame"}
)
"""Commands without effect on an unreadable file."""
_ALWAYS: Final = frozenset({"quit", "help"})
_WITHOUT_ROWS: Final = frozenset({"back", "pane", "live", "triage", "tasks"})
_FILTERS: Final = frozenset({"filter", "failures"})


def idle(store: Store, run: RunSummary | None, pane: str, *, empty: bool) -> frozenset[str]:
    """Commands not worth a hint, because they have no effect now.

    `run` is the shown one. `empty`: no run or file is shown, `pane` is the focused one.
    """
    if not store.runs and not store.problems:
        return frozenset(command.id for command in COMMANDS) - _ALWAYS
    overview = store.overview
    command_ids = frozenset[str]() if overview.failed else _OF_FAILURES
    if not overview.repeated_tasks:
        command_ids |= {"tasks"}
    if run is None:
        command_ids |= _OF_RUNS if pane == RUNS else {*_OF_RUNS, "filter", "sort"}
    elif run.errors:
        command_ids -= {"next-error"}
    if empty:
        active = _ALWAYS | _WITHOUT_ROWS | (_FILTERS if pane == RUNS else frozenset())
        command_ids |= frozenset(command.id for command in COMMANDS) - active
    return command_ids if run is not None and run.status is Status.ERROR else command_ids | {"real"}


def footer(
    commands: Sequence[Command],
    pane: str,
    width: int,
    level: int,
    idle: frozenset[str] = frozenset(),
    *,
    hidden: int = 0,
    glyphs: Glyphs = UNICODE,
) -> tuple[Line, Line]:
    """The most useful keys here, without those that are `idle`; the keys for all others and for hidden columns."""
    commands, pane_hints = of_pane(pane, commands), _PANE_HINTS.get(pane, ())
    same = "back" if pane == RUNS and not level else "quit"  # elsewhere, both go back
    hinted = [c for c in commands if c.hint and c.id not in {*idle, "help", same}]
    hinted.sort(key=lambda c: pane_hints.index(c.id) - len(pane_hints) if c.id in pane_hints else c.hint)
    right = [Piece(Clean("?"), "key bold"), Piece(Clean(" all keys"), "dim")]
    if pane == RUNS and hidden and width < 180:
        columns = f" {text.quantity(hidden, 'hidden column')}   "
        right = [Piece(Clean("W"), "key bold"), Piece(Clean(columns), "dim"), *right]
    room = width - width_of(right) - 3
    pieces: list[Piece] = []
    max_hints = 6 if width < 100 else 9 if width < 180 else 14
    for command in hinted[:max_hints]:
        key, _, _ = key_label(command.keys[0]).partition(" ")
        word, separator, _ = command.title.partition(": ")  # of commands that begin alike, one is hinted for all
        more = [*_key(key[:1] if separator else key, word), Piece(Clean("  "))]
        shown = [*pieces, *more]
        if width_of(named_keys(shown) if glyphs is ASCII else shown) > room:
            break
        pieces += more
    return tuple(pieces), tuple(right)


def short_path(path: str) -> str:
    """A path with ``~`` for the home folder."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
