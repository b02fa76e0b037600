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
    from tracetui.cli.parser import parse, without_passwords
    from tracetui.processes import end_with_parent

    end_with_parent()
    try:
        arguments = without_passwords(sys.argv[1:] if argv is None else argv)
        if argv is None and arguments != sys.argv[1:]:
            _restart(arguments)
        args = parse(arguments)
        _check_settings()
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


def _check_settings() -> None:
    """Raise `UsageError` for an invalid settings file, whichever of its settings this command needs."""
    from tracetui.store.settings import settings_file

    if os.path.lexists(settings_file()):
        from tracetui.ui import config  # imports no Textual

        config.bind_keys(config.load())


def _restart(arguments: Sequence[str]) -> None:
    """Replace this process by one with these arguments: those that it was started with have a password, and everyone
    on the machine may read them.
    """
    from tracetui.sources.clickhouse import HANDOVER, hand_over

    before = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    os.execve(sys.executable, [*before, *arguments], {**os.environ, HANDOVER: hand_over()})  # noqa: S606
