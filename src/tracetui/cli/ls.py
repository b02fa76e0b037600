"""``tracetui ls``: every run, as a table or as data."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tracetui.cli.output import nothing, write_bytes, write_lines
from tracetui.cli.parser import add_paths, roots
from tracetui.cli.reading import Listing, listing_of, only, source_of
from tracetui.export.listing import listing
from tracetui.live.load import read_run
from tracetui.model import Problem
from tracetui.sources.base import Source
from tracetui.store.relations import Relations

HELP = "list every run, and what could not be read"
EXAMPLES = """\
examples:
  tracetui ls traces/
  tracetui ls traces/ --json | jq '.runs[] | select(.status == "error") | .address'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``ls``."""
    add_paths(parser)
    parser.add_argument("--json", action="store_true", help="as data: tracetui/runs/1, see docs/json.md")


def run(args: argparse.Namespace) -> int:
    """Print the list. Raises `NothingReadable` after it if there is no run."""
    print_listing(args)
    return 0


def print_listing(args: argparse.Namespace) -> Listing:
    """Print the list, and return it."""
    places = roots(args)
    with source_of(places) as source:
        found = listing_of(source, places, only(args), deep=True)
        if args.json:
            from tracetui.export.json import runs_document

            problems = [*found.problems, *_inside(source, found)]
            write_bytes(runs_document(found.runs, problems, Relations(found.runs).replay_addresses()))
        elif found.runs or found.problems:
            write_lines(listing(found.runs, found.problems))
    if not found.runs:
        raise nothing(places, found.problems)
    return found


def _inside(source: Source, found: Listing) -> Iterator[Problem]:
    """The problems inside runs, which their summaries only count: those runs are read."""
    told = set(found.problems)
    for run in found.runs:
        if run.problems:
            yield from (problem for problem in read_run(source, run.ref).problems if problem not in told)
