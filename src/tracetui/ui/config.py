"""Optional settings file, and the list arrangement saved between sessions.

``$XDG_CONFIG_HOME/tracetui/config.toml`` (else ``~/.config``)::

    theme = "light"          # dark, light, high-contrast, ansi
    ascii = false            # draw with ASCII characters only
    time = "utc"             # or "local"
    traces = "~/traces"      # directory to open without a PATH
    pass = "reward>=0.9"     # which score makes a run pass: see docs/query.md
    [list]
    sort = "newest"          # and group, columns = ["name", "cost", "result"]
    [keys]
    failures = "x"           # command ids and keys: see docs/keys.md
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tracetui.analysis.arrangement import GROUPS, SORTS, Arrangement
from tracetui.errors import UsageError, nearest
from tracetui.model import PassRule
from tracetui.store import settings
from tracetui.store.settings import THEMES, pass_rule, read_own_file, read_settings, settings_file
from tracetui.ui.commands import COMMANDS, Command
from tracetui.views.list.runs import COLUMNS


class ListConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Initial arrangement of the list."""

    sort: str = "newest"
    group: str = "day"
    columns: str | tuple[str, ...] = "fitting"


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Schema of ``config.toml``."""

    theme: str = "dark"
    ascii: bool = False
    time: str = "local"
    traces: str | None = None
    pass_rule: str | None = msgspec.field(name="pass", default=None)
    cache_mb: int | None = None
    list: ListConfig | None = None
    keys: dict[str, str] = {}


_CHOICES: Final = {"theme": THEMES, "time": ("local", "utc")}
_LIST_CHOICES: Final = {"sort": SORTS, "group": GROUPS}


def load() -> Config:
    """Load the user's settings, or the defaults if there is no file. Raises `UsageError` for an invalid file."""
    path = settings_file()
    try:
        found = msgspec.convert(read_settings(), Config)
    except ValueError as error:  # invalid type or name
        raise UsageError(f"{path}: {error}") from error
    for owner, choices in ((found, _CHOICES), (found.list, _LIST_CHOICES)):
        for name, allowed in choices.items():
            value = getattr(owner, name, None)
            if value is not None and value not in allowed:
                like = nearest(value, allowed)
                hint = f"; did you mean {like!r}?" if like else ""
                raise UsageError(f"{path}: {name} is {value!r}; it can be {', '.join(allowed)}{hint}")
    _columns(found.list.columns if found.list is not None else "fitting")
    rule(found)
    cache_limit(found)
    return found


def _columns(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a setting; none for ``fitting``. Raises `UsageError` for an unknown one."""
    if value == "fitting":
        return ()
    named = (*COLUMNS,) if value == "all" else (value,) if isinstance(value, str) else value
    for name in named:
        if name not in COLUMNS:
            like = nearest(name, COLUMNS)
            hint = f"; did you mean {like!r}?" if like else ""
            raise UsageError(f"{settings_file()}: columns has {name!r}; it can have {', '.join(COLUMNS)}{hint}")
    return named


def rule(config: Config) -> PassRule | None:
    """The user's rule for scores. Raises `UsageError` for an invalid one."""
    return pass_rule(config.pass_rule)


def cache_limit(config: Config) -> int:
    """Bytes that the cache of runs may take. Raises `UsageError` for an invalid value."""
    return settings.cache_limit(config.cache_mb)


def bind_keys(config: Config) -> tuple[Command, ...]:
    """The command table with the user's keys, each replacing the first key of its command."""
    unknown = set(config.keys) - {command.id for command in COMMANDS}
    if unknown:
        like = nearest(min(unknown), [command.id for command in COMMANDS])
        hint = f"did you mean {like!r}? " if like else ""
        raise UsageError(f"config.toml: there is no command {min(unknown)!r}; {hint}docs/keys.md lists them")
    own = set(config.keys.values())
    return tuple(
        command._replace(
            keys=(config.keys[command.id], *command.keys[1:])
            if command.id in config.keys
            else tuple(key for key in command.keys if key not in own) or ("",)
        )
        for command in COMMANDS
    )


def load_arrangement(config: Config) -> Arrangement:
    """Initial arrangement of the list: from the settings file, else from the last session."""
    if config.list is not None:
        return Arrangement(config.list.sort, group=config.list.group, columns=_columns(config.list.columns))
    with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError, RecursionError):
        left: Any = msgspec.json.decode(read_own_file(_arrangement_path()), type=Arrangement)
        if left.sort in SORTS and left.group in GROUPS:
            columns = tuple(name for name in left.columns if name in COLUMNS)
            return Arrangement(left.sort, left.reverse, left.group, columns=columns, share=left.share)
    return Arrangement()


def save_arrangement(left: Arrangement, roots: Sequence[str] = ()) -> None:
    """Save sorting, grouping and columns for the next session.

    Does nothing if the file is not writable or is in one of `roots`: trace directories are read-only.
    """
    saved = msgspec.structs.replace(left, words="", failures=False)
    path = _arrangement_path()
    there = Path(os.path.realpath(path))
    if any(there.is_relative_to(os.path.realpath(root)) for root in roots):
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, new = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(saved))
        os.replace(new, path)  # also a pipe, which would wait for a reader


def _arrangement_path() -> Path:
    return _directory("XDG_STATE_HOME", ".local/state") / "list.json"


def _directory(variable: str, default: str) -> Path:
    base = os.environ.get(variable) or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / default) / "tracetui"
