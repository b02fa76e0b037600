"""``tracetui files``: what agents changed, by file."""

from __future__ import annotations

import argparse
import os
import sys

from tracetui.analysis.files import FileChanges, FilesReport, state_of
from tracetui.cli.ls import asked
from tracetui.cli.output import ProgressLine, complain, terminal_width, write_bytes, write_lines
from tracetui.cli.parser import add_paths_and_runs, add_query, named, roots
from tracetui.cli.reading import aim_of, listing_at, narrow, require_runs, sources_at
from tracetui.cli.tasks import hint_folder
from tracetui.errors import UsageError
from tracetui.export.files import files_lines, files_value, summary
from tracetui.export.json import encode
from tracetui.live.effects import effects_of_runs, find_look
from tracetui.masking import masked_line
from tracetui.model import RunRef
from tracetui.redact import Redactor
from tracetui.text import Clean
from tracetui.views.labels import short_names

HELP = "list the files that agents changed, and whether their lines still stand"
EXAMPLES = """\
Edits come from the arguments of tool calls and the words of shell commands, as recorded. Denied and failed calls don't
count. Files are compared only in the repository that you name: --repo DIR, else that of the current folder. Its root
stands for the directory in which the runs began.

examples:
  tracetui files traces/
  tracetui files ~/.claude/projects/-home-dev-shop --repo ~/shop
  tracetui files traces/one.jsonl          the files of one run
  tracetui files traces/ --json | jq -r '.files[] | select(.state == "changed") | .path'
  tracetui ./files                         open a folder of that name
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``files``."""
    add_paths_and_runs(parser)
    add_query(parser)
    add_repo(parser)
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/files/1, see docs/effects.md")


def add_repo(parser: argparse.ArgumentParser) -> None:
    """Add ``--repo``."""
    parser.add_argument("--repo", metavar="DIR", help="repository with the files (default: that of the current folder)")


def run(args: argparse.Namespace) -> int:
    """Print the files. Raises `NothingReadable` if there is no run, `UsageError` for a wrong query or repository."""
    hint_folder("files", named(args))
    if args.repo is not None and not os.path.isdir(args.repo):
        raise UsageError(f"--repo {args.repo}: no such directory")
    places = roots(args)
    wanted = asked(args.query, args) if args.query else None
    changes = FileChanges()
    names: dict[RunRef, Clean] = {}
    redactor = Redactor()
    with sources_at(places, args) as source:
        aim = aim_of(source, args)
        note = narrow(source, args.query, args)
        listing = listing_at(source, aim, args, deep=wanted is not None)
        require_runs(listing, places)
        problems = [*listing.problems]
        runs = (wanted(listing, source) if wanted else listing).runs
        shorts = short_names(listing.runs)
        with ProgressLine(len(runs)) as progress:
            for run_summary, effects in effects_of_runs(source, runs, problems):
                changes.add(run_summary, effects)
                names[run_summary.ref] = masked_line(shorts[run_summary.ref], redactor, 60)
                progress.advance()
    histories = changes.histories()
    look = find_look(args.repo, aim.places, histories)
    files = [(history, state_of(history, look)) for history in histories]
    report = FilesReport(files, changes.tried, problems)
    if args.json:
        write_bytes([encode(files_value(report, redactor)), b"\n"])
        return 0
    write_lines(files_lines(report, terminal_width(), redactor, names))
    sys.stdout.flush()
    for sentence in (note, *summary(report)):
        if sentence:
            complain(sentence)
    return 0
