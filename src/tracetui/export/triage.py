"""A triage: every cause with its runs and verdict, as blocks, as JSON (docs/json.md) and as a table."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from tracetui.analysis.contrast import NO_FINDINGS, Contrast, Finding
from tracetui.analysis.triage import (
    NOT_FAILURES,
    CauseVerdicts,
    Group,
    Split,
    Task,
    by_who,
    failure_counts,
    groups,
    splits_of,
    variants_of,
)
from tracetui.export.json import encode, moment
from tracetui.export.page import NO_PAGES, Block, Cell, Code, Facts, Heading, Link, Pages, Prose, Table, run_link
from tracetui.export.schemas import reports as schemas
from tracetui.export.table import Column, Screen, TextTable, since, started
from tracetui.masking import clean_lines, masked_line, one_line
from tracetui.model import RunSummary, quote_key
from tracetui.model.masked import masked_summary
from tracetui.redact import Redactor
from tracetui.store.facts import OutcomeCounts
from tracetui.store.judgement import Judgement
from tracetui.store.relations import uncounted_parts
from tracetui.text import Clean, count, duration, exact, grouped, quantity, tokens, truncate_middle
from tracetui.views.labels import run_label
from tracetui.views.triage import passed_trials

TRIAGE: Final = "tracetui/triage/1"
MAX_RUNS: Final = 200
"""Runs of a cause that a document lists."""
_HEADING: Final = ("id", "runs", "who", "cause", "agents", "time lost", "tokens", "verdict")
_NUMBERS: Final = frozenset({1, 5, 6})
_SHARED: Final = ("shared by these runs", "of these", "of passed runs", "example")


class Entry(NamedTuple):
    """A cause with its runs, masked or not, and the decisions on them."""

    group: Group
    shown_title: str
    judgment: Judgement
    runs: Sequence[tuple[RunSummary, Judgement]]
    tasks: Sequence[tuple[Task, Judgement]]
    variants: Sequence[Mapping[str, Any]]
    splits: Sequence[Split]
    is_new: bool
    """It has no verdict."""
    unread: int = 0
    """Runs with the same error that a database did not send."""

    @property
    def total(self) -> int:
        """The number of runs."""
        return len(self.group.runs) + self.unread

    @property
    def title(self) -> str:
        """The title; of wrong answers with their number."""
        tasks = len(self.group.tasks)
        number = f" · {quantity(len(self.group.runs), 'run')}, {quantity(tasks, 'task')}" if tasks else ""
        return self.shown_title + number


class Triage(NamedTuple):
    """Every cause, and how many of how many runs failed."""

    entries: Sequence[Entry]
    counts: Mapping[str, Any]

    @property
    def sections(self) -> list[tuple[bool, list[Entry]]]:
        """The causes of failures, then (true) those of ungraded runs; without empty ones."""
        halves = [(half, [entry for entry in self.entries if entry.group.ungraded is half]) for half in (False, True)]
        return [(half, entries) for half, entries in halves if entries]

    @property
    def groups(self) -> list[Group]:
        """The causes."""
        return [entry.group for entry in self.entries]

    @property
    def new_causes(self) -> list[str]:
        """Ids of the causes without a verdict."""
        return [entry.group.id for entry in self.entries if entry.is_new]


Shared = Mapping[str, Contrast]
"""Features that the runs of a cause share and passed runs lack, by its id."""


def triage_of(
    runs: Iterable[RunSummary],
    verdicts: CauseVerdicts,
    redactor: Redactor | None = None,
    unread: Mapping[str, int] = MappingProxyType({}),
) -> Triage:
    """The triage of these runs. They are grouped as they are, and masked afterwards.

    `unread`: how many more runs have the error of one of them, by its path.
    """
    listed = {run.ref: run for run in runs}
    causes = groups(listed.values(), verdicts.decisions)
    entries = [
        _entry_of(group, [listed[ref] for ref in group.runs], verdicts, redactor)._replace(
            unread=sum(unread.get(ref.path, 0) for ref in group.runs)
        )
        for group in causes
    ]
    more = sum(entry.unread for entry in entries)
    counted = listed.keys() - uncounted_parts(listed.values())
    counts = OutcomeCounts.of(listed[ref] for ref in counted)
    totals = {
        "runs": counts.runs + more,
        "failed": counts.failed + more,
        "errors": counts.errors + more,
        "wrong_answers": counts.wrong,
        "ungraded": counts.ungraded,
        "failed_ungraded": counts.both,
        "passed": counts.passed,
        "graded": counts.rated,
        "who": {who.value: number for who, number in by_who(causes).items()},
    }
    return Triage(entries, {**totals, "causes": len(causes), "signatures": len(causes)})


def _entry_of(group: Group, runs: Sequence[RunSummary], verdicts: CauseVerdicts, redactor: Redactor | None) -> Entry:
    judgment, is_new = verdicts.of_group(group), verdicts.is_new(group)
    members = [(run, verdicts.of_run(run)) for run in runs]
    tasks = [(task, verdicts.of_task(task)) for task in group.tasks]
    if redactor is not None:
        hide = redactor.header
        members = [(masked_summary(run, redactor), redactor.value(own)) for run, own in members]
        tasks = [
            (replace(task, name=hide(task.name), reasons=tuple(map(hide, task.reasons))), redactor.value(own))
            for task, own in tasks
        ]
        judgment = redactor.value(judgment)
        group = replace(group, agents=tuple(map(hide, group.agents)))
    mask = attrgetter("exact") if redactor is None else redactor.excerpt
    variants = [
        {"text": mask(variant.text), "count": variant.count, "example": variant.example.address}
        for variant in variants_of(runs)
    ]
    return Entry(group, mask(group.title), judgment, members, tasks, variants, splits_of(runs), is_new)


def next_command(triage: Triage, places: Sequence[str]) -> str:
    """The next command to run: an example of the biggest cause without a verdict, else the list. Safe in a shell."""
    example = next((entry.group.example.address for entry in triage.entries if entry.is_new), None)
    return shlex.join(["tracetui", "ls", *places] if example is None else ["tracetui", "show", example])


# ---- blocks


def triage_report(
    triage: Triage, place: str, shared: Shared, redactor: Redactor | None = None, pages: Pages = NO_PAGES
) -> Iterator[Block]:
    """The table of causes, then each with what its runs share, and with its runs, which lead to their `pages`."""
    counts = triage.counts
    yield Heading(1, exact(f"Triage of {place}", 300))
    causes = quantity(counts["causes"], "cause")
    overlap = f" ({counts['failed_ungraded']} of them failed too)" if counts["failed_ungraded"] else ""
    ungraded = f", {counts['ungraded']} ungraded{overlap}" if counts["ungraded"] else ""
    yield Prose(Clean(f"{counts['failed']} of {quantity(counts['runs'], 'run')} failed{ungraded} ({causes})."))
    if counts["ungraded"]:
        total = counts["graded"] + counts["ungraded"]
        failures, _ = failure_counts(triage.groups)
        passes = f"{counts['passed']} of {counts['graded']} graded passed, of {total}."
        yield Prose(Clean(f"{failures}. {passes}" if failures else passes))
    for is_ungraded, entries in triage.sections:
        if is_ungraded:
            yield Prose(Clean(f"{NOT_FAILURES}:"))
        yield Table(_HEADING, [_row(entry) for entry in entries], _NUMBERS)
    for entry in triage.entries:
        yield from _entry(entry, shared.get(entry.group.id), redactor, pages)


def _row(entry: Entry) -> Sequence[Cell]:
    group = entry.group
    return (
        Link(Clean(group.id), group.id),
        Clean(str(len(group.runs))),
        Clean(group.who.value),
        one_line(entry.title, 160),
        one_line(", ".join(group.agents), 60),
        duration(group.wasted_ms),
        tokens(group.wasted_tokens),
        _verdict(entry.judgment),
    )


def _verdict(judgment: Judgement) -> Clean:
    return Clean(judgment.verdict.value if judgment.verdict is not None else "")


def _entry(entry: Entry, shared: Contrast | None, redactor: Redactor | None, pages: Pages) -> Iterator[Block]:
    group, judgment = entry.group, entry.judgment
    example = next((run for run, _ in entry.runs if run.ref == group.example), None)
    yield Heading(2, Clean(f"{group.id}  {one_line(entry.title, 160)}"), group.id)
    seen = [text for text in (moment(group.first_seen), moment(group.last_seen)) if text is not None]
    wasted = [duration(group.wasted_ms)] if group.wasted_ms is not None else []
    wasted += [Clean(f"{tokens(group.wasted_tokens)} tokens")] if group.wasted_tokens is not None else []
    facts: dict[str, Sequence[Cell]] = {
        "verdict": [_verdict(judgment)] if judgment.verdict is not None else [],
        "note": clean_lines(judgment.note) if judgment.note else [],
        "tags": [one_line(" ".join(judgment.tags), 300)] if judgment.tags else [],
        "who": [Clean(f"{group.who.value}; not graded" if group.ungraded else group.who.value)],
        "runs": [grouped(len(group.runs))],
        "seen": [Clean(" to ".join(dict.fromkeys(seen)))] if seen else [],
        "agents": [one_line(", ".join(group.agents), 300)] if group.agents else [],
        "time lost": [Clean(", ".join(wasted))] if wasted else [],
        "example": [run_link(group.example, pages) if example is None else _run_name(example, pages)],
    }
    yield Facts([(label, lines) for label, lines in facts.items() if lines])
    if example is not None and (evidence := example.evidence) is not None:
        yield Prose(one_line(f"{evidence.place}: {evidence.text}", 400))
    error = None if example is None else example.first_error
    if error is not None and error.text:
        yield Code(clean_lines(error.text))
    if entry.tasks:
        yield Table(("task", "passed", "verdict", "reason"), [_task(task, own) for task, own in entry.tasks])
    if shared is not None:
        yield from _shared(shared, redactor)
    runs = entry.runs[:MAX_RUNS]
    yield Table(("run", "started", "verdict", "note"), [_run(run, judgment, pages) for run, judgment in runs])
    if len(entry.runs) > len(runs):
        yield Prose(Clean(f"… and {len(entry.runs) - len(runs)} more"))


def _task(task: Task, judgment: Judgement) -> Sequence[Clean]:
    return (
        one_line(task.name, 80) or Clean("—"),
        passed_trials(task),
        _verdict(judgment),
        one_line("; ".join(task.reasons), 160),
    )


def _shared(shared: Contrast, redactor: Redactor | None) -> Iterator[Block]:
    """The features that the runs have in common, with counts in them and in the passed runs."""
    rows = [
        (
            masked_line(finding.label, redactor, 160),
            Clean(f"{finding.in_a}/{finding.of_a}"),
            Clean(f"{finding.in_b}/{finding.of_b}"),
            exact(address_of(finding)),
        )
        for finding in shared.findings
    ]
    if rows:
        yield Table(_SHARED, rows, frozenset({1, 2}))
    else:
        yield Prose(Clean(NO_FINDINGS))
    if shared.note:
        yield Prose(one_line(shared.note, 200))


def _run_name(run: RunSummary, pages: Pages) -> Clean | Link:
    """The name and the id of a run, with a link to its page if it has one."""
    label, ident = run_label(run), exact(run.id, 80)
    name = label if ident in label else Clean(f"{label} {ident}")
    return Link(name, "", pages[run.ref]) if run.ref in pages else name


def _run(run: RunSummary, judgment: Judgement, pages: Pages) -> Sequence[Cell]:
    own = judgment if judgment.source == "run" else Judgement()
    return (
        _run_name(run, pages),
        Clean(moment(run.started_at, zone=run.time_zone) or "—"),
        _verdict(own),
        one_line(judgment.note, 160),
    )


# ---- JSON


def triage_value(
    triage: Triage, shared: Shared, redactor: Redactor | None = None, *, next_command: str
) -> dict[str, Any]:
    """``tracetui/triage/1``. `redactor` masks what runs share; the triage is as it was made."""
    contrasts = {ident: contrast_value(contrast, redactor) for ident, contrast in shared.items()}
    causes = [_cause(entry, contrasts.get(entry.group.id)) for entry in triage.entries]
    return {
        "schema": TRIAGE,
        "counts": triage.counts,
        "causes": causes,
        "new_causes": triage.new_causes,
        "signatures": causes,
        "next": next_command,
    }


def _cause(entry: Entry, contrast: Any) -> dict[str, Any]:
    group, judgment = entry.group, entry.judgment
    zones = {run.started_at: run.time_zone for run, _ in entry.runs}
    return {
        "id": group.id,
        "digest": group.digest,
        "kind": "ungraded" if group.ungraded else "wrong_answers" if group.wrong else "error",
        "who": group.who,
        "title": entry.shown_title,
        "count": entry.total,
        "runs": [ref.address for ref in group.runs],
        "first_seen": moment(group.first_seen, zone=zones.get(group.first_seen)),
        "last_seen": moment(group.last_seen, zone=zones.get(group.last_seen)),
        "agents": group.agents,
        "wasted_ms": group.wasted_ms,
        "wasted_tokens": group.wasted_tokens,
        "example": group.example.address,
        "verdict": judgment.verdict,
        "new": entry.is_new,
        "note": judgment.note or None,
        "tags": judgment.tags,
        "judged": {run.ref.address: _decision(own) for run, own in entry.runs if own.source == "run"},
        "merged": group.merged,
        "split_of": group.split_of or None,
        "variants": entry.variants,
        "splits": [{"by": split.by, "label": split.label, "parts": split.parts} for split in entry.splits],
        "tasks": [_task_value(task, own) for task, own in entry.tasks],
        "contrast": contrast,
    }


def _task_value(task: Task, judgment: Judgement) -> dict[str, Any]:
    return {
        "id": task.id,
        "digest": task.digest,
        "task": task.name or None,
        "runs": [ref.address for ref in task.runs],
        "passed": task.passed if task.trials else None,
        "trials": task.trials or None,
        "reasons": task.reasons,
        **_decision(judgment),
    }


def _decision(judgment: Judgement) -> schemas.Decision:
    return {"verdict": judgment.verdict, "note": judgment.note or None, "tags": judgment.tags}


def json_lines(value: Mapping[str, Any]) -> Iterator[bytes]:
    """A JSON object with one item of its lists per line."""
    before = b"{"
    for name, field in value.items():
        yield before + encode(name) + b":"
        listed = isinstance(field, list | tuple) and field
        yield b"[" + b",".join(b"\n" + encode(item) for item in field) + b"]" if listed else encode(field)
        before = b","
    yield b"}\n"


def contrast_value(contrast: Contrast, redactor: Redactor | None = None) -> dict[str, Any]:
    """The findings, strongest first. Text is exact, or masked by `redactor`."""
    return {"findings": [_finding(finding, redactor) for finding in contrast.findings], "note": contrast.note or None}


def _finding(finding: Finding, redactor: Redactor | None) -> dict[str, Any]:
    labels = [feature.label for feature in finding.features]
    return {
        "features": labels if redactor is None else [redactor.header(text) for text in labels],
        "in": finding.in_a,
        "of": finding.of_a,
        "in_others": finding.in_b,
        "of_others": finding.of_b,
        "p": finding.p,
        "example": address_of(finding),
    }


def address_of(finding: Finding) -> str:
    """The address of the example: a run, or a step in it."""
    ref, span = finding.example
    return ref.address if span is None else f"{ref.address}/{quote_key(span)}"


# ---- the table of the command

_WHOLE: Final = (
    Column("ID", 12),
    Column("WHO", 11),
    Column("RUNS", 6, right=True),
    Column("LOST", 7, right=True),
    Column("TOKENS", 6, right=True),
    Column("LAST", 20),
    Column("VERDICT", 7),
    Column("EXAMPLE"),
    Column("CAUSE", least=24),
)
_NARROW: Final = (
    *_WHOLE[:4],
    Column("TOKENS", 6, right=True, leaves=1),
    Column("AGE", 4, right=True),
    _WHOLE[6],
    Column("EXAMPLE", least=8, middle=True),
    _WHOLE[8],
)


def cause_table(triage: Triage, screen: Screen | None = None) -> Iterator[Clean]:
    """One cause a row; below the heading of wrong answers one task a row.

    The address of its newest run is never cut, so that it can be used: where `screen` is too narrow for it, its id
    stands there instead.
    """
    full = TextTable(_WHOLE, list(_sections(triage, _rows)))
    if screen is None or full.room <= screen.width:
        return full.lines(None if screen is None else screen.width)
    rows = list(_sections(triage, partial(_narrow_rows, screen=screen)))
    above = truncate_middle(Clean(f"an example: {screen.usage}"), screen.width)
    return chain([above], TextTable(_NARROW, rows).lines(screen.width))


def _sections(triage: Triage, rows_of: Callable[[Entry], Iterable[Sequence[Clean]]]) -> Iterator[Sequence[Clean]]:
    """The rows of all causes; those of ungraded runs below a row that says so."""
    for is_ungraded, entries in triage.sections:
        if is_ungraded:
            yield (*[Clean("")] * (len(_WHOLE) - 1), Clean(NOT_FAILURES))
        for entry in entries:
            yield from rows_of(entry)


def _narrow_rows(entry: Entry, screen: Screen) -> Iterator[Sequence[Clean]]:
    refs = [entry.group.example, *(task.runs[0] for task, _ in entry.tasks)]
    ages = [since(_last(entry), screen.now), *[Clean("")] * len(entry.tasks)]
    for row, ref, age in zip(_rows(entry), refs, ages, strict=True):
        yield (*row[:5], age, row[6], exact(screen.names[ref]), row[-1])


def _last(entry: Entry) -> RunSummary | None:
    return next((run for run, _ in entry.runs if run.started_at == entry.group.last_seen), None)


def _rows(entry: Entry) -> Iterator[tuple[Clean, ...]]:
    group, verdict = entry.group, entry.judgment.verdict
    last = _last(entry)
    yield (
        Clean(group.id),
        Clean(group.who.value),
        count(entry.total),
        duration(group.wasted_ms),
        tokens(group.wasted_tokens),
        Clean("—") if last is None else started(last),
        Clean("—" if verdict is None else verdict.value),
        exact(group.example.address),
        one_line(entry.title, 200),
    )
    for task, judgment in entry.tasks:
        reasons = f" · {'; '.join(task.reasons)}" if task.reasons else ""
        yield (
            Clean(f"  {task.id}"),
            Clean(""),
            count(len(task.runs)),
            Clean(""),
            Clean(""),
            Clean(""),
            _verdict(judgment) or Clean("—"),
            exact(task.runs[0].address),
            one_line(f"  {task.name or '—'} · {passed_trials(task)}{reasons}", 200),
        )
