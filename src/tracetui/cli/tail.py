"""``tracetui tail``: follow runs live; in the app on a terminal, else as text or JSON."""

from __future__ import annotations

import argparse
import gc
import select
import sys
import time
from collections.abc import Callable
from contextlib import closing

from tracetui import masking
from tracetui.cli.app import need_terminal
from tracetui.cli.output import complain, write_lines
from tracetui.cli.parser import add_place, add_redact, roots
from tracetui.cli.reading import Aim, aim_of, listing_of, only, source_of
from tracetui.errors import UsageError
from tracetui.export.json import Lines, event_line
from tracetui.live.tail import Tail
from tracetui.model import RunRef
from tracetui.model.run import Event
from tracetui.redact import Redactor
from tracetui.sources.base import Source
from tracetui.sources.local import STDIN

HELP = "follow runs live"
EXAMPLES = """\
On a terminal this opens the app. Into a pipe or file, or with --json, it prints new events until interrupted.
Times are UTC; ~12:00:00 is the arrival time of a step without a recorded time.

examples:
  tracetui tail traces/                     every run that changes from now on
  tracetui tail traces/ --newest            the newest run, or the first that appears
  tracetui tail runs.db#wf-1 --from-start   one run, from its first step
  tracetui tail traces/ --json | jq 'select(.event == "end")'
"""
_LOOK_UP_SECONDS = 1.0
"""Interval of the check that the reader of a pipe still exists."""


class First:
    """Selects the first run that it is asked about, and no other."""

    def __init__(self) -> None:
        self._ref: RunRef | None = None

    def wants(self, ref: RunRef) -> bool:
        """Whether a run is followed."""
        self._ref = self._ref or ref
        return ref == self._ref


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``tail``."""
    parser.add_argument("paths", nargs="*", metavar="PATH|RUN", help="directories, files, addresses or ids of runs")
    add_place(parser)
    parser.add_argument("--newest", action="store_true", help="only the newest run, or the first that appears")
    parser.add_argument("--from-start", action="store_true", help="print existing steps first")
    parser.add_argument("--json", action="store_true", help="JSON output, one event per line, see docs/json.md")
    add_redact(parser)
    parser.add_argument("--polling", action="store_true", help="poll instead of using file events")


def run(args: argparse.Namespace) -> int:
    """Follow until the user quits or interrupts, or the reader of a pipe exits."""
    if STDIN in args.paths:
        raise UsageError("standard input can't be followed; `tracetui show -` reads a trace from it")
    on_terminal = sys.stdout.isatty() and not args.json
    if on_terminal:
        need_terminal(roots(args))
    with source_of(roots(args), limit=args.limit) as source:
        aim = _aim(source, args)
        if on_terminal:
            return _app(source, aim, args)
        _print(source, aim, args)
    return 0


def _aim(source: Source, args: argparse.Namespace) -> Aim:
    """Resolve the arguments. Raises `NothingReadable` or `UsageError` for an argument that matches nothing."""
    aim = aim_of(source, args, strict=True)
    if aim.chosen and args.newest:
        raise UsageError("--newest takes directories and files, not a run")
    return aim


def _app(source: Source, aim: Aim, args: argparse.Namespace) -> int:
    refs = [ref for chosen in aim.chosen.values() for ref in chosen]
    target = refs[0].address if len(refs) == 1 else None
    gc.disable()  # as in `tracetui.cli.app`
    from tracetui.ui.app import run_app

    return run_app(
        aim.places,
        format=args.format,
        target=target,
        source=source,
        follow=True,
        newest=args.newest,
        events=not args.polling,
        cached=not args.no_cache,
    )


def _print(source: Source, aim: Aim, args: argparse.Namespace) -> None:
    forced, wants = only(args), aim.wants
    places = aim.places
    if args.newest:
        runs = listing_of(source, places, forced, deep=False).runs
        if runs:
            places, wants = [runs[0].ref.path], Aim([], {runs[0].ref.path: {runs[0].ref}}).wants
        else:
            wants = First().wants
    tail = Tail(source, places, only=forced, from_start=args.from_start, events=not args.polling, wanted=wants)
    redactor = Redactor()
    write = _write_json(redactor if args.redact else None) if args.json else _write_text(Lines(now=time.time), redactor)
    why = f"{tail.watch.mode}: {tail.watch.reason}" if tail.watch.reason else tail.watch.mode
    complain(f"following {', '.join(places)} ({why})")
    with closing(tail):
        _follow(tail, write)


def _follow(tail: Tail, write: Callable[[Event], None]) -> None:
    reason = ""
    while True:
        for event in tail.events(_LOOK_UP_SECONDS):
            write(event)
        sys.stdout.flush()
        if tail.watch.lost != reason:
            reason = tail.watch.lost
            complain(f"{reason}; retrying" if reason else "reconnected")
        if _reader_is_gone():
            raise BrokenPipeError


def _write_json(redactor: Redactor | None) -> Callable[[Event], None]:
    def write(event: Event) -> None:
        sys.stdout.buffer.write(event_line(event, redactor, now=time.time()))

    return write


def _write_text(lines: Lines, redactor: Redactor) -> Callable[[Event], None]:
    def write(event: Event) -> None:
        with masking.using(redactor):
            write_lines(lines.lines(event))

    return write


def _reader_is_gone() -> bool:
    """Whether the reader of a pipe has exited: without output, no write would fail."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
