"""A whole triage: every failure signature with what was judged of it, as blocks and as JSON (docs/json.md)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from tracetui.analysis.contrast import Contrast
from tracetui.export.contrast import address_of, contrast_value
from tracetui.export.json import moment
from tracetui.export.page import Block, Code, Facts, Heading, Prose, Table
from tracetui.model import RunSummary
from tracetui.model.masked import masked_summary
from tracetui.redact import Redactor
from tracetui.store.judgement import Judgement
from tracetui.store.outcomes import OutcomeCounts
from tracetui.store.relations import uncounted_parts
from tracetui.store.triage import Group, groups
from tracetui.text import Clean, clean, clean_lines, duration, grouped, one_line, tokens

TRIAGE: Final = "tracetui/triage/1"
MOST_RUNS: Final = 200
"""Runs of a signature that a document lists."""
_HEADING: Final = ("id", "runs", "what failed", "agents", "wasted", "tokens", "verdict")
_NUMBERS: Final = frozenset({1, 4, 5})
_SHARED: Final = ("shared by these runs", "of these", "of the others", "example")

Judged = Callable[[RunSummary, Group], Judgement]
"""What was judged of a run, by itself or by its signature."""


class Entry(NamedTuple):
    """A signature with its runs, masked or not, and what was judged of them."""

    group: Group
    title: str
    judged: Judgement
    runs: Sequence[tuple[RunSummary, Judgement]]


class Triage(NamedTuple):
    """What is exported: every signature, and how many of how many runs failed."""

    entries: Sequence[Entry]
    counts: Mapping[str, int]

    @property
    def groups(self) -> list[Group]:
        """The signatures."""
        return [entry.group for entry in self.entries]


Shared = Mapping[str, Contrast]
"""What the runs of a signature share that others lack, by its id."""


def triage_of(
    runs: Iterable[RunSummary],
    of_group: Callable[[Group], Judgement],
    of_run: Judged,
    redactor: Redactor | None = None,
) -> Triage:
    """The triage of these runs. They are grouped as they are, and masked afterwards."""
    known = {run.ref: run for run in runs}
    found = groups(known.values())
    entries = []
    for group in found:
        members = [(known[ref], of_run(known[ref], group)) for ref in group.runs]
        judged = of_group(group)
        if redactor is not None:
            members = [(masked_summary(run, redactor), redactor.value(own)) for run, own in members]
            judged = redactor.value(judged)
            group = replace(group, agents=tuple(map(redactor.header, group.agents)))
        title = group.signature.title
        entries.append(Entry(group, title if redactor is None else redactor.header(title), judged, members))
    counted = known.keys() - uncounted_parts(known.values())
    counts = OutcomeCounts.of(known[ref] for ref in counted)
    told = {"runs": counts.runs, "failed": counts.failed, "errors": counts.errors, "wrong_answers": counts.wrong}
    return Triage(entries, {**told, "signatures": len(found)})


def next_command(triage: Triage, places: Sequence[str]) -> str:
    """What to look at next: an example of the biggest cause that nobody has judged; else the list. Safe in a shell."""
    undecided = (entry.group.example.address for entry in triage.entries if entry.judged.verdict is None)
    example = next(undecided, None)
    return shlex.join(["tracetui", "ls", *places] if example is None else ["tracetui", "show", example])


# ---- blocks


def triage_report(triage: Triage, place: str, shared: Shared, redactor: Redactor | None = None) -> Iterator[Block]:
    """The table of signatures, then each with what its runs share, and with its runs."""
    counts = triage.counts
    yield Heading(1, clean(f"Triage of {place}", 300))
    yield Prose(Clean(f"{counts['failed']} of {counts['runs']} runs failed, in {counts['signatures']} ways."))
    if triage.entries:
        yield Table(_HEADING, [_row(entry) for entry in triage.entries], _NUMBERS)
    for entry in triage.entries:
        yield from _entry(entry, shared.get(entry.group.id), redactor)


def _row(entry: Entry) -> Sequence[Clean]:
    group = entry.group
    return (
        Clean(group.id),
        Clean(str(len(group.runs))),
        one_line(entry.title, 160),
        one_line(", ".join(group.agents), 60),
        duration(group.wasted_ms),
        tokens(group.wasted_tokens),
        _verdict(entry.judged),
    )


def _verdict(judged: Judgement) -> Clean:
    return Clean(judged.verdict.value if judged.verdict is not None else "")


def _entry(entry: Entry, shared: Contrast | None, redactor: Redactor | None) -> Iterator[Block]:
    group, judged = entry.group, entry.judged
    yield Heading(2, Clean(f"{group.id}  {one_line(entry.title, 160)}"))
    seen = [text for text in (moment(group.first_seen), moment(group.last_seen)) if text is not None]
    wasted = [duration(group.wasted_ms)] if group.wasted_ms is not None else []
    wasted += [Clean(f"{tokens(group.wasted_tokens)} tokens")] if group.wasted_tokens is not None else []
    facts = {
        "verdict": [_verdict(judged)] if judged.verdict is not None else [],
        "note": clean_lines(judged.note) if judged.note else [],
        "tags": [one_line(" ".join(judged.tags), 300)] if judged.tags else [],
        "runs": [grouped(len(group.runs))],
        "seen": [Clean(" to ".join(dict.fromkeys(seen)))] if seen else [],
        "agents": [one_line(", ".join(group.agents), 300)] if group.agents else [],
        "wasted": [Clean(", ".join(wasted))] if wasted else [],
        "example": [clean(group.example.address)],
    }
    yield Facts([(label, lines) for label, lines in facts.items() if lines])
    error = next((run.first_error for run, _ in entry.runs if run.ref == group.example), None)
    if error is not None and error.words:
        yield Code(clean_lines(error.words))
    if shared is not None:
        yield from _shared(shared, redactor)
    shown = entry.runs[:MOST_RUNS]
    yield Table(("run", "started", "verdict", "note"), [_run(run, judged) for run, judged in shown])
    if len(entry.runs) > len(shown):
        yield Prose(Clean(f"… and {len(entry.runs) - len(shown)} more"))


def _shared(shared: Contrast, redactor: Redactor | None) -> Iterator[Block]:
    """What the runs have in common, in how many of them and of the others."""
    rows = [
        (
            one_line(one.words if redactor is None else redactor.header(one.words), 160),
            Clean(f"{one.in_a}/{one.of_a}"),
            Clean(f"{one.in_b}/{one.of_b}"),
            clean(address_of(one)),
        )
        for one in shared.findings
    ]
    yield Table(_SHARED, rows, frozenset({1, 2}))
    if not rows:
        yield Prose(Clean("They share nothing that the others lack."))
    if shared.note:
        yield Prose(one_line(shared.note, 200))


def _run(run: RunSummary, judged: Judgement) -> Sequence[Clean]:
    own = judged if judged.source == "run" else Judgement()
    return (
        clean(run.ref.address),
        Clean(moment(run.started_at, zone=run.time_zone) or "—"),
        _verdict(own),
        one_line(judged.note, 160),
    )


# ---- JSON


def triage_value(
    triage: Triage, shared: Shared, redactor: Redactor | None = None, *, next_command: str
) -> dict[str, Any]:
    """``tracetui/triage/1``. What runs share is masked by `redactor`; the triage is as it was made."""
    told = {ident: contrast_value(contrast, redactor) for ident, contrast in shared.items()}
    return {
        "schema": TRIAGE,
        "counts": triage.counts,
        "signatures": [_signature(entry, told.get(entry.group.id)) for entry in triage.entries],
        "next": next_command,
    }


def _signature(entry: Entry, contrast: Any) -> dict[str, Any]:
    group, judged = entry.group, entry.judged
    own = {run.ref: told for run, told in entry.runs if told.source == "run"}
    zones = {run.started_at: run.time_zone for run, _ in entry.runs}
    return {
        "id": group.id,
        "title": entry.title,
        "count": len(group.runs),
        "runs": [ref.address for ref in group.runs],
        "first_seen": moment(group.first_seen, zone=zones.get(group.first_seen)),
        "last_seen": moment(group.last_seen, zone=zones.get(group.last_seen)),
        "agents": group.agents,
        "wasted_ms": group.wasted_ms,
        "wasted_tokens": group.wasted_tokens,
        "example": group.example.address,
        "verdict": judged.verdict,
        "note": judged.note or None,
        "tags": judged.tags,
        "judged": {ref.address: _own(told) for ref, told in own.items()},
        "contrast": contrast,
    }


def _own(judged: Judgement) -> dict[str, Any]:
    return {"verdict": judged.verdict, "note": judged.note or None, "tags": judged.tags}
