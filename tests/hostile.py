"""Runs of every format in which every string attacks: the built-in samples, with payloads in ids, names and texts."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tracetui import demo, testing
from tracetui.formats import registry
from tracetui.testing import hostile

ATTACKS: Final = (
    "\x1b[31;5m\x1b[2J\x1b]0;owned\x07\x1b]52;c;Q05SWQ==\x07\x1bP1$r\x1b\\",
    "\x1b]8;;file:///etc/passwd\x1b\\link\x1b]8;;\x1b\\\x1b",
    "\x9b2J\x9d52;c;Q05SWQ==\x9c\x90q\x9c\x85\x8d",
    "[/] [@click=app.quit]quit[/] [link='file:///etc/passwd']x[/link] [red]",
    "[bold [/bold [$x] ${x} \\[ {x} %s",
    "\u202eevil\u202c\u2066\u061c\u200b\u200d\ufeff\u2028\u2029\u00ad\U000e0041",
    "e" + "\u0301" * 20 + "👩‍👩‍👧‍👦🏽🇩🇪中文字한글ｱ\ufe0f\u1160\u3164",
    "\x00\x07\x08\t\n\r\x0b\x0c\x0e\x0f\x7f",
    "\udfff\ud800",
)
LONG_AGO: Final = 1_700_000_000
LONGEST_WORD: Final = 80
_FORMATS: Final = Path(__file__).parent / "formats"
_FOR_PEOPLE: Final = frozenset(
    ("agent", "branch", "command", "content", "cwd", "error", "gitBranch", "input", "message", "model", "output")
).union(("prompt", "result", "stderr", "stdout", "summary", "text", "thinking", "title"))
Spare = Callable[[str, str], bool]
"""Whether a string stays as it is: itself, and the name that it has."""
_KIND: Final = re.compile(r"[a-z_.-]*")
_WORDS: Final = re.compile(r"[A-Za-z0-9_.:+-]{1,40}")
_PLAIN: Final = frozenset(
    ("type", "role", "status", "schema_version", "kind", "format", "event", "step_type", "schema")
)


def write(folder: Path, now: datetime) -> None:
    """Write the samples below `folder`, and beside each of them its hostile copy."""
    demo.write(folder, now)
    number = 0
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name.endswith(("-wal", "-shm")):
            continue
        hostile_path = _hostile_path(path, number)
        number += 1
        if path.suffix == ".db":
            _database(path, hostile_path)
        elif path.suffix in (".json", ".jsonl"):
            _document(path, hostile_path)
        if hostile_path.exists():
            seconds = path.stat().st_mtime
            os.utime(hostile_path, (seconds, seconds))


def write_cases(
    folder: Path, formats: Iterable[str] = tuple(registry.BUILT_IN), *, every: int = 1
) -> dict[str, list[Path]]:
    """The cases of formats below `folder`, with payloads in all texts; for each format the folders that are its.

    Of `every` so many cases of a format, the first is written.

    Names and words that formats go by stay, so that what is read is as much as ever.
    """
    folders: dict[str, list[Path]] = {}
    for name in formats:
        for case in testing.cases(_FORMATS / name.replace("-", "_"))[::every]:
            root = shutil.copytree(case / "input", folder / name / case.name)
            for path in sorted(root.rglob("*")):
                if path.is_file() and not path.name.endswith(("-wal", "-shm")):
                    _attack_file(path)
                    os.utime(path, (LONG_AGO, LONG_AGO))
            folders.setdefault(name, []).append(root)
    return folders


def prefix(folder: Path, attack: str) -> None:
    """Put `attack` before every text of the JSON below `folder`, so that ids that were equal still are.

    Times stay, and lower-case words, which a format may go by.
    """
    for path in folder.rglob("*"):
        records, document = hostile.parse(path.read_bytes()) if path.is_file() else ([], False)
        for where, key in hostile.places(records):
            value = where[key]
            if isinstance(value, str) and not _is_word(value, str(key)) and not _KIND.fullmatch(value):
                where[key] = attack + value
        if records:
            path.write_bytes(hostile.dumps(records, document))


def _attack_file(path: Path) -> None:
    data = path.read_bytes()
    if data.startswith(b"SQLite format 3\0"):
        _database(path, path, spare=_is_spared)
    elif zipfile.is_zipfile(path):
        _archive(path)
    else:
        path.write_bytes(_in_texts(data))


def _in_texts(data: bytes) -> bytes:
    """JSON or lines of it with an attack in every text; what is neither stays as it is."""
    records, document = hostile.parse(data)
    changed = [_attacked(record, spare=_is_spared) for record in records]
    return hostile.dumps(changed, document) if changed else data


def _archive(path: Path) -> None:
    """Attack the members that the standard library can read."""
    with zipfile.ZipFile(path) as archive:
        try:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        except NotImplementedError:
            return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, _in_texts(data))


def _is_spared(value: str, key: str) -> bool:
    """A word that a format may go by: one without blanks, unless its name says that it is for people."""
    return _is_word(value, key) or (key not in _FOR_PEOPLE and " " not in value and len(value) <= LONGEST_WORD)


def _hostile_path(path: Path, number: int) -> Path:
    attack = ATTACKS[number % len(ATTACKS)].replace("/", "|").replace("\0", "").encode("utf-8", "surrogatepass")
    return path.with_name(os.fsdecode(attack[:120] + b"\xff ") + path.name)


def _document(path: Path, target: Path) -> None:
    records, document = hostile.parse(path.read_bytes())
    if not records:
        return
    changed = [_attacked(record) for record in records]
    if document:
        target.write_text(json.dumps(changed[0]))
    else:
        target.write_text("".join(json.dumps(record) + "\n" for record in changed))


def _is_word(value: str, key: str) -> bool:
    if key in _PLAIN or not value:
        return True
    with suppress(ValueError):
        datetime.fromisoformat(value)
        return True
    return key in ("phase", "source", "level", "mode", "operation") and _WORDS.fullmatch(value) is not None


def _attacked(value: Any, key: str = "", depth: int = 0, *, spare: Spare | None = None) -> Any:
    """A value with an attack in every string that is no time and no word that a format knows, and with hostile keys."""
    if isinstance(value, str):
        return (
            value
            if (spare or _is_word)(value, key)
            else f"{value[:40]}{ATTACKS[len(value) % len(ATTACKS)]}{value[40:]}"
        )
    if isinstance(value, list):
        return [_attacked(item, key, depth + 1, spare=spare) for item in value]
    if isinstance(value, dict):
        changed = {name: _attacked(item, name, depth + 1, spare=spare) for name, item in value.items()}
        if depth:
            attack = ATTACKS[(len(changed) + depth) % len(ATTACKS)]
            changed[attack] = {attack: [attack, "x" * 100_000 if key == "metadata" else attack]}
        return changed
    return value


def _database(path: Path, target: Path, *, spare: Spare | None = None) -> None:
    target.write_bytes(path.read_bytes())
    log = path.with_name(path.name + "-wal")
    if log.exists():
        target.with_name(target.name + "-wal").write_bytes(log.read_bytes())
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = OFF")  # durability doesn't matter
        connection.execute("BEGIN")
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            for column in columns:
                if column not in _PLAIN and not column.endswith(("_at", "id")):
                    _column(connection, table, column, spare)
        connection.execute("COMMIT")


def _column(connection: sqlite3.Connection, table: str, column: str, spare: Spare | None) -> None:
    """Attack one column; a JSON value stays one."""
    rows = connection.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall()
    for row, value in rows:
        if not isinstance(value, str):
            continue
        try:
            changed = json.dumps(_attacked(json.loads(value), "x", 1, spare=spare))
        except ValueError:
            changed = _attacked(value, column, 1, spare=spare)
        data = changed.encode("utf-8", "surrogatepass")
        with suppress(sqlite3.Error):
            connection.execute(f'UPDATE "{table}" SET "{column}" = CAST(? AS TEXT) WHERE rowid = ?', (data, row))
