"""``tracetui triage``: the failed runs by cause."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from tracetui.cli.failing import add_fail_on, add_verdicts, status_of, verdicts_of
from tracetui.cli.output import complain, write_bytes, write_lines
from tracetui.cli.parser import add_pass, add_paths_and_runs, add_redact, roots
from tracetui.cli.reading import (
    Listing,
    aim_of,
    check_rule,
    listing_at,
    require_runs,
    rule_of,
    sources_at,
    terminal_screen,
)
from tracetui.export.table import triage
from tracetui.export.triage import cause_table, json_lines, next_command, triage_of, triage_value
from tracetui.live.jobs import shared_features
from tracetui.redact import Redactor
from tracetui.sources.base import EachError
from tracetui.text import grouped

HELP = "group the failed runs by cause"
MOST: Final = 50
"""Runs with the same error that a database sends: a frequent error must not hide the others."""
EXAMPLES = """\
Errors have one cause if they happen in the same tool, with the same type and text; ids, times, counts and paths do not
matter, status codes and names do. Wrong answers are grouped by scorer, first failed check and task. The biggest waste
comes first. Give verdicts in the app.

examples:
  tracetui triage traces/
  tracetui triage traces/ --json | jq -r '.causes[] | [.id, .count, .title] | @tsv'
  tracetui triage traces/ --json | jq -r '.new_causes[]'
  tracetui triage traces/ --fail-on error       for CI: exit status 3 if a run failed
  tracetui triage traces/ --fail-on new --verdicts verdicts.jsonl
                                                exit status 3 if a cause has no verdict in that file
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``triage``."""
    add_paths_and_runs(parser)
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/triage/1, see docs/json.md")
    add_verdicts(parser)
    add_redact(parser)
    add_pass(parser)
    add_fail_on(parser)


def run(args: argparse.Namespace) -> int:
    """Print the causes. Raises `NothingReadable` if there is no run, `UsageError` as `verdicts_of` does."""
    places, rule, verdicts = roots(args), rule_of(args), verdicts_of(args)
    with sources_at(places, args) as source:
        aim = aim_of(source, args)
        if source.has_database:
            source.narrow(EachError(MOST))
        listing = listing_at(source, aim, args, rule=rule)
        check_rule(args, listing.runs)
        require_runs(listing, places)
        redactor = Redactor() if args.redact or not args.json else None
        triage = triage_of(listing.runs, verdicts, redactor, source.unlisted())
        shared = shared_features(source, listing.runs, triage.groups) if args.json else {}
    if args.json:
        write_bytes(json_lines(triage_value(triage, shared, redactor, next_command=next_command(triage, places))))
    else:
        if triage.entries:
            write_lines(cause_table(triage, terminal_screen(aim.places, listing.runs)))
        sys.stdout.flush()
        if more := sum(entry.unread for entry in triage.entries):
            complain(
                f"{grouped(more)} more runs failed with the same errors; only the newest {MOST} of each were read:"
            )
        elif source.has_database:
            complain("databases returned only runs that may have failed:")
        complain(sentence(listing, len(triage.entries)))
    return status_of(args, listing.runs, listing.problems, listing.read, new=bool(triage.new_causes))


def sentence(listing: Listing, causes: int) -> str:
    """``7 of 40 runs failed, 1 unreadable · 2 causes``."""
    return triage(listing.runs, len({problem.path for problem in listing.problems}), causes)
