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
from collections.abc import Collection, Mapping, Sequence
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
    pass_rule: Any = msgspec.field(name="pass", default=None)
    cache_mb: Any = None
    list: ListConfig | None = None
    keys: dict[str, str] = {}


_ALLOWED: Final[Mapping[str, Collection[str] | str]] = {
    "theme": THEMES,
    "ascii": "true or false",
    "time": ("local", "utc"),
    "traces": "a directory in quotes, e.g. '~/traces'",
    "list": "a section, [list]",
    "keys": "a section, [keys], with a key in quotes for each command",
    "sort": SORTS,
    "group": GROUPS,
    "columns": "'fitting', 'all' or a list of columns",
}
"""The values of a setting, or a description of them; `store.settings` checks the others."""


def load() -> Config:
    """Load the user's settings, or the defaults if there is no file. Raises `UsageError` for an invalid file."""
    values = read_settings()
    if isinstance(section := values.get("list"), Mapping):
        _check(section, ListConfig, " in [list]")
    _check(values, Config)
    config = msgspec.convert(values, Config)
    _columns(config.list.columns if config.list is not None else "fitting")
    rule(config)
    cache_limit(config)
    return config


def _check(values: Mapping[str, Any], schema: type[Config | ListConfig], place: str = "") -> None:
    """Raise `UsageError` for a name that is no setting, or a value that a setting can't have."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(schema)}
    for name, value in values.items():
        if name not in fields:
            suggestion = nearest(name, [*fields])
            hint = f"did you mean {suggestion!r}?" if suggestion else f"there are {', '.join(fields)}"
            raise UsageError(f"{settings_file()}: no setting {name!r}{place}; {hint}")
        allowed = _ALLOWED.get(name, "")
        if isinstance(allowed, str):
            is_valid, suggestion = _has_type(value, fields[name].type), None
        else:
            is_valid, suggestion = value in [*allowed], nearest(str(value), allowed)
            allowed = ", ".join(allowed)
        if not is_valid:
            hint = f"; did you mean {suggestion!r}?" if suggestion else ""
            raise UsageError(f"{settings_file()}: {name}{place} is {value!r}; it can be {allowed}{hint}")


def _has_type(value: object, type_: Any) -> bool:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return False
    return True


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
