"""Codex rollouts: the sessions of OpenAI's Codex (command line, editor, desktop), one file a thread.

A rollout is appended to a line at a time and has no last record: a thread can be resumed at any time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from tracetui.errors import FormatError
from tracetui.formats.base import CERTAIN, NO
from tracetui.formats.codex.body import body_of
from tracetui.formats.codex.records import KINDS, SCHEMA
from tracetui.formats.codex.session import Session
from tracetui.formats.codex.threads import Reader, main_file_of
from tracetui.formats.decode import parse
from tracetui.formats.jsonl import counted, listed, skim
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.sources.base import File

LIKELY: Final = 60
_CUT: Final = re.compile(rb'"type"\s*:\s*"session_meta"')
_LOOK: Final = 16
"""Lines that `sniff` decodes."""


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
        for index, data in enumerate(lines[:_LOOK]):
            score = _claims(data, first=index == 0)
            if score:
                return score
        begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        return LIKELY if begins == b"{" and _CUT.search(head) and b'"payload"' in head else NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        ref = RunRef(self.name, file.path)
        if not deep:
            skim(file, SCHEMA, session := Session(file))
            if session.meta is not None:
                yield listed(ref, file, session)
                return
        yield counted(ref, file, self.open(file, ref))

    def open(self, file: File, ref: RunRef) -> Reader:
        return Reader()

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        return body_of(file, span)

    def whole_of(self, file: File) -> str | None:
        """The thread of an agent is shown below the call that spawned it."""
        return main_file_of(file)

    def parts_in(self, path: str) -> Sequence[str]:
        """The threads of agents are in the folder of the day on which they were spawned."""
        return [f"../{os.path.basename(os.path.dirname(path))}"]

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        there = PurePath(environ.get("CODEX_HOME") or home / ".codex")
        return (there / "sessions", there / "archived_sessions")

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["codex", "resume", run.id]


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
        return CERTAIN if kind != "session_meta" or "id" in payload else LIKELY
    old = first and isinstance(record.get("id"), str) and "timestamp" in record and "instructions" in record
    return LIKELY if old and "kind" not in record else NO
