"""Links that are slow, that swallow everything, and of which one of several is down."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.cli.run import HERE
from tests.live.sessions import Session
from tests.shared import PATIENCE
from tests.sources.sshd import Proxy, SlowLine, Sshd, missing, until
from tests.sources.test_sftp import answers
from tracetui.cli.reading import original_of, runs_in
from tracetui.live.scan import scan
from tracetui.live.tail import Tail
from tracetui.live.watch import Watch
from tracetui.model.run import SpanChanged
from tracetui.sources.base import File, LinkLost, Source, Stat
from tracetui.sources.local import LocalSource
from tracetui.sources.locations import open_source
from tracetui.sources.remote import RemoteCache
from tracetui.sources.sftp import STDERR_BYTES
from tracetui.sources.ssh import CONNECT_SECONDS

TRACES = HERE / "traces"
pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """One session in each of twenty folders."""
    for i in range(20):
        Session(tmp_path / "traces" / f"run {i}" / "teacher.ccpa-trace.jsonl", ident=f"s-{i}").step()
    return tmp_path / "traces"


def test_closing_does_not_wait_for_a_connection_that_is_being_made(there: Sshd, tmp_path: Path) -> None:
    proxy = Proxy(there.port)
    try:
        there.connect_to(proxy.port)
        with open_source([f"there:{tmp_path}"]) as source:
            proxy.mute()
            there.cut()
            over = threading.Event()
            waiting = threading.Thread(target=_ask, args=(source, f"there:{tmp_path}", over))
            waiting.start()
            until(lambda: proxy.accepted == 2, "it does not connect again")
            began = time.monotonic()
        took = time.monotonic() - began
        over.set()
        waiting.join(PATIENCE)
        assert not waiting.is_alive()
        assert took < CONNECT_SECONDS / 2
    finally:
        proxy.close()


def _ask(source: Source, place: str, over: threading.Event) -> None:
    while not over.wait(0.02):
        with suppress(LinkLost):
            source.list(place)


def test_many_folders_cost_the_round_trips_of_few(there: Sshd, folders: Path) -> None:
    line = SlowLine(there.port, 0.1)
    try:
        there.connect_to(line.port)
        with open_source([f"there:{folders}"]) as source:
            assert source.list(f"there:{folders}")
            before = line.trips
            assert sum(len(file.runs) for file in scan(source, [f"there:{folders}"], deep=False)) == 20
            assert line.trips - before < 2 * 20  # each is listed, opened, read and closed
            watch = Watch(source, [f"there:{folders}"])
            before = line.trips
            assert len(watch.sweep()) == 20
            assert line.trips - before < 20
            watch.stop()
    finally:
        line.close()


def test_prefetched_folders_are_listed_correctly(there: Sshd, folders: Path) -> None:
    (folders / "run 3" / "below").mkdir()
    place = f"there:{folders}"
    paths = [f"{place}/run {i}" for i in range(20)] + [f"{place}/none"]
    with open_source([place]) as source:
        alone = [source.list(path) for path in paths[:-1]]
        source.prefetch(paths[:5])
        source.prefetch(paths[3:])
        assert [source.list(path) for path in paths[:-1]] == alone
        source.prefetch(paths[-1:])
        with pytest.raises(FileNotFoundError):
            source.list(paths[-1])
        assert source.list(place).folders


def test_one_machine_that_is_down_hides_nothing_of_the_others(there: Sshd, tmp_path: Path) -> None:
    far, near = tmp_path / "far", tmp_path / "near"
    for folder in (far, near):
        Session(folder / "run" / "teacher.ccpa-trace.jsonl").step()
    with open_source([f"there:{far}", str(near)]) as source:
        watch = Watch(source, [f"there:{far}", str(near)])
        assert len(watch.sweep()) == 2
        there.stop()
        until(lambda: watch.changes(0.05) == [] and watch.lost, "it is not noticed that it is down")
        for i in range(3):
            Session(near / "run" / f"{i}.ccpa-trace.jsonl").step()
            until(lambda: [change.entry for change in watch.changes(0.05)], "the new file next to it is not noticed")
            assert watch.lost
        Session(far / "run" / "student.ccpa-trace.jsonl").step()
        there.start()
        until(lambda: [change.path for change in watch.changes(0.05)], "what came meanwhile is not noticed")
        assert watch.lost == ""
        watch.stop()


def test_an_earlier_answer_does_not_replace_a_later_one() -> None:
    cache = RemoteCache()
    cache.observe("log", 10, 1_700_000_000)
    early = time.monotonic()
    grown = cache.observe("log", 20, 1_700_000_001)

    assert cache.observe("log", 10, 1_700_000_000, asked=early) == grown


def test_endless_errors_do_not_block_closing() -> None:
    with answers(b"") as channel, subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE) as flood:
        assert flood.stdout is not None
        os.set_blocking(flood.stdout.fileno(), False)
        channel._pipes = channel._pipes._replace(errors=flood.stdout.fileno())
        until(lambda: channel.stderr_tail, "nothing came")
        assert len(channel.stderr_tail) == STDERR_BYTES
        flood.kill()


class Elsewhere(LocalSource):
    """Files that can be listed, and sometimes not be read."""

    down = False

    def local_path(self, path: str) -> str | None:
        return None

    def open(self, path: str, stat: Stat | None = None) -> File:
        if self.down:
            raise LinkLost("timed out")
        return super().open(path, stat)


def test_changes_while_the_connection_was_down_are_reported_later(tmp_path: Path) -> None:
    source = Elsewhere()
    session = Session(tmp_path / "teacher.ccpa-trace.jsonl")
    tail = Tail(source, [str(tmp_path)])
    session.call("Before")
    names = reported_names(tail, 1)
    source.down = True
    session.call("Meanwhile")
    Session(tmp_path / "new" / "teacher.ccpa-trace.jsonl", ident="s-new").call("New")
    end = time.monotonic() + 3
    while time.monotonic() < end:  # longer than a change is checked again
        assert list(tail.events(0.1)) == []
    source.down = False

    assert names == {"Before"}
    assert reported_names(tail, 2, but="Before") == {"Meanwhile", "New"}
    tail.close()


def reported_names(tail: Tail, count: int, but: str = "") -> set[str]:
    """The reported tools, once there are so many."""
    names: set[str] = set()

    def enough() -> bool:
        for event in tail.events(0.05):
            if isinstance(event, SpanChanged):
                names.add(event.run.spans[event.position].name)
        names.intersection_update({"Before", "Meanwhile", "New"} - {but})
        return len(names) >= count

    until(enough, "it is not reported")
    return names


def test_the_original_of_a_run_in_the_home_folder_there(
    there: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("plan-7.json", "plan-7-again.json"):
        shutil.copy(TRACES / "paprika" / name, there.home / name)
    monkeypatch.chdir(tmp_path)
    for place in ("there:", "ssh://there/~/"):
        with open_source([place]) as source:
            run = next(run for run in runs_in(source, f"{place}plan-7-again.json", None))
            original = original_of(source, run, None)
            assert original is not None
            assert original.ref.address == f"{place}plan-7.json"


def test_a_database_is_checked_once_while_it_is_open(there: Sshd, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("CREATE TABLE t (a)")
    with open_source([f"there:{path}"]) as source, source.open(f"there:{path}") as file:
        assert file.tables == {"t"}
        received = source.received
        with file.database() as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
        assert source.received == received


def test_only_new_frames_of_a_log_are_copied(there: Sshd, tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer, open_source([f"there:{tmp_path}"]) as source:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA synchronous = OFF")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("CREATE TABLE t (a, b)")

        def rows() -> int:
            with source.open(f"there:{path}") as file, file.database() as connection:
                (count,) = connection.execute("SELECT count(*) FROM t").fetchone()
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                return int(count)

        wanted = 0
        for _ in range(2):  # the log restarts a second time, in a file of unchanged size
            for _ in range(150):
                writer.execute("INSERT INTO t VALUES (?, ?)", (wanted, "x" * 3000))
                wanted += 1
            assert rows() == wanted
            writer.execute("PRAGMA wal_checkpoint(RESTART)")
            writer.execute("INSERT INTO t VALUES (?, ?)", (wanted, "y"))
            wanted += 1
            assert rows() == wanted
            before, size = source.received, os.path.getsize(f"{path}-wal")
            for _ in range(10):
                writer.execute("INSERT INTO t VALUES (?, ?)", (wanted, "z" * 3000))
                wanted += 1
                assert rows() == wanted
                writer.execute("BEGIN")
                writer.execute("UPDATE t SET b = 'rolled back'")
                writer.execute("ROLLBACK")
            assert os.path.getsize(f"{path}-wal") == size
            assert source.received - before < size / 2
