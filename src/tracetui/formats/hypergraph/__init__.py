"""hypergraph: SQLite checkpoint databases, and the RunLog and MapLog dumps that people make of a result."""

from __future__ import annotations

from collections.abc import Iterable

from tracetui.formats.base import CERTAIN, NO, START, Chunk, Cursor, CursorReader
from tracetui.formats.hypergraph import db as database
from tracetui.formats.hypergraph import runlog
from tracetui.model import Body, Problem, Run, RunRef, RunSummary, Span
from tracetui.sources.base import SQLITE_MAGIC, File

_UNREADABLE = 1
"""A database that names no table cannot be told from ours: claimed weakly, so that its fault is reported."""

_FORK = """\
from hypergraph import AsyncRunner
from hypergraph.checkpointers import SqliteCheckpointer

checkpoints = SqliteCheckpointer({path})
before = await checkpoints.get_checkpoint({run}, superstep={step})
runner = AsyncRunner(checkpointer=checkpoints)
result = await runner.run(graph, values=before.values, history=before.steps, workflow_id={new})
"""


class Hypergraph:
    """Runs of hypergraph."""

    name = "hypergraph"
    title = "hypergraph"

    def sniff(self, file: File) -> int:
        """Certain of a database with steps and runs (or workflows), and of a RunLog or MapLog."""
        if not _is_database(file):
            return runlog.sniff(file)
        tables = file.tables
        if not tables:
            return _UNREADABLE
        if tables & {"runs", "workflows"} and tables & {"steps", "_schema_version"}:
            return CERTAIN
        return NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        """Every run of a database, the one run of a dump."""
        if _is_database(file):
            return database.summarize(file, self.name, deep=deep)
        return runlog.summarize(file, self.name, deep=deep)

    def open(self, file: File, ref: RunRef) -> CursorReader:
        return CursorReader(self.read, ref)

    def read(self, file: File, ref: RunRef, cursor: Cursor = START) -> Chunk:
        """A database in pieces, a dump at once."""
        return database.read(file, ref, cursor) if _is_database(file) else runlog.read(file, ref, cursor)

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        """Everything about `span`."""
        return database.body(file, span) if _is_database(file) else runlog.body(file, span)

    def fork(self, run: Run, span: Span) -> str | None:
        """A new workflow with the state of a checkpoint; only a database has them."""
        ref = run.summary.ref
        if ref.key is None or span.step is None:
            return None
        return _FORK.format(path=ascii(ref.path), run=ascii(ref.key), step=span.step, new=ascii(f"{ref.key}-fork"))


def _is_database(file: File) -> bool:
    return file.read(0, len(SQLITE_MAGIC)) == SQLITE_MAGIC
