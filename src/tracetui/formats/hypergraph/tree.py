"""The spans of one run of a hypergraph database: its steps, those it inherited, and the runs below them.

Rows are read once and cached as spans. A `RowLog` finds pages with new and changed rows; in such a page, a hash of each
row does. The body of a step includes the state after its superstep, and rows of other tables: so a new or
changed row renews all steps of its run from its superstep on. No values are read here.

Of a long run only the latest pages are held, so that a new row costs the same however many there are: of earlier pages
there are only the sums of the log. If these change, the run is read again from its start.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterator
from itertools import chain, islice
from math import inf
from operator import is_
from sqlite3 import Connection
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats import rowlog
from tracetui.formats.hypergraph.body import UNSETTLED, more_of_run, run_body
from tracetui.formats.hypergraph.rows import (
    BASELINE,
    NO_STEPS,
    Database,
    Epoch,
    Row,
    RunRow,
    StepRow,
    sortable,
    text_id,
)
from tracetui.formats.hypergraph.runs import (
    Route,
    attempt_span,
    first_errors,
    header_of,
    last_routes,
    latest_route,
    pending_span,
    run_span,
    step_span,
)
from tracetui.formats.rowlog import LATEST, PAGE_BITS, Changes, RowLog
from tracetui.formats.scalars import integer, text
from tracetui.formats.sqlite import ReadState, many, quoted
from tracetui.model import Body, Header, Operation, Problem, RunRef, Span, Status
from tracetui.model.build import RunBuilder

PIECE_SECONDS: Final = 0.04
BATCH: Final = 100
"""Runs that are read together."""
ROWS: Final = 400
"""Steps that are read together."""
SMALL: Final = 1000
"""Steps up to which all are held and in order at once."""

Order = tuple[int, Any, int]
"""The order of a step: by index, as SQLite has it, for a database may hold anything there; then by row."""
CheckedSpan = tuple[int, Span]
"""A span that no step is, and a hash of the row that it shows."""


class Table(rowlog.Table, frozen=True, kw_only=True):
    """A table with rows about steps, in SQL."""

    superstep: str
    columns: str = "*"

    def of_runs(self, pages: Collection[int] | None) -> str:
        """From where come the rows of the runs ``{keys}``; the pages of `pages`, and maybe some between."""
        if pages is None:
            return f"FROM {self.source} WHERE {self.run} IN ({{keys}})"
        first, last = (min(pages) << PAGE_BITS, (max(pages) + 1) << PAGE_BITS) if pages else (0, 0)
        rows = f"{self.rowid} >= {first} AND {self.rowid} < {last}"
        return f"FROM {self.source} WHERE +{self.run} IN ({{keys}}) AND {rows}"


Pages = dict[str, set[int] | None]
"""By run: the pages of a table that are read, None for all."""


class RunPosition(NamedTuple):
    """A run of the tree, and the position of its steps."""

    run: RunRow
    parent: str | None = None
    """Their parent span."""
    inherited: bool = False
    last: int | None = None
    """The last superstep that is inherited (None: all)."""


class Side(msgspec.Struct, frozen=True, gc=False):
    """A row of another table that is about a step."""

    check: int
    """A hash of the row."""
    superstep: int | None


class Step(Side, frozen=True, gc=False):
    """A step as it was read."""

    index: Any
    span: Span
    hidden: bool
    child: str | None
    series: Any
    attempts: tuple[CheckedSpan, ...] = ()

    @property
    def order(self) -> Order:
        """Its position among the steps of its run."""
        return *sortable(self.index), self.span.at[1]

    @property
    def spans(self) -> list[Span]:
        """Its span, and those of its attempts."""
        return [] if self.hidden else [self.span, *(span for _, span in self.attempts)]


class Rows(msgspec.Struct):
    """The rows of a run as they were read. Once they are, this is changed no more."""

    position: RunPosition
    sides: dict[str, dict[int, Side]] = {}
    steps: dict[int, Step] = {}
    """In their order."""
    waiting: list[int] = []
    """Steps that are not read yet."""
    spans: list[Span] = []
    """Those of `steps`."""
    named: list[tuple[RunRow, str]] = []
    """Runs that a step names, and the span of the step."""
    loose: list[RunRow] = []
    """Runs that name this one as their parent."""
    latest: float = -inf
    """The last superstep of the run."""
    settled: int = 0
    """Number of steps that are not held: those of early pages."""
    settled_step: float = -inf
    """The last superstep of them."""
    settled_order: Order | None = None
    """The order of the last one."""
    late: bool = False
    """A step arrived that belongs before one of them."""

    def settle(self, page: int) -> Rows:
        """The same without the steps of pages before `page`, unless their supersteps are among the latest."""
        bound = self.latest - UNSETTLED
        moving = [number for number, step in self.steps.items() if step.superstep is None or step.superstep > bound]
        first = min([page << PAGE_BITS, *moving]) >> PAGE_BITS << PAGE_BITS
        held = {number: step for number, step in self.steps.items() if number >= first or step.child}
        gone = [step for number, step in self.steps.items() if number not in held]
        if not gone:
            return self
        before = () if self.settled_order is None else (self.settled_order,)
        return replace(
            self,
            steps=held,
            spans=[span for step in held.values() for span in step.spans],
            settled=self.settled + len(gone),
            settled_step=max(self.settled_step, *(step.superstep or 0 for step in gone)),
            settled_order=max((*before, *(step.order for step in gone))),
        )


class Memory(msgspec.Struct, frozen=True):
    """The state of a run between reads."""

    runs: dict[str, Rows]
    checked: dict[str, CheckedSpan]
    """Those of no step's attempts, by id."""
    about: tuple[list[RunRow], dict[str, Any]] | None
    """Other inputs of the header and the body: the runs of the tree, and rows of other tables."""
    route: Route | None
    """The last one."""
    epoch: Epoch
    log: RowLog


