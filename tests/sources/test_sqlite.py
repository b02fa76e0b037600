"""SQLite files are read completely, consistently, and without leaving files next to them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.shared import needs_shared, sample
from tracetui.sources import sqlite
from tracetui.sources.local import LocalFile

Snapshot = dict[str, tuple[int, int, bytes]]


def snapshot(folder: Path) -> Snapshot:
    return {f.name: (f.stat().st_mtime_ns, f.stat().st_ino, f.read_bytes()) for f in folder.iterdir()}


def make(path: Path, rows: int = 3) -> None:
    writer = sqlite3.connect(path)
    writer.execute("CREATE TABLE t (n INTEGER, s TEXT)")
    writer.executemany("INSERT INTO t VALUES (?, ?)", [(i, f"row {i}") for i in range(rows)])
    writer.commit()
    writer.close()


def count(path: Path) -> int:
    with sqlite.connect(str(path)) as connection:
        (number,) = connection.execute("SELECT count(*) FROM t").fetchone()
    assert isinstance(number, int)
    return number


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """A database with a live writer: two of its three rows are only in the log."""
    path = tmp_path / "live.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("CREATE TABLE t (n INTEGER)")
    writer.execute("INSERT INTO t VALUES (1)")
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    writer.execute("INSERT INTO t VALUES (2)")
    writer.execute("INSERT INTO t VALUES (3)")
    yield path, writer
    writer.close()


def test_a_plain_file_is_read_in_place_and_nothing_appears_beside_it(tmp_path: Path) -> None:
    make(tmp_path / "plain.db")
    before = snapshot(tmp_path)
    assert count(tmp_path / "plain.db") == 3
    assert sqlite.tables(str(tmp_path / "plain.db")) == {"t"}
    assert snapshot(tmp_path) == before


def test_rows_that_are_only_in_the_log_are_read_and_the_writer_is_not_disturbed(
    live: tuple[Path, sqlite3.Connection],
) -> None:
    path, writer = live
    before = snapshot(path.parent)
    assert count(path) == 3
    assert snapshot(path.parent) == before
    writer.execute("INSERT INTO t VALUES (4)")
    assert count(path) == 4


def test_a_log_without_its_lock_page_is_read_and_none_is_made(
    live: tuple[Path, sqlite3.Connection], tmp_path: Path
) -> None:
    path, _ = live
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for suffix in ("", "-wal"):
        (crashed / f"c.db{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    before = snapshot(crashed)
    assert count(crashed / "c.db") == 3
    assert snapshot(crashed) == before


def test_a_connection_keeps_its_state_while_the_writer_continues(live: tuple[Path, sqlite3.Connection]) -> None:
    path, writer = live
    before = snapshot(path.parent)
    with sqlite.connect(str(path)) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,)
        assert snapshot(path.parent) == before
        writer.execute("INSERT INTO t VALUES (4)")
        assert count(path) == 4
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_the_copy_is_private_and_goes_away(
    live: tuple[Path, sqlite3.Connection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, writer = live
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    copies = sqlite.CopyCache()
    for rows in (3, 4):
        with sqlite.connect(str(path), copies) as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (rows,)
            (folder,) = room.iterdir()
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        writer.execute("INSERT INTO t VALUES (4)")
    assert len(list(room.iterdir())) == 1, "the copy was updated"
    copies.clear()
    assert list(room.iterdir()) == []


def test_a_deleted_copy_is_made_again(live: tuple[Path, sqlite3.Connection]) -> None:
    path, _ = live
    count(path)
    with sqlite.connect(str(path)) as connection:
        (copy,) = [row[2] for row in connection.execute("PRAGMA database_list")]
    shutil.rmtree(Path(copy).parent)
    assert count(path) == 3


def test_copies_of_killed_processes_are_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for name in (f"{gone.pid}-a", f"{os.getpid()}-b", "x-c"):
        (tmp_path / f"tracetui-copy-{name}").mkdir()
    (tmp_path / f"other-{gone.pid}-a").mkdir()
    sqlite._sweep.cache_clear()
    sqlite._sweep()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted([f"tracetui-copy-{os.getpid()}-b", "tracetui-copy-x-c", f"other-{gone.pid}-a"])


def write_while_copying(monkeypatch: pytest.MonkeyPatch, write: Callable[[int], None]) -> None:
    """Call `write` with a number from 1 after each time that a database was copied, before its log is."""
    copy_differing, number = sqlite._copy_differing, 0

    def copied(source: str, target: str) -> None:
        nonlocal number
        copy_differing(source, target)
        if not source.endswith(("-wal", "-journal")):
            number += 1
            write(number)

    monkeypatch.setattr(sqlite, "_copy_differing", copied)


def test_a_copy_is_retried_when_the_log_restarts_meanwhile(
    live: tuple[Path, sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, writer = live

    def write(number: int) -> None:
        if number == 1:
            writer.execute("INSERT INTO t VALUES (4)")
            writer.execute("PRAGMA wal_checkpoint(RESTART)")
            writer.execute("INSERT INTO t VALUES (5)")

    write_while_copying(monkeypatch, write)
    assert count(path) == 5


def test_a_checkpoint_during_the_copy_does_no_harm(
    live: tuple[Path, sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, writer = live
    copied = []

    def write(number: int) -> None:
        copied.append(number)
        writer.execute("BEGIN")
        writer.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(2000)])
        writer.execute("COMMIT")
        writer.execute("PRAGMA wal_checkpoint(PASSIVE)")

    write_while_copying(monkeypatch, write)
    assert count(path) == 2003
    assert copied == [1]


def test_a_writer_that_never_rests_is_an_error_and_no_guess(
    live: tuple[Path, sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, writer = live

    def write(number: int) -> None:
        writer.execute("INSERT INTO t VALUES (9)")
        writer.execute("PRAGMA wal_checkpoint(RESTART)")
        writer.execute("INSERT INTO t VALUES (9)")

    write_while_copying(monkeypatch, write)
    with pytest.raises(OSError, match="keeps changing"):
        count(path)


def test_a_file_that_changes_while_it_is_read_in_place_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "plain.db"
    make(path)
    with pytest.raises(OSError, match="changed while"), sqlite.connect(str(path)):
        os.utime(path, ns=(1, 1))


def hot_journal(tmp_path: Path) -> Path:
    """A database whose writer died in a transaction that had reached the file."""
    path = tmp_path / "hot.db"
    make(path, 2000)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN")
    writer.execute("DELETE FROM t")
    writer.execute("INSERT INTO t VALUES (1, 'unfinished')")
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for suffix in ("", "-journal"):
        (crashed / f"hot.db{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    writer.execute("ROLLBACK")
    writer.close()
    return crashed / "hot.db"


def test_a_hot_journal_is_rolled_back_in_the_copy_only(tmp_path: Path) -> None:
    path = hot_journal(tmp_path)
    before = snapshot(path.parent)
    assert count(path) == 2000
    assert snapshot(path.parent) == before


def test_a_journal_that_names_a_super_journal_is_refused(tmp_path: Path) -> None:
    path = hot_journal(tmp_path)
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    name = os.fsencode(victim)
    journal = Path(f"{path}-journal")
    tail = b"\0\0\0\1" + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + sqlite._JOURNAL_MAGIC
    journal.write_bytes(journal.read_bytes() + tail)
    with pytest.raises(OSError, match="several databases"):
        count(path)
    assert victim.exists()


@pytest.mark.parametrize("name", ["a?mode=rwc&x.db", "a#b.db", "100%41.db", "é 漢.db"])
def test_names_are_quoted(tmp_path: Path, name: str) -> None:
    make(tmp_path / name)
    before = snapshot(tmp_path)
    assert count(tmp_path / name) == 3
    assert snapshot(tmp_path) == before


def test_a_name_that_is_not_utf8_opens(tmp_path: Path) -> None:
    make(tmp_path / "x.db")
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.db")
    os.rename(tmp_path / "x.db", name)
    with sqlite.connect(name) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_an_absent_file_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a regular file"), sqlite.connect(str(tmp_path / "no.db")):
        pass
    assert sqlite.tables(str(tmp_path / "no.db")) == frozenset()
    assert list(tmp_path.iterdir()) == []


def test_writing_is_refused(tmp_path: Path, live: tuple[Path, sqlite3.Connection]) -> None:
    make(tmp_path / "plain.db")
    for path in (tmp_path / "plain.db", live[0]):
        with (
            sqlite.connect(str(path)) as connection,
            pytest.raises(sqlite3.OperationalError, match="readonly"),
        ):
            connection.execute("DELETE FROM t")
    with sqlite.connect(str(tmp_path / "plain.db")) as connection, pytest.raises(sqlite3.Error, match="attached"):
        connection.execute("ATTACH ? AS other", (str(tmp_path / "new.db"),))
    assert not (tmp_path / "new.db").exists()


def test_views_are_no_tables_and_an_endless_query_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "STATEMENT_OPS", 1_000_000)
    path = tmp_path / "bomb.db"
    make(path)
    writer = sqlite3.connect(path)
    writer.execute(
        "CREATE VIEW steps AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"
    )
    writer.close()
    assert sqlite.tables(str(path)) == {"t"}
    with sqlite.connect(str(path)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute("SELECT count(*) FROM steps").fetchone()
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,), "the next statement has its own time"


def test_text_that_is_not_utf8_gets_replacement_characters(tmp_path: Path) -> None:
    path = tmp_path / "bad.db"
    make(path)
    writer = sqlite3.connect(path)
    writer.execute("UPDATE t SET s = CAST(x'41ff42' AS TEXT)")
    writer.commit()
    writer.close()
    with sqlite.connect(str(path)) as connection:
        assert connection.execute("SELECT s FROM t").fetchone() == ("A\ufffdB",)


def test_a_file_that_ends_within_a_page_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    make(path, 2000)
    os.truncate(path, path.stat().st_size - 100)
    with pytest.raises(OSError, match="truncated"):
        count(path)


def test_other_files_have_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "no.db"
    path.write_bytes((b"SQLite format 3\0" + b"garbage" * 600)[:4096])
    assert sqlite.tables(str(path)) == frozenset()
    assert LocalFile(str(path)).tables == frozenset()
    with sqlite.connect(str(path)) as connection, pytest.raises(sqlite3.DatabaseError):
        connection.execute("SELECT * FROM t")


def test_a_database_moves_with_its_log(live: tuple[Path, sqlite3.Connection]) -> None:
    path, writer = live
    for suffix in ("", "-wal"):
        os.utime(f"{path}{suffix}", (1, 1))
    assert not LocalFile(str(path)).moving
    writer.execute("INSERT INTO t VALUES (4)")
    assert path.stat().st_mtime == 1
    assert LocalFile(str(path)).moving


@needs_shared
def test_the_log_of_a_real_live_database_is_read() -> None:
    path = sample("hypergraph", "v6_live_wal", "workflows.db")
    with sqlite.connect(str(path)) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (27,)


def test_a_text_that_no_database_can_hold_is_found_nowhere(tmp_path: Path) -> None:
    """Such an id may stand in the JSON of another row: it must not hide the rows that are there."""
    path = tmp_path / "plain.db"
    make(path)
    with sqlite.connect(str(path)) as connection:
        rows = connection.execute("SELECT n FROM t WHERE s IN (?, ?)", ("row 1", "row \udcff")).fetchall()
    assert rows == [(1,)]
