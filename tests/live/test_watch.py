"""Every change is reported, soon, by hints of every kind and without; links are left alone, and nothing leaks."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.live.trees import collect, rewrite_in_secret, settled, walked
from tests.shared import PATIENCE
from tracetui.live import watch as module
from tracetui.live.notify import WatchfilesNotify, open_notify
from tracetui.live.watch import Watch
from tracetui.sources.base import Stat
from tracetui.sources.local import LocalSource

Begin = Callable[..., Watch]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="inotify and /proc are Linux's")


@pytest.fixture(params=["system", "watchfiles", "polling"])
def begin(request: pytest.FixtureRequest) -> Iterator[Begin]:
    """Begins to watch roots, in each of the ways that there are."""
    watches: list[Watch] = []

    def start(*roots: Path, known: dict[str, Stat] | None = None) -> Watch:
        names = [str(root) for root in roots]
        notify = WatchfilesNotify if request.param == "watchfiles" else open_notify
        watch = Watch(LocalSource(), names, seen=known or {}, events=request.param != "polling", notify=notify)
        assert watch.mode == ("polling" if request.param == "polling" else "events"), watch.reason
        watches.append(watch)
        return watch

    yield start
    for watch in watches:
        watch.stop()


def test_files_that_come_grow_move_and_go_are_reported(tmp_path: Path, begin: Begin) -> None:
    watch = settled(begin(tmp_path))
    path, target = tmp_path / "one.json", tmp_path / "two.json"

    path.write_bytes(b"{}")
    collect(watch, lambda seen: seen == walked(tmp_path))
    with path.open("ab") as file:
        file.write(b"\n")
    collect(watch, lambda seen: seen == walked(tmp_path))
    rewrite_in_secret(path, b"[]\n")
    collect(watch, lambda seen: seen == walked(tmp_path))
    path.rename(target)
    collect(watch, lambda seen: seen == {str(path): None} | walked(tmp_path))
    path.write_bytes(b"[1]")
    path.replace(target)
    collect(watch, lambda seen: seen.get(str(target)) == walked(tmp_path)[str(target)])
    target.unlink()
    collect(watch, lambda seen: str(target) in seen and seen[str(target)] is None)
    target.write_bytes(b"{}")
    collect(watch, lambda seen: seen == walked(tmp_path))
    assert (watch.folders, watch.files) == (1, 1)


def test_folders_that_come_move_and_go_are_reported(tmp_path: Path, begin: Begin) -> None:
    root = tmp_path / "root"
    root.mkdir()
    watch = settled(begin(root))

    (root / "x" / "y").mkdir(parents=True)
    (root / "x" / "y" / "a.json").write_bytes(b"{}")
    collect(watch, lambda seen: seen == walked(root))
    (root / "x").rename(root / "z")
    gone = {str(root / "x" / "y" / "a.json"): None}
    collect(watch, lambda seen: seen == gone | walked(root))
    with (root / "z" / "y" / "a.json").open("ab") as file:
        file.write(b" ")
    collect(watch, lambda seen: seen == walked(root))
    other = tmp_path / "other"
    shutil.copytree(root / "z", other)
    (other / "y" / "a.json").write_bytes(b"[1, 2]")
    shutil.move(root / "z", tmp_path / "away")
    other.rename(root / "z")
    collect(watch, lambda seen: seen.get(str(root / "z" / "y" / "a.json")) == next(iter(walked(root).values())))
    with (root / "z" / "y" / "a.json").open("ab") as file:
        file.write(b" ")
    collect(watch, lambda seen: seen == walked(root))
    shutil.rmtree(root / "z")
    assert collect(watch, bool) == {str(root / "z" / "y" / "a.json"): None}
    assert (watch.folders, watch.files) == (1, 0)


def test_a_root_may_go_and_come_back(tmp_path: Path, begin: Begin) -> None:
    root = tmp_path / "root"
    root.mkdir()
    file = root / "a.json"
    file.write_bytes(b"{}")
    watch = settled(begin(root))

    shutil.rmtree(root)
    seen = collect(watch, lambda seen: str(root) in seen and str(file) in seen)
    assert seen == {str(file): None} | walked(root)
    assert (watch.folders, watch.files) == (0, 0)
    root.mkdir()
    file.write_bytes(b"[]")
    collect(watch, lambda seen: seen == {str(root): None} | walked(root))
    file.write_bytes(b"[1]")
    collect(watch, lambda seen: seen == walked(root))


def test_a_root_may_be_a_file(tmp_path: Path, begin: Begin) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"{}")
    watch = begin(file)

    assert {change.path: change.entry for change in watch.sweep()} == walked(file)
    (tmp_path / "b.json").write_bytes(b"{}")
    file.write_bytes(b"[1]")
    collect(watch, lambda seen: seen == walked(file))
    file.unlink()
    collect(watch, lambda seen: seen == walked(file))
    file.write_bytes(b"[1, 2]")
    collect(watch, lambda seen: seen == walked(file))
    assert (watch.folders, watch.files) == (0, 1)


@pytest.mark.parametrize("as_root", [False, True])
def test_a_database_changes_with_its_log(tmp_path: Path, begin: Begin, as_root: bool) -> None:
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("CREATE TABLE t (x)")
        connection.commit()
        watch = settled(begin(path if as_root else tmp_path))
        before = path.stat()
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()

        seen = collect(watch, bool)
        assert set(seen) == {str(path)}
        assert path.stat() == before
        os.utime(tmp_path / "runs.db-shm")
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
            assert reader.execute("SELECT * FROM t").fetchall() == [(1,)]
        assert watch.sweep() == []


def test_roots_that_overlap_give_each_file_once(tmp_path: Path, begin: Begin) -> None:
    below = tmp_path / "sub"
    below.mkdir()
    (tmp_path / "a.json").write_bytes(b"{}")
    (below / "b.json").write_bytes(b"{}")
    roundabout = below / ".." / "sub"
    paths = {name: sorted(change.path for change in begin(*roots).sweep()) for name, roots in {
        "twice": (tmp_path, tmp_path),
        "nested": (tmp_path, below),
        "inner first": (roundabout, tmp_path),
        "file first": (below / "b.json", tmp_path),
        "hidden": (tmp_path, tmp_path / ".hidden"),
    }.items()}  # fmt: skip
    all_files = sorted([str(tmp_path / "a.json"), str(below / "b.json")])

    assert paths.pop("inner first") == sorted([str(tmp_path / "a.json"), str(roundabout / "b.json")])
    assert paths.pop("hidden") == sorted([*all_files, str(tmp_path / ".hidden")])
    assert set(map(tuple, paths.values())) == {tuple(all_files)}


def test_hidden_folders_and_links_are_left_alone(tmp_path: Path, begin: Begin) -> None:
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    for folder in (outside / "deep", root / ".hidden" / "deep", root / "real"):
        folder.mkdir(parents=True)
    (root / "usr").symlink_to("/usr")
    watch = settled(begin(root))

    (outside / "deep" / "a.json").write_bytes(b"{}")
    (root / ".hidden" / "b.json").write_bytes(b"{}")
    shutil.rmtree(root / "real")
    (root / "real").symlink_to(outside)
    assert collect(watch, bool).keys() == {str(root / "real")}
    assert (watch.folders, watch.files) == (1, 0)


def test_a_root_may_be_a_link_or_end_in_a_slash(tmp_path: Path, begin: Begin) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    watch = Watch(LocalSource(), [f"{link}/"])
    watch.sweep()

    (real / "a.json").write_bytes(b"{}")
    assert collect(watch, bool).keys() == {str(link / "a.json")}
    watch.stop()
    watch = settled(begin(link))
    (real / "a.json").write_bytes(b"[1]")
    assert collect(watch, bool).keys() == {str(link / "a.json")}


def test_known_files_are_not_reported(tmp_path: Path, begin: Begin) -> None:
    same, changed, gone, new = (tmp_path / f"{name}.json" for name in ("same", "changed", "gone", "new"))
    for path in (same, changed, gone):
        path.write_bytes(b"{}")
    known = {path: entry.stat for path, entry in walked(tmp_path).items() if entry.stat is not None}
    rewrite_in_secret(changed, b"[]")
    gone.unlink()
    new.write_bytes(b"{}")

    seen = collect(begin(tmp_path, known=known), lambda seen: len(seen) == 3)
    now = walked(tmp_path)
    assert seen == {str(gone): None, **{str(path): now[str(path)] for path in (changed, new)}}


def test_stop_ends_waiting_at_once(tmp_path: Path, begin: Begin) -> None:
    watch = settled(begin(tmp_path))  # the rest would take ten minutes
    ended: list[float] = []

    def wait() -> None:
        watch.changes(600.0)
        ended.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    began = time.monotonic()
    watch.stop()
    thread.join(PATIENCE)

    assert ended[0] - began < 60.0
    assert watch.changes(60.0) == watch.sweep() == []
    watch.stop()


def test_a_burst_of_files_is_reported_whole(tmp_path: Path) -> None:
    watch = settled(Watch(LocalSource(), [str(tmp_path)]))
    for i in range(20_000):
        os.close(os.open(tmp_path / f"{i}.json", os.O_CREAT | os.O_WRONLY))

    seen = collect(watch, lambda seen: len(seen) == 20_000)
    assert seen == walked(tmp_path)
    watch.stop()


@LINUX
def test_hints_come_before_the_next_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SWEEP_SECONDS", 3600.0)
    monkeypatch.setattr(module, "GLANCE_SECONDS", 3600.0)
    watch = settled(Watch(LocalSource(), [str(tmp_path)]))
    file = tmp_path / "a.json"
    file.write_bytes(b"")
    collect(watch, bool)
    for _ in range(9):
        with file.open("ab") as writer:
            writer.write(b"x")
        collect(watch, bool)
    watch.stop()
