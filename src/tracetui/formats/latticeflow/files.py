"""Where the traces of a file are: a bare trace, a row with a trace in it, an array of these, or one of these a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os.path import basename, splitext
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Raw

from tracetui.errors import FormatError
from tracetui.formats.decode import BLOCK, Line, decode, lines
from tracetui.formats.document import Outline
from tracetui.formats.latticeflow import records
from tracetui.formats.latticeflow.records import Piece
from tracetui.formats.scalars import mapping, word
from tracetui.formats.schema import plain
from tracetui.model import Problem
from tracetui.sources.base import HEAD_SIZE, MAX_DOCUMENT, File, Stat, settled

GLANCE: Final = 4096
"""Bytes that usually suffice to recognize a file."""
_FEW: Final = 8
"""Rows that are looked at to see whether there are traces in a file."""
_BOM: Final = b"\xef\xbb\xbf"
_KEYS: Final = (b'"items"', b'"events"', b'"trace"', b'"FORMAT"', b'"format"')
_FORMATS: Final = ("open_responses", Raw(b'"open_responses"'))
_EMPTY: Final[tuple[Any, ...]] = (None, [], Raw(b"null"), Raw(b"[]"))
_LINE_KEY: Final = re.compile(r"(?:(?P<id>.*)~)?L(?P<number>\d{1,15})", re.DOTALL)
_PLAIN: Final = re.compile(r"[A-Za-z0-9._:-]+")
_GAP: Final = re.compile(rb"[\s,]*")
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\],]', re.DOTALL)
_CLOSERS: Final = {b"{": b"}", b"[": b"]"}


class Origin(msgspec.Struct, frozen=True, gc=False):
    """The record of a trace: its bytes in a version of the file."""

    stat: Stat
    offset: int
    size: int
    check: int
    """CRC-32 of these bytes."""
    settled: bool
    """No later change can leave the same stat behind."""

    def has_bytes(self, file: File) -> bool:
        """Whether the same bytes are there still."""
        return crc32(file.read(self.offset, self.size)) == self.check


class Document(msgspec.Struct, frozen=True):
    """One trace, undecoded: its own fields, those of the row around it, and where it is in the file."""

    trace: Outline
    columns: dict[str, Piece]
    """Siblings of ``trace`` in a row."""
    metadata: dict[str, Any]
    """Empty where it is no object."""
    origin: Origin
    path: str
    where: str = ""
    """The location of the record: ``line 7``, ``row 7``; empty for the whole file."""
    key: str | None = None

    @property
    def has_events(self) -> bool:
        """True if there is an event stream with something in it."""
        return self.trace.fields.get("events") not in _EMPTY

    @property
    def trace_id(self) -> str | None:
        """`metadata.trace_id`, None where there is none."""
        return word(self.metadata.get("trace_id"))

    @property
    def id(self) -> str:
        """`trace_id`, else the file's stem (with the number of the line or row where there are several)."""
        stem = splitext(basename(self.path))[0] or self.path
        return self.trace_id or (f"{stem}#{self.number}" if self.number else stem)

    @property
    def number(self) -> str:
        """The number of its line or row, as text; "" where it is the whole file."""
        return self.where.rpartition(" ")[2]


def is_trace(top: dict[str, Piece], *, partial: bool = False) -> bool:
    """True for an object with the fields of a trace: `FORMAT`, or `items`, or `events`.

    `events` of Paprika name an `event_type`, those of Inspect an `event`, `items` of a hypergraph MapLog come with a
    `graph_name`. `partial`: only the beginning of the object was read.
    """
    if "graph_name" in top or "goal_achieved" in top:
        return False
    if top.get("FORMAT") in _FORMATS or top.get("format") in _FORMATS:
        return True
    events, items = (records.elements(top.get(name)) for name in ("events", "items"))
    if events or items:
        return any(map(_is_event, (events or ())[:4])) or any(_is_item(item, partial) for item in (items or ())[:4])
    return (events is not None or items is not None) and set(top) <= {"items", "events", "metadata", "trace_id"}


def _is_event(piece: Piece) -> bool:
    members = records.fields(piece)
    if members is None or "event_type" in members or "event" in members:
        return False
    return records.record(records.EVENTS, piece).kind in records.EVENT_KINDS


