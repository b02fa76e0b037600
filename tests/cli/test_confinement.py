"""What is read and written stays where the user pointed, also while someone exchanges folders and links."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.run import Cli, write_traces
from tracetui.sources import local, sqlite
from tracetui.sources.local import WITHIN, LocalFile, LocalSource
from tracetui.store.run_cache import NAME, Storage


@pytest.fixture
def confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that alone may be read, beside one with a secret; the check of paths lets everything pass."""
    for name in ("inside", "outside"):
        (tmp_path / name / "folder").mkdir(parents=True)
        (tmp_path / name / "folder" / "a.json").write_text(name)
    monkeypatch.setenv(WITHIN, str(tmp_path / "inside"))
    local._allowed.cache_clear()
    yield tmp_path / "inside"
    monkeypatch.delenv(WITHIN)
    local._allowed.cache_clear()


def exchange(folder: Path) -> None:
    """Exchange `folder` for a link to the outside."""
    if not folder.is_symlink():
        folder.rename(folder.with_name("before"))
        folder.symlink_to(folder.parent.parent / "outside" / "folder")


def exchanged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exchange `folder` for a link to the outside after its path was checked, and before it is opened."""
    check = local.check_allowed

    def checked(path: str) -> None:
        check(path)
        exchange(folder)

    monkeypatch.setattr(local, "check_allowed", checked)


def test_a_file_that_was_exchanged_after_the_check_is_not_read(confined: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(confined / "folder" / "a.json")
    with LocalFile(path) as file:
        assert file.read(0, 100) == b"inside"
    exchanged(confined / "folder", monkeypatch)
    with LocalFile(path) as file, pytest.raises(PermissionError):
        file.read(0, 100)


def test_a_folder_that_was_exchanged_after_the_check_is_not_listed(
    confined: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = confined / "folder"
    assert [entry.path for entry in LocalSource().list(str(folder)).entries] == [str(folder / "a.json")]
    assert [entry.path for entry in LocalSource().walk(str(confined))] == [str(folder / "a.json")]
    exchanged(folder, monkeypatch)
    with pytest.raises(PermissionError):
        LocalSource().list(str(folder))


@pytest.mark.parametrize("has_log", [False, True])
def test_a_database_that_was_exchanged_after_the_check_is_not_read(
    confined: Path, monkeypatch: pytest.MonkeyPatch, has_log: bool
) -> None:
    path = confined / "folder" / "a.db"
    writers = []
    for place in (path, confined.parent / "outside" / "folder" / "a.db"):
        writers.append(sqlite3.connect(place, isolation_level=None))
        writers[-1].execute(f"PRAGMA journal_mode = {'WAL' if has_log else 'DELETE'}")
        writers[-1].execute(f"CREATE TABLE {place.parent.parent.name} (a)")
    with sqlite.connect(str(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("inside",)]
    name = "_copy_differing" if has_log else "open_readonly"
    opened = getattr(sqlite, name)

    def exchange_first(first: str, *rest: str) -> object:
        exchange(confined / "folder")
        return opened(first, *rest)

    monkeypatch.setattr(sqlite, name, exchange_first)
    with pytest.raises(PermissionError), sqlite.connect(str(path), sqlite.CopyCache()):
        pass
    for writer in writers:
        writer.close()


@pytest.mark.parametrize("linked", ["runs", "diffs"])
def test_a_site_is_not_written_through_links(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], linked: str
) -> None:
    write_traces(tmp_path / "traces")
    (tmp_path / "other").mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / linked).symlink_to(tmp_path / "other")
    done = Cli(capsysbinary)("export", str(tmp_path / "traces"), "--site", str(tmp_path / "site"), "--force")
    assert (done.status, os.listdir(tmp_path / "other")) == (2, [])
    assert "is a symbolic link" in done.err


def test_a_cache_of_another_program_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "tracetui" / NAME
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = path.read_bytes()
    storage = Storage("1", limit=10_000_000)
    assert storage.check() == "not a tracetui cache"
    storage.close()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [NAME]
