"""What ``opencode export`` writes: one session as one JSON object, ``{info, messages: [{info, parts}]}``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from zlib import crc32

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk
from tracetui.formats.decode import decode, strict, top_names
from tracetui.formats.opencode.messages import (
    KINDS,
    At,
    Message,
    Part,
    Record,
    body_of,
    changed,
    info_of,
    part_with,
    rendered,
    tell,
)
from tracetui.formats.opencode.runs import Memory, Session, Teller, Tree, header_of_tree, run_body
from tracetui.formats.scalars import without, word
from tracetui.model import Body, Header, Problem, RunRef, RunSummary, Span
from tracetui.model.build import RunBuilder
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 60
_MARKS: Final = (b'"projectID"', b'"sessionID"')
_Messages = list[tuple[Any, tuple[Any, ...]]]
"""Messages with their places: offset, size and checksum in the file, or their numbers where that cannot be told."""


class Document(msgspec.Struct, frozen=True):
    """A session as a file holds it."""

    info: Record
    messages: _Messages
    rest: Record = {}
    """What else is there."""
    note: str | None = None


def sniff(head: bytes) -> int:
    """Certain of an object with info and messages that are those of sessions."""
    if b'"info"' not in head or not any(mark in head for mark in _MARKS):
        return NO
    names = set(top_names(head))
    if {b"info", b"messages"} <= names:
        return CERTAIN
    return LIKELY if len(head) == HEAD_SIZE and names <= {b"info", b"messages"} and names else NO


def summarize(file: File, name: str) -> Iterator[RunSummary | Problem]:
    """The one session; both stages read all of it."""
    tree, document = _tree(file, file.read_all())
    builder = RunBuilder(RunRef(name, file.path), lambda span: Body())
    builder.add(Teller(tree, Memory()).spans, header=_header(tree, file), problems=_problems(tree, document, file))
    yield builder.summary(modified_at=file.stat.mtime, moving=file.moving)


def read(file: File, data: bytes) -> Chunk:
    """The whole run."""
    tree, document = _tree(file, data)
    attributes = document.info | {key if key not in document.info else f"export.{key}": value
                                  for key, value in document.rest.items()}  # fmt: skip
    return Chunk(
        spans=Teller(tree, Memory()).spans,
        header=_header(tree, file),
        body=run_body(tree, attributes),
        problems=_problems(tree, document, file),
    )


def body(file: File, span: Span) -> Body:
    """Everything about one span, from the message that tells it."""
    at = span.at
    if not isinstance(at, At):
        raise FormatError("this span comes from another format")
    if at.message is None:
        if at.shows != "revert":
            return Body()
        revert = document_of(file.read_all()).info.get("revert")
        return Body(attributes=revert if isinstance(revert, dict) else {})
    raw, value = _stored(file, at.message)
    message, _ = message_of(value, at.message)
    parts = (msgspec.structs.replace(one, id=at.part_id) if one.place == at.part else one for one in message.parts)
    return body_of(span, msgspec.structs.replace(message, parts=tuple(parts)), raw)


def _stored(file: File, place: tuple[Any, ...]) -> tuple[bytes, Any]:
    if len(place) == 1:
        messages = document_of(file.read_all()).messages
        if place[0] >= len(messages):
            raise changed(f"messages[{place[0]}]")
        return b"", messages[place[0]][0]
    offset, size, check = place
    raw = file.read(offset, size)
    if crc32(raw) != check:
        raise changed(f"byte {offset}")
    return raw, strict(raw)


def document_of(data: bytes) -> Document:
    """The session that a file holds. Raises `FormatError`."""
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        messages: _Messages = list(_elements(data, fields.get("messages")))
        info = strict(bytes(memoryview(fields["info"]))) if "info" in fields else {}
        rest = {key: strict(bytes(memoryview(value))) for key, value in fields.items()
                if key not in ("info", "messages")}  # fmt: skip
        note = None
    except (ValueError, RecursionError):  # not strict JSON, or not the types of a session
        value, note = decode(data)
        if not isinstance(value, dict):
            raise FormatError("not a JSON object") from None
        info, listed, rest = value.get("info"), value.get("messages"), without(value, "info", "messages")
        messages = [(one, (place,)) for place, one in enumerate(listed)] if isinstance(listed, list) else []
        if not isinstance(listed, list | None):
            rest["messages"] = listed
    if not isinstance(info, dict):
        rest, info = rest | ({} if info is None else {"info": info}), {}
    return Document(info, messages, rest, note)


def _elements(data: bytes, raw: msgspec.Raw | None) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The elements of the list that `raw` is, with their places. Raises `ValueError` if it is none."""
    if raw is None:
        return
    position = data.find(memoryview(raw)) + 1
    for element in msgspec.json.decode(raw, type=list[msgspec.Raw]):
        view = memoryview(element)
        position = data.find(view, position)
        yield strict(bytes(view)), (position, len(view), crc32(view))
        position += len(view)


