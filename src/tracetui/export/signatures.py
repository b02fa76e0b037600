"""The triage as ``tracetui triage`` prints it: a table for people, ``tracetui/triage/1`` with one signature a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tracetui.export.json import encode
from tracetui.export.listing import started, table
from tracetui.export.triage import Entry, Triage
from tracetui.text import Clean, clean, count, duration, one_line, tokens

_HEADING: Final = ("ID", "RUNS", "LOST", "TOKENS", "LAST", "VERDICT", "EXAMPLE", "FAILURE")
_NUMBERS: Final = frozenset({1, 2, 3})
_WIDEST: Final = (12, 6, 7, 6, 20, 7, 400)


def signature_table(triage: Triage) -> Iterator[Clean]:
    """One signature a row. The address of its newest run is never cut, so that it can be used."""
    yield from table(_HEADING, map(_cells, triage.entries), _WIDEST, _NUMBERS)


def _cells(entry: Entry) -> tuple[Clean, ...]:
    group, verdict = entry.group, entry.judged.verdict
    last = next((run for run, _ in entry.runs if run.started_at == group.last_seen), None)
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
