"""``tracetui audit``: what agents did that somebody should look at."""

from __future__ import annotations

import argparse
import sys

import tracetui
from tracetui.analysis.audit import RULES, Allow, Audit, failing, parse_conditions
from tracetui.cli.failing import FAILED, UNREADABLE, complain_of
from tracetui.cli.ls import asked
from tracetui.cli.output import (
    ProgressLine,
    complain,
    documents,
    terminal_width,
    write_bytes,
    write_document,
    write_lines,
)
from tracetui.cli.parser import add_documents, add_paths_and_runs, add_query, default_directory, named, roots
from tracetui.cli.reading import aim_of, listing_at, narrow, require_runs, sources_at
from tracetui.cli.tasks import hint_folder
from tracetui.export.audit import FORMS, AuditReport, audit_lines, audit_value, export_audit, summary
from tracetui.export.json import encode
from tracetui.live.effects import effects_of_runs, record_lines
from tracetui.redact import Redactor

HELP = "list pushes, deletions, secrets read and other risky effects of agents"
EXAMPLES = f"""\
Effects come from the arguments of tool calls and the words of shell commands, as recorded; a trace can claim what never
happened. Only what was done counts; denied and failed calls are "tried".

rules:
{chr(10).join(f"  {rule.name:<18} {rule.severity:<8} {rule.title}" for rule in RULES.values())}

examples:
  tracetui audit traces/
  tracetui audit traces/ --fail-on error,kill              exit status 3 if a serious rule or kill matched
  tracetui audit traces/ --allow 'network:*.shop.example*' leave out findings by target
  tracetui audit traces/ --to audit.sarif --to audit.xml   for code scanning and CI
  tracetui audit traces/ --json | jq -r '.findings[] | [.rule, .target] | @tsv'
  tracetui ./audit                                         open a folder of that name
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``audit``."""
    add_paths_and_runs(parser)
    add_query(parser)
    parser.add_argument(
        "--fail-on",
        metavar="RULE,…",
        action="append",
        default=[],
        help="exit with status 3 if one of these rules or severities (error, warning, note) has a finding that was"
        " done, else 1 if a file could not be read; may be repeated",
    )
    parser.add_argument(
        "--allow",
        metavar="RULE:GLOB",
        action="append",
        default=[],
        help="leave out findings of RULE whose target matches GLOB; may be repeated",
    )
    add_documents(parser, "also write a document: .sarif, .xml (JUnit), .md or .json; may be repeated")
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/audit/1, see docs/effects.md")


def run(args: argparse.Namespace) -> int:
    """Print the findings. Raises `NothingReadable` if there is no run, `UsageError` for unknown rules."""
    hint_folder("audit", named(args))
    rules, allows = parse_conditions(args.fail_on), [Allow.parse(text) for text in args.allow]
    forms = documents(args, FORMS)
    places = roots(args)
    wanted = asked(args.query, args) if args.query else None
    audit = Audit()
    with sources_at(places, args) as source:
        aim = aim_of(source, args)
        note = narrow(source, args.query, args)
        listing = listing_at(source, aim, args, deep=wanted is not None)
        require_runs(listing, places)
        problems = [*listing.problems]
        runs = (wanted(listing, source) if wanted else listing).runs
        with ProgressLine(len(runs)) as progress:
            for run_summary, effects in effects_of_runs(source, runs, problems):
                audit.add(run_summary, effects, allows)
                progress.advance()
        lines = record_lines(source, audit.findings) if "sarif" in forms.values() else {}
    report = AuditReport(audit, rules, problems, tracetui.__version__, lines)
    redactor = Redactor()
    if args.json:
        write_bytes([encode(audit_value(report, redactor)), b"\n"])
    else:
        write_lines(audit_lines(report, terminal_width(), redactor))
        sys.stdout.flush()
    for sentence in [note, *([] if args.json else summary(report))]:
        if sentence:
            complain(sentence)
    for path, form in forms.items():
        write_document(path, export_audit(report, form), [*aim.places, default_directory()], force=args.force)
    if not rules:
        return 0
    unreadable = complain_of(problems, args.format, listing.read)
    return FAILED if failing(audit, rules) else UNREADABLE if unreadable else 0
