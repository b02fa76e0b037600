"""Where the traces of a file are: a bare trace, a row with a trace in it, an array of these, or one of these a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.latticeflow import records
from tracetui.formats.latticeflow.records import Piece, Place
from tracetui.formats.lines import BLOCK, Line, lines
from tracetui.formats.scalars import word
from tracetui.model import Problem
from tracetui.sources.base import HEAD_SIZE, MAX_DOCUMENT, File

GLANCE: Final = 4096
"""Bytes that mostly suffice to see what a file is."""
_FEW: Final = 8
"""Rows that are looked at to see whether there are traces in a file."""
_BOM: Final = b"\xef\xbb\xbf"
_WORDS: Final = (b'"items"', b'"events"', b'"trace"', b'"FORMAT"', b'"format"')
_BEGIN: Final = 64
"""Bytes by which a part of a document is found."""
_LINE_KEY: Final = re.compile(r"(?:(?P<id>.*)~)?L(?P<number>\d{1,15})", re.DOTALL)
_PLAIN: Final = re.compile(r"[A-Za-z0-9._:-]+")
_GAP: Final = re.compile(rb"[\s,]*")
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\],]', re.DOTALL)
_CLOSERS: Final = {b"{": b"}", b"[": b"]"}


class Document(msgspec.Struct, frozen=True):
    """One trace, undecoded: its own fields, those of the row around it, and where it is in the file."""

    fields: dict[str, Piece]
    columns: dict[str, Piece]
    """Siblings of ``trace`` in a row."""
    data: bytes
    """The text that all pieces are parts of; empty where it was read leniently."""
    place: Place
    """The whole record; its path leads to the trace in it."""
    metadata: dict[str, Any]
    """`metadata` decoded, empty where it is no object."""
    key: str | None = None
    where: str = ""
    """The record's place in words: ``line 7``, ``row 7``; nothing where it is the whole file."""
    note: str | None = None
    """Why it had to be read leniently."""

    @property
    def has_events(self) -> bool:
        """True if there is an event stream with something in it."""
        events = self.fields.get("events")
        if not isinstance(events, msgspec.Raw):
            return bool(events)
        return memoryview(events).nbytes > 4 or bytes(events) not in (b"null", b"[]")

    @property
    def trace_id(self) -> str | None:
        """`metadata.trace_id`, None where there is none."""
        return word(self.metadata.get("trace_id"))

    @property
    def number(self) -> str:
        """The number of its line or row, as text; "" where it is the whole file."""
        return self.where.rpartition(" ")[2]

    def array(self, name: str) -> list[tuple[Piece, Place]]:
        """The elements of a field with their places; nothing where it is no array."""
        found = records.elements(self.fields.get(name))
        return [] if found is None else self.places(found, self.fields[name], self.place, name)

    def places(self, found: list[Piece], within: Piece, around: Place, name: str) -> list[tuple[Piece, Place]]:
        """The elements `found` of the array `within`, which is field `name` of what is at the place `around`."""
        base, data = self.place.offset, self.data
        position = _find(data, within, around.offset - base) if data and isinstance(within, msgspec.Raw) else -1
        if position < 0:  # it was decoded leniently
            return [(piece, replace(around, path=(*around.path, name, i))) for i, piece in enumerate(found)]
        position += 1
        placed = []
        for piece in found:
            view = memoryview(piece)
            size = view.nbytes
            position = data.find(view[:_BEGIN], position)
            placed.append((piece, Place(base + position, size, records.checksum(view))))
            position += size
        return placed


def _gap_end(data: bytes, position: int) -> int:
    gap = _GAP.match(data, position)
    return position if gap is None else gap.end()


def _find(data: bytes, piece: msgspec.Raw, start: int) -> int:
    """Where `piece`, which is a part of `data`, first occurs from `start` on."""
    view = memoryview(piece)
    begin = bytes(view[:_BEGIN])
    position = data.find(begin, start)
    while position >= 0 and not data.startswith(view, position):
        position = data.find(begin, position + 1)
    return position


def is_trace(top: dict[str, Piece], *, partial: bool = False) -> bool:
    """True for an object that holds what a trace holds: `FORMAT`, or `items`, or `events`.

    `events` of Paprika name an `event_type`, those of Inspect an `event`, `items` of a hypergraph MapLog come with a
    `graph_name`. `partial`: only the beginning of the object is known.
    """
    if "graph_name" in top or "goal_achieved" in top:
        return False
    if _is_format(top.get("FORMAT")) or _is_format(top.get("format")):
        return True
    found = [records.elements(top.get(name)) for name in ("events", "items")]
    if any(found):
        return any(_is_event(piece) for piece in (found[0] or ())[:4]) or any(
            _is_item(piece, partial=partial) for piece in (found[1] or ())[:4]
        )
    return any(one is not None for one in found) and set(top) <= {"items", "events", "metadata", "trace_id"}


