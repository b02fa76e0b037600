"""Private copies of live databases follow their writers exactly, and read only the changes."""

from __future__ import annotations

import errno
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from tracetui.sources import sqlite
from tracetui.sources.sqlite import CopyCache

Rows = list[tuple[int, bytes]]


def open_writer(path: Path, *pragmas: str) -> sqlite3.Connection:
    writer = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "wal_autocheckpoint = 0", *pragmas):
        writer.execute(f"PRAGMA {pragma}")
    writer.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER, data BLOB)")
    return writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "live.db"


@pytest.fixture
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_writer(path)) as connection:
        yield connection


class Reader:
    """Reads all rows again and again, and records which files were copied."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path, self._copies = str(path), CopyCache()
        self.copied: list[str] = []
        copy_differing = sqlite._copy_differing

        def copied(source: str, target: str) -> None:
            self.copied.append(source.removeprefix(self._path) or "database")
            copy_differing(source, target)

        monkeypatch.setattr(sqlite, "_copy_differing", copied)

    def rows(self) -> Rows:
        with sqlite.connect(self._path, self._copies) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return rows_of(connection)


@pytest.fixture
def reader(path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    return Reader(path, monkeypatch)


def rows_of(connection: sqlite3.Connection) -> Rows:
    return connection.execute("SELECT n, data FROM t ORDER BY n, data").fetchall()


def insert(writer: sqlite3.Connection, *numbers: int, size: int = 3000) -> None:
    writer.execute("BEGIN")
    writer.executemany("INSERT INTO t VALUES (?, ?)", [(n, bytes([n % 256]) * size) for n in numbers])
    writer.execute("COMMIT")


def test_only_new_frames_are_read_once_a_database_was_copied(writer: sqlite3.Connection, reader: Reader) -> None:
    insert(writer, *range(50))
    assert reader.rows() == rows_of(writer)
    assert reader.copied == ["database", "-wal"]
    for number in range(50, 60):
        insert(writer, number)
        assert reader.rows() == rows_of(writer)
    writer.execute("DELETE FROM t WHERE n < 40")
    writer.execute("VACUUM")
    assert reader.rows() == rows_of(writer)
    assert reader.copied == ["database", "-wal"]


@pytest.mark.parametrize("mode", ["PASSIVE", "RESTART"])
def test_a_restarted_log_costs_only_its_new_frames(writer: sqlite3.Connection, reader: Reader, mode: str) -> None:
    insert(writer, *range(50))
    reader.rows()
    for number in range(50, 60):
        insert(writer, number, number)  # not seen before the log restarts
        writer.execute(f"PRAGMA wal_checkpoint({mode})")
        insert(writer, number)
        assert reader.rows() == rows_of(writer)
        insert(writer, *range(40))  # more frames than the next time are overwritten
        assert reader.rows() == rows_of(writer)
    assert reader.copied == ["database", "-wal"]


def test_frames_that_were_overwritten_before_they_were_seen_are_not_missed(
    writer: sqlite3.Connection, reader: Reader
) -> None:
    insert(writer, 1)
    assert reader.rows() == rows_of(writer)
    insert(writer, *range(100))
    writer.execute("PRAGMA wal_checkpoint(RESTART)")
    writer.execute("CREATE TABLE other (a)")
    for number in range(20):
        writer.execute("INSERT INTO other VALUES (?)", (number,))
    assert reader.rows() == rows_of(writer)
    assert reader.copied == ["database", "-wal"] * 2


def test_a_log_that_was_cut_or_removed_and_began_again_is_noticed(
    path: Path, writer: sqlite3.Connection, reader: Reader
) -> None:
    insert(writer, 1)
    reader.rows()
    insert(writer, *range(100))
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    insert(writer, 2)
    assert reader.rows() == rows_of(writer)
    insert(writer, *range(100))
    writer.close()
    assert not path.with_name("live.db-wal").exists()
    with closing(open_writer(path)) as writer:
        insert(writer, 3)
        assert reader.rows() == rows_of(writer)


def test_a_database_without_its_log_is_read_in_place(path: Path, writer: sqlite3.Connection, reader: Reader) -> None:
    insert(writer, 1)
    reader.rows()
    insert(writer, 2)
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert reader.rows() == rows_of(writer)
    assert reader.copied == ["database", "-wal"]


def test_another_database_in_its_place_is_noticed(path: Path, writer: sqlite3.Connection, reader: Reader) -> None:
    insert(writer, *range(50))
    reader.rows()
    other = path.with_name("other")
    with closing(open_writer(other)) as replacement:
        insert(replacement, 7)
        for suffix in ("-wal", "-shm", ""):
            os.replace(f"{other}{suffix}", f"{path}{suffix}")
        assert [row[0] for row in reader.rows()] == [7]


def test_many_new_frames_are_folded_in_without_comparing_the_database(
    writer: sqlite3.Connection, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(writer, *range(10))
    reader.rows()
    monkeypatch.setattr(sqlite, "MAX_FRAME_BYTES", 20_000)
    insert(writer, *range(100))
    assert reader.rows() == rows_of(writer)
    insert(writer, 1)
    assert reader.rows() == rows_of(writer)
    assert reader.copied == ["database", "-wal", "-wal"]


def test_half_a_frame_and_an_open_transaction_are_left_out(
    path: Path, writer: sqlite3.Connection, reader: Reader
) -> None:
    insert(writer, *range(10))
    before = reader.rows()
    log = path.with_name("live.db-wal")
    end = log.stat().st_size
    insert(writer, 11)
    after, data = rows_of(writer), log.read_bytes()
    for size in (end + 10, end + 24, end + 100, len(data) - 1):
        os.truncate(log, size)
        assert reader.rows() == before
    log.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert reader.rows() == before
    log.write_bytes(data)
    assert reader.rows() == after
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN")
    writer.executemany("INSERT INTO t VALUES (?, ?)", [(n, b"x" * 3000) for n in range(500)])
    assert log.stat().st_size > len(data), "the open transaction is in the log already"
    assert reader.rows() == after
    writer.execute("ROLLBACK")
    assert reader.rows() == after
    assert reader.copied == ["database", "-wal"]


def test_a_reader_of_an_older_state_does_not_stop_another(
    path: Path, writer: sqlite3.Connection, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = CopyCache()
    with ExitStack() as readers:
        seen = []
        for number in range(4):
            insert(writer, number)
            seen.append((readers.enter_context(sqlite.connect(str(path), copies)), rows_of(writer)))
        for connection, rows in seen:
            assert rows_of(connection) == rows
    assert len(copies._databases[str(path)]._copies) == sqlite.SPARE_COPIES
    reader.copied.clear()
    for number in range(4, 8):
        insert(writer, number)
        with sqlite.connect(str(path), copies) as connection:
            assert rows_of(connection) == rows_of(writer)
    assert reader.copied == []


def test_readers_of_one_state_share_a_copy(path: Path, writer: sqlite3.Connection, reader: Reader) -> None:
    copies = CopyCache()
    insert(writer, 1)
    with sqlite.connect(str(path), copies) as first, sqlite.connect(str(path), copies) as other:
        assert rows_of(first) == rows_of(other) == rows_of(writer)
    assert reader.copied == ["database", "-wal"]


@pytest.mark.parametrize("page_size", [512, 4096, 65_536])
def test_a_copy_equals_what_the_writer_sees(path: Path, page_size: int) -> None:
    chance = random.Random(page_size)
    copies = CopyCache()

    def commit(connection: sqlite3.Connection) -> None:
        insert(connection, *(chance.randrange(300) for _ in range(chance.randrange(1, 12))), size=chance.randrange(900))

    steps: list[Callable[[sqlite3.Connection], object]] = [
        *[commit] * 8,
        lambda connection: connection.execute("DELETE FROM t WHERE n % 5 = ?", (chance.randrange(5),)),
        lambda connection: connection.execute("PRAGMA wal_checkpoint(PASSIVE)"),
        lambda connection: connection.execute("PRAGMA wal_checkpoint(RESTART)"),
        lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"),
        lambda connection: connection.execute("VACUUM"),
        lambda connection: connection.execute("PRAGMA incremental_vacuum"),
    ]
    with ExitStack() as stack:
        pragma = f"page_size = {page_size}"
        writers = [stack.enter_context(closing(open_writer(path, pragma))) for _ in range(2)]
        for _ in range(150):
            for _ in range(chance.randrange(1, 4)):
                with suppress(sqlite3.OperationalError):  # locked by the other one
                    chance.choice(steps)(chance.choice(writers))
            with sqlite.connect(str(path), copies) as connection:
                assert rows_of(connection) == rows_of(writers[0])
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_journal_that_is_done_with_needs_no_copy(path: Path, reader: Reader) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = PERSIST")
        writer.execute("CREATE TABLE t (n INTEGER, data BLOB)")
        insert(writer, 1)
        assert path.with_name("live.db-journal").stat().st_size
        assert reader.rows() == rows_of(writer)
    assert reader.copied == []


def test_a_copy_that_finds_no_room_says_so(
    path: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(writer, *range(50))
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(1, 1, 0))
        with pytest.raises(OSError, match=r"not enough space in .* TMPDIR"), sqlite.connect(str(path)):
            pass

    def full_disk(descriptor: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", full_disk)
        with pytest.raises(OSError, match=r"not enough space in .* TMPDIR"), sqlite.connect(str(path)):
            pass
    with sqlite.connect(str(path)) as connection:
        assert rows_of(connection) == rows_of(writer)


def test_a_database_that_vanishes_before_opening_is_not_created(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (n)")
    state_of = sqlite.DatabaseState.of

    def vanish(name: str) -> sqlite.DatabaseState:
        state = state_of(name)
        path.unlink()
        return state

    monkeypatch.setattr(sqlite.DatabaseState, "of", vanish)
    with pytest.raises(sqlite3.OperationalError, match="unable to open"), sqlite.connect(str(path)):
        pass
    assert list(path.parent.iterdir()) == []