def _is_item(piece: Piece, partial: bool) -> bool:
    members = records.fields(piece)
    if members is None:
        return False
    kind = records.record(records.ITEMS, piece).kind
    if kind == records.CUSTOM_TASK:
        return set(members) == {"content"}
    return kind in records.ITEM_KINDS or (partial and not kind and {"id", "status"} <= set(members))


def trace_in(top: Any, *, partial: bool = False) -> tuple[dict[str, Piece], dict[str, Piece]] | None:
    """The fields of the trace in an object, and the columns next to it; None without a trace."""
    if not isinstance(top, dict):
        return None
    if is_trace(top, partial=partial):
        return top, {}
    inner = records.fields(top.get("trace"))
    if inner is None or not is_trace(inner, partial=partial):
        return None
    return inner, {name: top[name] for name in top if name != "trace"}


# ---- is a file one with traces?


def claims(file: File) -> bool:
    """True if `file` begins like a file of traces."""
    head = file.head
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return len(head) < HEAD_SIZE and _holds_trace(_value(head), partial=False)
    if not any(key in head for key in _KEYS):
        return False
    if len(head) == HEAD_SIZE and _holds_trace(_value(_closed(head[:GLANCE])), partial=True):
        return True
    start = _start(head)
    end = head.find(b"\n", start)
    for text in (head[start:end] if end >= 0 else head, head):
        members = records.fields(Raw(text))
        if members is not None:
            return trace_in(members) is not None or _has_later_row(head)
    if _has_later_row(head):
        return True
    is_whole = len(head) < HEAD_SIZE and head[start : start + 1] == b"["
    return _holds_trace(_value(head) if is_whole else _value(_closed(head)), partial=not is_whole)


def _holds_trace(top: Any, *, partial: bool) -> bool:
    return any(trace_in(element, partial=partial) for element in (top[:_FEW] if isinstance(top, list) else (top,)))


def _has_later_row(head: bytes) -> bool:
    """Whether there is a row with a trace among the lines that follow the first: a bad one must not hide the rest."""
    return any(trace_in(records.fields(Raw(line))) for line in head.split(b"\n", _FEW)[1:_FEW] if line[:1] == b"{")


def _value(data: bytes) -> Any:
    try:
        return decode(data)[0]
    except FormatError:
        return None


def _closed(text: bytes) -> bytes:
    """The beginning of a JSON document, cut after its last whole part and closed."""
    stack: list[bytes] = []
    cut, closers = 0, b""
    for match in _TOKENS.finditer(text):
        token = match.group()
        if token in _CLOSERS:
            stack.append(_CLOSERS[token])
        elif token in (b"}", b"]"):
            if not stack:
                break
            stack.pop()
            if not stack:
                return text[: match.end()]
        elif token == b",":
            cut, closers = match.start(), b"".join(reversed(stack))
    return text[:cut] + closers


def _start(head: bytes) -> int:
    """Where the first a line that is not blank begins."""
    start = len(_BOM) if head.startswith(_BOM) else 0
    while start < len(head) and head[start] in b" \t\r\n":
        start += 1
    return start


def _line_end(file: File, start: int) -> int:
    """Where the line that begins at `start` of the head ends: at its newline, or with the file."""
    end = file.head.find(b"\n", start)
    position = len(file.head)
    while end < 0 and position <= MAX_DOCUMENT and (block := file.read(position, BLOCK)):
        inside = block.find(b"\n")
        end = position + inside if inside >= 0 else -1
        position += len(block)
    return end if end >= 0 else position


def has_lines(file: File) -> bool:
    """True for JSON lines: the first line is an object for itself, and another line follows.

    Where none follows, the file name decides.
    """
    head = file.head
    start = _start(head)
    if head[start : start + 1] == b"[":
        return False
    if head[start : start + 1] != b"{" or head[start + 1 : start + 2] in (b"\n", b"\r"):
        return _has_later_row(head)
    end = _line_end(file, start)
    tail = head[start:end] if end <= len(head) else file.read(max(start, end - 64), min(64, end - start))
    if not tail.rstrip().endswith(b"}"):
        return _has_later_row(head)
    after = head[end:].strip() or file.read(max(end, len(head)), HEAD_SIZE).strip()
    return after[:1] not in (b",", b"]", b"}", b":") if after else file.name.lower().endswith((".jsonl", ".ndjson"))


