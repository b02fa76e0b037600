"""Links that are slow, that swallow everything, and of which one of several is down."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from tests.live.sessions import Session
from tests.sources.sshd import Proxy, SlowLine, Sshd, missing, until
from tests.sources.test_sftp import answers
from tracetui.live.scan import scan
from tracetui.live.watch import Watch
from tracetui.sources.base import LinkLost
from tracetui.sources.places import source_for
from tracetui.sources.recall import Recall

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
        with source_for([f"there:{tmp_path}"]) as source:
            proxy.mute()
            there.cut()
            waiting = threading.Thread(target=pytest.raises, args=(LinkLost, _until_lost, source, f"there:{tmp_path}"))
            waiting.start()
            until(lambda: proxy.accepted == 2, "it does not connect again")
            began = time.monotonic()
        took = time.monotonic() - began
        waiting.join(5)
        assert not waiting.is_alive()
        assert took < 1
    finally:
        proxy.close()


def _until_lost(source: object, place: str) -> None:
    for _ in range(10):
        source.list(place)  # type: ignore[attr-defined]


def test_many_folders_cost_the_round_trips_of_few(there: Sshd, folders: Path) -> None:
    line = SlowLine(there.port, 0.1)
    try:
        there.connect_to(line.port)
        with source_for([f"there:{folders}"]) as source:
            began = time.monotonic()
            assert sum(len(found.runs) for found in scan(source, [f"there:{folders}"], deep=False)) == 20
            assert time.monotonic() - began < 4  # one by one they took twelve seconds
            watch = Watch(source, [f"there:{folders}"])
            began = time.monotonic()
            assert len(watch.sweep()) == 20
            assert time.monotonic() - began < 3
            watch.stop()
    finally:
        line.close()


def test_folders_that_are_expected_are_told_as_they_are(there: Sshd, folders: Path) -> None:
    (folders / "run 3" / "below").mkdir()
    place = f"there:{folders}"
    paths = [f"{place}/run {i}" for i in range(20)] + [f"{place}/none"]
    with source_for([place]) as source:
        alone = [source.list(path) for path in paths[:-1]]
        source.expect(paths[:5])
        source.expect(paths[3:])
        assert [source.list(path) for path in paths[:-1]] == alone
        source.expect(paths[-1:])
        with pytest.raises(FileNotFoundError):
            source.list(paths[-1])
        assert source.list(place).folders


def test_one_machine_that_is_down_hides_nothing_of_the_others(there: Sshd, tmp_path: Path) -> None:
    far, near = tmp_path / "far", tmp_path / "near"
    for folder in (far, near):
        Session(folder / "run" / "teacher.ccpa-trace.jsonl").step()
    with source_for([f"there:{far}", str(near)]) as source:
        watch = Watch(source, [f"there:{far}", str(near)])
        assert len(watch.sweep()) == 2
        there.stop()
        until(lambda: watch.changes(0.05) == [] and watch.lost, "it is not noticed that it is down")
        for i in range(3):
            Session(near / "run" / f"{i}.ccpa-trace.jsonl").step()
            until(lambda: [one.entry for one in watch.changes(0.05)], "what is new beside it is not noticed")
            assert watch.lost
        Session(far / "run" / "student.ccpa-trace.jsonl").step()
        there.start()
        until(lambda: [one.path for one in watch.changes(0.05)], "what came meanwhile is not noticed")
        assert watch.lost == ""
        watch.stop()


def test_what_was_asked_for_earlier_does_not_replace_what_is_known() -> None:
    recall = Recall()
    recall.saw("log", 10, 1_700_000_000)
    early = time.monotonic()
    grown = recall.saw("log", 20, 1_700_000_001)

    assert recall.saw("log", 10, 1_700_000_000, asked=early) == grown


def test_errors_without_end_keep_nobody_from_giving_up() -> None:
    with answers(b"") as channel:
        read, write = os.pipe()
        os.set_blocking(read, False)
        flood = threading.Event()
        channel._pipes = channel._pipes._replace(errors=read)

        def shout() -> None:
            while not flood.is_set():
                try:
                    os.write(write, b"!" * 65_536)
                except OSError:
                    return

        thread = threading.Thread(target=shout, daemon=True)
        thread.start()
        words: list[bytes] = []
        asking = threading.Thread(target=lambda: words.append(channel.last_words), daemon=True)
        asking.start()
        asking.join(5)
        flood.set()
        os.close(read)
        thread.join(5)
        os.close(write)
        assert words