def _is_format(piece: Piece) -> bool:
    return piece == "open_responses" or (isinstance(piece, msgspec.Raw) and bytes(piece) == b'"open_responses"')


def _is_event(piece: Piece) -> bool:
    members = records.fields(piece)
    if members is None or "event_type" in members or "event" in members:
        return False
    try:
        found = records.record(records.EVENTS, piece, {})
    except FormatError:
        return False
    return found is not None and records.event_kind(found) in records.EVENT_KINDS


def _is_item(piece: Piece, *, partial: bool) -> bool:
    members = records.fields(piece)
    if members is None:
        return False
    kind = records.item_kind(records.as_item(piece))
    if kind == "custom_task_message":
        return set(members) == {"content"}
    return kind in records.ITEM_KINDS or (partial and not kind and {"id", "status"} <= set(members))


def trace_in(
    top: dict[str, Piece], *, partial: bool = False
) -> tuple[dict[str, Piece], dict[str, Piece], tuple[str, ...]] | None:
    """The fields of the trace that an object is or holds, the columns beside it, and the path to it."""
    if is_trace(top, partial=partial):
        return top, {}, ()
    inner = records.fields(top.get("trace"))
    if inner is None or not is_trace(inner, partial=partial):
        return None
    return inner, {name: top[name] for name in top if name != "trace"}, ("trace",)


def claims(file: File) -> bool:
    """True if `file` begins as one that holds traces."""
    head = file.head
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return len(head) < HEAD_SIZE and _holds_trace(_value(head), partial=False)
    if not any(word in head for word in _WORDS):
        return False
    if len(head) == HEAD_SIZE and _holds_trace(_value(_closed(head[:GLANCE])), partial=True):
        return True
    start = _start(head)
    end = head.find(b"\n", start)
    for text in (head[start:end] if end >= 0 else head, head):
        found = records.fields(msgspec.Raw(text))
        if found is not None:
            return trace_in(found) is not None or _has_later_row(head)
    if _has_later_row(head):
        return True
    whole = len(head) < HEAD_SIZE and head[start : start + 1] == b"["
    return _holds_trace(_value(head) if whole else _value(_closed(head)), partial=not whole)


def _holds_trace(top: Any, *, partial: bool) -> bool:
    if isinstance(top, list):
        return any(isinstance(one, dict) and trace_in(one, partial=partial) is not None for one in top[:_FEW])
    return isinstance(top, dict) and trace_in(top, partial=partial) is not None


def _has_later_row(head: bytes) -> bool:
    """Whether there is a row with a trace among the lines that follow the first: a bad one must not hide the rest."""
    rows = (records.fields(msgspec.Raw(line)) for line in head.split(b"\n", _FEW)[1:_FEW] if line.startswith(b"{"))
    return any(row is not None and trace_in(row) is not None for row in rows)


def _value(data: bytes) -> Any:
    try:
        return decode(data)[0]
    except FormatError:
        return None


def _closed(text: bytes) -> bytes:
    """The beginning of a JSON document, cut after its last whole part and closed."""
    stack: list[bytes] = []
    cut, closers = 0, b""
    for token in _TOKENS.finditer(text):
        mark = token.group()
        if mark in _CLOSERS:
            stack.append(_CLOSERS[mark])
        elif mark in (b"}", b"]"):
            if not stack:
                break
            stack.pop()
            if not stack:
                return text[: token.end()]
        elif mark == b",":
            cut, closers = token.start(), b"".join(reversed(stack))
    return text[:cut] + closers


def _start(head: bytes) -> int:
    """Where the first line that is not blank begins."""
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
    """True for JSON lines: the first line is an object for itself, and another line follows (or the name says so)."""
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


def documents(file: File) -> Iterator[Document | Problem]:
    """Every trace of `file` in order, with a key of its own where there may be several.

    The key is the trace's id; ``L7`` (line or row 7) without one, ``id~L7`` where one before it has the same.
    """
    if has_lines(file):
        yield from _keyed(file, _line_documents(file))
        return
    data = file.read_all()
    if file.head[_start(file.head) :][:1] == b"[":
        yield from _keyed(file, _array_documents(file, data))
    else:
        yield document(data, 0)


