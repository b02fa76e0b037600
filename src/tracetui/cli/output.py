"""Write command output: clean text or bytes to standard output, messages to standard error, documents to files."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from shutil import get_terminal_size
from typing import Final, Self, TypeVar

from tracetui.errors import NothingReadable, UsageError
from tracetui.masking import clean, clean_lines
from tracetui.model import Problem
from tracetui.text import Clean, grouped, quantity, size

_F = TypeVar("_F", bound=str)
_PROGRESS_SECONDS: Final = 0.2


def write_lines(lines: Iterable[Clean]) -> None:
    """Write lines of cleaned text; characters missing from the terminal's encoding become ``\\x..``."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    for line in lines:
        sys.stdout.write(line + "\n")


def terminal_width() -> int | None:
    """Width in cells if standard output is a terminal; None otherwise, where nothing is cut."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def write_bytes(pieces: Iterable[bytes]) -> None:
    """Write bytes unchanged."""
    sys.stdout.flush()
    write = sys.stdout.buffer.write
    for piece in pieces:
        write(piece)
    sys.stdout.buffer.flush()


def complain(error: Exception | str) -> None:
    """Print a message to standard error, cleaned: an error may quote a trace."""
    with suppress(BrokenPipeError, AttributeError):
        for i, line in enumerate(clean_lines(str(error))):
            sys.stderr.write(clean(f"tracetui: {line}" if i == 0 else line) + "\n")


class ProgressLine:
    """A context manager that shows how much is read, on a terminal's standard error: ``12 of 288 runs read``."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._shown_at = time.monotonic()
        self._is_shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._write("")

    def advance(self, number: int = 1) -> None:
        """Count so many more runs."""
        self._done += number
        now = time.monotonic()
        if now - self._shown_at >= _PROGRESS_SECONDS:
            self._shown_at = now
            self._write(f"{grouped(self._done)} of {quantity(self._total, 'run')} read")

    def _write(self, text: str) -> None:
        if self._is_shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


def nothing(places: Iterable[str], problems: Sequence[Problem]) -> NothingReadable:
    """The error for a search that found no run: where it looked, for which formats, and the next step."""
    from tracetui.formats import registry

    names = ", ".join(places)
    if problems:
        first = problems[0].reason if len(problems) == 1 else f"{len(problems)} files are unreadable"
        return NothingReadable(f"no readable run in {names}: {first}; `tracetui doctor` lists each file")
    count = len(registry.formats())
    return NothingReadable(f"no traces in {names} ({count} formats; `tracetui formats`); `tracetui demo` opens samples")


def check_new(path: str, *, force: bool) -> None:
    """Raise `UsageError` for a file that exists, unless `force`."""
    if not force and os.path.isfile(path):
        raise UsageError(f"{path} already exists; choose another name or pass --force")


def documents(args: argparse.Namespace, forms: Sequence[_F]) -> dict[str, _F]:
    """The form of each file of ``--to``. Raises `UsageError` for another extension, and for a file that exists."""
    from tracetui.export.document import form_among

    wanted = {path: form_among(path, forms) for path in args.to}
    for path in wanted:
        check_new(path, force=args.force)
    return wanted


def write_document(path: str, pieces: Iterable[bytes], roots: Sequence[str], *, force: bool) -> None:
    """Write a file outside the trace directories `roots`, and report its size. Raises as `export.document.write`."""
    from tracetui.export.document import write

    check_new(path, force=force)
    written = write(path, pieces, roots=roots, replace=force)
    complain(f"wrote {path}, {size(written)}")
