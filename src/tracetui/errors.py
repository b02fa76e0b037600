"""The exceptions that tracetui raises on purpose.

::

    TracetuiError            shown as one sentence on stderr
    ├── UsageError           the caller asked for something that makes no sense (exit 2)
    ├── NothingReadable      there was nothing to read at the given place (exit 1)
    ├── NotWritten           a file of ours could not be written: disk full, no permission (exit 1)
    ├── FormatError          bytes that a format cannot read: becomes a `Problem`, never a crash
    └── PluginError          a third-party format could not be imported

Bad *data* is a value (`tracetui.model.Problem`), not an exception, once it leaves `formats`.
"""

from __future__ import annotations

from collections.abc import Collection


class TracetuiError(Exception):
    """Base of every error whose text is meant for the user."""


class UsageError(TracetuiError):
    """The command line or a call is wrong; the message names the next step."""


class NothingReadable(TracetuiError):
    """No run could be read at the given place."""


class NotWritten(TracetuiError):
    """A file of ours could not be written; nothing of what was meant for it counts as kept."""


class PluginError(TracetuiError):
    """A format plug-in could not be loaded."""


class FormatError(TracetuiError):
    """A source does not hold what its format promises.

    `where` is the place in the file (``byte 812``, ``line 3``, ``steps[2]``), empty when the whole file is meant.
    """

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason
        self.where = where


def nearest(word: str, words: Collection[str]) -> str | None:
    """The word that is most like `word`, to suggest it in an error; None if none is."""
    from difflib import get_close_matches

    found = next((known for known in sorted(words) if len(word) > 2 and known.startswith(word)), None)
    return found or next(iter(get_close_matches(word, words, 1, 0.6)), None)
