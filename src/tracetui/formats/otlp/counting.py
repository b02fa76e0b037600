"""Counting every trace of a file: spans as they are written, where that does; and of a file that grows what came."""

from __future__ import annotations

from typing import Final
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.counting import Irregular
from tracetui.formats.lines import Line, lines
from tracetui.formats.otlp.documents import documents, is_document
from tracetui.formats.otlp.lean import Around, spans_on
from tracetui.formats.otlp.logs import whose
from tracetui.formats.otlp.records import (
    OTHERS,
    REQUEST,
    At,
    damage_in,
    is_sound,
    logs_in,
    named,
    told_in,
    trace_id,
)
from tracetui.formats.otlp.trace import Trace
from tracetui.formats.tail import MAX_LINE, Place, edges_of, goes_on, parse
from tracetui.model import Problem, RunSummary
from tracetui.sources.base import KEPT, File

_KEPT: Final = "otlp count"


class Late(Exception):
    """Something came of a trace of which no more than its summary was kept."""


class Count(msgspec.Struct):
    """What was counted of a file so far."""

    path: str
    lean: bool
    """Each span was counted as it is written."""
    traces: dict[str, Trace | None] = {}
    """In the order in which they came; None for one that ended long ago: its summary is kept."""
    summaries: dict[str, RunSummary] = {}
    """Those of traces to which nothing came since."""
    touched: set[str] = set()
    """Traces to which something came the last time."""
    problems: list[Problem] = []
    others: int = 0
    """Exports of which something is not read."""
    lost: int = 0
    """Bytes of that."""
    around: Around = {}
    place: Place | None = None
    """Where the last finished line ends; None where there is no going on from there."""

    def trace(self, key: str) -> Trace:
        """The trace to which something came. Raises `Late`."""
        trace = self.traces.get(key)
        if trace is not None and key in self.touched:
            return trace
        if trace is None and key in self.traces:
            raise Late
        trace = self.traces[key] = trace or Trace(self.path, key, lean=True)
        self.touched.add(key)
        self.summaries.pop(key, None)
        return trace

    def all_problems(self, *, moving: bool) -> list[Problem]:
        """What of the file cannot be read."""
        found = list(self.problems)
        told = (told for trace in self.traces.values() if trace is not None for told in trace.early.values())
        early = sum(map(len, told))
        if early and not moving:
            reason = f"{early} events in logs are of spans that are not there"
            found.append(Problem(self.path, "logs and metrics", reason))
        if self.others:
            reason = f"{self.others} exports of logs or metrics are not read"
            found.append(Problem(self.path, "logs and metrics", reason, self.lost))
        return found

    def keep(self, key: str, summary: RunSummary) -> None:
        """Keep the summary of a trace that has ended, and no more than that once nothing has come for a while."""
        self.summaries[key] = summary
        if key not in self.touched:
            self.traces[key] = None


def counted(file: File) -> Count:
    """Every trace of a file. Of one that is counted again and again, only what came is read."""
    kept = file.memo.get(KEPT)
    known = kept.pop(_KEPT, None) if kept is not None else None
    count = _gone_on(file, known) if isinstance(known, Count) else None
    count = count or count_anew(file)
    if kept is not None and count.place is not None:
        kept[_KEPT] = count
    return count


def count_anew(file: File, *, lean: bool | None = None) -> Count:
    """The same from the start. Raises `Irregular` where `lean` is asked for and does not do."""
    try:
        return _count(file, Count(file.path, lean is not False), 0, 1)
    except Irregular:
        if lean is not None:
            raise
    return _count(file, Count(file.path, False), 0, 1)


def _gone_on(file: File, count: Count) -> Count | None:
    """The count with what came since; None where all must be counted again."""
    place = count.place
    if place is None or file.stat.size < place.offset or not goes_on(file, place):
        return None
    count.touched = set()
    try:
        return _count(file, count, place.offset, place.line)
    except (Irregular, Late):
        return None


def _count(file: File, count: Count, offset: int, number: int) -> Count:
    document = offset == 0 and is_document(file)
    ahead = False
    for line in documents(file) if document else lines(file, offset, number, limit=MAX_LINE, end=file.stat.size):
        if line.data and not line.data.isspace():
            ahead = _take_line(file, count, line) and not line.whole
        if line.whole:
            offset, number = line.next_offset, line.number + 1
    if document or ahead:  # what is no whole line yet may end otherwise
        count.place = None
    else:
        count.place = Place(file.stat, None, offset, number, edges_of(file, offset), check=-1)
    return count


def _take_line(file: File, count: Count, line: Line) -> bool:
    """Take in a line; False where nothing was made of it, since it is still being written."""
    if count.lean and not line.skipped and _take_lean(count, line):
        return True
    where = f"line {line.number}"
    try:
        value, note = _value(line)
    except FormatError as error:
        if not line.whole and file.moving:
            return False
        at = f" ({error.where} of the line)" if error.where else ""
        size = len(line.data) + line.skipped
        count.problems.append(Problem(count.path, where, f"{error.reason}{at}", size, not line.skipped))
        return True
    if count.lean and any(told_in(value)):
        raise Irregular
    if note:
        count.problems.append(Problem(count.path, where, f"read leniently: {note}"))
    if not is_sound(value):
        count.problems += [Problem(count.path, where, reason) for reason in dict.fromkeys(damage_in(value))]
    spans = named(value, *REQUEST) is not None
    if named(value, *OTHERS) is not None:
        unread = _take_logs(count, value, line)
        count.others += unread > 0
        count.lost += 0 if spans else round(len(line.data) * unread)
    elif not spans:
        count.problems.append(Problem(count.path, where, "no spans are in it", len(line.data)))
    for told in told_in(value):
        place = At(line.offset, len(line.data), 0, *told.place)
        count.trace(trace_id(told.span)).take_span(told, place, line.number, value)
    return True


def _take_lean(count: Count, line: Line) -> bool:
    """Take in a line of which only what counts is decoded; False for one that is not as it should be."""
    try:
        spans = list(spans_on(line.data, count.around))
    except (ValueError, RecursionError):
        return False
    for lean in spans:
        at = At(line.offset, len(line.data), 0, *lean.told.place)
        count.trace(trace_id(lean.told.span)).take_lean(lean, at, line.number)
    return True


def _take_logs(count: Count, value: object, line: Line) -> float:
    """Take in what logs tell of spans; the part of the line that is something else is returned, 0 … 1."""
    records = taken = 0
    check = None
    for place, record in logs_in(value):
        records += 1
        if (of := whose(record)) is not None:
            taken += 1
            check = crc32(line.data) if check is None else check
            count.trace(of[0]).take_log(of[1], record, At(line.offset, len(line.data), check, *place))
    return 1 - taken / records if records else 1.0


def _value(line: Line) -> tuple[object, str | None]:
    if line.skipped:
        raise FormatError(f"a line of {len(line.data) + line.skipped} bytes is too long to be read")
    return parse(line.data)
