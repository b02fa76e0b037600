"""The list of the runs of a hypergraph database: those that were counted are counted again when their rows change."""

# ruff: noqa: S608 - every name in a statement is one of our own or went through `quoted`

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from tracetui.formats.hypergraph import tree
from tracetui.formats.hypergraph.rows import Database, RunRow, text_id
from tracetui.formats.hypergraph.runs import Steps, first_errors, header_of, last_routes, steps_of
from tracetui.formats.rowlog import Changes, RowLog
from tracetui.formats.scalars import text
from tracetui.formats.sqlite import CountedRun
from tracetui.model import Header, Problem, RunRef, RunSummary, Status
from tracetui.model.build import Tally, summary_of
from tracetui.model.tally import bounded
from tracetui.sources.base import CACHE, File

REPLACED: Final = "\ufffd"
"""Stands in a text for bytes that are not UTF-8."""
FOLLOWED: Final = 16
"""Runs that the list holds to count their new rows."""
_LISTING: Final = "hypergraph list"


def summarize(file: File, name: str, *, deep: bool) -> Iterator[RunSummary | Problem]:
    """Every run of the database, nested ones too. Raises `FormatError` if it has no table of runs."""
    with file.database() as connection:
        connection.execute("BEGIN")  # one state of it for all statements; closing ends it
        database = Database(connection)
        runs = yield from _named(database, file.path)
        if deep:
            cache = file.memo.get(CACHE)
            listing = Listing() if cache is None else cache.setdefault(_LISTING, Listing())
            yield from listing.summaries_of(database, file, name, runs, keeps=cache is not None)
            return
        modified_at, moving = file.stat.mtime, file.moving
        for run_id, header in _headers(database, runs, deep=False).items():
            ref = RunRef(name, file.path, run_id)
            yield summary_of(ref, header, None, modified_at=modified_at, moving=moving)


def _named(database: Database, path: str) -> Generator[Problem, None, list[RunRow]]:
    """All runs that can be looked up by their ids, and problems of the others."""
    runs = list({run.id: run for run in reversed(database.all_runs())}.values())[::-1]
    (rows,) = database.connection.execute(f'SELECT count(*) FROM "{database.runs}"').fetchone()
    if rows > len(runs):
        yield Problem(path, database.runs, f"{rows - len(runs)} rows have no id or a duplicate id")
    damaged = [run.id for run in runs if REPLACED in run.id]
    damaged = [ident for ident in damaged if ident not in database.runs_by_id(damaged)]
    for ident in damaged:
        yield Problem(path, f"run {ident}", "id is not UTF-8")
    return [run for run in runs if run.id not in damaged] if damaged else runs


def _headers(database: Database, runs: Sequence[RunRow], *, deep: bool) -> dict[str, Header]:
    """The headers of all runs, by id; only `deep` ones have the last routes."""
    errors = first_errors(database, runs)
    routes = last_routes(database) if deep else {}
    items: dict[str, list[RunRow]] = {}
    for run in runs:
        if run.item is not None:
            items.setdefault(run.parent, []).append(run)
    return {
        run.id: header_of(database, run, errors.get(run.id), items.get(run.id, ()), routes.get(run.id)) for run in runs
    }


