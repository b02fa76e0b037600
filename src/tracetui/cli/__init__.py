"""The command line: the app by default; the commands print the same model as text or JSON.

Every command is a module with ``HELP``, ``arguments(parser)`` and ``run(args) -> exit status``, imported on use.
Exit statuses: 0 success; 1 nothing readable; 2 wrong usage; 3 a run meets a condition of ``--fail-on`` (then 1 also
covers a file or format that could not be read).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tracetui.errors import TracetuiError, UsageError

BROKEN_PIPE = 141
"""Exit status that shells report for SIGPIPE."""
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # silence the flush at exit
        if isinstance(error, BrokenPipeError):
            return BROKEN_PIPE
        complain(error)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:  # argparse, after --help, --version or an error that it has printed
        return end.code if isinstance(end.code, int) else 2
    return status
