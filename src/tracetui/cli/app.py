"""``tracetui`` without a command: opens the app, or prints the list if standard output is no terminal."""

from __future__ import annotations

import argparse
import gc
import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from threading import Thread

import tracetui
from tracetui.cli.output import complain
from tracetui.cli.parser import (
    add_pass,
    add_paths,
    chosen_directory,
    default_directory,
    exists,
    named,
    no_path_error,
    other_directories,
    roots,
)
from tracetui.errors import NothingReadable, UsageError
from tracetui.model import quote_key
from tracetui.sources.base import Source
from tracetui.sources.local import STDIN
from tracetui.sources.locations import DATABASES
from tracetui.store import address
from tracetui.store.settings import THEMES

HELP = "Open a directory of AI-agent traces in the terminal: see which runs failed and why, and read every step."


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the app."""
    parser.add_argument("--version", action="version", version=f"tracetui {tracetui.__version__}")
    add_paths(parser)
    add_pass(parser)
    add_display(parser)
    add_watching(parser)
    parser.add_argument("--served", choices=("read", "write"), help=argparse.SUPPRESS)  # of `tracetui serve`


def add_watching(parser: argparse.ArgumentParser) -> None:
    """Add the options for noticing and showing changes."""
    parser.add_argument("--notify", action="store_true", help="ring and send a desktop notification when a run fails")
    parser.add_argument("--slow", action="store_true", help="redraw less often (slow connections)")
    parser.add_argument("--polling", action="store_true", help="poll instead of using file events")


def add_display(parser: argparse.ArgumentParser) -> None:
    """Add the display options."""
    parser.add_argument("--theme", choices=THEMES, help="color theme; NO_COLOR is respected")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")


def run(args: argparse.Namespace) -> int:
    """Run the app until the user quits; without a terminal on standard output, print what ``ls`` prints."""
    if not sys.stdout.isatty() and args.served is None:
        return _list(args)
    from tracetui.cli.reading import source_of  # not needed by --help and --version

    today = not named(args) and chosen_directory() is None and not exists(default_directory())
    if today:
        args.paths = _homes()
    if any(place.startswith(DATABASES) for place in roots(args)):  # the app loads while the database answers
        Thread(target=import_module, args=("tracetui.ui.app",), daemon=True).start()
    with source_of([place for place in roots(args) if place != STDIN], limit=args.limit) as source:
        places, target = _targets(source, args)
        if args.served is None:
            need_terminal(places)
        source.prefetch([place for place in places if place.startswith(DATABASES)])
        gc.disable()  # objects loaded now are permanent; the engine enables it again after listing
        from tracetui.ui.app import run_app

        return run_app(
            places,
            format=args.format,
            theme=args.theme,
            ascii_glyphs=args.ascii,
            target=target,
            sole=len(places) == 1 and source.is_file(places[0]),
            source=source,
            notify=args.notify,
            slow=args.slow,
            events=not args.polling,
            rule=args.rule,
            served=args.served,
            cached=not args.no_cache,
            today=today,
        )


def _homes() -> list[str]:
    """The trace directories of this machine, for the *today* page. Raises `UsageError` if there is none."""
    need_terminal([])
    others = other_directories()
    if not others:
        raise no_path_error(others)
    return [home.path for home in others]


def need_terminal(places: Sequence[str]) -> None:
    """Raise `UsageError` if the app cannot run."""
    if STDIN in places:
        raise UsageError("the app needs standard input for keys; `tracetui show -` reads a trace from it")
    if os.environ.get("TERM") == "dumb" or not sys.stdin.isatty():
        raise UsageError("the app needs an interactive terminal; `tracetui ls` doesn't")


def _list(args: argparse.Namespace) -> int:
    from tracetui.analysis.triage import groups
    from tracetui.cli.ls import print_listing
    from tracetui.export.table import triage
    from tracetui.store.sidecar import Sidecar

    args.json, args.query, args.redact = False, None, False
    listing = print_listing(args)
    sys.stdout.flush()
    causes = len(groups(listing.runs, Sidecar()))
    sentence = triage(listing.runs, len({problem.path for problem in listing.problems}), causes)
    complain(f"{sentence} · {shlex.join(['tracetui', 'triage', *roots(args)])}" if causes else sentence)
    return 0


def _targets(source: Source, args: argparse.Namespace) -> tuple[list[str], str | None]:
    """The paths to open, and the address to show first: ``runs.db#wf-1/3`` opens the file, ``DIR#ID`` the directory."""
    places = roots(args)
    if len(places) != 1 or os.path.exists(places[0]) or source.is_file(places[0]) or source.is_folder(places[0]):
        return places, None
    parsed = address.parse(places[0], source.is_file)
    if parsed is not None:
        return [parsed.path], places[0]
    from tracetui.cli.reading import in_folder, run_at

    if in_folder(source, places[0])[0]:
        summary, parts = run_at(source, places[0], args)
        return [in_folder(source, places[0])[0]], "/".join((summary.ref.address, *map(quote_key, parts)))
    if args.paths:
        raise NothingReadable(f"no such file or directory: {places[0]}; `tracetui --help` shows examples")
    return places, None