def read(connection: Connection, path: str, before: ReadState | None, *, ref: RunRef) -> ReadState | None:
    """The run as it is now, as far as there is time: the first piece has a header, the last one also the body.

    None if early rows have changed.
    """
    database = Database(connection)
    run = database.run_by_id(ref.key or "")
    if run is None:
        raise FormatError("the run is not in the database", f"run {ref.key}")
    known: Memory | None = before.memory if before is not None else None
    compares = before is not None and before.done
    tree = Tree(database, path, run, known, keeps=True, compares=compares)
    if tree.must_restart:
        return None
    spans, given = tree.spans, True
    header, body, about, route = None, None, None, None if known is None else known.route
    if before is not None:
        header, body = before.header, before.body
        if tree.size > SMALL and tree.active:
            ranks = {span.id: rank for rank, span in enumerate(before.spans)}
            spans.sort(key=lambda span: ranks.get(span.id, len(ranks)))  # existing spans keep their order
        given = len(spans) != len(before.spans) or not all(map(is_, spans, before.spans))
    if tree.done:
        more = dict(more_of_run(database, run.id, hidden=not tree.partly))
        if tree.partly and known is not None and known.about is not None and BASELINE in known.about[1]:
            more[BASELINE] = known.about[1][BASELINE]
        about = [rows.position.run for rows in tree.runs.values()], more
        if given or known is None or known.about != about:
            own = tree.runs.get(run.id)
            children = database.children_of([run.id]) if own is None else own.loose
            items = [child for child in children if child.item is not None]
            error = first_errors(database, [run]).get(run.id)
            if not tree.partly:
                route = last_routes(database, run.id).get(run.id)
            elif (first := tree.first_change) is not None:
                route = latest_route(database, run.id, route, first)
            header = header_of(database, run, error, items, route)
            body = run_body(database, run, error, items, more)
    header = header or header_of(database, run)
    held = tree.settle() if tree.done and tree.size > SMALL else None
    memory = Memory(tree.runs, tree.checked, about, route, tree.epoch, tree.log)
    return ReadState(
        spans=spans,
        held=None if held is None else [span for span in spans if span.id in held],
        problems=tree.problems,
        header=header,
        body=body,
        done=tree.done,
        compared=tree.log.behind == 0,
        memory=memory,
    )


def count(database: Database, ref: RunRef, run: RunRow, header: Header) -> RunBuilder:
    """The spans of a run, read to count them."""
    tree = Tree(database, ref.path, run)
    builder = RunBuilder(ref, lambda span: Body())
    builder.add(tree.spans, header=header, problems=tree.problems)
    return builder


