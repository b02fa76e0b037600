"""``tracetui`` without a command: the app; without a terminal, the list."""

from __future__ import annotations

import argparse
import gc
import os
import shlex
import sys
from collections.abc import Sequence

import tracetui
from tracetui.cli.default import default_place, homes, is_there, missing, nowhere
from tracetui.cli.output import complain
from tracetui.cli.parser import THEMES, add_paths, named, roots
from tracetui.cli.reading import in_folder, run_at, source_of
from tracetui.errors import NothingReadable, UsageError
from tracetui.model import quote_key
from tracetui.sources.base import Source
from tracetui.sources.spool import STDIN
from tracetui.store import address

HELP = "Open a folder of AI-agent traces in the terminal: see which runs failed and why, read any of them."


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the app."""
    parser.add_argument("--version", action="version", version=f"tracetui {tracetui.__version__}")
    add_paths(parser)
    add_looks(parser)
    add_watching(parser)


def add_watching(parser: argparse.ArgumentParser) -> None:
    """How what changes is noticed and told."""
    parser.add_argument("--notify", action="store_true", help="ring, and notify the desktop, when a run fails")
    parser.add_argument("--slow", action="store_true", help="draw what changes seldom: for a slow line")
    parser.add_argument("--polling", action="store_true", help="look at the files now and then, without events")


def add_looks(parser: argparse.ArgumentParser) -> None:
    """How the app looks."""
    parser.add_argument("--theme", choices=THEMES, help="colours; NO_COLOR is respected")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")


def run(args: argparse.Namespace) -> int:
    """Run the app until the user quits. Without a terminal on standard output, print what ``ls`` prints."""
    if not sys.stdout.isatty():
        return _list(args)
    if not named(args) and not is_there(default_place()):
        status, args.paths = _asked(args)
        if status or not args.paths:
            return status
    with source_of([place for place in roots(args) if place != STDIN]) as source:
        places, target = _opened(source, args)
        need_terminal(places)
        gc.disable()  # what is loaded now stays; the engine collects again once everything is listed
        from tracetui.ui.app import run_app

        return run_app(
            places,
            format=args.format,
            theme=args.theme,
            ascii_glyphs=args.ascii,
            target=target,
            source=source,
            notify=args.notify,
            slow=args.slow,
            events=not args.polling,
        )


def _asked(args: argparse.Namespace) -> tuple[int, list[str]]:
    """What somebody chooses to open of what there is on this machine. Raises `UsageError` where there is nothing."""
    need_terminal([])
    there = homes()
    if not there:
        raise nowhere(there)
    from tracetui.ui.choosing import choose

    return choose(there, missing(), theme=args.theme, ascii_glyphs=args.ascii)


def need_terminal(places: Sequence[str]) -> None:
    """Raise `UsageError` where the app cannot run."""
    if STDIN in places:
        raise UsageError("the app reads keys from standard input; `tracetui show -` reads a trace from there")
    if os.environ.get("TERM") == "dumb" or not sys.stdin.isatty():
        raise UsageError("the app needs a terminal that it can draw on and read keys from; `tracetui ls` does not")


def _list(args: argparse.Namespace) -> int:
    from tracetui.analysis.triage import groups
    from tracetui.cli.ls import print_listing
    from tracetui.export.listing import triage
    from tracetui.store.sidecar import Sidecar

    args.json, args.query, args.redact = False, None, False
    found = print_listing(args)
    sys.stdout.flush()
    causes = len(groups(found.runs, Sidecar()))
    words = triage(found.runs, len({problem.path for problem in found.problems}), causes)
    complain(f"{words} · {shlex.join(['tracetui', 'triage', *roots(args)])}" if causes else words)
    return 0


def _opened(source: Source, args: argparse.Namespace) -> tuple[list[str], str | None]:
    """The places to open, and the address to go to: ``tracetui runs.db#wf-1/3`` opens the file, ``DIR#ID`` all."""
    places = roots(args)
    if len(places) != 1 or os.path.exists(places[0]) or source.is_file(places[0]) or source.is_folder(places[0]):
        return places, None
    parsed = address.parse(places[0], source.is_file)
    if parsed is not None:
        return [parsed.path], places[0]
    if in_folder(source, places[0])[0]:
        found, parts = run_at(source, places[0], args)
        return [in_folder(source, places[0])[0]], "/".join((found.ref.address, *map(quote_key, parts)))
    if args.paths:
        raise NothingReadable(f"there is no file or folder {places[0]}; `tracetui --help` shows examples")
    return places, None