class Listing(msgspec.Struct):
    """The runs of a database as they were listed last."""

    schema: Any = None
    """Its version and columns."""
    moving: bool = False
    log: RowLog = RowLog()
    rows: dict[str, RunRow] = {}
    links: dict[str, set[str]] = {}
    """By run: those with a step that names it."""
    summaries: dict[str, RunSummary] = {}
    """Of all runs that have not changed since."""
    followed: dict[str, CountedRun] = {}
    """Runs that are read on, the one that changed last at the end."""

    def summaries_of(
        self, database: Database, file: File, name: str, runs: list[RunRow], *, keeps: bool
    ) -> Iterator[RunSummary]:
        """The summaries of all runs, in their order; `keeps`: for a later call."""
        modified_at, self.moving, moved = file.stat.mtime, file.moving, self.moving != file.moving
        is_first = not keeps or self._forget(database, runs, moved=moved)
        waiting = [run for run in runs if run.id not in self.summaries]
        if is_first or len(waiting) > FOLLOWED:
            self._count(database, file, name, runs, keeps=keeps)
            waiting = []
        for run in waiting:
            self._follow(database, file, RunRef(name, file.path, run.id))
        for run in runs:
            yield replace(self.summaries[run.id], modified_at=modified_at)

    def _forget(self, database: Database, runs: list[RunRow], *, moved: bool) -> bool:
        """Forget the summaries of runs that may have changed; whether these are all."""
        schema, before = self.schema, self.rows
        self.schema = database.version, database.columns
        log = self.log if self.schema == schema else RowLog()
        log, changes = log.look(database.connection, tree.tables_of(database))
        rows = {run.id: run for run in runs}
        changed = {text_id(run_id) for run_id in changes}
        self.followed = {run_id: run for run_id, run in self.followed.items() if not _is_early(changes, run.memory)}
        changed |= {run_id for run_id in before.keys() | rows.keys() if before.get(run_id) != rows.get(run_id)}
        if rows.keys() - before.keys():  # one of them may be named already
            changed |= self.followed.keys()
        if moved:  # what a run without an end is depends on the time
            changed |= {run.id for run in runs if text(run.status) is None or run.standing is Status.RUNNING}
        forks: dict[str, list[str]] = {}
        for run in runs:
            if run.forked_from is not None:
                forks.setdefault(text_id(run.forked_from), []).append(run.id)
        waiting = list(changed)
        while waiting:
            run_id = waiting.pop()
            parents = [text_id(row.parent) for row in (before.get(run_id), rows.get(run_id)) if row is not None]
            more = {*parents, *forks.get(run_id, ()), *self.links.get(run_id, ())} - changed
            changed |= more
            waiting += more
        for run_id in changed:
            self.summaries.pop(run_id, None)
        for run_id in self.followed.keys() - rows.keys():
            del self.followed[run_id]
        self.log, self.rows = log, rows
        return bool(self.schema != schema)

    def _count(self, database: Database, file: File, name: str, runs: list[RunRow], *, keeps: bool) -> None:
        """Count all runs."""
        headers = _headers(database, runs, deep=True)
        counter = RunCounter(database, headers)
        tallies = counter.tallies(runs)
        self.links = counter.links
        for run in runs:
            ref, header, tally = RunRef(name, file.path, run.id), headers[run.id], tallies.get(run.id)
            has_room = run.id in self.followed or len(self.followed) < FOLLOWED
            if tally is None and keeps and has_room and run.standing is Status.RUNNING:
                self._follow(database, file, ref)
                continue
            facts: Any = {"modified_at": file.stat.mtime, "moving": file.moving}
            self.summaries[run.id] = (
                tree.count(database, ref, run, header).summary(**facts)
                if tally is None
                else summary_of(ref, header, tally, **facts)
            )

    def _follow(self, database: Database, file: File, ref: RunRef) -> None:
        """Read a run on to count it."""
        run_id = ref.key or ""
        counted = self.followed.pop(run_id, None) or CountedRun(ref)
        built = counted.count(database.connection, partial(tree.read, ref=ref))
        self.followed[run_id] = counted
        if len(self.followed) > FOLLOWED:
            del self.followed[next(iter(self.followed))]
        for below in counted.memory.runs:
            self.links.setdefault(below, set()).add(run_id)
        self.summaries[run_id] = built.summary(modified_at=file.stat.mtime, moving=file.moving)


def _is_early(changes: Changes, memory: tree.Memory) -> bool:
    """Whether rows of a run have changed that reading it on does not compare."""
    return any(
        min(pages) < memory.log.logs[name].latest
        for run_id, by_table in changes.items()
        if text_id(run_id) in memory.runs
        for name, pages in by_table.items()
        if name in memory.log.logs
    )


class _Sums(NamedTuple):
    """Sums over a run and the runs below it."""

    spans: int
    errors: int
    nodes: set[str]
    plain: bool
    """False: this run must be read to be counted."""