class Tree:
    """A run and those below it, as far as there is time. Spans that have not changed are the same objects as before.

    Reading is a queue of runs, so that a run of any size and depth is read in pieces and without recursion.
    """

    def __init__(
        self,
        database: Database,
        path: str,
        run: RunRow,
        before: Memory | None = None,
        *,
        keeps: bool = False,
        compares: bool = False,
    ) -> None:
        """`keeps`: the run is live. `compares`: known rows may have changed; else reads on."""
        self.spans: list[Span] = []
        self.problems: list[Problem] = []
        self.runs: dict[str, Rows] = {}
        self.checked: dict[str, CheckedSpan] = {}
        self.dirty: dict[str, float] = {}
        """By run: the superstep from which on its steps are new."""
        self.done = True
        self.active = False
        """A run of the tree is running."""
        self.unlike = False
        """Rows that are not held have changed."""
        self._database, self._path, self._run = database, path, run
        self.epoch = Epoch() if before is None else before.epoch
        self._known = before.runs if before is not None else {}
        self._before = dict(self._known)
        self._checked = before.checked if before is not None else {}
        self._compares = compares
        self._tables = tables_of(database) if keeps else {}
        self.log = RowLog() if before is None else before.log
        self._log_before = self.log
        changes: Changes = {}
        if compares:
            self.log, changes = self.log.look(database.connection, self._tables, self._known.keys())
        self._changes = {text_id(run_id): pages for run_id, pages in changes.items()}
        own = self._before.get(run.id)
        self.partly = compares and own is not None and own.position.run == run and _size(self._before) > SMALL
        """The run itself is as before, and too long to read all of anything."""
        self._began = time.monotonic() if keeps and not compares else -inf
        self._deadline = inf
        self._walk()
        if any(map(self._is_settled_change, self.runs)):
            self.epoch.number += 1

    @property
    def size(self) -> int:
        """Steps read so far."""
        return _size(self.runs)

    @property
    def first_change(self) -> int | None:
        """The first row of the pages of the run's own steps that have changed; None if none has."""
        pages = self._changes.get(self._run.id, {}).get(_STEPS)
        return min(pages) << PAGE_BITS if pages else None

    @property
    def must_restart(self) -> bool:
        """Whether spans are new, gone or in another order whose rows are not held."""
        for run_id, old in self._known.items() if self.done else ():
            rows = self.runs.get(run_id)
            if old.settled and (
                (rows is None or not rows.settled or self.dirty.get(run_id, inf) <= old.settled_step)
                or (rows.late and not self.active)
            ):
                return True
        return self.unlike

    def _is_settled_change(self, run_id: str) -> bool:
        """Whether something about a run has changed that is not of its latest supersteps."""
        old = self._known.get(run_id)
        return old is not None and (
            self.dirty.get(run_id, inf) <= old.latest - UNSETTLED or self.runs[run_id].position.run != old.position.run
        )

    def settle(self) -> set[str]:
        """Hold the steps of the latest pages only; the ids of the spans that are held."""
        latest = self.log.logs[_STEPS].latest
        self.runs = {run_id: rows.settle(latest) for run_id, rows in self.runs.items()}
        return {*self.checked, *(span.id for rows in self.runs.values() for span in rows.spans)}

    def _walk(self) -> None:
        database, run = self._database, self._run
        if not database.has_steps:
            self.problems.append(Problem(self._path, "steps", NO_STEPS))
            return
        ancestors, absent = database.ancestors_of(run)
        if absent is not None:
            reason = f"it was forked from {absent!r}, which is not in this database: those steps are missing"
            self.problems.append(Problem(self._path, f"run {run.id}", reason))
        queue = deque([*(RunPosition(ancestor, None, True, last) for ancestor, last in ancestors), RunPosition(run)])
        seen = {position.run.id for position in queue}
        while queue:
            position = queue.popleft()
            if position.run.id not in self.runs:
                if time.monotonic() >= self._deadline:
                    self.done = False
                    return
                self._load([position, *(other for other in islice(queue, BATCH - 1) if other.run.id not in self.runs)])
            rows = self.runs[position.run.id]
            self.spans += rows.spans
            if rows.waiting:
                self.done = False
                return
            named = [(child, parent) for child, parent in rows.named if child.id not in seen]
            seen.update(child.id for child, _ in named)
            queue.extend(RunPosition(child, parent) for child, parent in named)
            if not position.inherited:
                self._read_loose(rows, queue, seen)

    def _read_loose(self, rows: Rows, queue: deque[RunPosition], seen: set[str]) -> None:
        """Read the parts of a run that no step names: running nodes, items of a map."""
        run, parent = rows.position.run, rows.position.parent
        pending: dict[str, str] = {}
        if run.standing is Status.RUNNING:
            self.active = True
            pending = self._read_pending(run, parent)
        for child in rows.loose:
            if child.id in seen:
                continue
            seen.add(child.id)
            node = child.id.removeprefix(f"{run.id}/").partition("/")[0]
            below = pending.get(node)
            if below is None:  # no step names it
                below = f"run:{child.id}"
                since = -inf if child.id in self._changes else inf  # its body shows the values of its steps
                self._put(run_span(child, below, parent, self._owner(run.id)), hash(child), since)
            queue.append(RunPosition(child, below))

    def _read_pending(self, run: RunRow, parent: str | None) -> dict[str, str]:
        """Spans of the nodes that were begun and have no step row yet, by name of the node."""
        database, step = self._database, self._database.step
        if not database.has(_PENDING, *_ABOUT_STEPS):
            return {}
        sql = (
            f"SELECT p.rowid, p.* FROM pending_nodes AS p WHERE {{where}} AND NOT EXISTS (SELECT 1 FROM steps AS s"
            f" WHERE s.{step('run')} = p.run_id AND s.{step('superstep')} = p.superstep"
            f" AND s.{step('node_name')} = p.node_name) ORDER BY p.superstep, p.rowid"
        )
        where, rows = "p.run_id = ?", []
        if self.partly:  # of the early ones only those that were pending
            first = (self._log_before.logs[_PENDING].end - LATEST + 1) << PAGE_BITS
            early = [span.at[1] for _, span in self._checked.values() if span.at[0] == "pending" and span.at[1] < first]
            rows = [*many(database.connection, sql.format(where="p.rowid IN ({keys}) AND p.run_id = ?"), early, run.id)]
            where = f"p.rowid >= {first} AND +p.run_id = ?"
        rows += database.connection.execute(sql.format(where=where), (run.id,)).fetchall()
        first_spans: dict[str, str] = {}
        latest: dict[str, str] = {}
        owner, since = self._owner(run.id), self.dirty.get(run.id, inf)
        for rowid, *values in rows:
            row = dict(zip(database.columns[_PENDING], values, strict=True))
            span = pending_span(database, rowid, row, parent, owner)
            self._put(span, hash(tuple(values)), since)
            first_spans.setdefault(span.name, span.id)
            latest[span.name] = span.id
        if latest and database.has("attempt_series", "id", "run_id", "node_name", "closed_at"):
            # attempts of the nodes that are running now: their series is not closed, no step names it yet
            sql = "SELECT id, node_name FROM attempt_series WHERE run_id = ? AND closed_at IS NULL"
            series = dict(database.connection.execute(sql, (run.id,)).fetchall())
            for record in database.attempts(series):
                above = latest.get(str(series.get(record["series_id"])))
                if above is not None:
                    at = integer(record.get("scheduled_superstep"))
                    span = attempt_span(record, above, at, owner)
                    self._put(span, hash(tuple(record.values())), since)
        return first_spans

    def _put(self, span: Span, check: int, since: float) -> None:
        self.checked[span.id] = self._same(self._checked.get(span.id), span, check, since)
        self.spans.append(self.checked[span.id][1])

    @staticmethod
    def _same(before: tuple[int, Span] | None, span: Span, check: int, since: float) -> tuple[int, Span]:
        """The span that was made before, if nothing about it has changed."""
        is_graph = span.operation is Operation.INVOKE_WORKFLOW
        is_new = since < inf and (span.step is None or is_graph or span.step >= since)
        return (check, span) if is_new or before is None or before != (check, span) else before

    def _owner(self, run_id: str) -> str | None:
        """The `Span.owner` of the spans of a run of the tree."""
        return None if run_id == self._run.id else run_id

    # ---- rows

    def _load(self, positions: list[RunPosition]) -> None:
        """Read the unknown rows of some runs while there is time."""
        known: list[RunPosition] = []
        new: list[RunPosition] = []
        for position in positions:
            old = self._before.get(position.run.id)
            if old is None or old.position[1:] != position[1:]:
                self._before.pop(position.run.id, None)
                new.append(position)
            elif self._compares or old.waiting:
                known.append(position)
            else:
                self.runs[position.run.id] = old
        if (known or new) and self._began > -inf and self._deadline == inf:
            now = time.monotonic()
            self._deadline = now + max(PIECE_SECONDS, now - self._began)  # most of it for new rows
        for some in filter(None, (known, new)):
            loading = [self._rows(position) for position in some]
            by_id = {rows.position.run.id: rows for rows in loading}
            self.runs |= by_id
            if some is new:
                self.log = self.log.add(self._database.connection, self._tables, by_id)
            pages_of = self._changed_pages if some is known else self._new_pages
            for name, table in self._tables.items():
                if name != _STEPS:
                    self._read_sides(name, table, loading, pages_of(name, by_id))
            self._read_attempts(self._read_steps(loading, pages_of(_STEPS, by_id)))
            self._find_children(loading)

    def _rows(self, position: RunPosition) -> Rows:
        old = self._before.get(position.run.id)
        if old is None:
            return Rows(position)
        return replace(old, position=position, sides={}, steps={}, waiting=[], spans=[])

    def _changed_pages(self, name: str, runs: Collection[str]) -> Pages:
        """The pages of a table that have changed, of known runs."""
        pages: Pages = {}
        for run_id in runs:
            if fresh := self._changes.get(run_id, {}).get(name):
                pages[run_id] = fresh
                old = self._before[run_id]
                if name == _STEPS and old.settled:
                    held = {number >> PAGE_BITS for number in old.steps}
                    before = self._log_before.logs[name].pages
                    self.unlike |= any((run_id, page) in before and page not in held for page in fresh)
        return pages

    def _new_pages(self, name: str, runs: Collection[str]) -> Pages:
        """The pages of a table that are read of new runs: of nodes that were begun only the last, else all."""
        if name != _PENDING:
            return dict.fromkeys(runs)
        latest: dict[str, int] = {}
        for run_id, page in self.log.logs[name].pages:
            latest[run_id] = max(page, latest.get(run_id, page))
        return {run_id: {latest[run_id]} for run_id in runs if run_id in latest}

    def _read_sides(self, name: str, table: Table, loading: list[Rows], pages: Pages) -> None:
        """Read the rows of some pages of another table about the steps of some runs."""
        now: dict[str, dict[int, Side]] = {run_id: {} for run_id in pages}
        for run, rowid, superstep, *row in self._of_pages(table, pages):
            now[run][rowid] = Side(hash(tuple(row)), integer(superstep))
        for rows in loading:
            run_id = rows.position.run.id
            old, reread = self._before.get(run_id), pages.get(run_id) or ()
            known = {} if old is None else old.sides.get(name, {})
            before = {rowid: side for rowid, side in known.items() if rowid >> PAGE_BITS in reread}
            if old is not None and self._compares and reread:
                self._compare_sides(rows, before, now[run_id], name, reread)
            rows.sides[name] = {rowid: side for rowid, side in known.items() if rowid not in before}
            rows.sides[name] |= now.get(run_id, {})

    def _compare_sides(
        self, rows: Rows, before: dict[int, Side], now: dict[int, Side], name: str, pages: Collection[int]
    ) -> None:
        """Note the supersteps of rows of another table that have changed in `pages`."""
        unread = {*pages}.difference(rowid >> PAGE_BITS for rowid in before)
        if any((rows.position.run.id, page) in self._log_before.logs[name].pages for page in unread):
            self._since(rows, None)  # the earlier rows are unknown
            return
        for rowid in {rowid for rowid, _ in before.items() ^ now.items()}:
            sides = filter(None, (before.get(rowid), now.get(rowid)))
            at = [side.superstep for side in sides if side.superstep is not None]
            if at or rowid in before:  # the start of a series concerns no superstep
                self._since(rows, min(at, default=None))

    def _of_pages(self, table: Table, pages: Pages, more: str = "") -> Iterator[tuple[Any, ...]]:
        """Run, number, superstep and columns of the rows in some pages of a table."""
        for runs, wanted in (
            ([run_id for run_id, fresh in pages.items() if fresh is None], None),
            (parts := {run_id: fresh for run_id, fresh in pages.items() if fresh}, {*chain(*parts.values())}),
        ):
            sql = f"SELECT {table.run}, {table.rowid}, {table.superstep}, {table.columns} {table.of_runs(wanted)}{more}"
            for run, rowid, *row in many(self._database.connection, sql, runs):
                run_id = text_id(run)
                if run_id in pages and (wanted is None or rowid >> PAGE_BITS in parts.get(run_id, ())):
                    yield run_id, rowid, *row

    def _since(self, rows: Rows, superstep: int | None) -> None:
        """Note that something about this superstep of a run is new; None: about all of them."""
        run_id = rows.position.run.id
        self.dirty[run_id] = min(-inf if superstep is None else superstep, self.dirty.get(run_id, inf))

    def _list_steps(self, loading: list[Rows], pages: Pages) -> dict[str, list[int]]:
        """By run: the numbers of the steps that are to be read, in their order."""
        step = self._database.step
        table = Table("steps", step("run"), "", superstep="NULL", columns="NULL")
        groups: dict[int | None, Pages] = {}
        listed: dict[str, list[int]] = {}
        for rows in loading:
            run_id, old = rows.position.run.id, self._before.get(rows.position.run.id)
            listed[run_id] = [] if old is None else old.waiting
            if not listed[run_id] and run_id in pages:
                listed[run_id] = []
                groups.setdefault(rows.position.last, {})[run_id] = pages[run_id]
        for last, some in groups.items():
            upto = "" if last is None else f" AND {step('superstep')} <= {int(last)}"
            for run_id, rowid, *_ in self._of_pages(table, some, f"{upto} ORDER BY {step('index')}, rowid"):
                listed[run_id].append(rowid)
        return listed

    def _read_steps(self, loading: list[Rows], pages: Pages) -> list[tuple[Rows, Collection[Step]]]:
        """Read all shown steps of some runs that are unknown or in changed pages."""
        database, listed = self._database, self._list_steps(loading, pages)
        length = "NULL" if database.values is None else f"length({quoted(database.values)})"
        sql = f"SELECT {length}, {database.step_columns} FROM steps WHERE rowid IN ({{keys}})"
        rowids = [*chain.from_iterable(listed.values())]
        count = 0
        read: dict[int, tuple[Any, ...]] = {}
        while count < len(rowids) and (count == 0 or time.monotonic() < self._deadline):
            read |= {row[1]: row for row in many(database.connection, sql, rowids[count : count + ROWS])}
            count += ROWS
        changed: list[tuple[Rows, Collection[Step]]] = []
        for rows in loading:
            own = listed[rows.position.run.id]
            steps = [self._step(rows, read[rowid]) for rowid in own[: max(0, count)] if rowid in read]
            rows.waiting = own[max(0, count) :]
            count -= len(own)
            if (some := self._take(rows, steps, pages.get(rows.position.run.id) or set())) is not None:
                changed.append((rows, some))
        return changed

    def _step(self, rows: Rows, values: tuple[Any, ...]) -> Step:
        """The step of a row, the same as before where the row is."""
        position, row, check = rows.position, StepRow(*values[1:]), hash(values)
        before = self._before.get(position.run.id)
        old = None if before is None else before.steps.get(row.rowid)
        if old is not None and old.check == check:
            return old
        superstep = integer(row.superstep)
        if before is not None and self._compares:
            self._since(rows, superstep if old is None else old.superstep)
        owner = self._owner(position.run.id)
        at = "step", row.rowid, self.epoch
        span = step_span(self._database, row, superstep, position.parent, at, inherited=position.inherited, owner=owner)
        return Step(check, superstep, row.index, span, row.node_name == BASELINE, text(row.child), row.series)

    def _take(self, rows: Rows, read: list[Step], reread: set[int]) -> Collection[Step] | None:
        """Take in steps, which are all of those pages; the steps to be shown, None if all is as it was."""
        position = rows.position
        old = self._before.get(position.run.id)
        steps = {step.span.at[1]: step for step in read}
        rows.latest = max([rows.latest, *(step.superstep for step in read if step.superstep is not None)])
        if old is not None:
            for rowid in [rowid for rowid in old.steps if rowid >> PAGE_BITS in reread and rowid not in steps]:
                self._since(rows, old.steps[rowid].superstep)
            since = self.dirty.get(position.run.id, inf)
            if since == inf and not read:
                rows.steps, rows.spans = old.steps, old.spans
                return None
            known = old.steps
            if reread:
                known = {rowid: step for rowid, step in known.items() if rowid >> PAGE_BITS not in reread}
            steps = known | steps
            for rowid, step in steps.items() if since < inf else ():
                if old.steps.get(rowid) is step and (step.superstep is None or step.superstep >= since):
                    steps[rowid] = replace(step, span=replace(step.span))
            if rows.settled_order is not None:
                rows.late |= any(step.span.at[1] not in old.steps and step.order < rows.settled_order for step in read)
            if self._compares:
                steps = dict(sorted(steps.items(), key=lambda item: item[1].order))
            if since < inf and position.inherited and (position.last is None or since <= position.last):
                self.dirty[self._run.id] = -inf  # its steps began with that
        rows.steps = steps
        if old is None or self._compares:
            return steps.values()
        rows.spans = list(old.spans)
        return read

    def _read_attempts(self, changed: list[tuple[Rows, Collection[Step]]]) -> None:
        """Show steps, and read their attempts."""
        tried = [(rows, step) for rows, steps in changed for step in steps if step.series is not None]
        attempts: dict[Any, list[Row]] = {}
        for record in self._database.attempts({step.series for _, step in tried}):
            attempts.setdefault(record["series_id"], []).append(record)
        for rows, step in tried:
            spans: list[CheckedSpan] = []
            known = {span.id: (check, span) for check, span in step.attempts}
            for record in attempts.get(step.series, ()):
                span = attempt_span(record, step.span.id, step.superstep, step.span.owner)
                since = self.dirty.get(rows.position.run.id, inf)
                spans.append(self._same(known.get(span.id), span, hash(tuple(record.values())), since))
            rows.steps[step.span.at[1]] = replace(step, attempts=tuple(spans))
        for rows, steps in changed:
            rows.spans += [span for step in steps for span in rows.steps[step.span.at[1]].spans]

    def _find_children(self, loading: list[Rows]) -> None:
        """Find the runs that some runs started."""
        loading = [rows for rows in loading if not rows.waiting]
        loose: dict[str, list[RunRow]] = {}
        for child in self._database.children_of([rows.position.run.id for rows in loading]):
            loose.setdefault(text_id(child.parent), []).append(child)
        named = {
            rows.position.run.id: {
                step.child: step.span.id for step in rows.steps.values() if step.child and not step.hidden
            }
            for rows in loading
        }
        runs = self._database.runs_by_id(sorted({child for children in named.values() for child in children}))
        for rows in loading:
            run_id = rows.position.run.id
            rows.loose = loose.get(run_id, [])
            rows.named = [(runs[child], span) for child, span in named[run_id].items() if child in runs]


