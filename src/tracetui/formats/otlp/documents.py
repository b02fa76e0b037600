"""Requests that are JSON documents over several lines: one in a file, or one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from zlib import crc32

from tracetui.errors import FormatError
from tracetui.formats.decode import decode
from tracetui.formats.kept import once
from tracetui.formats.lines import BLOCK, Line
from tracetui.formats.otlp.logs import whose
from tracetui.formats.otlp.records import Told, logs_in, told_in, trace_id
from tracetui.formats.tail import parse
from tracetui.sources.base import MAX_DOCUMENT, File
from tracetui.sources.versions import settled

_BOM: Final = b"\xef\xbb\xbf"
_INDENTED: Final = re.compile(rb"\s*\{[ \t\r]*\n[ \t]")
_END: Final = re.compile(rb"^\}[ \t\r]*(?:\n|(?=\{))", re.MULTILINE)
"""The end of an indented document: the only brace of it that begins a line, but for the first."""
_AT_ONCE: Final = 32 << 20
"""Bytes of a file whose documents are kept decoded while several traces of it are read."""


class Part(NamedTuple):
    """What a document tells of one trace."""

    line: Line
    check: int
    request: Any
    spans: list[Told]
    logs: list[tuple[tuple[int, int, int], str, dict[str, Any]]]
    """The events of spans in its logs: place, span, record."""


def is_document(file: File) -> bool:
    """Whether a file is JSON over several lines: its first line is only the beginning of a value."""
    first, newline, rest = file.head.removeprefix(_BOM).lstrip().partition(b"\n")
    return bool(newline) and _begins(first) and not _is_object(rest.lstrip().partition(b"\n")[0])


def _begins(data: bytes) -> bool:
    try:
        parse(data)
    except FormatError as error:
        return error.reason.startswith("cut off")
    return False


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(parse(data)[0], dict)
    except FormatError:
        return False


def documents(file: File) -> Iterator[Line]:
    """The documents of a file, each as a `Line`. Several are told apart where they are indented.

    A last one that does not end comes as a line without its newline, but not where it is the only one.
    """
    indented = _INDENTED.match(file.head.removeprefix(_BOM)) is not None
    buffer, offset, number = bytearray(), 0, 1
    position, end, looked = 0, file.stat.size, 0
    while block := file.read(position, max(0, min(8 * BLOCK, end - position))):
        position += len(block)
        buffer += block
        if len(buffer) > MAX_DOCUMENT:
            raise FormatError(f"not read: one document of more than {MAX_DOCUMENT >> 20} MiB", f"byte {offset}")
        begin = 0
        may_end = indented and (b"\n" in block or b"{" in block)
        for match in _END.finditer(buffer, looked) if may_end else ():
            yield Line(offset + begin, number, bytes(buffer[begin : match.start() + 1]), True)
            number += buffer.count(b"\n", begin, match.end())
            begin = match.end()
        del buffer[:begin]
        offset += begin
        looked = buffer.rfind(b"\n") + 1 if may_end else looked
    rest = bytes(buffer)
    if rest.strip():
        yield Line(offset, number, rest, offset == 0 or rest.rstrip().endswith(b"\n}"))


def parts_of(file: File, key: str) -> list[Part]:
    """What the documents of a file tell of a trace. Raises `FormatError` where nothing can be read.

    Where many traces are read, each document is decoded once.
    """
    if file.stat.size <= _AT_ONCE and settled(file.stat):
        return once(file, ("documents",), lambda: _by_trace(file)).get(key, [])
    return [part for line in documents(file) if (part := _sorted(file, line).get(key)) is not None]


def _by_trace(file: File) -> dict[str, list[Part]]:
    found: dict[str, list[Part]] = {}
    for line in documents(file):
        for key, part in _sorted(file, line).items():
            found.setdefault(key, []).append(part)
    return found


def _sorted(file: File, line: Line) -> dict[str, Part]:
    """What a document tells, by trace; nothing for a later one that cannot be read, which is told of the file."""
    try:
        request, _ = decode(line.data)
    except FormatError:
        if line.offset == 0:
            raise
        return {}
    check, found = crc32(line.data), dict[str, Part]()
    for place, log in logs_in(request):
        if (of := whose(log)) is not None:
            found.setdefault(of[0], Part(line, check, request, [], [])).logs.append((place, of[1], log))
    for told in told_in(request):
        found.setdefault(trace_id(told.span), Part(line, check, request, [], [])).spans.append(told)
    return found
