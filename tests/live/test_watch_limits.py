"""The cost of watching, and its behavior without hints, with too few, or with useless ones."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import sys
import threading
from pathlib import Path

import pytest

from tests.live.trees import collect, descriptors, rewrite_in_secret, settled, until_open, walked
from tracetui.live import notify
from tracetui.live.notify import Inotify, remote
from tracetui.live.watch import Watch
from tracetui.sources.base import Entry, Folder, LinkLost
from tracetui.sources.local import LocalSource

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="inotify and /proc are Linux's")


@LINUX
def test_nothing_leaks_when_folders_come_and_go(tmp_path: Path) -> None:
    before, others = descriptors(), watches()
    watch = settled(Watch(LocalSource(), [str(tmp_path)]))
    open_now, watched = descriptors(), watches()
    for i in range(30):
        folder = tmp_path / f"{i % 3}" / "deep"
        folder.mkdir(parents=True)
        (folder / "a.json").write_bytes(b"{}")
        collect(watch, lambda seen: any(seen.values()))
        assert watches() == watched + 2
        shutil.rmtree(folder.parent)
        collect(watch, lambda seen: None in seen.values())

    assert watches() == watched == others + 1
    until_open(open_now)
    watch.stop()
    until_open(before)


def watches() -> int:
    """How many folders the system watches for this process."""
    return sum(
        len(re.findall(r"^inotify wd", path.read_text(encoding="ascii"), re.MULTILINE))
        for path in Path("/proc/self/fdinfo").iterdir()
        if path.exists()
    )


@LINUX
def test_links_and_hidden_folders_cost_no_watch(tmp_path: Path) -> None:
    (tmp_path / "usr").symlink_to("/usr")
    (tmp_path / "up").symlink_to("..")
    (tmp_path / ".hidden" / "deep").mkdir(parents=True)
    (tmp_path / "real").mkdir()
    others = watches()
    watch = settled(Watch(LocalSource(), [str(tmp_path)]))

    assert watches() - others == watch.folders == 2
    watch.stop()


class Deaf:
    """Hints that never come."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def add(self, folder: str, *, follow: bool = False) -> bool:
        return True

    def remove(self, folder: str) -> None:
        pass

    def wait(self, timeout: float) -> dict[str, bool] | None:
        self.stopped.wait(timeout)
        return {}

    def wake(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        self.wake()


def test_names_and_late_files_are_found_soon_when_hints_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracetui.live.watch.SWEEP_SECONDS", 3600.0)  # found by a glance, or not at all
    for i in range(300):
        (tmp_path / f"{i}.json").write_bytes(b"{}")
    new = tmp_path / "sub" / "new.json"
    watch = settled(Watch(LocalSource(), [str(tmp_path)], notify=Deaf))

    new.parent.mkdir()
    new.write_bytes(b"{}")
    assert collect(watch, bool).keys() == {str(new)}
    rewrite_in_secret(new, b"[]")
    assert collect(watch, bool).keys() == {str(new)}
    shutil.rmtree(new.parent)
    assert collect(watch, bool).keys() == {str(new)}
    watch.stop()


def test_hints_are_read_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[float] = []

    def hear(_: Deaf, timeout: float) -> dict[str, bool]:
        heard.append(timeout)
        return {}

    monkeypatch.setattr(Deaf, "wait", hear)
    watch = settled(Watch(LocalSource(), [str(tmp_path)], notify=Deaf))

    heard.clear()
    assert watch.changes(0.0) == []
    assert heard == [0.0]
    watch.stop()
    assert watch.changes(0.0) == []
    assert heard == [0.0]


def test_network_file_systems_are_polled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    there = str(tmp_path.resolve()).replace(" ", "\\040")
    mounts.write_text(f"host:/x {there} nfs4 rw 0 0\n")
    monkeypatch.setattr(notify, "_MOUNTS", str(mounts))
    watch = Watch(LocalSource(), [str(tmp_path / "traces")])

    assert (watch.mode, watch.reason) == ("polling", "network file system (nfs4)")


class Exhausted(Inotify):
    """Has room for two folders."""

    def add(self, folder: str, *, follow: bool = False) -> bool:
        if len(self._ids) == 2 and folder not in self._ids:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().add(folder, follow=follow)


@LINUX
def test_without_watches_left_it_polls(tmp_path: Path) -> None:
    for i in range(2):
        (tmp_path / f"{i}").mkdir()
        (tmp_path / f"{i}" / "a.json").write_bytes(b"{}")
    known = {path: entry.stat for path, entry in walked(tmp_path).items() if entry.stat is not None}
    before = descriptors()
    watch = Watch(LocalSource(), [str(tmp_path)], seen=known, notify=Exhausted)

    assert watch.sweep() == []
    assert (watch.mode, watch.reason) == ("polling", "no watches left (ENOSPC)")
    until_open(before)
    (tmp_path / "1" / "a.json").write_bytes(b"[]")
    assert collect(watch, bool).keys() == {str(tmp_path / "1" / "a.json")}
    watch.stop()


@LINUX
def test_without_descriptors_left_it_polls(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        watch = Watch(LocalSource(), [str(tmp_path)])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert watch.mode == "polling"
    assert "EMFILE" in watch.reason


class Elsewhere(LocalSource):
    """Another machine whose connection may be down; a folder may be forbidden."""

    down = False
    forbidden = ""

    def local_path(self, path: str) -> str | None:
        return None

    def list(self, path: str) -> Folder:
        if self.down:
            raise LinkLost("timed out")
        if path == self.forbidden:
            raise PermissionError(errno.EACCES, "Permission denied")
        return super().list(path)


def test_a_lost_link_loses_nothing(tmp_path: Path) -> None:
    source = Elsewhere()
    file = tmp_path / "sub" / "a.json"
    file.parent.mkdir()
    file.write_bytes(b"{}")
    watch = settled(Watch(source, [str(tmp_path)]))
    assert (watch.mode, watch.reason, watch.lost) == ("polling", "remote machine", "")

    source.down = True
    file.write_bytes(b"[1]")
    assert watch.sweep() == []
    assert (watch.lost, watch.files) == ("timed out", 1)
    source.down = False
    assert collect(watch, bool).keys() == {str(file)}
    assert watch.lost == ""
    watch.stop()


def test_a_folder_that_cannot_be_read_is_an_entry_that_says_so(tmp_path: Path) -> None:
    source = Elsewhere()
    file = tmp_path / "sub" / "a.json"
    file.parent.mkdir()
    file.write_bytes(b"{}")
    watch = settled(Watch(source, [str(tmp_path)]))

    source.forbidden = str(file.parent)
    said = Entry(source.forbidden, skipped="Permission denied", failed=True)
    assert {change.path: change.entry for change in watch.sweep()} == {str(file): None, said.path: said}
    assert watch.sweep() == []
    source.forbidden = ""
    assert {change.path: change.entry for change in watch.sweep()} == {said.path: None} | walked(tmp_path)


def test_network_file_systems_are_recognized() -> None:
    mounts = "dev / ext4 rw 0 0\nhost:/x /mnt/far\\040away nfs4 rw 0 0\nb /mnt/far\\040away/near ext4 rw 0 0\n"
    mounts += "me@there:/ /home/me/there fuse.sshfs rw 0 0\n"

    assert remote(["/mnt/far away/traces"], mounts) == "nfs4"
    assert remote(["/mnt/far away/near/traces"], mounts) == ""
    assert remote(["/mnt/far awayness"], mounts) == ""
    assert remote(["/srv", "/home/me"], mounts) == "fuse.sshfs"
    assert remote(["/srv"], mounts) == ""
    assert remote(["/srv"], "") == ""
