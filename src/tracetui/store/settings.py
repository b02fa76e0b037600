"""The user's settings file: where it is, and the settings that commands without a screen need, too."""

from __future__ import annotations

import os
from pathlib import Path

from tracetui.errors import UsageError
from tracetui.model import PassRule


def settings_file() -> Path:
    """``$XDG_CONFIG_HOME/tracetui/config.toml``, else ``~/.config/tracetui/config.toml``."""
    base = os.environ.get("XDG_CONFIG_HOME") or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / ".config") / "tracetui" / "config.toml"


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


def load_pass_rule() -> PassRule | None:
    """Read the setting ``pass``; None where there is no such file or setting. Raises `UsageError`."""
    return pass_rule(_setting("pass"))


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
