"""``tracetui serve``: the app in a browser."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Final

from tracetui.cli.app import add_display
from tracetui.cli.parser import add_pass
from tracetui.cli.reading import served_paths, within
from tracetui.errors import UsageError
from tracetui.processes import own_command
from tracetui.sources.local import WITHIN

HELP = "show runs in a browser"
EXAMPLES = """\
Needs a package: pip install 'tracetui[serve]'. Prints a URL with a random token; whoever has it can read the traces.
Secrets stay masked, no program is started, and only files below PATH are opened. Over a network, use a tunnel:
ssh -L 8484:127.0.0.1:8484 host.

examples:
  tracetui serve traces/
  tracetui serve traces/ --port 9000 --allow-write     also verdicts, notes, tags and exports
"""
SESSIONS: Final = 4
"""Default limit of open browser tabs; each is a process."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``serve``."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="directories and files to show, on this machine")
    parser.add_argument("--format", metavar="NAME", help="read every file as this format (see: tracetui formats)")
    parser.add_argument("--port", type=int, default=8484, help="default 8484; 0: any free port")
    parser.add_argument("--sessions", type=int, default=SESSIONS, metavar="N", help=f"open tabs, default {SESSIONS}")
    parser.add_argument("--allow-write", action="store_true", help="allow verdicts, notes, tags and exports")
    add_pass(parser)
    add_display(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted. Raises `UsageError` for a PATH on another machine, or without the package."""
    paths = served_paths(args.paths, "serve")
    try:
        from tracetui.cli.serve_guard import GuardedServer
    except ImportError:
        raise UsageError("serve needs a package: pip install 'tracetui[serve]'") from None
    os.environ[WITHIN] = within(paths)
    GuardedServer(app_command(args, paths), port=args.port, sessions=args.sessions).serve()
    return 0


def app_command(args: argparse.Namespace, paths: Sequence[str]) -> list[str]:
    """Return the command of one session's app."""
    command = [*own_command(), "--served", "write" if args.allow_write else "read"]
    for option in ("format", "theme"):
        if (value := getattr(args, option)) is not None:
            command += [f"--{option}", value]
    if args.ascii:
        command.append("--ascii")
    if args.rule is not None:
        command.append(f"--pass={args.rule.text}")
    return [*command, "--", *paths]
