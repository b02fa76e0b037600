"""``tracetui demo``: the app on built-in sample runs."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext

from tracetui.cli import app

HELP = "open built-in sample runs of every format, one of them at work"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``demo``."""
    app.add_looks(parser)
    app.add_watching(parser)


def run(args: argparse.Namespace) -> int:
    """Open the samples, in a private folder that goes when the app ends."""
    from tracetui.demo import agent, temporary

    with temporary() as folder, agent.at_work(folder) if sys.stdout.isatty() else nullcontext():
        args.paths, args.trace_dir, args.format, args.rule = [str(folder)], [], None, None
        return app.run(args)