def _tree(file: File, data: bytes) -> tuple[Tree, Document]:
    document = document_of(data)
    ident = word(document.info.get("id")) or file.name.removesuffix(".json") or file.name
    info = info_of(document.info, ident, ("info",))
    told, problems, seen = [], [], set[str]()
    for number, (value, place) in enumerate(document.messages):
        message, wrong = message_of(value, place)
        told.append(tell(_apart(message, number, seen), info.place))
        problems += [Problem(file.path, f"messages[{number}]", wrong)] if wrong else []
    return Tree({ident: Session(info, tuple(told), tuple(problems))}), document


def _apart(message: Message, number: int, seen: set[str]) -> Message:
    """The message with ids that nothing before it has: those of spans are to be different."""
    parts = []
    ident = message.id if message.id and message.id not in seen else f"message {number}"
    seen.add(ident)
    for part in message.parts:
        own = part.id if part.id and part.id not in seen else f"part {number}.{part.place[0]}"
        seen.add(own)
        parts.append(msgspec.structs.replace(part, id=own))
    return msgspec.structs.replace(message, id=ident, parts=tuple(parts))


def message_of(value: Any, place: tuple[Any, ...]) -> tuple[Message, str]:
    """A message with its parts, and what is wrong with it. Ids are "" where they are not told."""
    if not isinstance(value, dict):
        return Message(
            "", {}, (), {} if value is None else {"data": value}, place, len(rendered(value))
        ), "no JSON object"
    told, listed = value.get("info"), value.get("parts")
    own, wrong = without(value, "info", "parts"), ""
    data = told if isinstance(told, dict) else {}
    if not isinstance(told, dict):
        own, wrong = own | ({} if told is None else {"info": told}), "it has no info"
    if not isinstance(listed, list):
        own, wrong = own | ({} if listed is None else {"parts of it": listed}), wrong or "it has no list of parts"
        listed = []
    parts = [part_of(one, number) for number, one in enumerate(listed)]
    size = len(rendered(value)) if len(place) == 1 else place[1]
    return Message(word(data.get("id")) or "", data, tuple(parts), own, place, size), wrong


def part_of(value: Any, number: int) -> Part:
    """One part of a message, by its number."""
    data = value if isinstance(value, dict) else {}
    own = {} if isinstance(value, dict) or value is None else {"data": value}
    found = part_with(word(data.get("id")) or "", data, own, (number,))
    return found if found.kind in KINDS else msgspec.structs.replace(found, size=len(rendered(value)))


def _problems(tree: Tree, document: Document, file: File) -> list[Problem]:
    note = [] if document.note is None else [Problem(file.path, "", f"read leniently: {document.note}")]
    return [*note, *tree.problems]


def _header(tree: Tree, file: File) -> Header:
    """The header. Nobody goes on writing an export: a session that has not ended in it isn't running."""
    return msgspec.structs.replace(header_of_tree(tree, stale=True), size=file.stat.size)
