"""What the commands write with: cleaned text or exact bytes to standard output, sentences to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from shutil import get_terminal_size

from tracetui.errors import NothingReadable
from tracetui.model import Problem
from tracetui.text import Clean, clean, clean_lines


def write_lines(lines: Iterable[Clean]) -> None:
    """Lines of cleaned text; what the terminal's encoding lacks is written as ``\\x..``."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    for line in lines:
        sys.stdout.write(line + "\n")


def terminal_width() -> int | None:
    """Cells of a line of the terminal that standard output is; None where it is none: nothing is cut there."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def write_bytes(pieces: Iterable[bytes]) -> None:
    """Bytes as they are."""
    sys.stdout.flush()
    write = sys.stdout.buffer.write
    for piece in pieces:
        write(piece)
    sys.stdout.buffer.flush()


def complain(error: Exception | str) -> None:
    """One sentence on standard error (an error may quote a trace: it passes the gate)."""
    with suppress(BrokenPipeError, AttributeError):
        for i, line in enumerate(clean_lines(str(error))):
            sys.stderr.write(clean(f"tracetui: {line}" if i == 0 else line) + "\n")


def nothing(places: Iterable[str], problems: Sequence[Problem]) -> NothingReadable:
    """There is no run to show: where and for what was looked, and what to do next."""
    from tracetui.formats import registry

    where = ", ".join(places)
    if problems:
        first = problems[0].reason if len(problems) == 1 else f"{len(problems)} files are unreadable"
        return NothingReadable(f"nothing could be read in {where}: {first}; `tracetui doctor` tells more")
    titles = ", ".join(one.title for one in registry.formats())
    return NothingReadable(f"no trace in {where} (looked for: {titles}); `tracetui demo` opens samples")
