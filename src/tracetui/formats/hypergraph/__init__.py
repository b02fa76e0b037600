"""hypergraph: SQLite checkpoint databases, and the RunLog and MapLog dumps that people make of a result."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tracetui.formats.base import CERTAIN, NO, Reader
from tracetui.formats.document import DocumentReader, summary
from tracetui.formats.hypergraph import listing, runlog, tree
from tracetui.formats.hypergraph.body import body_of, settled_of
from tracetui.formats.hypergraph.rows import Database
from tracetui.formats.sqlite import DatabaseReader, KindReader, is_database
from tracetui.model import Body, Problem, Run, RunRef, RunSummary, Span
from tracetui.sources.base import CACHE, File

_UNREADABLE = 1
"""A database without table names may be ours: claimed weakly, so that its fault is reported."""

_FORK = """\
from hypergraph import AsyncRunner
from hypergraph.checkpointers import SqliteCheckpointer

checkpoints = SqliteCheckpointer({path})
before = await checkpoints.get_checkpoint({run}, superstep={step})
runner = AsyncRunner(checkpointer=checkpoints)
result = await runner.run(graph, values=before.values, history=before.steps, workflow_id={new})
"""


class Hypergraph:
    """Runs of hypergraph: each run of a database, nested ones too, and the one run of a dump."""

    name = "hypergraph"
    title = "hypergraph"

    def sniff(self, file: File) -> int:
        """Certain of a database with steps and runs (or workflows), and of a RunLog or MapLog."""
        if not is_database(file):
            return runlog.sniff(file)
        tables = file.tables
        if not tables:
            return _UNREADABLE
        if tables & {"runs", "workflows"} and tables & {"steps", "_schema_version"}:
            return CERTAIN
        return NO

    def summarize(self, file: File, *, deep: bool) -> Iterable[RunSummary | Problem]:
        if is_database(file):
            return listing.summarize(file, self.name, deep=deep)
        return [summary(RunRef(self.name, file.path), file, runlog.read(file, file.read_all()), deep=True)]

    def open(self, file: File, ref: RunRef) -> Reader:
        database, dump = partial(DatabaseReader, partial(tree.read, ref=ref)), partial(DocumentReader, runlog.read)
        return KindReader(_kind_of, {"database": database, "dump": dump})

    def body(self, file: File, ref: RunRef, span: Span) -> Body:
        if not is_database(file):
            return runlog.body(file, span)
        settled = settled_of(span)
        with file.database() as connection:
            return body_of(Database(connection), span, file.memo.get(CACHE, {}), settled)

    def fork(self, run: Run, span: Span) -> str | None:
        """A new workflow with the state of a checkpoint; only a database has them."""
        ref = run.summary.ref
        if ref.key is None or span.step is None:
            return None
        return _FORK.format(path=ascii(ref.path), run=ascii(ref.key), step=span.step, new=ascii(f"{ref.key}-fork"))


def _kind_of(file: File) -> str:
    return "database" if is_database(file) else "dump"
