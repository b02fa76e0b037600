"""Paprika: one agent run as one JSON object, ExecutionRecord v1 and the event file v0 that came before it.

Facts: vaibhavhariram/paprika, and its document "Execution Records": files ``<id>.json``, written once at the end of
the run. A missing ``schema_version`` means v0, a major version above 1 is refused; unknown fields and step types
are preserved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from os.path import basename, splitext
from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.formats.decode import top_names
from tracetui.formats.document import Fingerprint, Outline, fingerprint, unchanged
from tracetui.formats.paprika.records import (
    ByteRange,
    DocumentStart,
    Trace,
    first_steps,
    quick_facts,
    ranges_of,
    skim,
    start_of,
    trace_of,
)
from tracetui.formats.paprika.run import SpanRef, body_of, header_of, run_body, spans_of
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.model.build import Tally, summary_of
from tracetui.sources.base import HEAD_SIZE, File, Stat

LIKELY: Final = 70
HUGE: Final = 16 << 20
"""Bytes from which on the first steps are shown before the whole file is read."""
SLICE: Final = 5_000
"""Spans that are made in one call of `more`, about 50 ms worth."""
_MAJOR: Final = re.compile(r"\s*v?(\d+)")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_V1: Final = frozenset({b"schema_version", b"record_id"})
_V0: Final = frozenset({b"run_id", b"agent_name", b"events"})
_TYPICAL: Final = frozenset(
    {b"record_id", b"execution", b"policy", b"totals", b"steps", b"parent_record_id", b"replay_of"}
)


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
        start: DocumentStart | None = None if deep else file.memo.get(self.name) or start_of(file)
        facts, tally = None if start is None else quick_facts(file, start), None
        if facts is not None:
            _refuse_newer(facts.schema_version)
            header = header_of(facts, file)
        else:
            trace = _load(file, file.read_all(), bodies=False)
            header = header_of(trace.facts, file, trace.steps, trace.unknown)
            tally = Tally(problems=len(trace.problems))
            for span in spans_of(trace, (), file.stat, range(len(trace.steps)), previews=False):
                tally.add(span)
        moving = not header.ended and file.moving
        yield summary_of(RunRef(self.name, file.path), header, tally, modified_at=file.stat.mtime, moving=moving)

    def open(self, file: File, ref: RunRef) -> Reader:
        return _Reader()

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the step's bytes; `raw` has them exactly, or a rendering if the file is not strict JSON."""
        at: SpanRef = span.at
        if at.raws:
            return body_of([*at.raws], exact=False)
        if file.stat != at.version:
            raise FormatError("the file changed while it was read", f"byte {at.ranges[0].offset}")
        return body_of([msgspec.Raw(file.read(byte_range.offset, byte_range.size)) for byte_range in at.ranges])


class _Reader:
    """Reads a file as a whole and gives its spans in slices; of a huge one the first steps before that."""

    def __init__(self) -> None:
        self._version: Fingerprint | None = None
        self._slices: Iterator[Chunk] = iter(())
        """Chunks of that version not returned yet."""
        self._begun: tuple[Stat, list[ByteRange]] | None = None
        """The first steps, where no more was read yet."""

    def more(self, file: File) -> Chunk:
        if self._version is not None and self._version.stat == file.stat and (chunk := next(self._slices, None)):
            return chunk
        if (same := unchanged(file, self._version)) is not None:
            self._version = same
            return Chunk()
        begun, self._begun = self._begun, None
        fresh = self._version is None
        if fresh and begun is None and file.stat.size > HUGE and (first := first_steps(file)) is not None:
            trace, ranges = first
            _refuse_newer(trace.facts.schema_version)
            self._begun = file.stat, ranges
            spans = [*spans_of(trace, ranges, file.stat, range(len(trace.steps)))]
            return Chunk(spans=spans, header=header_of(trace.facts, file), done=False)
        data = file.read_all()
        trace = _load(file, data)
        ranges = ranges_of(data, trace.records)
        leads = begun is not None and begun == (file.stat, ranges[: len(begun[1])])
        self._slices = _slices(trace, ranges, file)
        self._version = fingerprint(file, data)
        return msgspec.structs.replace(next(self._slices), reset=not leads and (begun is not None or not fresh))


def _slices(trace: Trace, ranges: list[ByteRange], file: File) -> Iterator[Chunk]:
    tally = Tally()
    count, version = len(trace.steps), file.stat
    header = header_of(trace.facts, file, trace.steps, trace.unknown)
    for start in range(0, count or 1, SLICE):
        spans = [*spans_of(trace, ranges, version, range(start, min(count, start + SLICE)))]
        for span in spans:
            tally.add(span)
        done = start + SLICE >= count
        yield Chunk(
            spans=spans,
            header=header if start == 0 else None,
            body=run_body(trace, tally) if done else None,
            problems=trace.problems if start == 0 else (),
            done=done,
        )


def _load(file: File, data: bytes, *, bodies: bool = True) -> Trace:
    """The trace in the file; may omit data that only `bodies` need."""
    trace = (None if bodies else skim(data)) or trace_of(Outline(data, file.path))
    _refuse_newer(trace.facts.schema_version)
    where, ident, reason = "run_id" if trace.is_old else "record_id", trace.facts.record_id, None
    if not ident:
        reason = "no id; using the file name"
    elif not _ID.fullmatch(ident):  # ``InvalidRunIdError``
        reason = f"the id {ident[:80]!r} doesn't match the pattern {_ID.pattern}"
    elif ident != splitext(basename(file.path))[0]:
        reason = f"the id {ident[:80]!r} differs from the file name"
    if reason is not None:
        trace.problems = [*trace.problems, Problem(file.path, where, reason)]
    return trace


def _refuse_newer(version: Any) -> None:
    if version == "1.0":
        return
    found = _MAJOR.match(version) if isinstance(version, str) else None
    major = int(found.group(1)[:9]) if found else version if isinstance(version, int | float) else 1
    if major >= 2:
        raise FormatError(f"schema_version {version} is newer than the supported 1.x", "schema_version")


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
