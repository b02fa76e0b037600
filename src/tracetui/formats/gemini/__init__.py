"""Gemini CLI sessions below ``~/.gemini/tmp/PROJECT/chats``: one file per session or sub-agent.

Today's files are JSON lines, ``session-TIME-ID.jsonl``, and ``PARENT/ID.jsonl`` for a sub-agent, which is a run of its
own; earlier versions rewrote one JSON document, ``session-TIME-ID.json``, with the same messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from msgspec.structs import replace

from tracetui.formats.base import CERTAIN, NO, Chunk, Reader
from tracetui.formats.decode import records_in, top_names
from tracetui.formats.document import DocumentReader, Outline, summary
from tracetui.formats.gemini.records import RECORD, RecordRef
from tracetui.formats.gemini.session import Session, body_of
from tracetui.formats.jsonl import LogReader, counted, listed, skim
from tracetui.formats.scalars import text
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.sources.base import HEAD_SIZE, File

LIKELY: Final = 60
_FEW: Final = 16
"""Lines of the head checked to recognize a file."""
_DOCUMENT: Final = frozenset({b"sessionId", b"projectHash", b"startTime"})
"""Names at the top of a document; some may be beyond the head."""


class Gemini:
    """The format; see `tracetui.formats.base.Format`, `Homed` and `Resumable`."""

    name = "gemini"
    title = "Gemini CLI session"
    home_variables: Sequence[str] = ()

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"projectHash"' not in head and b'"gemini"' not in head:
            return NO
        best = max(map(_claim, records_in(head, _FEW)), default=NO)
        names = set() if best else set(top_names(head))
        is_cut = len(head) >= HEAD_SIZE and b"messages" in names and b'"gemini"' in head
        return best or (CERTAIN if names >= _DOCUMENT else LIKELY if is_cut else NO)

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        if is_document(file):
            yield summary(ref, file, _read(file, file.read_all()), deep=deep)
            return
        if not deep:
            skim(file, RECORD, session := Session(file))
            if session.begin is not None:
                yield listed(ref, file, session)
                return
        yield counted(ref, file, LogReader(RECORD, Session))

    def open(self, file: File, ref: RunRef) -> Reader:
        return AnyLayoutReader()

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the records that the span came from, all of them in its `raw`."""
        return body_of(file, span)

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return (home / ".gemini" / "tmp",)

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["gemini", "--resume", run.id]


class AnyLayoutReader:
    """The `Reader` of a file of either layout, which may be too short to show its own at first."""

    def __init__(self) -> None:
        self._reader: DocumentReader | LogReader[Session] | None = None
        self._again = False
        """The chunks before were of the other layout."""

    def more(self, file: File) -> Chunk:
        wanted = DocumentReader if is_document(file) else LogReader
        if not isinstance(self._reader, wanted):
            self._again = self._reader is not None
            self._reader = DocumentReader(_read) if wanted is DocumentReader else LogReader(RECORD, Session)
        chunk, again = self._reader.more(file), self._again
        self._again = False
        return replace(chunk, reset=True) if again else chunk


def is_document(file: File) -> bool:
    """Whether a file is one JSON document: its first line is an incomplete record, or has the messages."""
    first = next(records_in(file.head, 1), None)
    return b"messages" in top_names(file.head) if first is None else "messages" in first


def _claim(record: dict[str, Any]) -> int:
    """How surely a record is one of Gemini CLI."""
    if text(record.get("sessionId")) is not None and text(record.get("projectHash")) is not None:
        return CERTAIN
    return LIKELY if record.get("type") == "gemini" and "content" in record and "id" in record else NO


def _read(file: File, data: bytes) -> Chunk:
    """The whole run of a document."""
    outline, session = Outline(data, file.path), Session(file)
    session.unknown = outline.unknown
    session.describe(outline.record(RECORD, "messages"), outline.values("messages"))
    for one in outline.records("messages", RECORD):
        session.message(one.value, RecordRef(-1, len(one.raw), one.index, one.raw), one.index)
    session.metadata |= outline.rest
    session.note_time(session.begin.last_updated if session.begin else None)
    problems = [*outline.problems, *session.problems]
    return Chunk(spans=session.collect(), header=session.header(), body=session.run_body(), problems=problems)
