"""One reader serves the panes of the open run and its row in the list."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.live.sessions import Session
from tests.shared import PATIENCE
from tracetui import demo
from tracetui.live.deep_reader import DeepReader
from tracetui.live.engine import Engine
from tracetui.live.load import Reader
from tracetui.live.opener import OpenRun
from tracetui.live.scan import Found, look
from tracetui.live.scan_cache import open_cache
from tracetui.model import Operation, RunRef
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


def test_the_list_reads_an_open_run_itself_if_the_result_can_be_stored(session: Session) -> None:
    os.utime(session.path, (1_700_000_000, 1_700_000_000))
    source, open_run = Counted(), OpenRun()
    reader = read_by_opener(open_run, session)
    lister = DeepReader(source, [], None, open_run)
    lister.cache = open_cache(source, [], None, 1 << 20)

    lister.count(entry_of(session.path), "ccpa")
    assert source.opened, "or every start would count it again"

    session.step()
    reader.catch_up()
    open_run.publish(reader)
    opened = source.opened
    lister.count(entry_of(session.path), "ccpa")
    assert source.opened == opened, "it changes, so that it can't be stored"


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
