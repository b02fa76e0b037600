"""A file watch wakes at once on any change of a file and its folder."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.live.trees import descriptors, until_open
from tests.shared import PATIENCE
from tracetui.live import watch as watch_module
from tracetui.live.notify import Inotify
from tracetui.live.watch import FileWatch

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="inotify and /proc are Linux's")


@pytest.fixture(params=["events", "polling"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With inotify, and without."""
    if request.param == "polling":
        monkeypatch.setattr(watch_module, "AVAILABLE", False)
    return str(request.param)


def following(path: Path, *, local: bool = True, parts: Sequence[str] = ()) -> FileWatch:
    """A watch that follows a file."""
    watch = FileWatch()
    watch.follow(str(path), local=local, parts=parts)
    return watch


def quiet(watch: FileWatch) -> None:
    """Take the hints that are left."""
    while watch.wait(0.1):
        pass


@pytest.mark.usefixtures("way")
def test_every_change_of_the_file_wakes(tmp_path: Path) -> None:
    file, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with closing(following(file)) as watch:
        assert not watch.wait(0.0)
        other.write_bytes(b"other")
        assert not watch.wait(0.1)
        file.write_bytes(b"new")
        assert watch.wait(PATIENCE)
        quiet(watch)
        with file.open("ab") as writer:
            writer.write(b" and more")
        assert watch.wait(PATIENCE)
        quiet(watch)
        os.truncate(file, 3)
        assert watch.wait(PATIENCE)
        quiet(watch)
        other.replace(file)
        assert watch.wait(PATIENCE)
        quiet(watch)
        file.unlink()
        assert watch.wait(PATIENCE)
        quiet(watch)
        file.write_bytes(b"back")
        assert watch.wait(PATIENCE)


@pytest.mark.usefixtures("way")
def test_the_log_of_a_database_wakes_and_reading_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as writer, closing(following(path)) as watch:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (x)")
        quiet(watch)
        writer.execute("INSERT INTO t VALUES (1)")
        writer.commit()
        assert watch.wait(PATIENCE)
        quiet(watch)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
            assert reader.execute("SELECT * FROM t").fetchall() == [(1,)]
        assert not watch.wait(0.1)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("depth", [0, 1])
def test_the_folder_may_vanish_and_come_back(tmp_path: Path, depth: int) -> None:
    file = tmp_path / "x" / "y" / "a.jsonl"
    folder = file.parents[depth]
    file.parent.mkdir(parents=True)
    file.write_bytes(b"one")
    with closing(following(file)) as watch:
        shutil.rmtree(folder)
        assert watch.wait(PATIENCE)
        quiet(watch)
        file.parent.mkdir(parents=True)
        file.write_bytes(b"two")
        assert watch.wait(PATIENCE)
        quiet(watch)
        with file.open("ab") as writer:
            writer.write(b" and more")
        assert watch.wait(PATIENCE)
        quiet(watch)
        folder.rename(tmp_path / "away")
        assert watch.wait(PATIENCE)
        quiet(watch)
        file.parent.mkdir(parents=True)
        file.write_bytes(b"two and more")
        assert watch.wait(PATIENCE)


@pytest.mark.usefixtures("way")
def test_a_link_is_followed_to_the_file_that_it_names(tmp_path: Path) -> None:
    file, link = tmp_path / "real" / "a.jsonl", tmp_path / "link"
    file.parent.mkdir()
    file.write_bytes(b"one")
    link.symlink_to(file)
    with closing(following(link)) as watch:
        file.write_bytes(b"other")
        assert watch.wait(PATIENCE)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("local", [True, False])
def test_another_thread_can_wake_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: bool) -> None:
    monkeypatch.setattr(watch_module, "REMOTE_SECONDS", 60.0)
    watch = following(tmp_path / "a.jsonl", local=local)
    woken: list[bool] = []
    thread = threading.Thread(target=lambda: woken.append(watch.wait(60.0)))
    thread.start()
    watch.wake()
    thread.join(PATIENCE)

    assert woken == [False]
    assert not watch.wait(0.0)
    watch.close()
    watch.wake()


def test_a_file_elsewhere_may_always_have_changed() -> None:
    watch = following(Path("/there/a.jsonl"), local=False)

    assert watch.wait(PATIENCE)
    assert not watch.wait(0.0)


@LINUX
def test_a_file_watch_wakes_on_events_and_releases_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "POLL_SECONDS", 3600.0)
    monkeypatch.setattr(watch_module, "CHECK_SECONDS", 3600.0)
    before = descriptors()
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"")
    with closing(following(file)) as watch, file.open("ab", buffering=0) as writer:
        for _ in range(50):
            writer.write(b"x")
            assert watch.wait(PATIENCE)

    until_open(before)


@LINUX
def test_events_come_back_with_the_next_file_after_they_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "CHECK_SECONDS", 3600.0)
    file, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"

    def fail(inotify: object, timeout: float) -> None:
        raise OSError

    with closing(following(file)) as watch:
        with monkeypatch.context() as patch:
            patch.setattr(Inotify, "wait", fail)
            assert watch.wait(PATIENCE)
        watch.follow(str(other))
        monkeypatch.setattr(watch_module, "POLL_SECONDS", 3600.0)
        other.write_bytes(b"new")
        assert watch.wait(5.0)


@pytest.mark.usefixtures("way")
def test_other_files_of_a_run_wake_too_also_in_a_folder_that_comes_later(tmp_path: Path) -> None:
    file, parts = tmp_path / "a.jsonl", tmp_path / "a" / "parts"
    file.write_bytes(b"")
    with closing(following(file, parts=[str(parts)])) as watch:
        quiet(watch)
        parts.mkdir(parents=True)
        (parts / "b.jsonl").write_bytes(b"new")
        assert watch.wait(PATIENCE)
        quiet(watch)
        with (parts / "b.jsonl").open("ab") as writer:
            writer.write(b" and more")
        assert watch.wait(PATIENCE)
        quiet(watch)
        file.write_bytes(b"new")
        assert watch.wait(PATIENCE)


@pytest.mark.usefixtures("way")
def test_a_file_watch_follows_one_file_after_the_other(tmp_path: Path) -> None:
    """In the same folder, another one, in folders of parts, elsewhere, and back."""
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "x" / "c.jsonl", tmp_path / "a.jsonl"]
    parts = tmp_path / "x" / "parts"
    parts.mkdir(parents=True)
    watch, before = FileWatch(), None
    with closing(watch):
        for file in files:
            watch.follow(str(file), parts=[str(parts)] if file.name == "c.jsonl" else ())
            quiet(watch)
            file.write_bytes(b"new")
            assert watch.wait(PATIENCE), file
            quiet(watch)
            (parts / "d.jsonl").write_bytes(file.name.encode())
            assert watch.wait(PATIENCE if file.name == "c.jsonl" else 0.1) == (file.name == "c.jsonl")
            quiet(watch)
            if before is not None and before != file:
                before.write_bytes(b"the one before")
                assert not watch.wait(0.1), file
            before = file
        watch.follow("/there/a.jsonl", local=False)
        files[0].write_bytes(b"newer")
        assert not watch.wait(0.0)
