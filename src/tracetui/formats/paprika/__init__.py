"""Paprika: one agent run as one JSON object, ExecutionRecord v1 and the event file v0 that came before it.

Facts: vaibhavhariram/paprika, and its document "Execution Records": files ``<id>.json``, written once at the end of
the run. A missing ``schema_version`` means v0, a major version above 1 is refused, fields and step types that are not
known are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.decode import top_names
from tracetui.formats.document import Whole, unchanged, whole
from tracetui.formats.paprika import record as record_file
from tracetui.formats.paprika import v0
from tracetui.formats.paprika.about import id_problems, run_body
from tracetui.formats.paprika.body import body_of
from tracetui.formats.paprika.fields import Raw, value_of
from tracetui.formats.paprika.quick import Start, first_steps, quick_facts, start_of
from tracetui.formats.paprika.record import Record
from tracetui.formats.paprika.run import first_prompt, header_of, tally_of
from tracetui.formats.paprika.spans import At, spans_of
from tracetui.model import Body, Header, Problem, RunBody, RunRef, RunSummary, Span
from tracetui.model.build import summary_of
from tracetui.sources.base import HEAD_SIZE, File, Stat

LIKELY: Final = 70
HUGE: Final = 16 << 20
"""Bytes from which on the first steps are shown before the whole file is read."""
SLICE: Final = 5_000
"""Spans that are made in one call of `read`, about 50 ms worth."""
_MAJOR: Final = re.compile(r"\s*v?(\d+)")
_V1: Final = frozenset({b"schema_version", b"record_id"})
_V0: Final = frozenset({b"run_id", b"agent_name", b"events"})
_TYPICAL: Final = frozenset(
    {b"record_id", b"execution", b"policy", b"totals", b"steps", b"parent_record_id", b"replay_of"}
)


class _Reading(msgspec.Struct, frozen=True):
    """Cursor while a file of very many steps is turned into spans, slice by slice."""

    version: Stat
    record: Record
    header: Header
    body: RunBody
    next: int
    whole: Whole
    """The cursor at the end."""


class _Begun(msgspec.Struct, frozen=True):
    """Cursor after the first steps of a huge file."""

    version: Stat
    record: Record

    def leads_to(self, record: Record, version: Stat) -> bool:
        """True if the whole record begins with these steps."""
        return self.version == version and record.places[: len(self.record.places)] == self.record.places


class Paprika:
    """The format; see `tracetui.formats.base.Format`."""

    name = "paprika"
    title = "Paprika ExecutionRecord"

    def sniff(self, file: File) -> int:
        start = start_of(file)
        if start is None:
            return _score(file.head)
        file.memo[self.name] = start
        return CERTAIN

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        start: Start | None = None if deep else file.memo.get(self.name) or start_of(file)
        facts = None if start is None else quick_facts(file, start)
        if facts is not None:
            _refuse_newer(facts.schema_version)
            header, tally = header_of(facts, file.path, None, file.stat.size), None
        else:
            data = file.read_all()
            record = _skim(data, file.path)
            header = header_of(record.facts, file.path, record.steps, file.stat.size)
            header = first_prompt(header, record.steps)
            tally = tally_of(record, header)
            if tally.unknown and not record.places:  # how many bytes they have is to be told
                tally = tally_of(_load(data, file.path), header)
        yield summary_of(ref, header, tally, modified_at=file.stat.mtime, moving=not header.ended and file.moving)

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        """The whole run in one chunk, in slices if it has very many steps; nothing while the file stays as it was."""
        stat = file.stat
        if (same := unchanged(file, cursor)) is not None:
            return Chunk(cursor=same)
        if isinstance(cursor, _Reading) and cursor.version == stat:
            return _slice(cursor, first=False)
        if cursor is START and stat.size > HUGE and (begun := first_steps(file)) is not None:
            _refuse_newer(begun.facts.schema_version)
            return Chunk(
                spans=spans_of(begun, stat, 0, len(begun.steps)),
                header=header_of(begun.facts, file.path, None),
                cursor=_Begun(stat, begun),
                done=False,
            )
        data = file.read_all()
        record = _load(data, file.path)
        header = first_prompt(header_of(record.facts, file.path, record.steps, len(data)), record.steps)
        body = run_body(record, tally_of(record, msgspec.structs.replace(header, usage=None)))
        reading = _Reading(stat, record, header, body, 0, whole(file, data))
        again = cursor is not START and not (isinstance(cursor, _Begun) and cursor.leads_to(record, stat))
        return msgspec.structs.replace(_slice(reading, first=True), reset=again)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the step's bytes; `raw` holds them exactly, a rendering where the file is not strict JSON."""
        at: At = span.at
        if at.values:
            return body_of([*at.values])
        if file.stat != at.version:
            raise FormatError("the file was changed meanwhile", f"byte {at.places[0].offset}")
        return body_of([Raw(file.read(place.offset, place.size)) for place in at.places])


def _slice(reading: _Reading, *, first: bool) -> Chunk:
    record, start = reading.record, reading.next
    stop = start + SLICE
    done = stop >= len(record.steps)
    return Chunk(
        spans=spans_of(record, reading.version, start, stop),
        header=reading.header,
        body=reading.body,
        problems=record.problems if first else (),
        cursor=reading.whole if done else msgspec.structs.replace(reading, next=stop),
        done=done,
    )


def _skim(data: bytes, path: str) -> Record:
    """A record without the places of its steps."""
    name = "record_id"
    record = record_file.skim(data)
    if record is None:
        name, record = "run_id", v0.skim(data)
    if record is None:
        return _load(data, path)
    _refuse_newer(record.facts.schema_version)
    record.problems.extend(id_problems(record, path, name))
    return record


def _load(data: bytes, path: str) -> Record:
    """A record with the places of its steps, of either version."""
    root, _ = record_file.outline(data)
    _refuse_newer(value_of(root.get("schema_version")))
    old = "events" in root and "steps" not in root
    record = v0.load(data, path) if old else record_file.load(data, path)
    record.problems.extend(id_problems(record, path, "run_id" if old else "record_id"))
    return record


def _refuse_newer(version: Any) -> None:
    if version == "1.0":
        return
    found = _MAJOR.match(version) if isinstance(version, str) else None
    major = int(found.group(1)[:9]) if found else version if isinstance(version, int | float) else 1
    if major >= 2:
        raise FormatError(f"schema_version {version} is newer than what is known (1.x)", "schema_version")


def _score(head: bytes) -> int:
    """By the names at the top level of the object that `head` begins with, in any order."""
    if b'"record_id"' not in head and b'"events"' not in head and b'"steps"' not in head:
        return NO
    found: set[bytes] = set()
    for name in top_names(head):
        found.add(name)
        if found >= _V1 or found >= _V0:
            return CERTAIN
    if b"record_id" in found and b"steps" in found:
        return LIKELY
    if len(head) < HEAD_SIZE:
        return NO
    typical = len(found & _TYPICAL) > 1 or (b"steps" in found and b'"step_type"' in head)
    return LIKELY if typical or (b"events" in found and b'"event_type"' in head) else NO