def _keyed(file: File, found: Iterator[Document | Problem]) -> Iterator[Document | Problem]:
    seen: set[str] = set()
    for one in found:
        if isinstance(one, Problem):
            yield one
            continue
        trace_id = one.trace_id
        key = trace_id or f"L{one.number}"
        if trace_id is not None and (trace_id in seen or _LINE_KEY.fullmatch(trace_id)):
            key = f"{trace_id}~L{one.number}"
            yield Problem(file.path, one.where, f"trace_id {trace_id[:80]!r} is taken: its run is called {key[:100]!r}")
        seen.add(key)
        yield msgspec.structs.replace(one, key=key)


def _line_documents(file: File) -> Iterator[Document | Problem]:
    for line in lines(file):
        if not line.data.strip():
            continue
        try:
            yield _row(line)
        except FormatError as error:
            if line.whole or not file.moving:
                yield Problem(file.path, f"line {line.number}", error.reason)


def _row(line: Line) -> Document:
    if line.skipped:
        raise FormatError(f"a line of {len(line.data) + line.skipped} bytes is too long to be read")
    skip = len(_BOM) if line.number == 1 and line.data.startswith(_BOM) else 0
    return document(line.data[skip:], line.offset + skip, f"line {line.number}")


def _array_documents(file: File, data: bytes) -> Iterator[Document | Problem]:
    found = records.elements(msgspec.Raw(data))
    if found is None:
        yield from _lenient_array(file, data)
        return
    position = data.find(b"[") + 1
    for number, piece in enumerate(found, 1):
        position = _gap_end(data, position)
        row = bytes(piece)
        try:
            yield document(row, position, f"row {number}")
        except FormatError as error:
            yield Problem(file.path, f"row {number}", error.reason)
        position += len(row)


def _lenient_array(file: File, data: bytes) -> Iterator[Document | Problem]:
    found, note = decode(data)
    place = Place(0, len(data), records.checksum(data))
    for i, row in enumerate(found):
        inside = trace_in(row) if isinstance(row, dict) else None
        if inside is None:
            yield Problem(file.path, f"row {i + 1}", "there is no trace in it")
        else:
            fields, columns, path = inside
            own = replace(place, path=(i, *path))
            yield Document(fields, columns, b"", own, _metadata(fields), where=f"row {i + 1}", note=note)


def document(data: bytes, offset: int, where: str = "") -> Document:
    """The trace in the bytes `data`, which are at `offset` of the file. Raises `FormatError` if there is none."""
    top, note = records.fields(msgspec.Raw(data)), None
    if top is None:
        found, note = decode(data)
        top = found if isinstance(found, dict) else {}
    inside = trace_in(top)
    if inside is None:
        raise FormatError("there is no trace in it")
    fields, columns, path = inside
    strict = note is None and isinstance(next(iter(fields.values()), None), msgspec.Raw)
    place = Place(offset, len(data), records.checksum(data), () if strict else path)
    return Document(fields, columns, data if strict else b"", place, _metadata(fields), where=where, note=note)


def _metadata(fields: dict[str, Piece]) -> dict[str, Any]:
    try:
        found = records.value(fields.get("metadata"))
    except FormatError:
        return {}
    return found if isinstance(found, dict) else {}


def find(file: File, key: str | None) -> Document:
    """The trace that `documents` gave that key. Raises `FormatError` if it is not there."""
    if key is None or not has_lines(file):
        for one in documents(file):
            if isinstance(one, Document) and (key is None or one.key == key):
                return one
        raise FormatError(f"there is no trace {key!r} in it")
    named = _LINE_KEY.fullmatch(key)
    found = _numbered(file, int(named["number"])) if named else _named(file, key)
    if found is None:
        raise FormatError(f"there is no trace {key!r} in it")
    return msgspec.structs.replace(found, key=key)


def _numbered(file: File, number: int) -> Document | None:
    position, before = 0, 0
    while block := file.read(position, BLOCK):
        inside = block.count(b"\n")
        if before + inside >= number - 1:
            break
        before += inside
        position += len(block)
    for line in lines(file, position, before + 1):
        if line.number == number:
            return _row(line)
    return None


def _named(file: File, key: str) -> Document | None:
    needle = key.encode() if _PLAIN.fullmatch(key) else b""
    for line in lines(file):
        if needle in line.data:
            try:
                found = _row(line)
            except FormatError:
                continue
            if found.trace_id == key:
                return found
    return None
