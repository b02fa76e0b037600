"""Bodies of spans: references to their records, which are read again on demand, message parts and previews.

Fields that don't fit a message go to the attributes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from struct import Struct
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

import msgspec
import orjson

from tracetui.errors import FormatError
from tracetui.formats.decode import decode_value, parse
from tracetui.formats.scalars import mapping, text, without, word
from tracetui.formats.schema import plain
from tracetui.model import PREVIEW, Blob, Body, Message, Part, Reasoning, Text, ToolCall
from tracetui.sources.base import CACHE, File

ByteRange = tuple[int, int]
"""Offset and size of one line in bytes."""


_RANGE: Final = Struct("<QII")
PACKED_SIZE: Final = _RANGE.size
"""Bytes of a packed line."""


pack_range: Final[Callable[[int, int, int], bytes]] = _RANGE.pack
"""Offset, size and checksum (CRC-32) of a line, packed for `SpanRef`."""


def pack_block(block: int) -> bytes:
    """The number of a block, which precedes the packed lines in `SpanRef`: at most 15 bytes."""
    return block.to_bytes(1 if block < 256 else (block.bit_length() + 7) // 8, "little")


class SpanRef(msgspec.Struct, frozen=True, gc=False):
    """Location of a span's body: its lines, and a block of the first record. To save memory, `Span.at` is only `lines`
    unless the span has a `part` or is of an unknown kind.
    """

    lines: bytes
    """The concatenated `pack_range` of each line, after the `pack_block` of a block."""
    part: str = ""
    """Path of their file, relative to the folder of the main one; empty for the main file."""

    @classmethod
    def of(cls, at: Any) -> SpanRef:
        """The reference in a `Span.at`. Raises `FormatError` for that of another format."""
        if isinstance(at, bytes):
            return cls(at)
        if not isinstance(at, SpanRef):
            raise changed()
        return at

    @property
    def block(self) -> int:
        """Number of the block, -1 if the span is a whole record."""
        prefix = self.lines[: len(self.lines) % PACKED_SIZE]
        return int.from_bytes(prefix, "little") if prefix else -1

    @property
    def ranges(self) -> tuple[tuple[int, int, int], ...]:
        """Offset, size and checksum of each line, the first one first."""
        return tuple(_RANGE.iter_unpack(self.lines[len(self.lines) % PACKED_SIZE :]))

    @property
    def size(self) -> int:
        """Bytes of all lines."""
        return sum(size for _, size, _ in self.ranges)


def changed(where: str = "") -> FormatError:
    """The error of a body whose record was replaced; `where` as in ``byte 812``."""
    return FormatError("the file changed: the record was replaced", where)


def record_at(file: File, offset: int, size: int, *, many: bool = False) -> tuple[dict[str, Any], bytes]:
    """The record at byte `offset`, and its bytes. Raises `FormatError` if there is none of this size.

    It is a line, or a part of one, from ``{`` to ``}``. A record with `many` spans is cached for the next of them.
    """
    if many:
        return cached(file, (offset, size), lambda: record_at(file, offset, size))
    before = file.read(offset - 1, 1) if offset else b"\n"
    data = file.read(offset, size + 1)
    is_line = before == b"\n" and data[size:] in (b"", b"\n")
    is_part = data[:1] == b"{" and data[size - 1 : size] == b"}"
    if len(data) < size or not (is_line or is_part):
        raise changed(f"byte {offset}")
    try:
        record, _ = parse(data[:size])
    except FormatError:
        if is_line:
            raise
        record = None
    if not isinstance(record, dict):
        raise changed(f"byte {offset}")
    return record, data[:size]


def records_at(file: File, at: Any) -> list[tuple[dict[str, Any], bytes]]:
    """The records of a `SpanRef`, with their bytes. Raises `FormatError` if the file has others there now.

    A record with several blocks is cached for the span of the next block.
    """
    ref = SpanRef.of(at)
    if ref.part:
        with open_part(file, ref.part) as other:
            return records_at(other, ref.lines)
    if ref.block > 0:
        return [cached(file, line, partial(_checked_record, file, *line)) for line in ref.ranges]
    return [_checked_record(file, *line) for line in ref.ranges]


def _checked_record(file: File, offset: int, size: int, check: int) -> tuple[dict[str, Any], bytes]:
    data = file.read(offset, size)
    record = parse(data)[0] if len(data) == size and crc32(data) == check else None
    if not isinstance(record, dict):
        raise changed(f"byte {offset}")
    return record, data


class Named:
    """Fields of several records, those of each under its name: ``reasoning 2`` is the second of that name."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self._times: dict[str, int] = {}

    def add(self, name: str, value: Any) -> None:
        """Add the fields of one record, unless empty."""
        if not value:
            return
        times = self._times.get(name, 0) + 1
        while (key := name if times == 1 else f"{name} {times}") in self.fields:
            times += 1
        self._times[name] = times
        self.fields[key] = value

    def flat(self, fields: dict[str, Any]) -> None:
        """Fields that need no name before them, unless theirs is taken."""
        for name, value in fields.items():
            self.add(name, value) if name in self.fields else self.fields.__setitem__(name, value)