_STEPS: Final = "steps"
_PENDING: Final = "pending_nodes"
_ABOUT_STEPS: Final = ("run_id", "superstep", "node_name")


def _size(runs: dict[str, Rows]) -> int:
    """The number of all their steps."""
    return sum(len(rows.steps) + rows.settled for rows in runs.values())


def tables_of(database: Database) -> dict[str, Table]:
    """The tables about steps: steps, questions, attempts, pending nodes."""
    step, tables = database.step, dict[str, Table]()
    if database.has_steps:
        values = "NULL" if database.values is None else quoted(database.values)
        sums = (
            f"count(*), total(rowid), total(unicode({step('node_name')})), total(length({step('node_name')})),"
            f" total({step('duration_ms')}), total(unicode({step('status')})), total(length({values})),"
            f" count({step('completed_at')}), max({step('completed_at')}), count({step('error')}),"
            f" total(length({step('decision')})), count({step('child')}), total({step('index')})"
        )
        tables[_STEPS] = Table(_STEPS, step("run"), sums, superstep=step("superstep"))
    series = "(SELECT run_id FROM attempt_series WHERE id = series_id)"
    has_series = database.has("attempt_series", "id", "run_id", "committed_superstep")
    has_records = database.has("attempt_records", "series_id", "scheduled_superstep")
    for table, run, superstep, there in (
        (_PENDING, "run_id", "superstep", database.has(_PENDING, *_ABOUT_STEPS)),
        ("pause_slots", "run_id", "superstep", database.has("pause_slots", *_ABOUT_STEPS)),
        ("attempt_series", "run_id", "committed_superstep", has_series),
        ("attempt_records", series, "scheduled_superstep", has_series and has_records),
    ):
        if there:
            columns = [quoted(column) for column in database.columns[table]]
            sums = ", ".join(f"total(length({name})), total(unicode({name})), total({name})" for name in columns)
            if table == _PENDING:  # as many as steps if they are never deleted
                sums = f"total({' + '.join(f'ifnull(length({name}), 0)' for name in columns)})"
            tables[table] = Table(table, run, f"count(*), total(rowid), {sums}", superstep=superstep)
    return tables
