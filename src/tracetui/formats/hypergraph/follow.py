"""What came to a run of a hypergraph database since it was read: new rows cost themselves, not what is there already.

The body of a step holds the state after its superstep, and what other tables say about it. So a row that came or
changed makes all steps of its run from its superstep on new. Where a span would have to vanish, or to move among its
siblings, the run is read anew.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from sqlite3 import Connection
from typing import Any, Final

import msgspec

from tracetui.formats.hypergraph.known import (
    IDENTITY,
    PAGE_ROWS,
    Known,
    last_row,
    order_of,
    pages_of,
    pending_of,
    sides_of,
)
from tracetui.formats.hypergraph.rows import (
    BASELINE,
    RunRow,
    Schema,
    StepRow,
    has_steps,
    integer,
    many,
    runs_by_id,
    text_id,
)
from tracetui.formats.hypergraph.runs import ancestors_of, children_of, is_active
from tracetui.formats.hypergraph.spans import Anew, Position, SpanReader, run_span, run_span_id
from tracetui.formats.scalars import text

SMALL: Final = 1000
"""Steps up to which everything is compared and in order at once; a longer run is when it ends, or nothing else came."""


class Follower:
    """Finds what came since `position`; `reader` makes the spans."""

    def __init__(self, connection: Connection, schema: Schema, path: str, position: Position) -> None:
        if not has_steps(schema):
            raise Anew
        self._connection = connection
        self._schema = schema
        self._before: Known = position.known
        self.reader = SpanReader(connection, schema, path, position)
        self.new: list[StepRow] = []
        self.changed = False
        """Rows that were read before are different now."""

    def advance(self, run: RunRow) -> bool:
        """Read what came to `run`; False if nothing did. Raises `Anew`."""
        known = self.reader.known
        rows = self._runs(run)
        different = {name for name, row in rows.items() if row != known.tree[name].run}
        known.last = max(known.last, last_row(self._connection, self._schema))
        since: dict[str, int] = {}
        self._find_new(since)
        self._compare_sides(since)
        quiet = not since and not known.compared
        self._compare_pages(since, whole=bool(different) or quiet or known.steps <= SMALL)
        known.compared = not since
        for name in different:
            if is_active(rows[name]) != is_active(known.tree[name].run) and (is_active(rows[name]) or self._left(name)):
                raise Anew
            known.tree[name] = msgspec.structs.replace(known.tree[name], run=rows[name])
        for name, superstep in since.items():
            self._give(name, superstep)
        self._finish()
        for child in children_of(self._connection, self._schema, list(rows)):
            parent = text_id(child.parent)
            if child.id not in known.tree and parent in known.tree:
                self.reader.read_child(child, parent, known.tree[parent].parent)
        self._finish()
        for name in sorted({*different, *since}):
            below = known.tree[name]
            if below.hung and below.parent == run_span_id(below.run):
                owner = self.reader.owner(text_id(below.run.parent))
                self.reader.spans.append(run_span(below.run, self._above(name), owner))
        self._check(since, any(is_active(row) for row in rows.values()))
        return bool(different or self.reader.spans)

    def _finish(self) -> None:
        while not self.reader.done:
            self.reader.advance()

    def _runs(self, run: RunRow) -> dict[str, RunRow]:
        """The runs of the tree as they are now."""
        rows = runs_by_id(self._connection, self._schema, self._before.tree) | {run.id: run}
        ancestors, absent = ancestors_of(self._connection, self._schema, run)
        inherited = tuple((ancestor.id, last) for ancestor, last in ancestors)
        if set(rows) != set(self._before.tree) or (inherited, absent) != (self._before.inherited, self._before.absent):
            raise Anew
        return rows

    def _find_new(self, since: dict[str, int]) -> None:
        """Find the rows that came."""
        schema, known = self._schema, self.reader.known
        where = f"WHERE rowid > {self._before.last} AND +{schema.step('run')} IN ({{keys}})"
        runs = [*known.tree, *(name for name, _ in known.inherited)]
        self.new = sorted(
            (StepRow(*row) for row in many(self._connection, schema.step_select + where, runs)), key=order_of
        )
        for row in self.new:
            self._since(since, row.run, integer(row.superstep))

    def _since(self, since: dict[str, int], run: Any, superstep: int | None) -> None:
        """Note that something about this superstep of this run is new."""
        known = self.reader.known
        for name, bound in known.inherited:
            if name == run and run not in known.tree:
                if bound is None or superstep is None or superstep <= bound:
                    raise Anew
                return
        if superstep is None or run not in known.tree:
            raise Anew
        since[run] = min(superstep, since.get(run, superstep))

    def _compare_sides(self, since: dict[str, int]) -> None:
        """Compare what other tables say about steps: questions, attempts, nodes that are pending."""
        known = self.reader.known
        before, now = self._before.sides, sides_of(self._connection, self._schema, known.tree)
        for key in before.keys() | now.keys():
            old, new = before.get(key), now.get(key)
            if old != new:
                told = [side for side in (old, new) if side is not None and side[1] is not None]
                for run, superstep, _ in told:
                    self._since(since, run, superstep)
                if not told and old is not None:
                    raise Anew
        new_pending, known.pending = pending_of(self._connection, self._schema, known.tree, self._before.pending)
        for number, (run, superstep, _) in new_pending.items():
            self._since(since, run, superstep)
            if number in self._before.pending:
                self._since(since, run, self._before.pending[number][1])
        known.sides = now

    def _compare_pages(self, since: dict[str, int], *, whole: bool) -> None:
        """Compare rows that were read before; of a long run, while it grows, only the latest."""
        known, last = self.reader.known, self._before.last
        for name in (*known.tree, *(name for name, _ in known.inherited)):
            before = self._before.pages[name]
            first = 0 if whole else max(before, default=0)
            now = pages_of(self._connection, self._schema, name, last, first)
            for page in {*(page for page in before if page >= first), *now}:
                if before.get(page) == now.get(page):
                    continue
                if page not in before or page not in now or before[page][IDENTITY] != now[page][IDENTITY]:
                    raise Anew  # rows are gone, others have their numbers, or their nodes have other names
                self.changed = True
                for superstep in self._supersteps(name, page, last):
                    self._since(since, name, superstep)
                known.disordered |= before[page][-1] != now[page][-1]
            if known.last > last:
                now |= pages_of(self._connection, self._schema, name, known.last, max(first, last // PAGE_ROWS))
            known.pages[name] = before | now

    def _supersteps(self, run: str, page: int, last: int) -> list[int | None]:
        schema = self._schema
        sql = (
            f"SELECT {schema.step('superstep')} FROM steps WHERE rowid >= {page * PAGE_ROWS}"
            f" AND rowid < {(page + 1) * PAGE_ROWS} AND rowid <= {last} AND +{schema.step('run')} = ?"
        )
        return [integer(superstep) for (superstep,) in self._connection.execute(sql, (run,)).fetchall()]

    def _left(self, run: str) -> bool:
        """Whether a node of a run was shown as running and has no step still."""
        arrived = {self.reader.id_of(row) for row in self.new}
        return any(one.run == run and ident not in arrived for ident, one in self.reader.known.shown.items())

    def _give(self, run: str, superstep: int) -> None:
        """Give the steps of a run from a superstep on, then the nodes that are running now."""
        schema, known = self._schema, self.reader.known
        sql = f"{schema.step_select} WHERE {schema.step('run')} = ? AND {schema.step('superstep')} >= ?"
        found = (StepRow(*row) for row in self._connection.execute(sql, (run, superstep)).fetchall())
        rows = sorted((row for row in found if row.node_name != BASELINE), key=order_of)
        for row in rows:
            if row.rowid > self._before.last:
                self._arrive(row, run)
        self.reader.give(rows, run)
        begun = [one.superstep for one in known.shown.values() if one.run == run and one.superstep is not None]
        self.reader.read_pending(known.tree[run].run, known.tree[run].parent, min([superstep, *begun]))

    def _arrive(self, row: StepRow, run: str) -> None:
        """A new step takes the place of the node that was running, and stands last among the steps."""
        known, ident = self.reader.known, self.reader.id_of(row)
        waiting = [one for one, pending in known.shown.items() if pending.run == run]
        if ident in known.shown:
            known.disordered |= waiting[0] != ident
            del known.shown[ident]
            below = [name for name, one in known.tree.items() if one.parent == ident]
            if any(text(row.child) != name for name in below):
                raise Anew
        else:
            known.disordered |= bool(waiting) or known.tree[run].parent in known.hung
        child = known.tree.get(text(row.child) or "")
        if child is not None and child.parent != ident:
            raise Anew
        known.disordered |= order_of(row) < known.ends.get(run, ())
        known.ends[run] = max(order_of(row), known.ends.get(run, ()))
        known.steps += 1

    def _above(self, name: str) -> str | None:
        """The span above that of a run which hangs by itself."""
        parent = self.reader.known.tree.get(text_id(self.reader.known.tree[name].run.parent))
        return None if parent is None else parent.parent

    def _check(self, since: dict[str, int], active: bool) -> None:
        """Raise `Anew` if a span is left that should not be there any more, or stands in the wrong place."""
        known = self.reader.known
        given = {span.id for span in self.reader.spans}
        if any(one.partition(":attempt:")[0] in given and one not in given for one in self._before.tried):
            raise Anew
        if any(one.run in since and ident not in given for ident, one in known.shown.items()):
            raise Anew
        if known.disordered and (known.steps <= SMALL or not active):
            raise Anew
