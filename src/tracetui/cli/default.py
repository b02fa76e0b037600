"""Where to look when nobody names a place: the default directory, else what other programs keep on this machine."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from tracetui.errors import UsageError
from tracetui.sources.local import LocalSource
from tracetui.sources.locations import host_of

if TYPE_CHECKING:
    from tracetui.formats.homes import Home

VARIABLE: Final = "PAPRIKA_TRACE_DIR"


def default_place() -> str:
    """``$PAPRIKA_TRACE_DIR``, else ``~/.paprika/traces``; whether or not it is there."""
    return os.environ.get(VARIABLE) or os.path.join(os.path.expanduser("~"), ".paprika", "traces")


def is_there(place: str) -> bool:
    """Whether a place exists; one on another machine is taken to."""
    return host_of(place) is not None or os.path.exists(place)


def homes() -> list[Home]:
    """The trace directories of other programs that are found on this machine."""
    from tracetui.formats.homes import found  # asks every format, plug-ins too

    return found(LocalSource(), os.environ, PurePath(os.path.expanduser("~")))


def missing() -> str:
    """What is not there, as people write it."""
    return f"${VARIABLE} ({os.environ[VARIABLE]})" if os.environ.get(VARIABLE) else "~/.paprika/traces"


def nowhere(there: list[Home]) -> UsageError:
    """No place was named, and the default is not there: what there is instead."""
    words = f"no PATH was named, and there is no {missing()}; "
    if not there:
        return UsageError(f"{words}`tracetui --help` shows examples, `tracetui demo` opens samples")
    places = "".join(f"\n  {one.path}  ({one.title}, {one.counted})" for one in there)
    return UsageError(f"{words}on this machine there are:{places}")
