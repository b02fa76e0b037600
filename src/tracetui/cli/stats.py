"""``tracetui stats``: calls, errors, durations and tokens by tool, model, task, project, day and so on; contexts by
content, file and cause of a cache break.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict

from tracetui.analysis.context_totals import ContextBy, ContextSums
from tracetui.analysis.statistics import By, Row, Statistics
from tracetui.cli.ls import asked
from tracetui.cli.output import complain, nothing, terminal_width, write_bytes, write_lines
from tracetui.cli.parser import add_pass, add_place, add_query, roots
from tracetui.cli.reading import (
    Listing,
    cache_limit,
    check_rule,
    list_runs,
    narrow,
    outlines,
    rule_of,
    run_at,
    sources_at,
)
from tracetui.errors import UsageError, nearest
from tracetui.export.json import encode, problem_value
from tracetui.export.table import Column, TextTable
from tracetui.live.load import FileCaches, read_run
from tracetui.masking import masked_line, one_line
from tracetui.model import PassRule, Problem, Run, RunRef, RunSummary
from tracetui.model.build import is_part, part_of
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.store.address import target
from tracetui.store.claims import Claims
from tracetui.store.relations import Relations
from tracetui.text import Clean, cost, count, duration, quantity, tokens, truncate
from tracetui.views.context import content_label, file_label, share_label, usd_label

HELP = "count calls, errors, time and tokens by tool, model, agent, task, project, day …"
EXAMPLES = """\
PATH is a directory, a file, or the address of a run or sub-agent (see `tracetui ls`).

examples:
  tracetui stats traces/                            every tool of every run
  tracetui stats runs.db#wf-1 --by node             the nodes of one run
  tracetui stats traces/ --by model -q status:error
  tracetui stats traces/ --by task                  the pass rate of every task
  tracetui stats ~/.claude/projects --by day,project,model     what was spent, three tables
  tracetui stats ~/.claude/projects --by content,break -q since:7d   what the input was and what cache breaks cost
