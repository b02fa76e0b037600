"""The command line: the app by default, and the same model as text and JSON for those who have no terminal.

Every command is a module with ``HELP``, ``arguments(parser)`` and ``run(args) -> exit status``, imported when it is
called. Exit statuses: 0; 1 nothing readable there; 2 wrong usage; 3 a run meets a condition of
``--fail-on`` (with which 1 is also a file or format that could not be read).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tracetui.errors import TracetuiError, UsageError

BROKEN_PIPE = 141
"""What a shell reports for a program that SIGPIPE ended."""
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    from tracetui.cli.output import complain
    from tracetui.cli.parser import parse

    try:
        args = parse(sys.argv[1:] if argv is None else argv)
        status: int = args.run(args)
        sys.stdout.flush()
    except UsageError as error:
        complain(error)
        return 2
    except TracetuiError as error:
        complain(error)
        return 1
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the flush at exit is quiet
        if isinstance(error, BrokenPipeError):
            return BROKEN_PIPE
        complain(error)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:  # argparse, after --help, --version or an error that it has told
        return end.code if isinstance(end.code, int) else 2
    return status
