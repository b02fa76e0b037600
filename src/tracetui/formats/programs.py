"""The programs that write traces: their directories on this machine, and the command that resumes a session."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from tracetui.errors import FormatError, UsageError
from tracetui.formats import guard, registry
from tracetui.formats.base import NO, Format
from tracetui.model import PREVIEW, RunSummary
from tracetui.sources.base import Source
from tracetui.text import Clean, exact, grouped

MOST_FILES: Final = 50_000
MOST_SECONDS: Final = 0.3
"""Limits of counting one directory: the user waits."""
_LOOKED_AT: Final = 200
"""Files checked to confirm the format of a directory."""
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class Home(msgspec.Struct, frozen=True):
    """A directory with traces."""

    title: str
    """Of the format that names it."""
    path: str
    files: int
    more: bool
    """There are more files than were counted; the newest may be among them."""
    changed_at: float
    """When the newest of the counted files was changed (UTC seconds)."""

    @property
    def counted(self) -> Clean:
        """How many files there are, as people read it: ``1 file``, ``over 50 000 files``."""
        return Clean(f"{'over ' * self.more}{grouped(self.files)} file{'' if self.files == 1 else 's'}")


def variables() -> list[str]:
    """Environment variables with trace directories, in the order of the formats, without duplicates."""
    return list(dict.fromkeys(name for fmt in registry.formats() for name in _variables(fmt)))


def homes(source: Source, environ: Mapping[str, str], home: PurePath) -> list[Home]:
    """Directories with at least one file of the format that names them, in the order of the formats."""
    there: dict[str, Home] = {}
    for candidate in registry.formats():
        for path in map(str, _homes(candidate, environ, home)[0]):
            if path not in there and (source.is_folder(path) or source.is_file(path)):
                counted = _counted(source, candidate, path)
                there.update({path: counted} if counted is not None else {})
    return list(there.values())


def fault(candidate: Format, environ: Mapping[str, str], home: PurePath) -> str | None:
    """The reason that a format failed to name its directories, else None."""
    try:
        guard.home_variables(candidate)
    except (FormatError, OSError) as error:
        return guard.problem_of("", error).reason
    return _homes(candidate, environ, home)[1]


def _variables(candidate: Format) -> Sequence[str]:
    try:
        return guard.home_variables(candidate)
    except (FormatError, OSError):  # `fault` reports it
        return ()


def _homes(candidate: Format, environ: Mapping[str, str], home: PurePath) -> tuple[Sequence[PurePath], str | None]:
    """The directories that a format names; none, and the reason, if it fails."""
    try:
        return guard.homes(candidate, environ, home), None
    except (FormatError, OSError) as error:
        return (), guard.problem_of("", error).reason


def _counted(source: Source, candidate: Format, path: str) -> Home | None:
    """Count the files of a directory; None if no checked file is of the format."""
    files, more, newest, is_its = 0, False, 0.0, False
    end = time.monotonic() + MOST_SECONDS
    for entry in source.walk(path):
        if entry.skipped is not None or entry.stat is None:
            continue
        files, newest = files + 1, max(newest, entry.stat.mtime)
        is_its = is_its or (files <= _LOOKED_AT and _claims(source, candidate, entry.path))
        if files >= MOST_FILES or time.monotonic() > end:
            more = True
            break
    return Home(candidate.title, path, files, more, newest) if is_its else None


def _claims(source: Source, candidate: Format, path: str) -> bool:
    try:
        with source.open(path) as file:
            return registry.score(candidate, file) > NO
    except OSError:
        return False


def resume_command(run: RunSummary) -> str | None:
    """The command that resumes a session, quoted for a POSIX shell; None if the format has none, or the trace's id
    isn't safe in one. It is only copied, never run.

    A trace chooses its ids, and quoting doesn't stop an id from being read as an option: they must be plain words.
    Most programs find a session only from its project, so the command changes to the recorded directory first.
    """
    if not run.is_session:
        return None
    try:
        command = guard.resume(registry.load(run.ref.format), run)
    except (FormatError, OSError, UsageError):
        return None
    if not command or not _ID.fullmatch(run.id) or any(exact(argument) != argument for argument in command):
        return None
    resume, folder = shlex.join(command), run.source or ""
    is_whole = folder.startswith("/") and len(folder) < PREVIEW and exact(folder) == folder  # type: ignore[unmasked]
    return f"cd {shlex.quote(folder)} && {resume}" if is_whole else resume
