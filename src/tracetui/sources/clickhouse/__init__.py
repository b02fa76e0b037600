"""ClickHouse with the tables of the OpenTelemetry exporter, as a folder in which every trace is a file of rows.

Facts: the ClickHouse exporter of opentelemetry-collector-contrib, both variants (attributes as ``Map`` or ``JSON``).
`tracetui.formats.otlp` reads the rows; nothing here interprets them.

An address of a database has no password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from netrc import NetrcParseError, netrc
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from tracetui.errors import UsageError

USER: Final = "CLICKHOUSE_USER"
PASSWORD: Final = "CLICKHOUSE_PASSWORD"  # noqa: S105 — the name of a variable
HANDOVER: Final = "TRACETUI_CLICKHOUSE_PASSWORDS"
"""Variable by which a process that was started with a password in an address passes it to its successor."""
_TABLE: Final = "otel_traces"
_NETRC_BYTES: Final = 1 << 20
_PORTS: Final = {False: 8123, True: 8443}
_URL: Final = re.compile(
    r"(?P<folder>clickhouse(?P<secure>s?)://(?:(?P<user>[^@:/#]*)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^@:/#\[\]]+)"
    r"(?::(?P<port>\d{1,5}))?/(?P<database>[^/#]+))/?(?P<below>[^#]*)"
)
_SECRET: Final = re.compile(r"(clickhouses?://[^@:/#]*):(?!\d+/[^@]*$)(.*)@")
_given: dict[str, str] = {}
"""Passwords that were part of an address, by what precedes them in it."""


class Database(msgspec.Struct, frozen=True):
    """A database: where it is, and the table of spans in it."""

    folder: str
    """Its address, as the user writes it; never with a password."""
    host: str
    port: int
    secure: bool
    user: str
    """Empty: not part of the address."""
    name: str
    table: str = _TABLE

    @property
    def server(self) -> str:
        """Host and port, as messages name it."""
        return f"{self.host}:{self.port}"

    def path(self, trace: str) -> str:
        """Return the path of a trace."""
        return f"{self.folder}/{quote(trace, safe='')}"


def parse(path: str) -> tuple[Database, list[str]]:
    """Return the database of a path or address, and the parts below it: a trace, and what follows.

    Raises `UsageError`.
    """
    match = _URL.match(path)
    if match is None or int(match["port"] or 1) > 65_535:
        location = path.rpartition("@")[2].partition("://")[2] or "…"
        raise UsageError(f"{location!r} isn't the address of a database; write clickhouse://USER@HOST:8123/DATABASE")
    name, _, table = unquote(match["database"]).partition(".")
    secure = bool(match["secure"])
    port = int(match["port"] or _PORTS[secure])
    user = unquote(match["user"] or "")
    database = Database(match["folder"], match["host"].strip("[]"), port, secure, user, name, table or _TABLE)
    return database, [unquote(part) for part in match["below"].split("/") if part]


# ---- passwords


def take_passwords(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command line without the passwords in addresses, which `credentials` then uses."""
    clean = []
    for argument in arguments:
        if (match := _SECRET.search(argument)) is not None:
            _given[match[1]] = unquote(match[2])
            argument = f"{argument[: match.end(1)]}@{argument[match.end() :]}"
        clean.append(argument)
    return clean


def hand_over() -> str:
    """Return the passwords that were part of addresses, for `HANDOVER`."""
    return msgspec.json.encode(_given).decode()


def take_over() -> None:
    """Take the passwords in `HANDOVER`, and remove it from the environment."""
    text = os.environ.pop(HANDOVER, "")
    if text:
        try:
            _given.update(msgspec.json.decode(text, type=dict[str, str]))
        except ValueError:
            return


def credentials(database: Database) -> tuple[str, str]:
    """Return user and password: those of the address, else of the environment, else of ``~/.netrc``."""
    begin = database.folder.partition("@")[0] if "@" in database.folder else ""
    user = database.user or os.environ.get(USER, "")
    password = _given.get(begin, os.environ.get(PASSWORD))
    if password is None:
        login = _netrc_login(database.host)
        if login is not None and user in ("", login[0]):
            return login
    return user or "default", password or ""


def _netrc_login(host: str) -> tuple[str, str] | None:
    path = os.environ.get("NETRC") or os.path.join(os.path.expanduser("~"), ".netrc")
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _NETRC_BYTES:  # a pipe would never end
            return None
        login = netrc(path).authenticators(host)
    except (OSError, ValueError, NetrcParseError):
        return None
    return None if login is None else (login[0] or "", login[2] or "")