"""
SCHEMA: Final = "tracetui/stats/1"
CONTEXT_SCHEMA: Final = "tracetui/context-stats/1"
_Number = tuple[Column, Callable[[Row], Clean]]
_NUMBERS: Final[tuple[_Number, ...]] = (
    (Column("COUNT", right=True), lambda row: count(row.count)),
    (Column("ERRORS", right=True), lambda row: count(row.errors)),
    (Column("RUNS", right=True, leaves=2), lambda row: count(row.runs)),
    (Column("P50", right=True), lambda row: duration(row.p50_ms)),
    (Column("P95", right=True), lambda row: duration(row.p95_ms)),
    (Column("TOTAL", right=True), lambda row: duration(row.total_ms)),
    (Column("TOKENS", right=True), lambda row: tokens(row.usage.all_tokens)),
    (Column("CACHE READ", right=True, leaves=1), lambda row: tokens(row.usage.cache_read_tokens)),
    (Column("CACHE WRITE", right=True, leaves=1), lambda row: tokens(row.usage.cache_creation_tokens)),
    (Column("COST", right=True), lambda row: cost(row.cost_usd, estimated=row.estimated_cost_usd is not None)),
)
_OUTCOMES: Final[tuple[_Number, ...]] = (
    (Column("PASSED", right=True, leaves=3), lambda row: count(row.passed)),
    (Column("FAILED", right=True, leaves=4), lambda row: count(row.failed)),
    (
        Column("PASS RATE", right=True, leaves=5),
        lambda row: Clean("—" if row.pass_rate is None else f"{row.pass_rate:.0%}"),
    ),
)
"""Only where a run has an outcome."""
_NAMES: Final = (*By, *ContextBy)
_CONTEXT: Final = (
    Column("RUNS", right=True, leaves=6),
    Column("TIMES", right=True, leaves=5),
    Column("ENTERED", right=True),
    Column("CARRIED", right=True),
    Column("SHARE", right=True),
    Column("COST", right=True),
    Column("NEW", right=True, leaves=4),
    Column("CARRY", right=True, leaves=3),
    Column("BREAKS", right=True, leaves=2),
)
_BREAKS: Final = (
    Column("RUNS", right=True, leaves=1),
    Column("BREAKS", right=True),
    Column("MISSED", right=True),
    Column("SHARE", right=True),
    Column("COST", right=True),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``stats``."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="directories, files, addresses or ids of runs")
    add_place(parser)
    parser.add_argument(
        "--by",
        type=_groupings,
        default=(By.TOOL,),
        metavar="BY,…",
        help=f"group rows by {', '.join(_NAMES)}; one table each",
    )
    add_query(parser)
    add_pass(parser)
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/stats/1, see docs/grep.md")


def run(args: argparse.Namespace) -> int:
    """Print the table. Raises `NothingReadable` if there is no run, `UsageError` for an invalid query."""
    places = roots(args)
    wanted, rule = asked(args.query, args) if args.query else None, rule_of(args)
    problems: list[Problem] = []
    with sources_at(places, args) as source:
        note = narrow(source, args.query, args)
        by_context = any(isinstance(by, ContextBy) for by in args.by)
        selected, summaries, claims = _runs(source, places, args, wanted, rule, problems)
        tasks = Relations(summaries).inherited_tasks
        listed, shared = {selection.ref for selection in selected if not selection.parts}, FileCaches()
        contexts = _contexts(source, places, args, selected, summaries, claims) if by_context else ContextSums()
        tables = [Statistics(by, listed, tasks) for by in args.by if isinstance(by, By)]
        with outlines(source, places, args) as cache:
            for selection in selected if tables else ():
                if selection.parts:
                    run = read_run(source, selection.ref, shared.for_run(selection.ref)).with_rule(rule)
                    part = _part(run, selection.parts, selection.place)
                else:
                    part = claims.mark(cache.read(selection.ref).with_rule(rule))
                for statistics in tables:
                    statistics.add(part)
    runs = tables[0].runs if tables else contexts.runs
    if not runs and wanted is None:
        raise nothing(places, problems)
    if args.json:
        documents = (_document(by, *_rows(by, tables, contexts), problems) for by in args.by)
        write_bytes(chain.from_iterable(documents))
        return 0
    counted_by = {statistics.by: statistics for statistics in tables}
    for by in args.by:
        write_lines(_table(counted_by[by]) if isinstance(by, By) else _context_table(contexts, by))
    if note:
        complain(note)
    complain(f"{quantity(runs, 'run')}, by {', '.join(args.by)}")
    if problems:
        complain(f"{quantity(len(problems), 'problem')}; `tracetui ls` lists them")
    return 0


def _groupings(text: str) -> tuple[By | ContextBy, ...]:
    """Parse ``--by``: names separated by commas."""
    names, groupings = dict.fromkeys(text.split(",")), {by.value: by for by in _NAMES}
    unknown = next((name for name in names if name not in groupings), None)
    if unknown is None:
        return tuple(groupings[name] for name in names)
    like = nearest(unknown, [*groupings])
    hint = f" (did you mean {like!r}?)" if like else ""
    raise argparse.ArgumentTypeError(f"invalid choice: {unknown!r}{hint}; choose from {', '.join(groupings)}")


def _contexts(
    source: Source,
    places: Sequence[str],
    args: argparse.Namespace,
    selected: Sequence[_Selection],
    listed: Sequence[RunSummary],
    claims: Claims,
) -> ContextSums:
    """The contexts of the selected runs. Raises `UsageError` for a part of a run."""
    from tracetui.live.contexts import Contexts

    part = next((selection.place for selection in selected if selection.parts), None)
    if part is not None:
        raise UsageError(f"{part} is a part of a run; contexts are counted of whole runs")
    summaries = {run.ref: run for run in listed}
    runs = [summaries[selection.ref] for selection in selected]
    shares = claims.shares(run.ref for run in runs)
    with Contexts(source, places, cache_limit(args), shares) as contexts:
        read = ((run, contexts.read(run.ref)) for run in runs)
        return ContextSums((run, totals) for run, totals in read if totals is not None)


class _Selection(NamedTuple):
    """A run, or part of one, selected on the command line."""

    ref: RunRef
    parts: tuple[str, ...] = ()
    place: str = ""


def _runs(
    source: Source,
    places: Sequence[str],
    args: argparse.Namespace,
    wanted: Any,
    rule: PassRule | None,
    problems: list[Problem],
) -> tuple[list[_Selection], list[RunSummary], Claims]:
    """The selected runs, each once, the summaries of all listed runs, and which run counts what several have."""
    named: dict[_Selection, None] = {}
    listed: dict[RunRef, RunSummary] = {}
    claims = Claims()
    for place in places:
        if source.is_folder(place) or source.is_file(place):
            listing = list_runs(source, [place], args, rule=rule)
        else:
            summary, parts = run_at(source, place, args)
            if parts:
                named[_Selection(summary.ref, parts, place)] = None
                continue
            listing = Listing([summary.with_rule(rule)], [])
        problems.extend(listing.problems)
        listed |= {summary.ref: summary for summary in listing.runs}
        for gross in listing.claims.runs:
            claims.add(gross)
        matching = (wanted(listing, source) if wanted is not None else listing).runs
        named |= dict.fromkeys(_Selection(summary.ref) for summary in matching)
    check_rule(args, [*listed.values()])
    return [*named], [*listed.values()], claims


def _part(run: Run, parts: Sequence[str], text: str) -> Run:
    wanted = target(run, parts)
    if wanted.span is None or wanted.keys or not is_part(wanted.span):
        raise UsageError(f"{text} is neither a run nor a sub-agent; use its run: {run.summary.ref.address}")
    return part_of(run, run.index[wanted.span.id])


def _table(statistics: Statistics) -> Iterator[Clean]:
    redactor = Redactor()
    name = Column(statistics.by.value.upper(), 48, least=16, middle=True)
    groups = statistics.rows()
    numbers = (*_NUMBERS, *(_OUTCOMES if any(row.passed is not None for row in groups) else ()))

    def cells(name: str, row: Row) -> tuple[Clean, ...]:
        return Clean(name), *(cell(row) for _, cell in numbers)

    rows = [
        cells(truncate(masked_line(row.prompt or row.name, redactor, 200), name.most) or "—", row) for row in groups
    ]
    if len(rows) > 1:
        rows.append(cells("total", statistics.total()))
    return TextTable((name, *(column for column, _ in numbers)), rows).lines(terminal_width())


def _context_table(contexts: ContextSums, by: ContextBy) -> Iterator[Clean]:
    redactor, rows = Redactor(), list[tuple[Clean, ...]]()
    for row in contexts.rows(by):
        if by is ContextBy.BREAK:
            name = one_line(row.name, 60), count(row.runs), count(row.count)
            rows.append((*name, tokens(row.missed), share_label(row.share, 1.0), usd_label(row.usd)))
            continue
        label = content_label if by is ContextBy.CONTENT else file_label
        costs = (row.usd, row.usd_new, row.usd_carry, row.usd_breaks)
        cells = (tokens(row.entered), tokens(row.carried), share_label(row.share, 1.0), *map(usd_label, costs))
        rows.append((label(row.name, redactor), count(row.runs), count(row.count), *cells))
    head = Column(by.value.upper(), 60, least=16, middle=True)
    return TextTable((head, *(_BREAKS if by is ContextBy.BREAK else _CONTEXT)), rows).lines(terminal_width())


def _rows(
    by: By | ContextBy, tables: Sequence[Statistics], contexts: ContextSums
) -> tuple[int, Iterator[dict[str, Any]], dict[str, Any]]:
    """The number of runs of a grouping, its rows for JSON, and the fields after them."""
    if isinstance(by, ContextBy):
        return contexts.runs, map(asdict, contexts.rows(by)), {}
    statistics = next(table for table in tables if table.by is by)
    return statistics.runs, map(_row_value, statistics.rows()), {"total": _row_value(statistics.total())}


def _document(
    by: By | ContextBy, runs: int, rows: Iterator[dict[str, Any]], more: dict[str, Any], problems: Sequence[Problem]
) -> Iterator[bytes]:
    schema = CONTEXT_SCHEMA if isinstance(by, ContextBy) else SCHEMA
    yield encode({"schema": schema, "by": by, "runs": runs})[:-1] + b',"rows":['
    before = b"\n"
    for row in rows:
        yield before + encode(row)
        before = b",\n"
    end = more | {"problems": [problem_value(problem) for problem in problems]}
    yield b"]," + encode(end)[1:] + b"\n"


def _row_value(row: Row) -> dict[str, Any]:
    return {**asdict(row), "name": row.name or None, "usage": asdict(row.usage)}
