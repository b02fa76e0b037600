"""``tracetui demo``: the app on built-in sample runs."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext

from tracetui.cli import app

HELP = "open built-in sample runs, one of them live"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``demo``."""
    app.add_display(parser)
    app.add_watching(parser)


def run(args: argparse.Namespace) -> int:
    """Open the samples in a private directory that is deleted when the app ends."""
    from tracetui.demo import agent, temporary

    with temporary() as folder, agent.running(folder) if sys.stdout.isatty() else nullcontext():
        args.paths, args.trace_dir, args.format, args.rule, args.limit = [str(folder)], [], None, None, None
        return app.run(args)
