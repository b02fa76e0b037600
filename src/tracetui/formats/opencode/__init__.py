"""opencode: sessions in its database, in an export, and in the files used before 1.2.

Facts: files of opencode 1.18.33, its public source, and public files of older versions. Whatever the store, a session
has messages and a message has parts; a sub-agent is a session of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePath

from tracetui.formats.base import CERTAIN, NO, Reader
from tracetui.formats.document import DocumentReader, summary
from tracetui.formats.opencode import database, export, storage
from tracetui.formats.sqlite import DatabaseReader, KindReader
from tracetui.model import Body, Problem, RunRef, RunSummary, Span
from tracetui.sources.base import SQLITE_MAGIC, File


class Opencode:
    """The format; see `tracetui.formats.base.Format`, `Composed`, `Homed` and `Resumable`."""

    name = "opencode"
    title = "opencode session"
    home_variables = ("XDG_DATA_HOME",)

    def sniff(self, file: File) -> int:
        if _is_database(file):
            return CERTAIN if file.tables >= database.TABLES else NO
        return export.sniff(file.head) or storage.sniff(file)

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        if _is_database(file):
            return database.summarize(file, self.name, deep=deep)
        chunk = export.read(file, file.read_all()) if _is_export(file) else storage.StorageReader().more(file)
        return [summary(RunRef(self.name, file.path), file, chunk, deep=True)]

    def open(self, file: File, ref: RunRef) -> Reader:
        rows = partial(DatabaseReader, partial(database.read, ref=ref))
        readers: dict[str, Callable[[], Reader]]
        readers = {"database": rows, "export": partial(DocumentReader, export.read), "storage": storage.StorageReader}
        return KindReader(_kind_of, readers)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        if _is_database(file):
            return database.body(file, span)
        return export.body(file, span) if _is_export(file) else storage.body(file, span)

    def whole_of(self, file: File) -> str | None:
        """Messages, parts and sub-agents that have files of their own belong to their session."""
        return None if _is_database(file) or _is_export(file) else storage.whole_of(file)

    def parts_in(self, path: str) -> Sequence[str]:
        """Where the messages of a session are, its sub-agents, and the parts of all messages; none for a part."""
        names = re.split(r"[/\\]", path)
        stem = names[-1].removesuffix(".json")
        no_parts = stem.endswith(".db") or names[-3:-2] == ["part"]
        return () if no_parts else ("", f"../../message/{stem}", "../../part")

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        there = PurePath(environ.get("XDG_DATA_HOME") or home / ".local" / "share", "opencode")
        return (there / "opencode.db", there / "storage")

    def resume(self, run: RunSummary) -> Sequence[str] | None:
        return ["opencode", "-s", run.id]


def _is_database(file: File) -> bool:
    return file.head.startswith(SQLITE_MAGIC)


def _is_export(file: File) -> bool:
    return export.sniff(file.head) > NO


def _kind_of(file: File) -> str:
    return "database" if _is_database(file) else "export" if _is_export(file) else "storage"
