"""The spans of one run of a hypergraph database: its steps, those it inherited, and the runs below them.

Reading is a queue of small tasks, so that a run of any size and depth is read in pieces and without recursion. No
values are read here.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from sqlite3 import Connection
from typing import Any, Final

import msgspec

from tracetui.formats.hypergraph.known import Below, Known, Pending, last_row, order_of, pages_of
from tracetui.formats.hypergraph.rows import (
    BASELINE,
    RunRow,
    Schema,
    StepRow,
    has_steps,
    integer,
    many,
    quoted,
    runs_by_id,
    text_id,
    timestamp,
)
from tracetui.formats.hypergraph.runs import (
    ancestors_of,
    arrow,
    children_of,
    duration_of,
    error_type,
    is_active,
    item_number,
    label_of,
    number_or_end,
    operation_of,
)
from tracetui.formats.scalars import number, text
from tracetui.model import INHERITED, Error, Operation, Problem, Span, Status, StatusSource, status_of

PAGE: Final = 500
NO_STEPS: Final = "the database has no table `steps` that names its runs"
_NO_DURATION: Final = (Status.ERROR, Status.PAUSED, Status.RUNNING)


class Anew(Exception):
    """What was read before must be read again: a span would have to vanish."""


class OpenRun(msgspec.Struct, frozen=True):
    """A run whose steps are to be found; `parent` is the span below which they hang."""

    run: RunRow
    parent: str | None
    hung: bool = False
    """No step names it: `parent` is a span of its own, or a node that is running now."""


class Steps(msgspec.Struct, frozen=True):
    """Step rows to be read."""

    rowids: tuple[int, ...]
    parent: str | None
    inherited: bool = False


class Loose(msgspec.Struct, frozen=True):
    """What belongs to a run without a step that names it: map items, nodes that are running now."""

    run: RunRow
    parent: str | None


Task = OpenRun | Steps | Loose


class Position(msgspec.Struct, frozen=True):
    """Where reading left off: what is still to do, and the runs that are in the tree already."""

    tasks: tuple[Task, ...]
    seen: frozenset[str]
    known: Known

    @classmethod
    def start(cls, run: RunRow) -> Position:
        """Nothing read yet."""
        return cls((OpenRun(run, None),), frozenset({run.id}), Known(run.id))


class SpanReader:
    """Works through the queue; `spans` and `problems` fill up."""

    def __init__(self, connection: Connection, schema: Schema, path: str, position: Position) -> None:
        self._connection = connection
        self._schema = schema
        self._path = path
        self._tasks = deque(position.tasks)
        self._seen = set(position.seen)
        self.known = position.known.copy()
        self.spans: list[Span] = []
        self.problems: list[Problem] = []
        if not self.known.last:
            self.known.last = last_row(connection, schema)

    @property
    def done(self) -> bool:
        """True when nothing is left to do."""
        return not self._tasks

    @property
    def position(self) -> Position:
        """Where to go on."""
        return Position(tuple(self._tasks), frozenset(self._seen), self.known)

    def advance(self) -> None:
        """Do one task."""
        task = self._tasks.popleft()
        if isinstance(task, Steps):
            self._read_steps(task)
        elif isinstance(task, Loose):
            self._read_loose(task)
        else:
            self._open(task)

    def _open(self, task: OpenRun) -> None:
        """Queue the steps of a run, for the run itself also those that it inherited."""
        if not has_steps(self._schema):
            self.problems.append(Problem(self._path, "steps", NO_STEPS))
            return
        known = self.known
        known.tree[task.run.id] = Below(task.run, task.parent, task.hung)
        queue: list[Task] = []
        if task.parent is None:
            ancestors, absent = ancestors_of(self._connection, self._schema, task.run)
            known.inherited, known.absent = tuple((run.id, last) for run, last in ancestors), absent
            if absent is not None:
                reason = f"it was forked from {absent!r}, which is not in this database: those steps are missing"
                self.problems.append(Problem(self._path, f"run {task.run.id}", reason))
            queue += [Steps(self._rowids(run.id, last), None, True) for run, last in ancestors]
            self._seen.update(run.id for run, _ in ancestors)
        rowids = self._rowids(task.run.id, None)
        known.steps += len(rowids)
        queue.append(Steps(rowids, task.parent))
        self._tasks.extendleft(reversed([*queue, Loose(task.run, task.parent)]))

    def _rowids(self, run_id: str, last: int | None) -> tuple[int, ...]:
        schema = self._schema
        self.known.pages[run_id] = pages_of(self._connection, schema, run_id, self.known.last)
        upto = "" if last is None else f" AND {schema.step('superstep')} <= {int(last)}"
        # hidden rows are left out when they are read: here the index alone must suffice, for the sake of long runs
        sql = (
            f"SELECT rowid FROM steps WHERE {schema.step('run')} = ? AND rowid <= {self.known.last}{upto}"
            f" ORDER BY {schema.step('index')}, rowid"
        )
        return tuple(rowid for (rowid,) in self._connection.execute(sql, (run_id,)).fetchall())

    def _read_steps(self, task: Steps) -> None:
        page, rest = task.rowids[:PAGE], task.rowids[PAGE:]
        if rest:
            self._tasks.appendleft(Steps(rest, task.parent, task.inherited))
        rows = {row.rowid: row for row in self._rows(page)}
        ordered = [rows[rowid] for rowid in page if rowid in rows and rows[rowid].node_name != BASELINE]
        if ordered and not task.inherited:
            self.known.ends[text_id(ordered[-1].run)] = order_of(ordered[-1])
        self._give(ordered, task.parent, task.inherited)

    def _give(self, rows: list[StepRow], parent: str | None, inherited: bool) -> None:
        for row in rows:
            owner = self.owner(text_id(row.run))
            self.spans.append(step_span(self.id_of(row), row, parent, inherited=inherited, owner=owner))
        self._read_attempts(rows)
        self._queue_children(rows)

    def _rows(self, rowids: Iterable[int]) -> Iterable[StepRow]:
        for row in many(self._connection, self._schema.step_select + "WHERE rowid IN ({keys})", rowids):
            yield StepRow(*row)

    def _queue_children(self, rows: list[StepRow]) -> None:
        wanted = {child: row for row in rows if (child := text(row.child)) is not None and child not in self._seen}
        if not wanted:
            return
        for found in runs_by_id(self._connection, self._schema, wanted).values():
            self._seen.add(found.id)
            self._tasks.append(OpenRun(found, self.id_of(wanted[found.id])))

    def _read_attempts(self, rows: list[StepRow]) -> None:
        series = {row.series: row for row in rows if row.series is not None}
        if not series or "series_id" not in self._schema.columns.get("attempt_records", ()):
            return
        for record in attempts(self._connection, self._schema, series):
            row = series.get(record["series_id"])
            if row is not None:
                owner = self.owner(text_id(row.run))
                self.spans.append(attempt_span(record, self.id_of(row), integer(row.superstep), owner))

    def _read_loose(self, task: Loose) -> None:
        """Pending nodes of a run that is going on, and child runs that no step names."""
        self.read_pending(task.run, task.parent)
        for child in children_of(self._connection, self._schema, [task.run.id]):
            if child.id not in self._seen:
                self.read_child(child, task.run.id, task.parent)

    def read_child(self, child: RunRow, run_id: str, parent: str | None) -> None:
        """A run that no step of its parent names (yet): below the node that is running now, else by itself."""
        self._seen.add(child.id)
        node = child.id.removeprefix(f"{run_id}/").partition("/")[0]
        below = next((ident for ident, one in self.known.shown.items() if (one.run, one.node) == (run_id, node)), None)
        if below is None:
            order = (number_or_end(item_number(child)), child.rowid)
            self.known.disordered |= order < self.known.hung.get(parent, order)
            self.known.hung[parent] = order
            self.spans.append(run_span(child, parent, self.owner(run_id)))
        self._tasks.append(OpenRun(child, below or run_span_id(child), True))

    def read_pending(self, run: RunRow, parent: str | None, lowest: int | None = None) -> None:
        """Spans of the nodes that were begun, from superstep `lowest` on, and have no step row yet."""
        columns = self._schema.columns.get("pending_nodes", ())
        if not is_active(run) or not {"run_id", "superstep", "node_name"} <= set(columns):
            return
        step = self._schema.step
        sql = (
            f"SELECT p.rowid, p.* FROM pending_nodes AS p WHERE p.run_id = ? AND NOT EXISTS (SELECT 1 FROM steps AS s"
            f" WHERE s.{step('run')} = p.run_id AND s.{step('superstep')} = p.superstep"
            f" AND s.{step('node_name')} = p.node_name){'' if lowest is None else f' AND p.superstep >= {lowest}'}"
            f" ORDER BY p.superstep, p.rowid"
        )
        shown = self.known.shown
        found: dict[str, str] = {}
        for rowid, *values in self._connection.execute(sql, (run.id,)).fetchall():
            row = dict(zip(columns, values, strict=True))
            row_id = self._schema.span_id(row["run_id"], row["superstep"], row["node_name"], -rowid)
            span = pending_span(row_id, rowid, row, parent, self.owner(run.id))
            self.spans.append(span)
            self.known.disordered |= row_id not in shown and parent in self.known.hung
            shown[row_id] = Pending(run.id, span.name, span.step)
            found[span.name] = span.id
        self._read_open_attempts(run, found)

    def _read_open_attempts(self, run: RunRow, pending: dict[str, str]) -> None:
        """Attempts of the nodes that are running now: their series is not closed, no step names it yet."""
        columns = set(self._schema.columns.get("attempt_series", ()))
        known = "series_id" in self._schema.columns.get("attempt_records", ())
        if not pending or not known or not {"id", "run_id", "node_name", "closed_at"} <= columns:
            return
        sql = "SELECT id, node_name FROM attempt_series WHERE run_id = ? AND closed_at IS NULL"
        series = dict(self._connection.execute(sql, (run.id,)).fetchall())
        for record in attempts(self._connection, self._schema, series):
            parent = pending.get(str(series.get(record["series_id"])))
            if parent is not None:
                step = integer(record.get("scheduled_superstep"))
                span = attempt_span(record, parent, step, self.owner(run.id))
                self.spans.append(span)
                self.known.tried.add(span.id)

    def owner(self, run_id: str) -> str | None:
        """The `Span.owner` of the spans of a run of the tree."""
        return None if run_id == self.known.main else run_id

    def id_of(self, row: StepRow) -> str:
        """Id of the span of a step row."""
        return self._schema.span_id(row.run, row.superstep, row.node_name, row.rowid)

    def give(self, rows: list[StepRow], run_id: str) -> None:
        """Steps of a run of the tree that came or changed."""
        self._give(rows, self.known.tree[run_id].parent, inherited=False)


def attempts(connection: Connection, schema: Schema, series: Iterable[Any]) -> list[dict[str, Any]]:
    """Records of the attempts of some series, by series and number, with their ``rowid``."""
    columns = schema.columns["attempt_records"]
    names = ", ".join(map(quoted, columns))
    order = "ORDER BY series_id, attempt_number, rowid" if "attempt_number" in columns else "ORDER BY series_id, rowid"
    sql = f"SELECT rowid, {names} FROM attempt_records WHERE series_id IN ({{keys}}) {order}"
    return [dict(zip(("rowid", *columns), row, strict=True)) for row in many(connection, sql, series)]


def step_span(
    row_id: str, row: StepRow, parent: str | None, *, inherited: bool = False, owner: str | None = None
) -> Span:
    """The span of one step row; a step of a nested run (one with a parent) is no step of the run that is shown."""
    status, word, source = status_of_step(row)
    duration = number(row.duration_ms)
    if duration == 0 and status in _NO_DURATION:
        duration = None  # schema default: such a step has none recorded
    end, _ = timestamp(row.completed_at)
    start = timestamp(row.created_at)[0] if end is None else end - (duration or 0.0) / 1000
    message = text(row.error)
    operation = operation_of(row.node_type, row.decision, row.child)
    return Span(
        id=row_id,
        name=name_of(row.node_name),
        operation=operation,
        owner=owner,
        nested_graph=operation is Operation.INVOKE_WORKFLOW,
        parent_id=parent,
        step=integer(row.superstep),
        is_step=parent is None,
        status=status,
        status_word=word,
        status_source=source,
        started_at=start,
        duration_ms=duration,
        error=Error(message or "", error_type(message or "")) if status is Status.ERROR else None,
        note=_note(row, inherited, status),
        at=("step", row.rowid),
    )


def name_of(node_name: Any) -> str:
    """Name of the span of a step."""
    return text(node_name) or text_id(node_name or "step")


def status_of_step(row: StepRow) -> tuple[Status, str | None, StatusSource | None]:
    """(Status, the row's own word, where the status comes from); see also `runs.failing`."""
    word = text(row.status)
    status = Status.UNKNOWN if word is None else status_of(word)
    if status is Status.UNKNOWN and text(row.error):
        status = Status.ERROR
    return status, word, StatusSource.EXPLICIT if word is not None or status is Status.ERROR else None


def _note(row: StepRow, inherited: bool, status: Status) -> str:
    facts = [
        "" if row.decision is None else arrow(row.decision),
        "cached" if row.cached else "",
        "paused" if status is Status.PAUSED else "",
        "partial" if row.partial else "",
        INHERITED if inherited else "",
    ]
    return " · ".join(filter(None, facts))


def run_span_id(run: RunRow) -> str:
    """Id of the span of a run that hangs below another without a step of it."""
    return f"run:{run.id}"


def run_span(run: RunRow, parent: str | None, owner: str | None) -> Span:
    """The span of a run that hangs below another (`owner`) without a step of it: an item of a map."""
    word = text(run.status)
    status = Status.UNKNOWN if word is None else status_of(word)
    return Span(
        id=run_span_id(run),
        name=label_of(run) or text(run.graph_name) or run.id,
        operation=Operation.INVOKE_WORKFLOW,
        owner=owner,
        parent_id=parent,
        step=item_number(run),
        status=status,
        status_word=word,
        status_source=None if word is None else StatusSource.EXPLICIT,
        started_at=timestamp(run.created_at)[0],
        duration_ms=duration_of(run),
        at=("run", run.id),
    )


def attempt_span(record: dict[str, Any], parent: str, superstep: int | None, owner: str | None) -> Span:
    """The span of one attempt of a node that was tried more than once."""
    word = text(record.get("status"))
    status = Status.UNKNOWN if word is None else status_of(word)
    start, _ = timestamp(record.get("started_at"))
    end, _ = timestamp(record.get("completed_at"))
    message, kind = text(record.get("error_message")), text(record.get("error_type"))
    return Span(
        id=f"{parent}:attempt:{record['rowid']}",
        name=f"attempt {record.get('attempt_number', '?')}",
        owner=owner,
        parent_id=parent,
        step=superstep,
        status=status,
        status_word=word,
        status_source=None if word is None else StatusSource.EXPLICIT,
        started_at=start,
        duration_ms=None if start is None or end is None else max(0.0, end - start) * 1000,
        error=Error(message or kind or "", kind) if status is Status.ERROR else None,
        at=("attempt", record["rowid"]),
    )


def pending_span(row_id: str, rowid: int, row: dict[str, Any], parent: str | None, owner: str | None) -> Span:
    """The span of a node that runs right now: schema 6 notes each before it is begun."""
    is_graph = row.get("node_type") == "GraphNode"
    return Span(
        id=row_id,
        name=text(row["node_name"]) or text_id(row["node_name"]),
        operation=Operation.INVOKE_WORKFLOW if is_graph else Operation.NODE,
        owner=owner,
        nested_graph=is_graph,
        parent_id=parent,
        step=integer(row["superstep"]),
        status=Status.RUNNING,
        status_source=StatusSource.DERIVED,
        started_at=timestamp(row.get("created_at"))[0],
        note="pending",
        at=("pending", rowid),
    )