# ---- cache

T = TypeVar("T")

CACHE_SIZE: Final = 3
"""Records per run: one may have the calls of a response, others their results."""
_RECORDS: Final = "records"


class _Cached(NamedTuple):
    key: tuple[Hashable, ...]
    value: Any


def cached(file: File, key: tuple[Hashable, ...], make: Callable[[], T]) -> T:
    """Return `make()`, cached by `key` and version of the file: the spans of a record share its decoded value.

    Caches the latest few values, and only while a run is open (`CACHE`). Callers must not modify the value.
    """
    shared = file.memo.get(CACHE)
    if shared is None:
        return make()
    version = (file.path, file.stat, *key)
    entries: tuple[_Cached, ...] = shared.get(_RECORDS, ())
    entry = next((other for other in entries if other.key == version), None) or _Cached(version, make())
    if not entries or entries[0] is not entry:  # one assignment: several threads may be here
        shared[_RECORDS] = (entry, *(other for other in entries if other is not entry))[:CACHE_SIZE]
    value: T = entry.value
    return value


def open_part(file: File, path: str) -> File:
    """Open another file of the run, relative to the folder of `file`, with the same cache."""
    part = file.other(path)
    if CACHE in file.memo:
        part.memo[CACHE] = file.memo[CACHE]
    return part


_T = TypeVar("_T")


def convert_each(
    name: str, items: Iterable[tuple[int, Any]], convert: Callable[[Any], tuple[_T, Any]], rests: dict[str, Any]
) -> list[_T]:
    """Convert `items` (pairs of index and item) to messages or parts. `convert` returns the result and the fields that
    don't fit it, which are added to `rests` as ``NAME[INDEX]``.
    """
    converted = []
    for index, item in items:
        result, rest = convert(item)
        converted.append(result)
        if rest:
            add_field(rests, f"{name}[{index}]", rest)
    return converted


def add_field(fields: dict[str, Any], name: str, value: Any) -> None:
    """Add a value under `name`, or under ``NAME 2``, ``NAME 3`` … if that is taken."""
    key, times = name, 1
    while key in fields:
        times += 1
        key = f"{name} {times}"
    fields[key] = value


