"""What is said of one failure signature: what failed, what was normalised, what it cost, what its runs share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from tracetui import text
from tracetui.analysis.cause import failure_of
from tracetui.analysis.triage import Group
from tracetui.model import RunRef, RunSummary
from tracetui.store.judgement import Judgement
from tracetui.text import Clean, wrap
from tracetui.views.bars import amount
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.masking import one_line
from tracetui.views.naming import short_id
from tracetui.views.quantities import clock
from tracetui.views.rows import Line, ListRows, Piece, column, fill, width_of
from tracetui.views.triage import placeholders

if TYPE_CHECKING:
    from tracetui.store.contrast import Contrast, Finding

MOST_BAR: Final = 16
"""Cells at most of the bar that shows how many runs have something in common."""
MOST_AGENTS: Final = 3
MOST_NORMALISED: Final = 8
_COUNTS: Final = 8


class Example(NamedTuple):
    """Key of a row that leads to an example of what runs share."""

    number: int
    ref: RunRef
    span: str | None


def cause_rows(
    group: Group,
    example: RunSummary | None,
    told: Judgement,
    shared: Contrast | None,
    going_on: str = "",
    *,
    width: int,
    now: float,
    zone: tzinfo = UTC,
    glyphs: Glyphs = UNICODE,
) -> ListRows:
    """The rows of the pane; `shared` is None while nobody knows what its runs share, and `going_on` says how far that
    is found out.

    The key of a row that leads somewhere is an `Example`.
    """
    lines: list[Line] = [*_headline(group, width), *_numbers(group, width, now, zone), *_judged(told, width)]
    lines += _normalised(example, width)
    keys: list[Hashable] = list(range(len(lines)))
    for line, key in _shared(shared, width, glyphs, going_on):
        keys.append(key if key is not None else len(lines))
        lines.append(line)
    return ListRows(lines, keys=keys)


def contrast_rows(shared: Contrast | None, *, width: int, glyphs: Glyphs = UNICODE) -> ListRows:
    """What runs share, alone; as in `cause_rows`."""
    told = _shared(shared, width, glyphs)[1:]
    keys = [key if key is not None else i for i, (_, key) in enumerate(told)]
    return ListRows(
        [line for line, _ in told], keys=keys, headings=[i for i, (_, key) in enumerate(told) if key is None]
    )


def _headline(group: Group, width: int) -> list[Line]:
    cause = group.cause
    where = " ".join(filter(None, (cause.operation, cause.name)))
    head = [Piece(one_line(cause.type or cause.name or "failed", 80), "status.error bold")]
    if where:
        head.append(Piece(Clean(f"  in {one_line(where, 80)}"), "sec"))
    body = wrap(one_line(cause.text, 600), max(20, width)) if cause.text else []
    return [tuple(head), *(tuple(placeholders(part, "text bold")) for part in body)]


def _numbers(group: Group, width: int, now: float, zone: tzinfo) -> list[Line]:
    runs = len(group.runs)
    agents = ", ".join(group.agents[:MOST_AGENTS]) + (" …" if len(group.agents) > MOST_AGENTS else "")
    whose = f" of {one_line(agents, 80)}" if agents else ""
    lost = f"{text.duration(group.wasted_ms)} lost"
    if group.wasted_tokens is not None:
        lost += f", {text.tokens(group.wasted_tokens)} tokens"
    pieces = [
        Piece(Clean(f"{text.grouped(runs)} run{'s' if runs != 1 else ''}{whose}   "), "sec"),
        Piece(Clean(f"{lost}   "), "status.warn"),
    ]
    if group.first_seen is not None:
        pieces.append(Piece(Clean(f"first {clock(group.first_seen, 'UTC', now=now, zone=zone)}   "), "sec"))
        pieces.append(Piece(Clean(f"last {clock(group.last_seen, 'UTC', now=now, zone=zone)}"), "sec"))
    return _flow(pieces, width)


def _judged(told: Judgement, width: int) -> list[Line]:
    lines: list[Line] = []
    if told.verdict is not None:
        lines.append((Piece(Clean("verdict  "), "dim"), Piece(Clean(told.verdict.value), "accent bold")))
    if told.tags:
        lines.append((Piece(Clean("tags  "), "dim"), Piece(one_line("  ".join(sorted(told.tags)), 200), "accent")))
    if told.note:
        lines += [(Piece(part, "text"),) for part in wrap(one_line(told.note, 1000), max(20, width))]
    return lines


def _normalised(example: RunSummary | None, width: int) -> list[Line]:
    """What was taken out of the text of the example, so that it is like the others."""
    failure = failure_of(example) if example is not None else None
    replaced = failure.values if failure is not None else ()
    if example is None or not replaced:
        return []
    pieces = [Piece(Clean(f"in {short_id(example.id)}  "), "dim")]
    for kind, original in replaced[:MOST_NORMALISED]:
        pieces += [
            Piece(Clean(f"<{kind}>"), "status.warn"),
            Piece(Clean(" was "), "dim"),
            Piece(one_line(original, 40), "text"),
            Piece(Clean("   ")),
        ]
    if len(replaced) > MOST_NORMALISED:
        pieces.append(Piece(Clean(f"+{len(replaced) - MOST_NORMALISED} more"), "dim"))
    return _flow(pieces, width)


def _flow(pieces: Sequence[Piece], width: int) -> list[Line]:
    lines: list[list[Piece]] = [[]]
    for piece in pieces:
        if lines[-1] and width_of(tuple(lines[-1])) + width_of((piece,)) > width:
            lines.append([])
        lines[-1].append(piece)
    return [tuple(line) for line in lines]


def _bar(width: int) -> int:
    """Cells of each of the two bars, beside a name of half the width."""
    return max(0, min(MOST_BAR, (width // 2 - 2 * (_COUNTS + 2)) // 2))


def _shared(
    shared: Contrast | None, width: int, glyphs: Glyphs, going_on: str = ""
) -> list[tuple[Line, Example | None]]:
    head = fill([Piece(Clean("Shared by these runs"), "text bold")], max(8, width - 2 * (_bar(width) + _COUNTS + 2)))
    others = "  the others" if _bar(width) > 1 else "  others"
    columns = [Piece(Clean("  these".ljust(_bar(width) + _COUNTS + 2)), "dim"), Piece(Clean(others), "dim")]
    rows: list[tuple[Line, Example | None]] = [((), None), ((*head, *columns), None)]
    if shared is None:
        return [*rows, ((Piece(Clean("comparing with the runs that did not fail …"), "dim"),), None)]
    if not shared.findings and not going_on:
        rows.append(((Piece(Clean("nothing that the others lack"), "dim"),), None))
    found = enumerate(shared.findings)
    rows += [(finding_line(one, width, glyphs), Example(i, *one.example)) for i, one in found]
    if going_on:
        rows.append(((Piece(one_line(going_on, 80), "status.running"),), None))
    if shared.note:
        rows.append(((Piece(one_line(shared.note, 200), "dim"),), None))
    return rows


def finding_line(finding: Finding, width: int, glyphs: Glyphs = UNICODE) -> Line:
    """One thing that runs have in common: in how many of both sides."""
    telling = finding.in_a * (finding.of_b or 1) > 2 * finding.in_b * finding.of_a
    room = max(8, width - 2 * (_bar(width) + _COUNTS + 2))
    name = fill([Piece(one_line(finding.words, 200), "text" if telling else "sec")], room)
    return (
        *name,
        *_share(finding.in_a, finding.of_a, _bar(width), "bar.error" if telling else "bar.model", glyphs),
        *_share(finding.in_b, finding.of_b, _bar(width), "bar.model", glyphs),
    )


def _share(part: int, whole: int, bar: int, style: str, glyphs: Glyphs) -> list[Piece]:
    return [
        Piece(Clean("  ")),
        *amount(part, whole, bar, style, glyphs=glyphs),
        column(Clean(f" {text.count(part)}/{text.count(whole)}"), _COUNTS, "text", right=False),
    ]


def example_of(key: Hashable) -> tuple[RunRef, str | None] | None:
    """Where a row of the pane leads: a run, and the span in it."""
    return (key.ref, key.span) if isinstance(key, Example) else None
