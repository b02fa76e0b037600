"""The triage as ``tracetui triage`` prints it: a table for people, ``tracetui/triage/1`` with one signature a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from tracetui.export.json import encode
from tracetui.export.listing import Screen, since, started
from tracetui.export.table import Column, Table
from tracetui.export.triage import Entry, Triage
from tracetui.model import RunSummary
from tracetui.text import Clean, clean, count, duration, one_line, tokens, truncate_middle

_WHOLE: Final = (
    Column("ID", 12),
    Column("RUNS", 6, right=True),
    Column("LOST", 7, right=True),
    Column("TOKENS", 6, right=True),
    Column("LAST", 20),
    Column("VERDICT", 7),
    Column("EXAMPLE"),
    Column("FAILURE", least=24),
)
_NARROW: Final = (
    *_WHOLE[:3],
    Column("TOKENS", 6, right=True, leaves=1),
    Column("AGE", 4, right=True),
    _WHOLE[5],
    Column("EXAMPLE", least=8, middle=True),
    _WHOLE[7],
)


def signature_table(triage: Triage, screen: Screen | None = None) -> Iterator[Clean]:
    """One signature a row. The address of its newest run is never cut, so that it can be used: where `screen` has no
    room for it, its id stands there instead."""
    whole = Table(_WHOLE, map(_cells, triage.entries))
    if screen is None or whole.room <= screen.width:
        return whole.lines(None if screen is None else screen.width)
    rows = [_narrow_cells(entry, screen) for entry in triage.entries]
    above = truncate_middle(Clean(f"an example: {screen.usage}"), screen.width)
    return chain([above], Table(_NARROW, rows).lines(screen.width))


def _narrow_cells(entry: Entry, screen: Screen) -> Sequence[Clean]:
    whole = _cells(entry)
    named = clean(screen.names[entry.group.example])
    return (*whole[:4], since(_last(entry), screen.now), whole[5], named, whole[-1])


def _last(entry: Entry) -> RunSummary | None:
    return next((run for run, _ in entry.runs if run.started_at == entry.group.last_seen), None)


def _cells(entry: Entry) -> tuple[Clean, ...]:
    group, verdict = entry.group, entry.judged.verdict
    last = _last(entry)
    return (
        Clean(group.id),
        count(len(group.runs)),
        duration(group.wasted_ms),
        tokens(group.wasted_tokens),
        Clean("—") if last is None else started(last),
        Clean("—" if verdict is None else verdict.value),
        clean(group.example.address),
        one_line(entry.title, 200),
    )


def lines_of(value: Mapping[str, Any]) -> Iterator[bytes]:
    """A JSON object, what stands in its lists one a line."""
    before = b"{"
    for name, field in value.items():
        yield before + encode(name) + b":"
        yield b"[" + b",".join(b"\n" + encode(item) for item in field) + b"]" if _is_list(field) else encode(field)
        before = b","
    yield b"}\n"


def _is_list(field: Any) -> bool:
    return isinstance(field, list | tuple) and len(field) > 0