class RunCounter:
    """Counts all runs of a database at once, the same as reading each would give.

    Most runs are counted by a grouped statement over the whole table and added up along the tree of nested runs. Runs
    with inner retries, shared children, cycles or missing ancestors must be read.
    """

    def __init__(self, database: Database, headers: dict[str, Header]) -> None:
        self._database, self._headers = database, headers
        self._steps: dict[str, Steps] = {}
        self._sums: dict[str, _Sums] = {}
        """Without runs on a cycle."""
        self.links: dict[str, set[str]] = {}
        """By run: those with a step that names it; it may be missing."""
        self._below: dict[str, list[tuple[str, bool]]] = {}
        """By run: the runs below it, and whether each has a span of its own because no step names it."""

    def tallies(self, runs: list[RunRow]) -> dict[str, Tally]:
        """The tallies by run id, without those of runs that must be read."""
        if not self._database.has_steps:
            return {run.id: Tally(problems=1) for run in runs}  # see `rows.NO_STEPS`
        known = {run.id: run for run in runs}
        self._steps = steps_of(self._database)
        self._find_children(known)
        self._add_up(known)
        return {run.id: tally for run in runs if (tally := self._quick(run)) is not None}

    def _find_children(self, known: dict[str, RunRow]) -> None:
        database, linked = self._database, set[tuple[str, str]]()
        run, child = database.step("run"), database.step("child")
        sql = f"SELECT {run}, {child} FROM steps WHERE {child} > '' AND {database.public}"
        for owner, name in database.connection.execute(sql).fetchall():
            link = text_id(owner), name
            if isinstance(name, str):
                self.links.setdefault(name, set()).add(link[0])
            if name in known and link[0] in known and link not in linked:
                linked.add(link)
                self._below.setdefault(link[0], []).append((name, False))
        for row in known.values():
            parent = text(row.parent)
            if parent in known and (parent, row.id) not in linked:
                self._below.setdefault(parent, []).append((row.id, True))

    def _add_up(self, known: dict[str, RunRow]) -> None:
        """Add the sums of children to those of each run, from the leaves up."""
        owners = Counter(child for below in self._below.values() for child, _ in below)
        order = [run_id for run_id in known if owners[run_id] != 1]
        for run_id in order:  # it grows; a shared run is only at its start, a cycle without one is nowhere
            order += [child for child, _ in self._below.get(run_id, ()) if owners[child] == 1]
        for run_id in reversed(order):
            own = self._steps[run_id]
            spans, errors, nodes = own.steps, own.failed, bounded(own.nodes)
            plain = not own.retried and known[run_id].standing is not Status.RUNNING
            for child, loose in self._below.get(run_id, ()):
                below = self._sums.get(child)
                if below is None or owners[child] > 1:
                    plain = False
                    break
                spans += below.spans + loose
                errors += below.errors + (loose and known[child].failed)
                if not below.nodes <= nodes:
                    nodes = bounded(nodes | below.nodes)
                plain = plain and below.plain
            self._sums[run_id] = _Sums(spans, errors, nodes, plain)

    def _quick(self, run: RunRow) -> Tally | None:
        """The counts of an ordinary run, None for one that must be read."""
        sums, header = self._sums.get(run.id), self._headers[run.id]
        if sums is None or not sums.plain or None in (header.status, header.started_at, header.duration_ms):
            return None
        if sums.errors and header.error is None:
            return None
        inherited = self._inherited(run) if text(run.forked_from) is not None else Steps()
        if inherited is None:
            return None
        return Tally(
            steps=self._steps[run.id].steps + inherited.steps,
            spans=sums.spans + inherited.steps,
            errors=sums.errors,
            nodes=bounded(sums.nodes | inherited.nodes),
        )

    def _inherited(self, run: RunRow) -> Steps | None:
        """The sums of the steps that a fork inherited; None if it must be read."""
        ancestors, missing = self._database.ancestors_of(run)
        if missing is not None or run.id in self._below:
            return None
        inherited = Steps()
        for ancestor, last in ancestors:
            steps = self._steps[ancestor.id]
            if ancestor.id in self._below or steps.retried or steps.failed:
                return None
            if last is not None:
                steps = steps_of(self._database, ancestor.id, last)[ancestor.id]
            inherited.steps += steps.steps
            inherited.nodes |= bounded(steps.nodes)
        return inherited
