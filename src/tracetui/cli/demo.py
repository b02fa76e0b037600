"""``tracetui demo``: the app on built-in sample runs."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

from tracetui.cli import app
from tracetui.cli.output import complain
from tracetui.errors import NotWritten, UsageError

HELP = "open built-in sample runs, one of them live"
EXAMPLES = """\
SET is `night` (the default: runs of five formats, one of them live) or `trials` (ten tasks, six trials with each of
two models).

examples:
  tracetui demo
  tracetui demo trials                        then press M
  tracetui demo trials --write trials         write them to a new folder
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``demo``."""
    parser.add_argument(
        "set", nargs="?", metavar="SET", default="night", choices=("night", "trials"), help="which samples"
    )
    parser.add_argument("--write", metavar="FOLDER", help="write the samples to a new folder instead of opening them")
    app.add_display(parser)
    app.add_watching(parser)


def run(args: argparse.Namespace) -> int:
    """Open the samples in a private directory that is deleted when the app ends, or write them to a new folder."""
    from tracetui.demo import ccpa, temporary

    if args.write is not None:
        return _write(args.set, args.write)
    is_live = args.set == "night" and sys.stdout.isatty()
    with temporary(name=args.set) as folder, ccpa.running(folder) if is_live else nullcontext():
        parser = argparse.ArgumentParser()
        app.arguments(parser)
        return app.run(parser.parse_args([str(folder)], args))


def _write(name: str, folder: str) -> int:
    from tracetui.demo import SETS

    if os.path.lexists(folder):
        raise UsageError(f"{folder} already exists; name a new folder")
    try:
        SETS[name](Path(folder), datetime.now(UTC).astimezone())
    except OSError as error:
        raise NotWritten(f"{folder} can't be written: {error.strerror or error}") from None
    complain(f"wrote {folder}")
    return 0
