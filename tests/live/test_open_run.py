"""One reader serves the panes of the open run and its row in the list."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.live.sessions import Session
from tracetui.live.deep_reader import DeepReader
from tracetui.live.load import Reader
from tracetui.live.open_run import OpenRun
from tracetui.live.scan import Found, look
from tracetui.model import RunRef
from tracetui.sources.base import Entry, File, Stat
from tracetui.sources.local import LocalSource


class Counted(LocalSource):
    """Counts how often files are opened."""

    opened = 0

    def open(self, path: str, stat: Stat | None = None) -> File:
        self.opened += 1
        return super().open(path, stat)


def entry_of(path: Path) -> Entry:
    return next(iter(LocalSource().list(str(path)).entries))


def deep(path: Path) -> Found:
    return look(LocalSource(), entry_of(path), deep=True)[0]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    session = Session(tmp_path / "a.ccpa-trace.jsonl")
    session.step()
    return session


def read_by_opener(open_run: OpenRun, session: Session) -> Reader:
    reader = Reader(LocalSource(), deep(session.path).runs[0].ref)
    open_run.begin(reader)
    reader.catch_up()
    open_run.publish(reader)
    return reader


def test_the_list_takes_what_the_opener_read(session: Session) -> None:
    open_run, source = OpenRun(), Counted()
    reader = read_by_opener(open_run, session)
    lister = DeepReader(source, [], None, open_run)

    first = lister.count(entry_of(session.path), "ccpa")
    session.step(ok=False)
    reader.catch_up()
    open_run.publish(reader)
    second = lister.read_changed(entry_of(session.path))

    assert source.opened == 0
    assert (first.runs[0].steps, second.runs) == (1, deep(session.path).runs)


@pytest.mark.parametrize("why", ["ended", "forgotten", "another run", "several runs"])
def test_the_list_reads_what_the_opener_does_not(session: Session, why: str) -> None:
    open_run, source = OpenRun(), Counted()
    reader = read_by_opener(open_run, session)
    lister = DeepReader(source, [], None, open_run)
    if why == "ended":
        open_run.end()
    elif why == "forgotten":
        lister.forget(str(session.path))
    elif why == "another run":
        open_run.begin(Reader(LocalSource(), RunRef("ccpa", "/other")))
    else:
        reader.ref = RunRef("ccpa", str(session.path), "key")
        open_run.begin(reader)

    assert lister.read_changed(entry_of(session.path)).runs == deep(session.path).runs
    assert source.opened > 0


def test_the_list_waits_for_the_opener_to_read_a_change(session: Session) -> None:
    open_run = OpenRun()
    reader = read_by_opener(open_run, session)
    session.step()
    found: list[Found | None] = []
    thread = threading.Thread(target=lambda: found.append(open_run.look(entry_of(session.path))))
    thread.start()
    reader.catch_up()
    open_run.publish(reader)
    thread.join()

    assert found[0] is not None
    assert found[0].runs[0].steps == 2


def test_opening_a_run_cancels_counting_its_file(session: Session) -> None:
    open_run = OpenRun()
    budget = open_run.counting(str(session.path))
    for _ in range(600):
        session.step("printed " * 20)
    before, _ = look(LocalSource(), entry_of(session.path), deep=True, budget=budget)
    open_run.begin(Reader(LocalSource(), before.runs[0].ref))
    after, _ = look(LocalSource(), entry_of(session.path), deep=True, budget=budget)

    assert (before.runs[0].steps, budget.spent, after.unread) == (601, True, True)
    assert open_run.is_reading(str(session.path))
