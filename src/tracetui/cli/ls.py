"""``tracetui ls``: list runs, as a table or as JSON."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

from tracetui.analysis import prices
from tracetui.cli.failing import NEW, add_fail_on, add_verdicts, status_of, verdicts_of
from tracetui.cli.output import complain, nothing, write_bytes, write_lines
from tracetui.cli.parser import add_pass, add_paths_and_runs, add_redact, roots
from tracetui.cli.reading import (
    Listing,
    aim_of,
    cache_limit,
    check_rule,
    listing_at,
    narrow,
    outlines,
    rule_of,
    sources_at,
    terminal_screen,
)
from tracetui.errors import UsageError
from tracetui.export.table import listing, outcomes_of, part_notes
from tracetui.model import Problem, RunRef, RunSummary
from tracetui.model.masked import masked_problem, masked_summary, masked_task
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.sources.local import is_confined
from tracetui.store.facts import NO_CONTEXT, ContextUse, EffectFacts
from tracetui.store.relations import Relations

if TYPE_CHECKING:
    from tracetui.analysis.triage import CauseVerdicts
    from tracetui.live.contexts import Contexts
    from tracetui.live.scan_cache import Outlines
    from tracetui.store.sidecar import Sidecar

HELP = "list runs and unreadable files"
EXAMPLES = """\
If addresses don't fit the terminal, the table shows short ids; use them as `tracetui show PLACE#ID`. Output to a pipe
is never cut.

