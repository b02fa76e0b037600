"""``tracetui gate``: did a candidate regress against a base?"""

from __future__ import annotations

import argparse
from typing import Final

from tracetui.analysis.chance import ALPHA
from tracetui.analysis.gate import MIN_EFFECT, Divergence, Pair, Verdict, first_divergence, gate
from tracetui.analysis.tasks import Matrix, matrix
from tracetui.cli.output import complain, nothing, terminal_width, write_bytes, write_lines
from tracetui.cli.parser import add_cache, add_redact
from tracetui.cli.reading import cache_limit, listing_of, only, source_of
from tracetui.cli.tasks import hint_folder, reader
from tracetui.errors import TracetuiError, UsageError
from tracetui.export.gate import gate_lines, gate_value
from tracetui.export.triage import json_lines
from tracetui.redact import Redactor
from tracetui.sources.base import Source

HELP = "test whether a candidate set of runs regressed against a base set"
EXAMPLES = """\
BASE and CANDIDATE are folders with runs of the same tasks. The verdict comes from a paired permutation test of pass
rates. Exit status: 0 no regression, 1 regression, 2 trouble, 4 inconclusive.

examples:
  tracetui gate runs/main runs/branch
  tracetui gate runs/main runs/branch --min-effect 5 --json
  tracetui ./gate                     open a folder of that name
"""
STATUS: Final = {Verdict.NO_REGRESSION: 0, Verdict.REGRESSION: 1, Verdict.INCONCLUSIVE: 4}
TROUBLE: Final = 2


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``gate``."""
    parser.add_argument("paths", nargs="*", metavar="BASE CANDIDATE", help="two folders or files with runs")
    parser.add_argument("--alpha", type=float, default=ALPHA, help=f"level of significance (default {ALPHA:g})")
    parser.add_argument(
        "--min-effect",
        type=float,
        default=100 * MIN_EFFECT,
        metavar="POINTS",
        help=f"smallest loss of pass rate that matters, in percentage points (default {100 * MIN_EFFECT:g})",
    )
    parser.add_argument("--format", metavar="NAME", help="read every file as this format (see: tracetui formats)")
    add_cache(parser)
    parser.add_argument("--json", action="store_true", help="as data: tracetui/gate/1, see docs/json.md")
    add_redact(parser)


def run(args: argparse.Namespace) -> int:
    """Print the result; exit status as in `STATUS`, `TROUBLE` for any error."""
    try:
        return _run(args)
    except TracetuiError as error:
        complain(error)
        return TROUBLE


def _run(args: argparse.Namespace) -> int:
    hint_folder("gate", args.paths)
    if len(args.paths) != 2:
        raise UsageError("gate takes two paths, BASE and CANDIDATE; `tracetui gate --help` shows examples")
    with source_of(args.paths) as source:
        base, candidate = (_matrix(source, path, args) for path in args.paths)
        found = gate(base, candidate, alpha=args.alpha, min_effect=args.min_effect / 100)
        read = reader(source)

        def diverged(pair: Pair) -> Divergence | None:
            return first_divergence(pair, read)

        if args.json:
            write_bytes(json_lines(gate_value(found, diverged, Redactor() if args.redact else None)))
        else:
            write_lines(gate_lines(found, diverged, terminal_width(), Redactor()))
    return STATUS[found.verdict]


def _matrix(source: Source, path: str, args: argparse.Namespace) -> Matrix:
    listing = listing_of(source, [path], only(args), deep=True, limit=cache_limit(args))
    if not listing.runs:
        raise nothing([path], listing.problems)
    unreadable = len({problem.path for problem in listing.problems})
    if unreadable:
        complain(f"{path}: {unreadable} unreadable; `tracetui doctor` lists them")
    return matrix(listing.runs)
