"""A database that another program locks while a run is read in pieces: the run is never complete with a part of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.formats.opencode_build import Writer, database
from tracetui.formats import sqlite
from tracetui.formats.opencode import reading
from tracetui.live.load import Reader
from tracetui.model import RunRef
from tracetui.sources.local import LocalFile, LocalSource

PROMPTS = 300


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session that is read in many pieces."""
    monkeypatch.setattr(reading, "PIECE_SECONDS", 0.0)
    path = tmp_path / "opencode.db"
    with database(path) as db:
        db.execute("BEGIN")
        writer = Writer(db)
        writer.session("ses_1", 0, "Many prompts")
        for number in range(PROMPTS):
            writer.user(f"msg_{number:04}", "ses_1", number, "Go on")
        db.execute("COMMIT")
    return path


@pytest.fixture
def lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """Another program's connection; the database is read as one with locks."""

    def locking(file: LocalFile) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(path, timeout=0, isolation_level=None))

    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        monkeypatch.setattr(LocalFile, "database", locking)
        yield db


def test_a_run_waits_for_a_locked_database_and_is_incomplete_meanwhile(path: Path, lock: sqlite3.Connection) -> None:
    reader = Reader(LocalSource(), RunRef("opencode", str(path), "ses_1"))
    reader.read()
    spans = len(reader)
    lock.execute("BEGIN EXCLUSIVE")
    for _ in range(3):
        reader.read()
        assert (len(reader), reader.more, reader.failure) == (spans, True, None)
        assert not reader.build().complete
    lock.execute("COMMIT")
    reader.catch_up()
    assert (len(reader), reader.more) == (2 * PROMPTS, False)


def test_a_run_of_a_database_that_stays_locked_fails_and_is_read_later(
    path: Path, lock: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.0)
    reader = Reader(LocalSource(), RunRef("opencode", str(path), "ses_1"))
    reader.read()
    spans = len(reader)
    lock.execute("BEGIN EXCLUSIVE")
    reader.catch_up()
    assert len(reader) == spans
    assert reader.failure is not None
    assert "locked" in reader.failure.reason
    assert not reader.build().complete
    lock.execute("COMMIT")
    reader.catch_up()
    assert len(reader) == 2 * PROMPTS
    assert reader.build().complete
    assert not reader.build().problems