examples:
  tracetui ls traces/
  tracetui ls traces/ -q 'status:error tool:bash dur>5s'
  tracetui ls traces/ --pass 'reward>=0.9' -q outcome:failed
  tracetui ls traces/ -q since:12h --fail-on new --verdicts verdicts.jsonl
                                        exit status 3 if a cause has no verdict in that file
  tracetui ls traces/ --json | jq '.runs[] | select(.status == "error") | .address'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``ls``."""
    add_paths_and_runs(parser)
    parser.add_argument("-q", "--query", metavar="QUERY", help="list matching runs only, see docs/query.md")
    parser.add_argument("--json", action="store_true", help="print JSON (tracetui/runs/1, see docs/json.md)")
    add_verdicts(parser)
    add_redact(parser)
    add_pass(parser)
    add_fail_on(parser)


def run(args: argparse.Namespace) -> int:
    """Print the list. Raises `NothingReadable` afterwards if there is no run, `UsageError` as `verdicts_of` does."""
    verdicts = verdicts_of(args) if args.verdicts is not None or NEW in args.fail_on else None
    listing = print_listing(args, None if verdicts is None else verdicts.decisions)
    counts = outcomes_of(listing.runs)
    if counts.evaluated and not args.json:
        sys.stdout.flush()
        complain(counts.failures)
    new = NEW in args.fail_on and verdicts is not None and _has_new_cause(listing.runs, verdicts)
    return status_of(args, listing.runs, listing.problems, listing.read, new=new)


def _has_new_cause(runs: Sequence[RunSummary], verdicts: CauseVerdicts) -> bool:
    from tracetui.analysis.triage import groups, new_causes

    return bool(new_causes(groups(runs, verdicts.decisions), verdicts))


def print_listing(args: argparse.Namespace, decisions: Sidecar | None = None) -> Listing:
    """Print the list and return it; queries use `decisions`, by default the user's own.

    Raises `UsageError` before reading anything if the query is wrong.
    """
    places = roots(args)
    wanted, rule = asked(args.query, args, decisions) if args.query else None, rule_of(args)
    with sources_at(places, args) as source:
        aim = aim_of(source, args)
        note = narrow(source, args.query, args)
        unfiltered = listing_at(source, aim, args, rule=rule)
        check_rule(args, unfiltered.runs)
        matching = unfiltered if wanted is None else wanted(unfiltered, source)
        listed = _masked(matching) if args.redact or not args.json else matching
        if args.json:
            from tracetui.export.json import runs_document

            with outlines(source, aim.places, args) as cache:
                inside, estimates = _inside(cache, matching)
            relations = Relations(unfiltered.runs)
            tasks = relations.inherited_tasks
            if args.redact:
                redactor = Redactor()
                inside = [masked_problem(problem, redactor) for problem in inside]
                tasks = {ref: masked_task(task, redactor) for ref, task in tasks.items()}
            replays, files = relations.replay_addresses(), unfiltered.files.fields
            problems = [*listed.problems, *inside]
            write_bytes(runs_document(listed.runs, problems, replays, estimates, tasks, files, now=time.time()))
        elif matching.runs or matching.problems:
            screen = terminal_screen(aim.places, unfiltered.runs)
            notes = part_notes(unfiltered.runs)
            write_lines(listing(listed.runs, listed.problems, screen, notes, now=time.time()))
    if note:
        complain(note)
    if sentence := unfiltered.files.near_miss_sentence:
        complain(sentence)
    if not unfiltered.runs and not unfiltered.problems and args.query and source.has_database:
        complain(f"no run in {', '.join(places)} matches {args.query}")
        return matching
    if not unfiltered.runs:
        raise nothing(places, matching.problems)
    if not matching.runs:
        complain(f"0 of {len(unfiltered.runs)} runs match {args.query}")
    return matching


def _masked(listing: Listing) -> Listing:
    redactor = Redactor()
    runs = [masked_summary(run, redactor) for run in listing.runs]
    return Listing(
        runs,
        [masked_problem(problem, redactor) for problem in listing.problems],
        read=listing.read,
        claims=listing.claims,
    )


def is_blind(args: argparse.Namespace) -> bool:
    """Whether a search may tell nothing about secrets: what it prints is masked on purpose, or its reader confined.

    Of a confined process, ``mcp --exact`` alone leaves out ``--redact``.
    """
    masks: bool = getattr(args, "redact", is_confined())
    return masks


def asked(
    text: str, args: argparse.Namespace, decisions: Sidecar | None = None
) -> Callable[[Listing, Source], Listing]:
    """Return a filter of listings that keeps matching runs and all problems; `decisions` as in `print_listing`.

    The query matches masked text if the reader is not the owner: see `is_blind`.

    It reads runs from the source if the query asks what they did (``does:push``) or how their context grew (
    ``context>150k``): the latter with the run cache of `args`.

    Raises `UsageError` for a wrong query.
    """
    from tracetui.analysis.liveness import state_of_summary
    from tracetui.analysis.triage import QueryContext
    from tracetui.formats import registry
    from tracetui.store import query
    from tracetui.store.sidecar import Sidecar

    runs: list[RunSummary] = []
    sources: list[Source] = []

    @cache
    def effects(ref: RunRef) -> EffectFacts:
        from tracetui.live.effects import read_facts

        return read_facts(sources[0], ref)

    listings: list[Listing] = []
    stack = ExitStack()

    @cache
    def contexts() -> Contexts:
        from tracetui.live.contexts import Contexts

        shares = listings[0].claims.shares(run.ref for run in runs)
        return stack.enter_context(Contexts(sources[0], roots(args), cache_limit(args), shares))

    @cache
    def context_use(ref: RunRef) -> ContextUse:
        totals = contexts().read(ref)
        return NO_CONTEXT if totals is None else totals.use

    now = time.time()
    context: query.Context = QueryContext(
        decisions or Sidecar(),
        lambda: runs,
        cache(lambda: Relations(runs)),
        lambda run: state_of_summary(run, now).state,
        formats=registry.names,
        effects=lambda run: effects(run.ref),
        context_use=lambda run: context_use(run.ref),
    )
    if is_blind(args):
        context = query.BlindContext(context, query.MaskedFacts(Redactor()))
    try:
        compiled = query.for_runs(text, context)
    except query.QueryError as error:
        raise UsageError(query.pointed(text, error)) from None

    def select(listing: Listing, source: Source) -> Listing:
        sources.append(source)
        listings.append(listing)
        runs.extend(listing.runs)
        with stack:
            return Listing(compiled.select(runs), listing.problems, read=listing.read, claims=listing.claims)

    return select


def _inside(cache: Outlines, listing: Listing) -> tuple[list[Problem], dict[RunRef, float | None]]:
    """Return problems inside of runs and costs of runs with several models; reads only runs that have them."""
    listed, problems, estimates = set(listing.problems), list[Problem](), dict[RunRef, float | None]()
    for summary in listing.runs:
        priced = prices.takes_reading(summary)
        if not summary.problems and not priced:
            continue
        run = listing.claims.mark(cache.read(summary.ref))
        problems += [problem for problem in run.problems if problem not in listed]
        if priced:
            from tracetui.analysis.statistics import estimate_of

            if (estimate := estimate_of(run)) is not None:
                estimates[summary.ref] = estimate.usd
    return problems, estimates
