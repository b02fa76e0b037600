"""Where the user's files are, and the settings that commands without a screen need, too."""

from __future__ import annotations

import errno
import os
import stat as modes
from pathlib import Path
from typing import Any, Final

from tracetui.errors import UsageError
from tracetui.model import PassRule

THEMES: Final = ("dark", "light", "high-contrast", "ansi")
MAX_SIZE: Final = 1 << 20
"""Bytes of a settings file, or of another file of ours that is read as a whole."""
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


def read_own_file(path: Path, most: int = MAX_SIZE) -> bytes:
    """Read a file that the user or we wrote; a link is followed, as people link their settings.

    Raises `OSError` also for a pipe, a device or a folder, and for more than `most` bytes; never waits.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(fd, "rb", buffering=0) as file:
        if not modes.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        parts, remaining = list[bytes](), most + 1
        while remaining and (data := file.read(remaining)):
            parts.append(data)
            remaining -= len(data)
    if not remaining:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MB")
    return b"".join(parts)


def read_settings() -> dict[str, Any]:
    """Read the settings file, empty if there is none; values are unchecked. Raises `UsageError` if it is no TOML."""
    path = settings_file()
    try:
        text = read_own_file(path).decode("utf-8")
        import tomllib  # most have no such file

        return tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except RecursionError:
        raise UsageError(f"{path}: nested too deeply") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def pass_rule(text: object) -> PassRule | None:
    """Parse the value of the setting ``pass``; None where it isn't set. Raises `UsageError`."""
    if text is None:
        return None
    try:
        if isinstance(text, str):
            return PassRule.parse(text)
        raise UsageError(f"must be a string, e.g. 'reward>=0.9', not {text!r}")
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
    return pass_rule(read_settings().get("pass"))


def load_cache_limit() -> int:
    """Read the setting ``cache_mb``, in bytes. Raises `UsageError`."""
    return cache_limit(read_settings().get("cache_mb"))


def load_traces() -> str | None:
    """Read the setting ``traces``: the directory to open without a path. None if it isn't set. Raises `UsageError`."""
    traces = read_settings().get("traces")
    if traces is None or isinstance(traces, str):
        return None if not traces else os.path.expanduser(traces)
    raise UsageError(f"{settings_file()}: traces must be a string, e.g. '~/traces', not {traces!r}")
