"""``tracetui export``: write a run, a comparison or a triage as a document, secrets masked."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence

from tracetui import masking
from tracetui.analysis.tasks import matrix
from tracetui.cli.output import complain, write_bytes, write_document
from tracetui.cli.parser import add_place, default_directory
from tracetui.cli.reading import Listing, list_runs, read_counted, require_runs, source_of, sources_at, whole_run_at
from tracetui.errors import UsageError
from tracetui.export import document
from tracetui.export.document import Form
from tracetui.export.triage import Shared, Triage
from tracetui.live.load import read_run
from tracetui.model import Run, RunSummary
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.sources.local import STDIN
from tracetui.text import size

HELP = "export a run, diff or triage as Markdown, HTML or JSON, secrets redacted"
EXAMPLES = """\
TARGET is an address from `tracetui ls`, or a run id; for a directory, its triage.

examples:
  tracetui export runs.db#wf-1                          one run as Markdown
  tracetui export traces/0690.json --to run.html        one run as an HTML page
  tracetui export traces/ --to triage.md                every failure in a directory, with verdicts and notes
  tracetui export --diff traces/a.json traces/b.json    a diff of two runs
  tracetui export --tasks traces/ --to tasks.html       pass rates of every task, with its trials
  tracetui export traces/ --site site/                  a static site, for CI artifacts
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``export``."""
    parser.add_argument("target", nargs="?", metavar="TARGET", help="a run, or a directory (its triage)")
    parser.add_argument("--diff", nargs=2, metavar=("A", "B"), help="a diff of two runs, instead of TARGET")
    parser.add_argument("--tasks", action="store_true", help="the tasks of a directory, instead of its triage")
    parser.add_argument(
        "--site", metavar="OUT", help="write an index, runs, triage, tasks and diffs as linked pages to a new directory"
    )
    parser.add_argument(
        "--to",
        metavar="FILE",
        help="output file, readable by you only, outside trace directories (default: standard output)",
    )
    parser.add_argument("--as", dest="form", choices=document.FORMS, help="default: by extension of FILE, else md")
    parser.add_argument("--full", action="store_true", help="include every step of a run in full")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--no-redact", action="store_true", help="don't mask secrets")
    add_place(parser)


def run(args: argparse.Namespace) -> int:
    """Write the document."""
    if (args.target is None) == (args.diff is None):
        raise UsageError("export needs a run, a directory or --diff A B; `tracetui export --help` shows examples")
    if args.site is not None and (args.diff or args.tasks or args.to or args.form or args.full):
        raise UsageError("--site takes a directory of traces and excludes --diff, --tasks, --to, --as and --full")
    form: Form = args.form or document.form_of(args.to or "")
    redactor = None if args.no_redact else document.new_redactor(compared=args.diff is not None)
    with masking.using(redactor):
        return _write(args, form, redactor)


def _write(args: argparse.Namespace, form: Form, redactor: Redactor | None) -> int:
    if args.diff is not None:
        with sources_at(args.diff, args) as source:
            a, b = _runs(source, args.diff, args)
            _output(document.export_diff(a, b, form, redactor, relation=_relation(a, b)), args, [a, b])
        return 0
    with source_of([args.target, *args.trace_dir]) as source:
        if args.site is not None:
            return _site(source, args, redactor)
        if args.tasks:
            _output(_tasks(source, args, form, redactor), args, [])
        elif source.is_folder(args.target):
            _output(_triage(source, args, form, redactor), args, [])
        else:
            (run,) = _runs(source, [args.target], args)
            _output(document.export_run(run, form, redactor, full=args.full), args, [run])
    return 0


def _runs(source: Source, texts: Sequence[str], args: argparse.Namespace) -> list[Run]:
    """Read the runs at these addresses."""
    return read_counted(source, [whole_run_at(source, text, args) for text in texts], texts, args)


def _relation(a: Run, b: Run) -> str | None:
    return b.summary.relation if b.summary.replay_of == a.summary.id else None


def _listing(source: Source, args: argparse.Namespace) -> Listing:
    """List the runs of the target. Raises `NothingReadable` if there are none."""
    places = [args.target, *args.trace_dir]
    listing = list_runs(source, places, args)
    require_runs(listing, places)
    return listing


def _triaged(
    source: Source, args: argparse.Namespace, runs: Sequence[RunSummary], redactor: Redactor | None
) -> tuple[Triage, Shared, str]:
    """The triage of runs, the facts that the runs of each cause share, and the next command."""
    from tracetui.analysis.triage import CauseVerdicts
    from tracetui.export.triage import next_command, triage_of
    from tracetui.live.jobs import shared_features
    from tracetui.store.sidecar import Sidecar

    places = [args.target, *args.trace_dir]
    triage = triage_of(runs, CauseVerdicts(Sidecar(roots=places)), redactor)
    return triage, shared_features(source, runs, triage.groups), next_command(triage, places)


def _triage(source: Source, args: argparse.Namespace, form: Form, redactor: Redactor | None) -> Iterator[bytes]:
    triage, shared, following = _triaged(source, args, _listing(source, args).runs, redactor)
    return document.export_triage(triage, shared, args.target, form, redactor, next_command=following)


def _tasks(source: Source, args: argparse.Namespace, form: Form, redactor: Redactor | None) -> Iterator[bytes]:
    return document.export_tasks(matrix(_listing(source, args).runs), args.target, form, redactor)


def _site(source: Source, args: argparse.Namespace, redactor: Redactor | None) -> int:
    from tracetui.export.document import check_outside, create_directory, write
    from tracetui.export.site import FOLDERS, Content, Site

    roots = [args.target, *args.trace_dir, default_directory()]
    check_outside(args.site, roots)
    if not args.force and os.path.lexists(args.site) and not (os.path.isdir(args.site) and not os.listdir(args.site)):
        raise UsageError(f"{args.site} isn't an empty directory; choose another one or pass --force")
    listing = _listing(source, args)
    runs = listing.runs
    triage, shared, _ = _triaged(source, args, runs, redactor)
    content = Content(args.target, runs, triage, shared, matrix(runs), redactor)
    for folder in ("", *FOLDERS):
        create_directory(os.path.join(args.site, folder), roots=roots)
    pages = written = 0
    for page in Site(content, lambda ref: listing.claims.mark(read_run(source, ref))).pages():
        _check_folder(args.site, page.path)
        written += write(os.path.join(args.site, page.path), page.pieces, roots=roots, replace=args.force, mode=0o644)
        pages += 1
    complain(f"wrote {pages} pages to {args.site}, {size(written)}; open {os.path.join(args.site, 'index.html')}")
    complain("Every user of this machine can read these pages, as a web server needs.")
    return 0


def _output(pieces: Iterator[bytes], args: argparse.Namespace, runs: Sequence[Run]) -> None:
    if args.to in (None, STDIN):
        write_bytes(pieces)
        return
    named = [text.split("#")[0] for text in (args.diff or [args.target])]
    read = [run.summary.ref.path for run in runs]
    write_document(args.to, pieces, [*named, *read, *args.trace_dir, default_directory()], force=args.force)


def _check_folder(site: str, path: str) -> None:
    """Raise `UsageError` if a page would be written through a link below the directory that the user named."""
    folder = os.path.dirname(path)
    if folder and os.path.islink(os.path.join(site, folder)):
        raise UsageError(f"{os.path.join(site, folder)} is a symbolic link; remove it, or choose another directory")
