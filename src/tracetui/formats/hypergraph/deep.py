"""Counts of all runs of a hypergraph database at once, the same as reading each would give.

Most runs are counted by a few grouped statements over the whole table and added up along the tree of nested runs. What
is out of the ordinary (retries inside, runs that share children, cycles, missing ancestors) is read in full.
"""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from sqlite3 import Connection

import msgspec

from tracetui.formats.hypergraph.rows import RunRow, Schema, has_steps, text_id
from tracetui.formats.hypergraph.runs import ancestors_of, failed, failing, is_active, step_counts
from tracetui.formats.hypergraph.spans import Position, SpanReader, name_of
from tracetui.formats.scalars import text
from tracetui.model import Body, Header, RunRef, Span
from tracetui.model.build import RunBuilder, Tally
from tracetui.model.tally import kept


class Own(msgspec.Struct):
    """What a run's own rows come to, then (`below`) what hangs under them."""

    steps: int = 0
    failed: int = 0
    retried: int = 0
    below_spans: int = 0
    below_errors: int = 0
    nodes: frozenset[str] = frozenset()
    """Names of the nodes of the run's tree."""
    plain: bool = True
    """False: this run must be read to be counted."""

    @property
    def spans(self) -> int:
        """Spans of the run's tree."""
        return self.steps + self.below_spans

    @property
    def errors(self) -> int:
        """Failed spans of the run's tree."""
        return self.failed + self.below_errors


def tallies(
    connection: Connection, schema: Schema, path: str, runs: list[RunRow], headers: dict[str, Header]
) -> dict[str, Tally]:
    """What was counted, by run id."""
    if not has_steps(schema):
        return {run.id: Tally(problems=1) for run in runs}  # see `spans.NO_STEPS`
    known = {run.id: run for run in runs}
    own = _own_rows(connection, schema, known)
    children = _children(connection, schema, known)
    _add_up(known, own, children)
    found = {}
    for run in runs:
        tally = _quick(connection, schema, run, own, children, headers[run.id])
        found[run.id] = tally or _thorough(connection, schema, path, run, headers[run.id])
    return found


def _own_rows(connection: Connection, schema: Schema, known: dict[str, RunRow]) -> dict[str, Own]:
    own = {run_id: Own() for run_id in known}
    sql = (
        f"SELECT {schema.step('run')}, count(*), sum({failing(schema)}), count({schema.step('series')}) FROM steps"
        f" WHERE {schema.public} GROUP BY {schema.step('run')}"
    )
    for run, steps, bad, retried in connection.execute(sql).fetchall():
        counts = own.get(text_id(run))
        if counts is not None:
            counts.steps, counts.failed, counts.retried = steps, bad or 0, retried
    for run, names in _nodes(connection, schema).items():
        if run in own:
            own[run].nodes = names
    return own


def _nodes(
    connection: Connection, schema: Schema, where: str = "", values: Iterable[str] = ()
) -> dict[str, frozenset[str]]:
    """Names of the nodes by run; runs that have the same ones share them."""
    sql = f"SELECT DISTINCT {schema.step('run')}, {schema.step('node_name')} FROM steps WHERE {schema.public}{where}"
    names: dict[str, list[str]] = {}
    for run, name in connection.execute(sql, tuple(values)).fetchall():
        names.setdefault(text_id(run), []).append(name_of(name))
    shared: dict[frozenset[str], frozenset[str]] = {}
    found = {run: frozenset(kept(listed)) for run, listed in names.items()}
    return {run: shared.setdefault(listed, listed) for run, listed in found.items()}


