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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tracetui.analysis.arrangement import GROUPS, SORTS, Arrangement
from tracetui.errors import UsageError, nearest
from tracetui.model import PassRule
from tracetui.store import settings
from tracetui.store.settings import THEMES, pass_rule, read_own_file, read_settings, settings_file
from tracetui.ui.commands import COMMANDS, Command
from tracetui.views.list.columns import COLUMNS


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
    path, values = settings_file(), read_settings()
    try:
        config = msgspec.convert(values, Config)
    except ValueError as error:  # invalid type or name
        _refuse_unknown(values)
        raise UsageError(f"{path}: {error}") from error
    for owner, choices in ((config, _CHOICES), (config.list, _LIST_CHOICES)):
        for name, allowed in choices.items():
            value = getattr(owner, name, None)
            if value is not None and value not in allowed:
                suggestion = nearest(value, allowed)
                hint = f"; did you mean {suggestion!r}?" if suggestion else ""
                raise UsageError(f"{path}: {name} is {value!r}; it can be {', '.join(allowed)}{hint}")
    _columns(config.list.columns if config.list is not None else "fitting")
    rule(config)
    cache_limit(config)
    return config


def _refuse_unknown(values: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a name that is no setting."""
    section = values.get("list")
    for schema, given, place in ((Config, values, ""), (ListConfig, section, " in [list]")):
        names = [field.encode_name for field in msgspec.structs.fields(schema)]
        for name in given if isinstance(given, Mapping) else ():
            if name not in names:
                suggestion = nearest(name, names)
                hint = f"did you mean {suggestion!r}?" if suggestion else f"there are {', '.join(names)}"
                raise UsageError(f"{settings_file()}: no setting {name!r}{place}; {hint}")


def _columns(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a setting; none for ``fitting``. Raises `UsageError` for an unknown one."""
    if value == "fitting":
        return ()
    named = (*COLUMNS,) if value == "all" else (value,) if isinstance(value, str) else value
    for name in named:
        if name not in COLUMNS:
            suggestion = nearest(name, COLUMNS)
            hint = f"; did you mean {suggestion!r}?" if suggestion else ""
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
        suggestion = nearest(min(unknown), [command.id for command in COMMANDS])
        hint = f"did you mean {suggestion!r}? " if suggestion else ""
        raise UsageError(f"config.toml: there is no command {min(unknown)!r}; {hint}docs/keys.md lists them")
    user_keys = set(config.keys.values())
    return tuple(
        command._replace(
            keys=(config.keys[command.id], *command.keys[1:])
            if command.id in config.keys
            else tuple(key for key in command.keys if key not in user_keys) or ("",)
        )
        for command in COMMANDS
    )


class SavedLists(msgspec.Struct, forbid_unknown_fields=True):
    """What the list keeps between sessions: its columns for all directories, and the order of each directory."""

    columns: tuple[str, ...] = ()
    share: int = 0
    orders: dict[str, tuple[str, bool, str]] = {}
    """Sort, whether it is reversed, and group, by directory; the last one used is at the end."""


MAX_ORDERS: Final = 100
"""Directories whose order is kept."""


def load_arrangement(config: Config, roots: Sequence[str] = ()) -> Arrangement:
    """Initial arrangement of the list: from the settings file, else from the last session in the same directories.

    Directories that were not opened before have their newest runs first.
    """
    if config.list is not None:
        return Arrangement(config.list.sort, group=config.list.group, columns=_columns(config.list.columns))
    saved = _load_saved()
    columns = tuple(name for name in saved.columns if name in COLUMNS)
    default = Arrangement(columns=columns, share=saved.share)
    sort, reverse, group = saved.orders.get(_directories(roots), (default.sort, default.reverse, default.group))
    if sort not in SORTS or group not in GROUPS:
        return default
    return msgspec.structs.replace(default, sort=sort, reverse=reverse, group=group)


def save_arrangement(arrangement: Arrangement, roots: Sequence[str] = ()) -> None:
    """Save columns, and the order of the list in these directories, for the next session.

    Does nothing if the file is not writable or is in one of `roots`: trace directories are read-only.
    """
    path, directories = _arrangement_path(), _directories(roots)
    file_path = Path(os.path.realpath(path))
    if any(file_path.is_relative_to(os.path.realpath(root)) for root in roots):
        return
    orders = _load_saved().orders
    orders.pop(directories, None)
    orders[directories] = arrangement.sort, arrangement.reverse, arrangement.group
    saved = SavedLists(arrangement.columns, arrangement.share, dict([*orders.items()][-MAX_ORDERS:]))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, new = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(saved))
        os.replace(new, path)  # also a pipe, which would wait for a reader


def _load_saved() -> SavedLists:
    with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return msgspec.json.decode(read_own_file(_arrangement_path()), type=SavedLists)
    return SavedLists()


def _directories(roots: Sequence[str]) -> str:
    """The key of the directories of a session; addresses of other machines stay as they are."""
    return "\n".join(sorted(root if "://" in root else os.path.realpath(root) for root in roots))


def _arrangement_path() -> Path:
    return _directory("XDG_STATE_HOME", ".local/state") / "list.json"


def _directory(variable: str, default: str) -> Path:
    base = os.environ.get(variable) or ""
    return (Path(base) if os.path.isabs(base) else Path.home() / default) / "tracetui"
