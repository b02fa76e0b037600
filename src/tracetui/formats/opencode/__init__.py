"""opencode: sessions in its database, in an export, and in the files used before 1.2.

Facts: files of opencode 1.18.33, its public source, and public files of older versions. Whatever the store, a session
has messages and a message has parts; a sub-agent is a session of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Final
from zlib import crc32

from msgspec import Raw
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.formats.bodies import cached
from tracetui.formats.decode import record_on, top_names
from tracetui.formats.document import DocumentReader, Outline, summary
from tracetui.formats.opencode import database, listing, reading, storage
from tracetui.formats.opencode.messages import Message, SpanRef, body_of, interpret
from tracetui.formats.opencode.records import MESSAGES, PARTS, Part, SourceMessage, changed, decode_record, info_of
from tracetui.formats.opencode.runs import RunSpans, Session, Tree, header_of_tree, run_body
from tracetui.formats.opening import opening
from tracetui.formats.scalars import child, mapping, text
from tracetui.formats.schema import Unknown, plain, raw_of
from tracetui.formats.sqlite import DatabaseReader, KindReader
from tracetui.model import Body, Operation, Problem, RunRef, RunSummary, Span
from tracetui.model.context import ContextFacts
from tracetui.sources.base import HEAD_SIZE, SQLITE_MAGIC, File

_LIKELY: Final = 60
_NAMES: Final = frozenset({b"info", b"messages"})
_ID_FIELDS: Final = (b'"projectID"', b'"sessionID"')


class Opencode:
    """The format; see `tracetui.formats.base.Format`, `Contextual`, `Composed`, `Homed` and `Resumable`."""

    name = "opencode"
    title = "opencode session"
    home_variables = ("XDG_DATA_HOME", "OPENCODE_DB")

    def sniff(self, file: File) -> int:
        if _is_database(file):
            return CERTAIN if any(file.tables >= tables for tables in database.TABLES) else NO
        return _sniff_export(file.head) or storage.sniff(file)

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        if _is_database(file):
            return listing.summarize(file, self.name, deep=deep)
        chunk = _read_export(file, file.read_all()) if _is_export(file) else storage.StorageReader().more(file)
        return [summary(RunRef(self.name, file.path), file, chunk, deep=True)]

    def open(self, file: File, ref: RunRef) -> Reader:
        rows = partial(DatabaseReader, partial(reading.read, ref=ref))
        readers: dict[str, Callable[[], Reader]]
        readers = {"database": rows, "export": partial(DocumentReader, _read_export), "storage": storage.StorageReader}
        return KindReader(_kind_of, readers)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        if not isinstance(span.at, SpanRef):
            raise FormatError("this span comes from another format")
        if _is_database(file):
            return database.body(file, span)
        return _export_body(file, span) if _is_export(file) else storage.body(file, span)

    def whole_of(self, file: File) -> str | None:
        """Messages, parts and sub-agents that have files of their own belong to their session."""
        return None if _is_database(file) or _is_export(file) else storage.whole_of(file)

    def parts_in(self, path: str) -> Sequence[str]:
        """Where the messages of a session are, its sub-agents, and the parts of all messages; none for a part."""
        names = re.split(r"[/\\]", path)
        stem = names[-1].removesuffix(".json")
        no_parts = stem.endswith(".db") or names[-3:-2] == ["part"]
        return () if no_parts else ("", f"../../message/{stem}", "../../part")

    def context(self, span: Span, body: Body) -> ContextFacts | None:
        """The answer of a *summary* call replaces the conversation; a message before it marks that point."""
        if span.operation is Operation.CHAT and "summary" in span.note.split(", "):
            return ContextFacts(compacts=True)
        return ContextFacts(()) if span.name == "compaction" else None

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        there = PurePath(environ.get("XDG_DATA_HOME") or home / ".local" / "share", "opencode")
        chosen = environ.get("OPENCODE_DB")
        databases = [there / f"opencode{channel}.db" for channel in ("", "-beta", "-next")]
        return (*([there / chosen] if chosen and chosen != ":memory:" else []), *databases, there / "storage")

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["opencode", "-s", run.id]


def _is_database(file: File) -> bool:
    return file.head.startswith(SQLITE_MAGIC)


def _is_export(file: File) -> bool:
    return _sniff_export(file.head) > NO or _sniff_export(opening(file).head) > NO


def _kind_of(file: File) -> str:
    return "database" if _is_database(file) else "export" if _is_export(file) else "storage"


# ---- files of ``opencode export``: one session as one JSON object, ``{info, messages: [{info, parts}]}``


def _sniff_export(head: bytes) -> int:
    """Certain of an object with info and messages that are those of sessions."""
    if b'"info"' not in head or not any(name in head for name in _ID_FIELDS):
        return NO
    names: set[bytes] = set()
    for name in top_names(head):
        names.add(name)
        if names >= _NAMES:
            return CERTAIN
    return _LIKELY if len(head) == HEAD_SIZE and names <= _NAMES and names else NO


def _read_export(file: File, data: bytes) -> Chunk:
    """The whole run. An export is written once: a session that has not ended in it does not run."""
    outline = Outline(data, file.path)
    rest = outline.values("messages")
    info = mapping(rest.get("info"))
    if info or rest.get("info") in (None, {}):
        rest.pop("info", None)
    messages: list[Message] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    for number, raw in enumerate(outline.items("messages")):
        source, problem = _message(bytes(raw), number)
        messages.append(interpret(_with_own_ids(source, number, seen), "info"))
        problems += [Problem(file.path, f"messages[{number}]", problem)] if problem else []
    ident = text(info.get("id")) or file.name.removesuffix(".json") or file.name
    tree = Tree({ident: Session(info_of(info, ident, "info"), tuple(messages), tuple(problems))})
    rest |= outline.rest
    attributes = info | {f"export.{name}" if name in info else name: value for name, value in rest.items()}
    return Chunk(
        spans=RunSpans(tree).spans,
        header=replace(header_of_tree(tree, stale=True), size=file.stat.size),
        body=run_body(tree, attributes),
        problems=[*outline.problems, *problems],
    )


def _export_body(file: File, span: Span) -> Body:
    """Everything about one span, from its message."""
    at: SpanRef = span.at
    if at.message is None:
        if at.shows != "revert":
            return Body()
        return Body(attributes=child(Outline(file.read_all(), file.path).values("messages").get("info"), "revert"))
    number, check = at.message
    items = cached(file, ("messages",), lambda: Outline(file.read_all(), file.path).items("messages"))
    if number >= len(items) or crc32(items[number]) != check:
        raise changed(f"messages[{number}]")
    raw = bytes(items[number])
    source, _ = _message(raw, number)
    parts = [replace(part, id=at.part_id) if part.store_key == at.part else part for part in source.parts]
    return body_of(span, replace(source, parts=tuple(parts)), raw)


def _with_own_ids(source: SourceMessage, number: int, seen: set[str]) -> SourceMessage:
    """The message with ids that none before it has: those of spans must be different."""
    parts = []
    ident = source.id if source.id and source.id not in seen else f"message {number}"
    seen.add(ident)
    for part in source.parts:
        own = part.id if part.id and part.id not in seen else f"part {number}.{part.store_key}"
        seen.add(own)
        parts.append(replace(part, id=own))
    return replace(source, id=ident, parts=tuple(parts))


def _message(raw: bytes, number: int) -> tuple[SourceMessage, str]:
    """A message with its parts, and its problem. A missing id is ""."""
    unknown: Unknown = {}
    store_key, wrong = (number, crc32(raw)), ""
    try:
        outline = Outline(raw, "")
    except FormatError:
        data, beside, _ = decode_record(MESSAGES, raw, unknown)
        return SourceMessage("", data, store_key, b"", beside), "not a JSON object"
    info = outline.fields.get("info")
    content = bytes(info if isinstance(info, Raw) else raw_of(info))
    data, beside, _ = decode_record(MESSAGES, content, unknown)
    parts = [_part(bytes(part), rank, unknown) for rank, part in enumerate(outline.items("parts"))]
    own = outline.values("info", "parts")
    if "parts" in outline.rest:
        own["parts of it"] = outline.rest["parts"]
    if record_on(content) is None:
        own, wrong = own | ({"info": beside["data"]} if beside else {}), "it has no info"
    elif not parts and plain(outline.fields.get("parts")) != []:
        wrong = "it has no list of parts"
    return SourceMessage(data.id or "", data, store_key, content, own, None, tuple(parts), unknown), wrong


def _part(raw: bytes, number: int, unknown: Unknown) -> Part:
    data, beside, _ = decode_record(PARTS, raw, unknown)
    return Part(data.id or "", data, number, raw, beside)