def _children(connection: Connection, schema: Schema, known: dict[str, RunRow]) -> dict[str, list[tuple[str, bool]]]:
    """By run: the runs below it, and whether each has a span of its own because no step names it."""
    below: dict[str, list[tuple[str, bool]]] = {}
    linked: set[tuple[str, str]] = set()
    if "child" in schema.step_names:
        run, child = schema.step("run"), schema.step("child")
        sql = f"SELECT {run}, {child} FROM steps WHERE {child} > '' AND {schema.public}"
        for owner, name in connection.execute(sql).fetchall():
            if isinstance(name, str) and name in known and (text_id(owner), name) not in linked:
                linked.add((text_id(owner), name))
                below.setdefault(text_id(owner), []).append((name, False))
    for run_row in known.values():
        parent = text(run_row.parent)
        if parent is not None and (parent, run_row.id) not in linked:
            below.setdefault(parent, []).append((run_row.id, True))
    return below


def _add_up(known: dict[str, RunRow], own: dict[str, Own], children: dict[str, list[tuple[str, bool]]]) -> None:
    """Add what is below each run to it, leaves first; what hangs on a cycle is never reached and stays not plain."""
    owners = Counter(child for below in children.values() for child, _ in below)
    parents: dict[str, list[tuple[str, bool]]] = {}
    waiting = {run_id: len(children.get(run_id, ())) for run_id in known}
    for parent, below in children.items():
        for child, loose in below:
            parents.setdefault(child, []).append((parent, loose))
    ready = [run_id for run_id, missing in waiting.items() if missing == 0]
    reached = set(ready)
    while ready:
        run_id = ready.pop()
        here = own[run_id]
        here.plain = here.plain and not here.retried and not is_active(known[run_id])
        for parent, loose in parents.get(run_id, ()):
            if parent not in own:
                continue
            above = own[parent]
            above.below_spans += here.spans + loose
            above.below_errors += here.errors + (loose and failed(known[run_id]))
            if not here.nodes <= above.nodes:
                above.nodes = frozenset(kept(above.nodes | here.nodes))
            above.plain = above.plain and here.plain and owners[run_id] == 1
            waiting[parent] -= 1
            if waiting[parent] == 0:
                reached.add(parent)
                ready.append(parent)
    for run_id in known.keys() - reached:
        own[run_id].plain = False


def _quick(
    connection: Connection,
    schema: Schema,
    run: RunRow,
    own: dict[str, Own],
    children: dict[str, list[tuple[str, bool]]],
    header: Header,
) -> Tally | None:
    """The counts of an ordinary run, None for one that must be read."""
    here = own[run.id]
    if not here.plain or header.status is None or header.started_at is None or header.duration_ms is None:
        return None
    steps, errors, nodes = here.steps, here.errors, set(here.nodes)
    if text(run.forked_from) is not None:
        ancestors, missing = ancestors_of(connection, schema, run)
        if missing is not None or run.id in children:
            return None
        for ancestor, last in ancestors:
            inherited = own[ancestor.id]
            if ancestor.id in children or inherited.retried or inherited.failed:
                return None
            if last is None:
                steps += inherited.steps
                nodes |= inherited.nodes
            else:
                steps += step_counts(connection, schema, ancestor.id, last)[0]
                nodes |= _nodes_until(connection, schema, ancestor.id, last)
    if errors and header.error is None:
        return None
    return Tally(steps=steps, spans=steps + here.below_spans, errors=errors, nodes=kept(nodes))


def _nodes_until(connection: Connection, schema: Schema, run_id: str, last: int) -> frozenset[str]:
    where = f" AND {schema.step('run')} = ? AND {schema.step('superstep')} <= {int(last)}"
    return _nodes(connection, schema, where, (run_id,)).get(run_id, frozenset())


def _thorough(connection: Connection, schema: Schema, path: str, run: RunRow, header: Header) -> Tally:
    """The counts of a run, by reading it."""
    reader = SpanReader(connection, schema, path, Position.start(run))
    while not reader.done:
        reader.advance()
    builder = RunBuilder(RunRef("", path, run.id), _no_body)
    builder.add(reader.spans, header=header, problems=reader.problems)
    built = builder.build()
    tally = Tally(problems=len(built.problems))
    for span in built.spans:
        tally.add(span)
    return tally


def _no_body(span: Span) -> Body:
    return Body()
