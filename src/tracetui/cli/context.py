"""``tracetui context``: what fills the context of a run, what that costs, and why the cache was missed."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from tracetui.analysis import prices
from tracetui.analysis.context import Ledger
from tracetui.analysis.context_feed import ledger_of
from tracetui.cli.output import terminal_width, write_bytes, write_lines
from tracetui.cli.parser import add_place, add_redact
from tracetui.cli.reading import read_counted, source_at, whole_run_at
from tracetui.cli.tasks import hint_folder
from tracetui.errors import UsageError
from tracetui.export.context import break_table, call_table, content_table, context_value, file_table, title
from tracetui.export.json import encode
from tracetui.model import Run
from tracetui.redact import Redactor
from tracetui.store.address import step_number
from tracetui.text import Clean
from tracetui.views.context import explanation, no_breaks, sentences

HELP = "show what fills the context of a run, what that costs, and why the cache was missed"
EXAMPLES = """\
RUN is an address from `tracetui ls`, a run id or the beginning of one. Costs are estimates (see docs/context.md).

examples:
  tracetui context 0690                   the contents of the input, most tokens first
  tracetui context 0690 --by break        every cache break with its cause and price
  tracetui context 0690 --by file         the files that were read
  tracetui context 0690 --json | jq '.breaks[] | select(.cause == "idle")'
  tracetui ./context                      open a folder of that name
"""
_TABLES: Final = {"content": content_table, "file": file_table, "call": call_table}


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``context``."""
    parser.add_argument("address", metavar="RUN", nargs="?", help="address from ls, run id, or the beginning of one")
    add_place(parser)
    parser.add_argument(
        "--by", choices=(*_TABLES, "break"), default="content", help="rows of the table (default: content)"
    )
    parser.add_argument("--json", action="store_true", help="JSON output: tracetui/context/1, see docs/json.md")
    add_redact(parser)


def run(args: argparse.Namespace) -> int:
    """Print the context of a run. Raises `UsageError` without a run, or for a part of one."""
    if args.address is None:
        hint_folder("context", [])
        raise UsageError("which run? `tracetui ls` lists them; `tracetui context --help` shows usage")
    with source_at(args.address, args) as source:
        summary = whole_run_at(source, args.address, args)
        (opened,) = read_counted(source, [summary], [args.address], args)
        prices.load()
        ledger = ledger_of(opened)
    if args.json:
        value = context_value(opened.summary, ledger, Redactor() if args.redact else None)
        write_bytes([encode(value), b"\n"])
    else:
        _print(opened, ledger, args.by)
    return 0


def _print(opened: Run, ledger: Ledger, by: str) -> None:
    redactor, width = Redactor(), terminal_width()
    lines = [*sentences(ledger, redactor)]
    write_lines([title(opened.summary, ledger, redactor), *lines])
    if not ledger.calls:
        return

    def step_of(span_id: str) -> int | None:
        span = opened.span(span_id)
        return None if span is None else step_number(opened, span)

    if by == "break" and not ledger.breaks:
        write_lines({no_breaks(ledger)} - {*lines})
        return
    write_lines([Clean("")])
    if by == "file" and not ledger.files():
        write_lines([Clean("No text in the context is known to be a file.")])
    elif by == "break":
        write_lines(break_table(ledger, width, step_of))
        write_lines([Clean(""), *(Clean(f"call {missed.call}: {explanation(missed)}") for missed in ledger.breaks)])
    else:
        write_lines(_TABLES[by](ledger, width, redactor))
    sys.stdout.flush()
