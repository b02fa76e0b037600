"""The shell command that resumes a session in the program that wrote it. It is only copied, never run."""

from __future__ import annotations

import re
import shlex
from typing import Final

from tracetui.errors import FormatError, UsageError
from tracetui.formats import guard, registry
from tracetui.model import PREVIEW, RunSummary
from tracetui.text import clean

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def command(run: RunSummary) -> str | None:
    """The command, quoted for a POSIX shell; None if the format has none, or the trace's id isn't safe in one.

    A trace chooses its ids, and quoting doesn't stop an id from being read as an option: they must be plain words.
    Most programs find a session only from its project, so the command changes to the recorded directory first.
    """
    if not run.is_session:
        return None
    try:
        found = guard.resume(registry.load(run.ref.format), run)
    except (FormatError, OSError, UsageError):
        return None
    if not found or not _ID.fullmatch(run.id) or any(clean(one) != one for one in found):
        return None
    words, folder = shlex.join(found), run.source or ""
    is_whole = folder.startswith("/") and len(folder) < PREVIEW and clean(folder) == folder
    return f"cd {shlex.quote(folder)} && {words}" if is_whole else words