# ---- the traces of a file


def documents(file: File) -> Iterator[Document | Problem]:
    """Every trace of `file` in order, with a key of its own where there may be several.

    The key is the trace's id; ``L7`` (line or row 7) without one, ``id~L7`` where one before it has the same.
    """
    if has_lines(file):
        yield from _keyed(file, _line_documents(file))
    elif file.head[_start(file.head) :][:1] == b"[":
        yield from _keyed(file, _array_documents(file, file.read_all()))
    else:
        yield _document(file, file.read_all())


def _keyed(file: File, readings: Iterator[Document | Problem]) -> Iterator[Document | Problem]:
    seen: set[str] = set()
    for document in readings:
        if isinstance(document, Problem):
            yield document
            continue
        trace_id = document.trace_id
        key = trace_id or f"L{document.number}"
        if trace_id is not None and (trace_id in seen or _LINE_KEY.fullmatch(trace_id)):
            key = f"{trace_id}~L{document.number}"
            yield Problem(
                file.path, document.where, f"trace_id {trace_id[:80]!r} is taken: its run is called {key[:100]!r}"
            )
        seen.add(key)
        yield msgspec.structs.replace(document, key=key)


def _line_documents(file: File) -> Iterator[Document | Problem]:
    for line in lines(file):
        if not line.data.strip():
            continue
        try:
            yield _row(file, line)
        except FormatError as error:
            if line.whole or not file.moving:
                yield Problem(file.path, f"line {line.number}", error.reason)


def _row(file: File, line: Line) -> Document:
    if line.skipped:
        raise FormatError(f"line too long to read ({len(line.data) + line.skipped} bytes)")
    skip = len(_BOM) if line.number == 1 and line.data.startswith(_BOM) else 0
    return _document(file, line.data[skip:], line.offset + skip, f"line {line.number}")


def _array_documents(file: File, data: bytes) -> Iterator[Document | Problem]:
    rows, note, position = records.elements(Raw(data)), None, data.find(b"[") + 1
    if rows is None:
        rows, note = decode(data)
    for number, row in enumerate(rows or (), 1):
        try:
            if isinstance(row, Raw):
                gap = _GAP.match(data, position)
                position = position if gap is None else gap.end()
                yield _document(file, bytes(row), position, f"row {number}")
                position += len(memoryview(row))
            else:
                yield _decoded_document(file, row, data, 0, f"row {number}", note)
        except FormatError as error:
            yield Problem(file.path, f"row {number}", error.reason)


def _document(file: File, data: bytes, offset: int = 0, where: str = "") -> Document:
    """The trace in the bytes `data`, which are at `offset` of the file. Raises `FormatError` if there is none."""
    top, note = records.fields(Raw(data)), None
    if top is None:
        top, note = decode(data)
    return _decoded_document(file, top, data, offset, where, note)


def _decoded_document(file: File, top: Any, data: bytes, offset: int, where: str, note: str | None) -> Document:
    inside = trace_in(top)
    if inside is None:
        raise FormatError("no trace found")
    fields, columns = inside
    origin = Origin(file.stat, offset, len(data), crc32(data), settled(file.stat))
    metadata = mapping(plain(fields.get("metadata")))
    return Document(Outline(fields, file.path, where, note), columns, metadata, origin, file.path, where)


def find(file: File, key: str | None) -> Document:
    """The trace that `documents` gave that key. Raises `FormatError` if it is not there."""
    if key is None or not has_lines(file):
        for document in documents(file):
            if isinstance(document, Document) and (key is None or document.key == key):
                return document
        raise FormatError(f"trace {key!r} not found")
    named = _LINE_KEY.fullmatch(key)
    number = int(named["number"]) if named else 0
    needle = key.encode() if _PLAIN.fullmatch(key) else b""
    for line in lines(file):
        if line.number == number if number else needle in line.data:
            try:
                document = _row(file, line)
            except FormatError:
                if number:
                    raise
                continue
            if number or document.trace_id == key:
                return msgspec.structs.replace(document, key=key)
    raise FormatError(f"trace {key!r} not found")
