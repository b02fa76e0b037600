"""``tracetui ls``: every run, as a table or as data."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache

from tracetui.analysis import prices
from tracetui.cli.failing import add_fail_on, status_of
from tracetui.cli.output import complain, nothing, write_bytes, write_lines
from tracetui.cli.parser import add_paths_and_runs, add_redact, roots
from tracetui.cli.reading import Listing, aim_of, listing_at, only, screen_for, sources_at
from tracetui.errors import UsageError
from tracetui.export.listing import listing, part_notes
from tracetui.live.load import FileCaches, read_run
from tracetui.model import Problem, RunRef, RunSummary
from tracetui.model.masked import masked_problem, masked_summary
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.store.relations import Relations

HELP = "list every run, and what could not be read"
EXAMPLES = """\
At a terminal that is too narrow for addresses, runs are named by the beginnings of their ids, which `show` takes after
PLACE#. Into a pipe the table is whole.

examples:
  tracetui ls traces/
  tracetui ls traces/ -q 'status:error tool:bash dur>5s'
  tracetui ls traces/ --json | jq '.runs[] | select(.status == "error") | .address'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``ls``."""
    add_paths_and_runs(parser)
    parser.add_argument("-q", "--query", metavar="QUERY", help="only the runs that it asks for, see docs/query.md")
    parser.add_argument("--json", action="store_true", help="as data: tracetui/runs/1, see docs/json.md")
    add_redact(parser)
    add_fail_on(parser)


def run(args: argparse.Namespace) -> int:
    """Print the list. Raises `NothingReadable` after it if there is no run."""
    found = print_listing(args)
    return status_of(args, found.runs, found.problems)


def print_listing(args: argparse.Namespace) -> Listing:
    """Print the list, and return it. Raises `UsageError` before anything is read if the query is wrong."""
    places = roots(args)
    wanted = asked(args.query) if args.query else None
    with sources_at(places, args) as source:
        aim = aim_of(source, args)
        everything = found = listing_at(source, aim, only(args), deep=True)
        if wanted is not None:
            found = wanted(everything)
        shown = _masked(found) if args.redact or not args.json else found
        if args.json:
            from tracetui.export.json import runs_document

            inside, estimates = _inside(source, found)
            if args.redact:
                redactor = Redactor()
                inside = [masked_problem(problem, redactor) for problem in inside]
            replays = Relations(everything.runs).replay_addresses()
            write_bytes(
                runs_document(shown.runs, [*shown.problems, *inside], replays, estimates, everything.files.fields)
            )
        elif found.runs or found.problems:
            screen = screen_for(aim.places, everything.runs)
            write_lines(listing(shown.runs, shown.problems, screen, part_notes(everything.runs)))
    if sentence := everything.files.near_miss_sentence:
        complain(sentence)
    if not everything.runs:
        raise nothing(places, found.problems)
    if not found.runs:
        complain(f"none of {len(everything.runs)} runs fits {args.query}")
    return found


def _masked(found: Listing) -> Listing:
    redactor = Redactor()
    runs = [masked_summary(run, redactor) for run in found.runs]
    return Listing(runs, [masked_problem(problem, redactor) for problem in found.problems])


def asked(text: str) -> Callable[[Listing], Listing]:
    """Leaves the runs of a listing that a query asks for; problems stay. Raises `UsageError` if the query is wrong."""
    from tracetui.analysis.query_context import QueryContext
    from tracetui.formats import registry
    from tracetui.store import query
    from tracetui.store.sidecar import Sidecar

    runs: list[RunSummary] = []
    context = QueryContext(Sidecar(), lambda: runs, cache(lambda: Relations(runs)), formats=registry.names)
    try:
        found = query.for_runs(text, context)
    except query.QueryError as error:
        raise UsageError(query.pointed(text, error)) from None

    def leave(listing: Listing) -> Listing:
        runs.extend(listing.runs)
        return Listing(found.select(runs), listing.problems)

    return leave


def _inside(source: Source, found: Listing) -> tuple[list[Problem], dict[RunRef, float | None]]:
    """What only runs that are read tell: the problems inside of them, which their summaries count, and what several
    models cost. Of others nothing is read."""
    told, problems, estimates = set(found.problems), list[Problem](), dict[RunRef, float | None]()
    shared = FileCaches()
    for summary in found.runs:
        priced = prices.takes_reading(summary)
        if not summary.problems and not priced:
            continue
        run = read_run(source, summary.ref, shared.for_run(summary.ref))
        problems += [problem for problem in run.problems if problem not in told]
        if priced:
            from tracetui.analysis.statistics import estimate_of

            if (estimate := estimate_of(run)) is not None:
                estimates[summary.ref] = estimate.usd
    return problems, estimates
