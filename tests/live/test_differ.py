"""The order of a comparison's answers, and the runs read ahead."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.bench import data
from tests.shared import PATIENCE
from tracetui.analysis.diff_description import Changes, DiffDescription, describe
from tracetui.analysis.step_diff import CHANGES, Look
from tracetui.diff.comparison import Diff
from tracetui.live import differ as module
from tracetui.live.differ import Differ
from tracetui.live.mailbox import Compare, LookAt, Mail, Mailbox, Throttle
from tracetui.model import RunRef
from tracetui.sources.local import LocalSource

STEPS = 40
FIRST = 20
"""A replay with another output, which headers do not show."""


@pytest.fixture
def pair(tmp_path: Path) -> tuple[RunRef, RunRef]:
    """An original and its replay."""
    original = data.record(data.TextGenerator("differ"), 1, steps=STEPS)
    replay = copy.deepcopy(original)
    replay.update(record_id="replay", replay_of=original["record_id"])
    replay["steps"][FIRST]["output_data"] = {"text": "changed"}
    return _written(tmp_path / "a.json", original), _written(tmp_path / "b.json", replay)


def _written(path: Path, record: dict[str, Any]) -> RunRef:
    path.write_bytes(orjson.dumps(record))
    return RunRef("paprika", str(path))


class Working:
    """A running differ and its mails."""

    def __init__(self) -> None:
        self.mailbox, self.throttle = Mailbox(), Throttle()
        self.differ = Differ(LocalSource(), self.mailbox, self.throttle)
        self.mails: list[Mail] = []
        self.thread = threading.Thread(target=self.differ.run, daemon=True)
        self.thread.start()

    def until(self, holds: Callable[[Mail], bool]) -> Mail:
        """The first mail with that property."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.mailbox.wait(0.05):
                self.mails.append(self.mailbox.collect())
                if holds(self.mails[-1]):
                    return self.mails[-1]
        raise AssertionError(f"nothing of that kind among {len(self.mails)} mails")


@pytest.fixture
def working() -> Iterator[Working]:
    worker = Working()
    yield worker
    worker.throttle.stop()
    worker.differ.stop()
    worker.thread.join(PATIENCE)
    assert not worker.thread.is_alive()


def test_the_first_answer_has_the_first_difference_and_its_words(
    working: Working, pair: tuple[RunRef, RunRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_SECONDS", PATIENCE)  # on a busy machine an answer without it would come first
    ask = Compare(*pair)
    working.differ.compare(ask)

    mail = working.until(lambda mail: ask in mail.diffs)

    diff = mail.diffs[ask]
    assert isinstance(diff, Diff)
    assert diff.first is not None
    assert diff.first.row == FIRST
    look = mail.diffs[LookAt(ask, FIRST, FIRST, "changes")]
    assert isinstance(look, Look)
    assert any(section.differs for section in look.sections)


def test_steps_are_compared_while_a_comparison_is_described(
    working: Working, pair: tuple[RunRef, RunRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Compare(*pair)
    look = LookAt(ask, 0, 0, CHANGES)
    described = threading.Event()
    mails: list[Mail] = []

    def ask_meanwhile(diff: Diff, changes: Changes) -> DiffDescription:
        if not diff.complete:
            return describe(diff, changes)
        working.differ.look(look)
        description = describe(diff, changes)
        mails.append(working.mailbox.collect())
        described.set()
        return description

    monkeypatch.setattr(module, "describe", ask_meanwhile)
    working.differ.compare(ask)
    assert described.wait(PATIENCE)
    assert isinstance(mails[0].diffs.get(look), Look)


def test_a_likely_next_run_is_read_ahead(working: Working, pair: tuple[RunRef, RunRef]) -> None:
    working.differ.read_ahead(pair[0])

    run = working.until(lambda mail: pair[0] in mail.runs).runs[pair[0]]

    assert run.complete
    assert len(run.spans) == STEPS


def test_very_large_or_missing_files_are_not_read_ahead(
    working: Working, pair: tuple[RunRef, RunRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PREFETCH_BYTES", 100)
    working.differ.read_ahead(pair[0])
    ask = Compare(*pair)
    working.differ.compare(ask)
    working.until(lambda mail: ask in mail.diffs)
    working.differ.read_ahead(RunRef("paprika", pair[0].path + ".gone"))
    working.differ.compare(None)
    working.differ.compare(ask)
    working.until(lambda mail: ask in mail.diffs)

    assert not any(mail.runs for mail in working.mails)


def test_a_key_delays_jobs_but_not_what_is_on_screen(working: Working, pair: tuple[RunRef, RunRef]) -> None:
    ask, stop = Compare(*pair), threading.Event()

    def type_on() -> None:
        while not stop.wait(0.001):
            working.throttle.yield_to_key()

    keys = threading.Thread(target=type_on)
    keys.start()
    try:
        working.differ.compare(ask)
        working.until(lambda mail: ask in mail.diffs)
        at = LookAt(ask, 3, 3, "changes")
        working.differ.look(at)
        working.until(lambda mail: at in mail.diffs)
    finally:
        stop.set()
        keys.join()
