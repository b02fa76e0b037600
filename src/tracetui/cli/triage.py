"""``tracetui triage``: the failed runs by what made them fail."""

from __future__ import annotations

import argparse
import sys

from tracetui.cli.failing import add_fail_on, status_of
from tracetui.cli.output import complain, nothing, write_bytes, write_lines
from tracetui.cli.parser import add_pass, add_paths_and_runs, add_redact, roots
from tracetui.cli.reading import Listing, aim_of, check_rule, listing_at, only, rule_of, screen_for, sources_at
from tracetui.export.listing import triage
from tracetui.export.signatures import lines_of, signature_table
from tracetui.export.triage import next_command, triage_of, triage_value
from tracetui.live.jobs.causes import shared_by
from tracetui.redact import Redactor
from tracetui.store.sidecar import Sidecar

HELP = "group the failed runs by what made them fail"
EXAMPLES = """\
A signature is who failed at what, the type of the error, and its text, in which numbers, ids, paths and quoted values
are taken for the same. The biggest waste comes first. Verdicts are given in the app.

examples:
  tracetui triage traces/
  tracetui triage traces/ --json | jq -r '.signatures[] | [.id, .count, .title] | @tsv'
  tracetui triage traces/ --json | jq -r '.signatures[] | select(.verdict == null) | .example'
  tracetui triage traces/ --fail-on error       for CI: exit status 3 if a run failed
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``triage``."""
    add_paths_and_runs(parser)
    parser.add_argument("--json", action="store_true", help="as data: tracetui/triage/1, see docs/json.md")
    add_redact(parser)
    add_pass(parser)
    add_fail_on(parser)


def run(args: argparse.Namespace) -> int:
    """Print the signatures. Raises `NothingReadable` if there is no run."""
    places, rule = roots(args), rule_of(args)
    with sources_at(places, args) as source:
        aim = aim_of(source, args)
        found = listing_at(source, aim, only(args), deep=True, rule=rule)
        check_rule(args, found.runs)
        if not found.runs:
            raise nothing(places, found.problems)
        sidecar = Sidecar()
        for problem in sidecar.problems:
            complain(f"{problem.path}: {problem.where}: {problem.reason}")
        redactor = Redactor() if args.redact or not args.json else None
        made = triage_of(
            found.runs,
            lambda group: sidecar.of_signature(group.signature.digest),
            lambda run, group: sidecar.of(run, group.signature.digest),
            redactor,
        )
        shared = shared_by(source, found.runs, made.groups) if args.json else {}
    if args.json:
        write_bytes(lines_of(triage_value(made, shared, redactor, next_command=next_command(made, places))))
    else:
        if made.entries:
            write_lines(signature_table(made, screen_for(aim.places, found.runs)))
        sys.stdout.flush()
        complain(sentence(found, len(made.entries)))
    return status_of(args, found.runs, found.problems)


def sentence(found: Listing, signatures: int) -> str:
    """``7 of 40 runs failed, 1 unreadable · 2 signatures``."""
    return triage(found.runs, len({problem.path for problem in found.problems}), signatures)