def rendered(value: Any) -> bytes:
    """A value as JSON, where its own bytes are not at hand; empty for one that is nested too deeply."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates, depth, integers over 64 bits
        pass
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (RecursionError, ValueError):
        return b""


# ---- agent logs


def kind_of(record: dict[str, Any]) -> str:
    """The type of a record, ``?`` where it has none."""
    return type_of(record) or "?"


def type_of(block: Any) -> str:
    """The type of a content block, empty where it has none."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def blocks_of(content: Any) -> list[Any]:
    """The content blocks of a message: a text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def records_of(file: File, at: Any) -> tuple[list[dict[str, Any]], bytes]:
    """The records of a row, and their lines. Raises `FormatError` if the file has others there now."""
    lines = records_at(file, at)
    return [record for record, _ in lines], b"\n".join(data for _, data in lines)


def block_of(content: Any, at: SpanRef) -> dict[str, Any]:
    """The content block of a row. Raises `FormatError` if there is none any more."""
    blocks = blocks_of(content)
    block = blocks[at.block] if at.block < len(blocks) else None
    if not isinstance(block, dict):
        raise changed(f"byte {at.ranges[0][0]}")
    return block


def part_of(block: Any, *, call: str, arguments: str) -> tuple[Part, dict[str, Any]]:
    """A content block as a message part, and the fields that don't fit it.

    Types of tool calls end with `call`; `arguments` is the field with the arguments.
    """
    kind = type_of(block)
    if isinstance(block, str):
        return Text(block), {}
    if kind in ("text", "thinking") and isinstance(block.get(kind), str):
        return (Text if kind == "text" else Reasoning)(block[kind]), without(block, "type", kind)
    if kind.endswith(call) and isinstance(block.get("name"), str):
        ident = text(block.get("id"))
        rest = without(block, "type", "name", arguments, *([] if ident is None else ["id"]))
        return ToolCall(ident, block["name"], block.get(arguments)), rest
    return Blob(kind or "block", block), {}


def message_body(message: Message, attributes: dict[str, Any], raw: bytes, *, is_output: bool) -> Body:
    """The body of a row that is one message, as the input or the output of the model."""
    text = "\n".join(part.text for part in message.parts if isinstance(part, Text)) or None
    if is_output:
        return Body(output=text, output_messages=(message,), attributes=attributes, raw=raw)
    return Body(input=text, input_messages=(message,), attributes=attributes, raw=raw)


def call_part(call: Any) -> ToolCall:
    """A call of a chat message; its name and arguments (perhaps JSON in a text) may be in its ``function``."""
    fields = mapping(call)
    own = mapping(fields.get("function")) or fields
    given = own.get("arguments", own.get("args"))
    arguments = decode_value(given) if isinstance(given, str) else given
    return ToolCall(text(fields.get("id")), text(own.get("name")) or "call", arguments)


def notes_body(records: list[dict[str, Any]], raw: bytes) -> Body:
    """The body of a row of notes: each record by its number and type."""
    return Body(attributes={f"{n}. {kind_of(record)[:120]}": record for n, record in enumerate(records, 1)}, raw=raw)


# ---- messages


def text_in(content: Any) -> str:
    """The text of a message: text itself, or the texts of its parts."""
    if isinstance(content, str):
        return content
    texts = [mapping(part).get("text") for part in content] if isinstance(content, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))


def as_parts(content: Any) -> tuple[list[Part], Any]:
    """A message as parts, and the message itself where these do not show all of it."""
    if isinstance(content, str):
        return ([Text(content)] if content else []), None
    if not isinstance(content, list):
        return [], content
    complete = True
    parts: list[Part] = []
    for item in content:
        text = mapping(item).get("text")
        if isinstance(text, str):
            parts.append(Text(text))
            complete = complete and item.keys() <= {"type", "text"}
        else:
            parts.append(Blob(word(mapping(item).get("type")) or "part", item))
    return parts, None if complete else content


# ---- previews of tool calls

_ARGUMENTS: Final = (
    "command",
    "pattern",
    "file_path",
    "path",
    "notebook_path",
    "url",
    "query",
    "subagent_type",
    "skill",
    "description",
    "prompt",
)
"""Arguments that distinguish calls of a tool, the most specific first."""


def argument(given: Any, *, tasks: Sequence[str] = ("description", "prompt")) -> str:
    """The preview of a call: its most specific argument. The kind of a sub-agent precedes its task, the first
    present one of `tasks`.
    """
    if not isinstance(given, dict):
        return given[:PREVIEW] if isinstance(given, str) else "" if given is None else as_json(given)
    for name in _ARGUMENTS:
        value = given.get(name)
        if isinstance(value, str):
            if name == "subagent_type":
                task = next((text for task in tasks if isinstance(text := given.get(task), str) and text), "")
                value = f"{value[:PREVIEW]}: {task[:PREVIEW]}"
            return value[:PREVIEW]
    return as_json(given) if given else ""


class _Arguments(msgspec.Struct, gc=False):
    """The arguments in the order of `_ARGUMENTS`."""

    command: str | None = None
    pattern: str | None = None
    file_path: str | None = None
    path: str | None = None
    notebook_path: str | None = None
    url: str | None = None
    query: str | None = None
    subagent_type: str | None = None
    skill: str | None = None
    description: str | None = None
    prompt: str | None = None


_decode_arguments: Final = msgspec.json.Decoder(_Arguments).decode


def preview_of(raw: msgspec.Raw, *, tasks: Sequence[str] = ("description", "prompt")) -> str:
    """`argument` for undecoded arguments; decodes as few as possible."""
    return preview_and_task(raw, tasks=tasks)[0]


def preview_and_task(raw: msgspec.Raw, *, tasks: Sequence[str] = ("description", "prompt")) -> tuple[str, str | None]:
    """`preview_of`, and the text that is given to a sub-agent as its task (``prompt``), if there is one."""
    try:
        arguments = _decode_arguments(raw)
    except (ValueError, RecursionError):
        given = plain(raw)
        task = given.get("prompt") if isinstance(given, dict) else None
        return argument(given, tasks=tasks), task if isinstance(task, str) else None
    if arguments.command is not None:
        return arguments.command[:PREVIEW], arguments.prompt
    for name in _ARGUMENTS:
        value = getattr(arguments, name)
        if value is not None and name != "subagent_type":
            return value[:PREVIEW], arguments.prompt
        if value is not None:
            break
    return argument(plain(raw), tasks=tasks), arguments.prompt


def as_json(value: Any) -> str:
    """The beginning of a value as JSON."""
    try:
        return orjson.dumps(value)[: PREVIEW * 4].decode("utf-8", "ignore")[:PREVIEW]
    except orjson.JSONEncodeError:  # lone surrogates, depth, integers over 64 bits
        return repr(value)[:PREVIEW] if isinstance(value, int) else "…"
