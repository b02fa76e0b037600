"""``tracetui diff``: the first difference of two runs, and the words that changed."""

from __future__ import annotations

import argparse
from typing import Any

from tracetui.analysis.diff_description import describe
from tracetui.cli.failing import complain_of
from tracetui.cli.output import complain, terminal_width, write_bytes, write_lines
from tracetui.cli.parser import add_place, add_redact
from tracetui.cli.reading import (
    list_runs,
    only,
    original_of,
    read_counted,
    replays_of,
    require_runs,
    source_of,
    sources_at,
    whole_run_at,
)
from tracetui.diff.comparison import Comparison
from tracetui.errors import NothingReadable, TracetuiError, UsageError
from tracetui.export import diff as export
from tracetui.live.load import read_run
from tracetui.model import Run, RunSummary
from tracetui.model.masked import masked
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.store.claims import Claims
from tracetui.store.relations import Pair, has_original, pairs_of

HELP = "compare two runs, or a replay with its original"
EXAMPLES = """\
A and B are addresses from `tracetui ls`, or run ids. One run alone is compared with the run that it replays, forks,
retries or imitates; else with the earliest run of the same task in its directory; an original with its only replay.

examples:
  tracetui diff traces/a91f.json                    a replay with its original, or the other way around
  tracetui diff runs.db#wf-1 runs.db#wf-2 --json    two runs as JSON
  tracetui diff --replays traces/ --exit-code       every replay in a directory, one line each; for CI
"""
SAME, DIFFERENT, FAILURE = 0, 1, 2


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``diff``."""
    parser.add_argument("addresses", nargs="*", metavar="ADDRESS", help="A and B, or B alone; see below")
    parser.add_argument("--replays", metavar="DIR", help="compare every pair in a directory or file, one line each")
    parser.add_argument("--repeats", action="store_true", help="with --replays: also compare runs of one task")
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/diff/1, see docs/json.md")
    parser.add_argument("--strict", action="store_true", help="report differences of ids, times and white space too")
    parser.add_argument("--exit-code", action="store_true", help="exit status as diff: 0 same, 1 different, 2 error")
    add_redact(parser)
    add_place(parser)


def run(args: argparse.Namespace) -> int:
    """Print the comparison. Raises `UsageError` and `NothingReadable`; with --exit-code both end in 2."""
    try:
        status = _replays(args) if args.replays is not None else _pair(args)
    except TracetuiError as error:
        if not args.exit_code:
            raise
        complain(error)
        return FAILURE
    return status if args.exit_code else 0


def _pair(args: argparse.Namespace) -> int:
    if args.repeats:
        raise UsageError("--repeats needs --replays DIR; compare two runs of one task with `tracetui diff A B`")
    if len(args.addresses) not in (1, 2):
        raise UsageError("diff takes one or two runs, or --replays DIR; `tracetui diff --help` shows examples")
    with sources_at(args.addresses, args) as source:
        runs = [whole_run_at(source, text, args) for text in args.addresses]
        if len(runs) == 1:
            runs = _with_counterpart(source, runs[0], args)
        opened = _masked(read_counted(source, runs, args.addresses, args), args)
        comparison = Comparison(*opened, strict=args.strict)
        result = comparison.result()
        sentence = describe(result, comparison.messages)
        if args.json:
            write_bytes(export.diff_document(result, comparison.changes, sentence))
        else:
            write_lines(export.diff_lines(result, comparison.messages, sentence))
    return SAME if result.same else DIFFERENT


def _masked(runs: list[Run], args: argparse.Namespace) -> list[Run]:
    """Mask the runs unless exact output was requested; different secrets get different masks."""
    if args.json and not args.redact:
        return runs
    redactor = Redactor(compared=True)
    return [masked(run, redactor) for run in runs]


def _with_counterpart(source: Source, run: RunSummary, args: argparse.Namespace) -> list[RunSummary]:
    """Return a run with its original, in that order; a run without one, with its only replay."""
    address = run.ref.address
    original = original_of(source, run, only(args), args.trace_dir)
    if original is not None:
        return [original, run]
    if has_original(run):
        wanted = run.replay_of or run.replay_of_path
        raise NothingReadable(f"original not found: {wanted} (of {address}); pass both runs, or --trace-dir")
    replays = replays_of(source, run, only(args), args.trace_dir)
    if len(replays) == 1:
        return [run, replays[0]]
    if replays:
        listed = "".join(f"\n  {replay.ref.address}" for replay in replays)
        raise UsageError(f"{address} has {len(replays)} replays; choose one:{listed}")
    raise UsageError(f"{address} has neither an original nor a replay; pass both runs: tracetui diff A B")


# ---- every pair in a directory


def _replays(args: argparse.Namespace) -> int:
    if args.addresses:
        raise UsageError("--replays compares every pair in a directory; drop the addresses")
    places = [args.replays, *args.trace_dir]
    worst = SAME
    with source_of(places) as source:
        listing = list_runs(source, places, args)
        require_runs(listing, places)
        if args.exit_code and complain_of(listing.problems, args.format, listing.read):
            worst = FAILURE
        results = (
            _compare(source, pair, listing.claims, args) for pair in pairs_of(listing.runs, repeats=args.repeats)
        )
        if args.json:
            compared = list(results)
            write_bytes(export.replays_document(value for _, value, _ in compared))
            worst = max([worst, *(status for status, _, _ in compared)])
        else:
            for status, _, line in results:
                write_lines([line])
                worst = max(worst, status)
    return worst


def _compare(source: Source, pair: Pair, claims: Claims, args: argparse.Namespace) -> tuple[int, dict[str, Any], Any]:
    """Exit status, JSON value and line of one pair."""
    replay = pair.replay
    if pair.original is None:
        missing = (replay.ref.address, pair.relation, pair.missing or "")
        return FAILURE, export.missing_value(*missing), export.missing_line(*missing, terminal_width())
    a, b = _masked([claims.mark(read_run(source, run.ref)) for run in (pair.original, replay)], args)
    comparison = Comparison(a, b, relation=pair.relation, strict=args.strict)
    result = comparison.result()
    sentence = describe(result, comparison.messages)
    line = export.pair_line(result, sentence, terminal_width())
    return (SAME if result.same else DIFFERENT), export.pair_value(result, sentence), line
