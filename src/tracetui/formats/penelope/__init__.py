"""Penelope: the result of one multi-turn test as one JSON object, today's and the documented dialect.

Facts: rhesis-ai/rhesis, ``penelope`` (`TestResult` and `TestState.to_result` in ``context.py``), and its document
"Execution Trace". The object is built in memory and written once; no file name is prescribed and no id is in it
(the document's ``test_id`` is read where it is there). Times are naive local ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.decode import decode, strict, top_names
from tracetui.formats.document import unchanged, whole
from tracetui.formats.penelope.body import body_of
from tracetui.formats.penelope.result import TURNS, Result, header_of, is_criterion
from tracetui.formats.penelope.run import run_body
from tracetui.formats.penelope.spans import At, spans_of, started_at, timings_of
from tracetui.formats.penelope.turns import Record, Turn, turns_of
from tracetui.formats.scalars import sequence
from tracetui.model import Body, Header, Problem, RunRef, RunSummary, Span, Status
from tracetui.model.build import RunBuilder, summary_of
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 70
_REQUIRED: Final = (b"goal_achieved", b"turns_used")
_TYPICAL: Final = frozenset(
    {b"goal_evaluation", b"conversation_summary", b"test_configuration", b"execution_stats", b"target_info", *_REQUIRED}
)
"""Top-level names of a result; two of them claim a file whose head holds no more."""


class Penelope:
    """The format; see `tracetui.formats.base.Format`."""

    name = "penelope"
    title = "Penelope test result"

    def sniff(self, file: File) -> int:
        head = file.head
        if not any(name in head for name in _TYPICAL):
            return NO
        found: set[bytes] = set()
        for name in top_names(head):
            found.add(name)
            if name in _REQUIRED and found.issuperset(_REQUIRED):
                return CERTAIN
        return LIKELY if len(head) >= HEAD_SIZE and len(found & _TYPICAL) > 1 else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        data = file.read_all()
        header = None if deep else _quick_header(data, file.path)
        if header is not None:
            yield summary_of(ref, header, None, modified_at=file.stat.mtime, moving=file.moving)
            return
        chunk = _chunk(data, file.path, slices=False)
        builder = RunBuilder(ref, lambda span: Body())
        builder.add(chunk.spans, header=chunk.header, body=chunk.body, problems=chunk.problems)
        yield builder.build(modified_at=file.stat.mtime, moving=file.moving).summary

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        """The whole run in one chunk: the file is one JSON object. Nothing while it stays as it was."""
        if (same := unchanged(file, cursor)) is not None:
            return Chunk(cursor=same)
        data = file.read_all()
        chunk = _chunk(data, file.path, slices=True)
        return msgspec.structs.replace(chunk, cursor=whole(file, data), reset=cursor is not START)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From what `read` saw; `raw` holds the exact bytes, a rendering where the file is not strict JSON."""
        return body_of(span.at)


def _quick_header(data: bytes, path: str) -> Header | None:
    """The header without the turns; None where it takes more than that, or the file is not strict JSON."""
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        root = {name: strict(bytes(raw)) for name, raw in fields.items() if name not in TURNS}
    except (ValueError, RecursionError):
        return None
    header = header_of(Result(root), path, call_failed=None, last_failed=None)
    return None if header.started_at is None else header


def _chunk(data: bytes, path: str, *, slices: bool) -> Chunk:
    """The whole run; `slices`: with what only bodies need, the run's own and the bytes of every turn."""
    root, note = decode(data)
    if not isinstance(root, dict):
        raise FormatError("not a JSON object")
    records = _Records(root, data if slices and not note else b"", path)
    turns, differences = turns_of(records.of("history"), records.of("conversation_summary"), path)
    result = Result(root)
    timings = timings_of(result.stats)
    spans = [span for turn in turns for span in spans_of(turn, timings)]
    header = msgspec.structs.replace(_timed(_header(result, path, spans), turns), size=len(data))
    return Chunk(
        spans=spans,
        header=header,
        body=run_body(result, header, turns, records.rest) if slices else None,
        problems=[*_notes(note, result, path), *records.problems, *differences],
    )


def _notes(note: str | None, result: Result, path: str) -> Iterator[Problem]:
    if note:
        yield Problem(path, "", f"read leniently: {note}")
    for i, item in enumerate(sequence(result.evaluation.get("criteria_evaluations"))):
        if not is_criterion(item):
            yield Problem(path, f"goal_evaluation.criteria_evaluations[{i}]", "not a criterion")


def _header(result: Result, path: str, spans: list[Span]) -> Header:
    """The header, with the cause of a failure decided by the calls that failed."""
    calls = [span.status is Status.ERROR for span in spans if span.at.target_tool is None and _is_leaf(span.at)]
    return header_of(result, path, call_failed=any(calls), last_failed=bool(calls) and calls[-1])


def _is_leaf(at: At) -> bool:
    return at.execution is not None or not at.turn.calls


def _timed(header: Header, turns: list[Turn]) -> Header:
    """The documented dialect has no start: it is that of the first turn."""
    if header.started_at is not None:
        return header
    found = [moment for moment in map(started_at, turns) if moment[0] is not None]
    start, zone = min(found, key=lambda moment: moment[0] or 0.0, default=(None, None))
    return msgspec.structs.replace(header, started_at=start, time_zone=zone)


class _Records:
    """The objects of the two lists of turns; what is none stays in `rest` and is a problem."""

    def __init__(self, root: dict[str, Any], data: bytes, path: str) -> None:
        self._root = root
        self._data = data
        self._path = path
        self._fields: dict[str, msgspec.Raw] | None = None
        self.rest: dict[str, Any] = {}
        self.problems: list[Problem] = []

    def of(self, name: str) -> list[Record]:
        """The objects of the list `name`, with their bytes."""
        value = self._root.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self._leave(name, value, "not a list of turns")
            return []
        raws = self._raws(name)
        found = []
        for place, item in enumerate(value):
            if isinstance(item, dict):
                found.append(Record(place, item, bytes(raws[place]) if raws else b""))
            else:
                self._leave(f"{name}[{place}]", item, "not an object")
        return found

    def _leave(self, where: str, value: Any, reason: str) -> None:
        self.rest[where] = value
        self.problems.append(Problem(self._path, where, reason))

    def _raws(self, name: str) -> list[msgspec.Raw]:
        """The bytes of each element; none where the file is not strict JSON."""
        if not self._data:
            return []
        try:
            if self._fields is None:
                self._fields = msgspec.json.decode(self._data, type=dict[str, msgspec.Raw])
            return msgspec.json.decode(self._fields[name], type=list[msgspec.Raw])
        except (ValueError, RecursionError):
            return []
