"""Codex rollouts: the sessions of OpenAI's Codex (command line, editor, desktop), one file a thread.

Facts: files of codex 0.169.0, and public ones of 0.50 to 0.149. A rollout is appended to a line at a time and has no
last record: a thread can be resumed at any time. Almost everything is told twice, as an item of the conversation with
the model and as an event for the screen; both are one span here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.codex.body import body_of
from tracetui.formats.codex.count import count
from tracetui.formats.codex.quick import skim
from tracetui.formats.codex.records import KINDS, META, At
from tracetui.formats.codex.threads import read_all, whole_of
from tracetui.formats.counting import regular
from tracetui.formats.tail import nothing_in, parse, read_whole
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.model.build import summary_of
from tracetui.sources.base import File

LIKELY: Final = 60
_CUT: Final = re.compile(rb'"type"\s*:\s*"session_meta"')
_LOOK: Final = 16
"""Lines that are looked at."""


class Codex:
    """The format; see `tracetui.formats.base.Format`."""

    name = "codex"
    title = "Codex rollout"
    home_variables = ("CODEX_HOME",)

    def sniff(self, file: File) -> int:
        head = file.head
        if b'"payload"' not in head and b'"instructions"' not in head:
            return NO
        lines = head.split(b"\n", _LOOK)
        for place, data in enumerate(lines[:_LOOK]):
            score = _claims(data, first=place == 0)
            if score:
                return score
        begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        return LIKELY if begins == b"{" and _CUT.search(head) and b'"payload"' in head else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        header, tally = (regular(count, file) or (None, None)) if deep else (skim(file), None)
        if header is not None:
            yield summary_of(ref, header, tally, modified_at=file.stat.mtime, moving=file.moving)
            return
        yield self._full(file, ref)

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        """What came since `cursor`; a complete record on a last line without newline is read ahead of time."""
        return read_all(file, cursor)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """From the lines that the span came from; `raw` is all of them."""
        if not isinstance(span.at, At) or span.at.path is None:
            return body_of(file, span)
        with file.other(span.at.path) as other:
            return body_of(other, span)

    def whole_of(self, file: File) -> str | None:
        """The thread of an agent is told below the call that began it."""
        return whole_of(file)

    def parts_in(self, path: str) -> Sequence[str]:
        """Agents begin their threads beside the one that spawned them."""
        return [f"../{os.path.basename(os.path.dirname(path))}"]

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        there = PurePath(environ.get("CODEX_HOME") or home / ".codex")
        return (there / "sessions", there / "archived_sessions")

    def _full(self, file: File, ref: RunRef) -> RunSummary:
        run, cursor = read_whole(lambda at: self.read(file, ref, at), file, ref)
        if not cursor.taken and (run.problems or not file.moving):
            raise nothing_in(run, "it does not end")
        return run.summary


def _claims(data: bytes, *, first: bool) -> int:
    """How surely a line is one of a rollout."""
    try:
        record: Any = parse(data)[0] if data.strip() else None
    except FormatError:
        return NO
    if not isinstance(record, dict):
        return NO
    kind, payload = record.get("type"), record.get("payload")
    if isinstance(kind, str) and kind in KINDS and isinstance(payload, dict):
        return CERTAIN if kind != META or "id" in payload else LIKELY
    old = first and isinstance(record.get("id"), str) and "timestamp" in record and "instructions" in record
    return LIKELY if old and "kind" not in record else NO
