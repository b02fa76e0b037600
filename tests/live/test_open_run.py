"""One reader serves the panes of the open run and its row in the list."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.live.sessions import Session
from tests.shared import PATIENCE
from tracetui import demo
from tracetui.live.deep_reader import DeepReader
from tracetui.live.engine import Engine
from tracetui.live.jobs import WatchedRuns
from tracetui.live.load import Reader, read_run
from tracetui.live.readers import Readers, UntilOpened
from tracetui.live.scan import ScannedFile, Scanner
from tracetui.live.scan_cache import open_cache
from tracetui.model import Operation, Run, RunRef
from tracetui.sources.base import HEAD_SIZE, Entry, Stat
from tracetui.sources.local import LocalFile, LocalSource


class CountedFile(LocalFile):
    """A file that counts readings from its start; the head is checked whenever it is read on."""

    def __init__(self, path: str, stat: Stat | None, count: Callable[[], None]) -> None:
        super().__init__(path, stat)
        self._count = count

    def read(self, offset: int, size: int) -> bytes:
        if offset == 0 and size > HEAD_SIZE:
            self._count()
        return super().read(offset, size)


class CountedSource(LocalSource):
    """Counts how often files are read from their start."""

    readings = 0

    def open(self, path: str, stat: Stat | None = None) -> LocalFile:
        return CountedFile(path, stat, self._count)

    def _count(self) -> None:
        self.readings += 1


def entry_of(path: Path) -> Entry:
    return next(iter(LocalSource().list(str(path)).entries))


def deep(path: Path) -> ScannedFile:
    return Scanner(LocalSource()).look(entry_of(path), deep=True)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Longer than the head of a file."""
    session = Session(tmp_path / "a.ccpa-trace.jsonl")
    session.step("printed " * (HEAD_SIZE // 8))
    return session


def opened(readers: Readers, path: Path) -> Reader:
    """The reader of the run as the opener left it."""
    reader = readers.open(deep(path).runs[0].ref)
    readers.attend(reader)
    reader.catch_up()
    return reader


def test_a_run_is_read_once_for_its_panes_and_the_list(session: Session) -> None:
    source = CountedSource()
    readers = Readers(source)
    lister = DeepReader(source, [], None, readers)
    reader = opened(readers, session.path)
    first = lister.count(entry_of(session.path), "ccpa")
    session.step(ok=False)
    second = lister.read_changed(entry_of(session.path))
    reader.catch_up()
    session.step()
    reader.catch_up()
    third = lister.read_changed(entry_of(session.path))

    assert source.readings == 1
    assert [file.runs[0].steps for file in (first, second, third)] == [1, 2, 3]
    assert third.runs == deep(session.path).runs
    assert reader.build().spans == read_run(LocalSource(), reader.ref).spans


def test_the_list_reads_an_open_run_itself_if_the_result_can_be_stored(session: Session) -> None:
    os.utime(session.path, (1_700_000_000, 1_700_000_000))
    source, readers = CountedSource(), Readers(LocalSource())
    reader = opened(readers, session.path)
    lister = DeepReader(source, [], None, readers)
    lister.cache = open_cache(source, [], None, 1 << 20)

    lister.count(entry_of(session.path), "ccpa")
    assert source.readings == 1, "or every start would count it again"

    session.step()
    reader.catch_up()
    lister.count(entry_of(session.path), "ccpa")
    assert source.readings == 1, "it changes, so that it can't be stored"


@pytest.mark.parametrize("why", ["ended", "forgotten", "another run", "several runs"])
def test_the_list_scans_what_the_opener_does_not_read(session: Session, why: str) -> None:
    readers, source = Readers(LocalSource()), CountedSource()
    opened(readers, session.path)
    lister = DeepReader(source, [], None, readers)
    if why == "ended":
        readers.attend(None)
    elif why == "forgotten":
        lister.forget(str(session.path))
    elif why == "another run":
        readers.attend(readers.open(RunRef("ccpa", "/other")))
    else:
        readers.attend(readers.open(RunRef("ccpa", str(session.path), "key")))

    assert lister.read_changed(entry_of(session.path)).runs == deep(session.path).runs
    assert source.readings == 1


def test_a_run_that_the_list_follows_opens_without_reading_it_again(session: Session) -> None:
    readers = Readers(source := CountedSource())
    lister = DeepReader(LocalSource(), [], None, readers)
    lister.read_changed(entry_of(session.path))
    session.step()
    lister.read_changed(entry_of(session.path))

    ref = deep(session.path).runs[0].ref
    (run,) = readers.open(ref).steps(lambda: None)
    assert source.readings == 1
    assert run.spans == read_run(LocalSource(), ref).spans


def test_watched_runs_share_the_reader_of_the_open_run(session: Session) -> None:
    readers = Readers(source := CountedSource())
    reader = opened(readers, session.path)
    watched = WatchedRuns()

    def news() -> list[Run]:
        return [run for step in watched.job(readers, [reader.ref]).work(source) for run in step.new]

    (run,) = news()
    assert news() == []
    session.step()
    reader.catch_up()
    (longer,) = news()
    assert len(run.spans) < len(longer.spans)
    assert source.readings == 1


def test_a_reloaded_run_is_read_from_its_start(session: Session) -> None:
    readers = Readers(source := CountedSource())
    reader = opened(readers, session.path)
    assert readers.open(reader.ref) is reader
    readers.open(reader.ref, reload=True).catch_up()
    assert source.readings == 2


def test_threads_take_turns_with_a_reader(session: Session) -> None:
    readers = Readers(source := CountedSource())
    for _ in range(50):
        session.step("printed " * 20)
    reader = opened(readers, session.path)
    lister = DeepReader(LocalSource(), [], None, readers)
    lister.count(entry_of(session.path), "ccpa")
    done = threading.Event()

    def list_it() -> None:
        while not done.is_set():
            lister.read_changed(entry_of(session.path))

    thread = threading.Thread(target=list_it)
    thread.start()
    for _ in range(50):
        session.step()
        reader.catch_up()
        run = reader.build()
    done.set()
    thread.join()

    whole = read_run(LocalSource(), reader.ref)
    assert (run.spans, run.depths, run.summary) == (whole.spans, whole.depths, whole.summary)
    assert source.readings == 1


def test_opening_a_run_cancels_counting_its_file(session: Session) -> None:
    readers = Readers(LocalSource())
    budget = UntilOpened(readers, str(session.path))
    for _ in range(600):
        session.step("printed " * 20)
    before = Scanner(LocalSource()).look(entry_of(session.path), deep=True, budget=budget)
    readers.attend(readers.open(before.runs[0].ref))
    after = Scanner(LocalSource()).look(entry_of(session.path), deep=True, budget=budget)

    assert (before.runs[0].steps, budget.spent, after.unread) == (601, True, True)


def test_a_failed_run_comes_with_what_its_model_had_seen(tmp_path: Path) -> None:
    demo.write(tmp_path, datetime(2026, 1, 15, 10, tzinfo=UTC))
    (path,) = tmp_path.rglob("0690e0f0-*.json")
    ref = RunRef("paprika", str(path))
    engine = Engine(LocalSource(), [])
    engine.start()
    engine.open(ref)
    try:
        mail = next(mail for _ in range(100) if engine.wait(PATIENCE) and ref in (mail := engine.collect()).runs)
        assert {span.operation for span, _ in mail.bodies.values()} == {Operation.EXECUTE_TOOL, Operation.CHAT}
    finally:
        engine.stop()
