"""Exceptions of tracetui.

::

    TracetuiError            printed on stderr
    ├── UsageError           wrong usage (exit 2)
    ├── NothingReadable      no readable run at the given path (exit 1)
    ├── NotWritten           an output or state file could not be written (exit 1)
    ├── FormatError          bytes that a format can't read; becomes a `Problem`
    └── PluginError          a third-party format could not be imported

Bad *data* is a value (`tracetui.model.Problem`), not an exception, once it leaves `formats`.
"""

from __future__ import annotations

from collections.abc import Collection


class TracetuiError(Exception):
    """Base of every error with a message for the user."""


class UsageError(TracetuiError):
    """The command line or a call is wrong; the message names the next step."""


class NothingReadable(TracetuiError):
    """No run could be read at the given path."""


class NotWritten(TracetuiError):
    """An output or state file could not be written; nothing was saved."""


class PluginError(TracetuiError):
    """A format plug-in could not be loaded."""


class FormatError(TracetuiError):
    """A source is not valid for its format.

    `where` is the location in the file (``byte 812``, ``line 3``, ``steps[2]``); empty: the whole file.
    """

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason
        self.where = where


def nearest(word: str, words: Collection[str]) -> str | None:
    """The most similar of `words`, as a suggestion in an error; None if none is close."""
    from difflib import get_close_matches

    longer = next((known for known in sorted(words) if len(word) > 2 and known.startswith(word)), None)
    return longer or next(iter(get_close_matches(word, words, 1, 0.6)), None)
