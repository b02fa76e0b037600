"""Where the user's files are, and the settings that commands without a screen need, too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tracetui.errors import UsageError
from tracetui.model import PassRule

DEFAULT_CACHE: Final = 512
"""Megabytes that the cache of runs may take."""


def settings_file() -> Path:
    """``$XDG_CONFIG_HOME/tracetui/config.toml``, else ``~/.config/tracetui/config.toml``."""
    base = os.environ.get("XDG_CONFIG_HOME") or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / ".config") / "tracetui" / "config.toml"


def verdicts_file() -> Path:
    """``$XDG_STATE_HOME/tracetui/verdicts.jsonl``, else ``~/.local/state/tracetui/verdicts.jsonl``."""
    base = os.environ.get("XDG_STATE_HOME") or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state") / "tracetui" / "verdicts.jsonl"


def pass_rule(text: object) -> PassRule | None:
    """Parse the value of the setting ``pass``; None where it isn't set. Raises `UsageError`."""
    if text is None:
        return None
    try:
        if isinstance(text, str):
            return PassRule.parse(text)
        raise UsageError(f"{text!r} is no text; write for example 'reward>=0.9'")
    except UsageError as error:
        raise UsageError(f"{settings_file()}: pass: {error}") from None


def cache_limit(megabytes: object) -> int:
    """Convert the value of the setting ``cache_mb`` to bytes; None: the default. Raises `UsageError`."""
    if megabytes is None:
        return DEFAULT_CACHE * 1_000_000
    if isinstance(megabytes, int) and not isinstance(megabytes, bool) and megabytes >= 0:
        return megabytes * 1_000_000
    raise UsageError(f"{settings_file()}: cache_mb is {megabytes!r}; it can be a number of megabytes, 0 for no cache")


def load_pass_rule() -> PassRule | None:
    """Read the setting ``pass``; None where there is no such file or setting. Raises `UsageError`."""
    return pass_rule(_setting("pass"))


def load_cache_limit() -> int:
    """Read the setting ``cache_mb``, in bytes. Raises `UsageError`."""
    return cache_limit(_setting("cache_mb"))


def load_traces() -> str | None:
    """Read the setting ``traces``: the directory to open without a path. None if it isn't set. Raises `UsageError`."""
    found = _setting("traces")
    if found is None or isinstance(found, str):
        return None if not found else os.path.expanduser(found)
    raise UsageError(f"{settings_file()}: traces: {found!r} is no text")


def _setting(name: str) -> object:
    try:
        text = settings_file().read_text("utf-8")
        import tomllib  # most have no such file

        return tomllib.loads(text).get(name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{settings_file()}: {error}") from error
