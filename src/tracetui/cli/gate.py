"""``tracetui gate``: did a candidate regress against a base?"""

from __future__ import annotations

import argparse
from typing import Final

from tracetui.analysis.contrast import ALPHA
from tracetui.analysis.gate import MIN_EFFECT, Gate, Verdict, first_divergence, gate
from tracetui.analysis.tasks import Matrix, matrix
from tracetui.cli.output import complain, documents, terminal_width, write_bytes, write_document, write_lines
from tracetui.cli.parser import add_cache, add_documents, add_pass, add_redact, default_directory
from tracetui.cli.reading import check_rule, list_runs, require_runs, rule_of, source_of
from tracetui.cli.tasks import hint_folder, reader
from tracetui.errors import TracetuiError, UsageError
from tracetui.export.gate import FORMS, GateReport, export_gate, gate_lines, gate_value
from tracetui.export.triage import json_lines
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.text import quantity
from tracetui.views.tasks import notes

HELP = "test whether a candidate set of runs regressed against a base set"
EXAMPLES = """\
BASE and CANDIDATE are folders with runs of the same tasks. The verdict is about these tasks, by a permutation test of
their pass rates. Exit status: 0 no regression, 1 regression, 2 error, 4 inconclusive.

examples:
  tracetui gate runs/main runs/branch
  tracetui gate runs/main runs/branch --min-effect 5 --json
  tracetui gate runs/main runs/branch --to gate.md --to gate.xml
  tracetui ./gate                     open a folder of that name
"""
STATUS: Final = {Verdict.NO_REGRESSION: 0, Verdict.REGRESSION: 1, Verdict.INCONCLUSIVE: 4}
TROUBLE: Final = 2


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``gate``."""
    parser.add_argument("paths", nargs="*", metavar="BASE CANDIDATE", help="two folders or files with runs")
    parser.add_argument("--alpha", type=float, default=ALPHA, help=f"significance level (default {ALPHA:g})")
    parser.add_argument(
        "--min-effect",
        type=float,
        default=100 * MIN_EFFECT,
        metavar="POINTS",
        help=f"smallest loss of pass rate that matters, in percentage points (default {100 * MIN_EFFECT:g})",
    )
    add_pass(parser)
    parser.add_argument("--format", metavar="NAME", help="read every file as this format (see: tracetui formats)")
    add_documents(parser, "also write a document, secrets masked: .md, .html, .xml (JUnit) or .json; repeatable")
    add_cache(parser)
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/gate/1, see docs/json.md")
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
    forms = documents(args, FORMS)
    with source_of(args.paths) as source:
        report = _report(source, args)
    for sentence in report.notes:
        complain(sentence)
    if args.json:
        write_bytes(json_lines(gate_value(report, Redactor() if args.redact else None)))
    else:
        write_lines(gate_lines(report, terminal_width(), Redactor()))
    for path, form in forms.items():
        write_document(path, export_gate(report, form), [*args.paths, default_directory()], force=args.force)
    return STATUS[report.gate.verdict]


def _report(source: Source, args: argparse.Namespace) -> GateReport:
    sets: list[Matrix] = []
    sentences: list[str] = []
    rule = rule_of(args)
    for path in args.paths:
        listing = list_runs(source, [path], args, rule=rule)
        require_runs(listing, [path])
        check_rule(args, listing.runs)
        tasks = matrix(listing.runs)
        sets.append(tasks)
        unreadable = len({problem.path for problem in listing.problems})
        sentences += [f"{path}: {note}" for note in notes(tasks, unreadable)]
    result = gate(*sets, alpha=args.alpha, min_effect=args.min_effect / 100)
    sentences += _unpaired(result)
    read = reader(source)
    changed = {pair.base.key: first_divergence(pair, read) for _, pairs in result.changes for pair in pairs}
    divergences = {key: divergence for key, divergence in changed.items() if divergence is not None}
    base, candidate = args.paths
    return GateReport(result, base, candidate, divergences, sentences)


def _unpaired(result: Gate) -> list[str]:
    """One sentence about each kind of task that is not compared."""
    kinds = (
        (len(result.only_base), "only in the base"),
        (len(result.only_candidate), "only in the candidate"),
        (len(result.unscored), "without a scored trial in one set"),
    )
    return [f"{quantity(number, 'task')} {why}, not compared" for number, why in kinds if number]
