"""The list of runs is right whatever the app and the disk do, and its cost to the app is bounded."""

from __future__ import annotations

import gc
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.night import Night
from tests.shared import PATIENCE, ROOT
from tracetui.analysis import cause
from tracetui.analysis.triage import groups
from tracetui.live.lister import Lister
from tracetui.live.mailbox import Mail, Mailbox, Throttle
from tracetui.live.watch import STILL_SECONDS
from tracetui.sources.base import Entry, File, Folder, LinkLost, Stat
from tracetui.sources.local import LocalSource


class Gated(LocalSource):
    """Local files; walks wait at a gate, the first listing after a walk is signaled, and opening may fail."""

    def __init__(self) -> None:
        self.cut_off = False
        self.refused = threading.Event()
        self.opened_at: list[float] = []
        self.gate = threading.Event()
        self.gate.set()
        self.watched = threading.Event()

    def walk(self, root: str) -> Iterator[Entry]:
        assert self.gate.wait(PATIENCE)
        yield from super().walk(root)

    def open(self, path: str, stat: Stat | None = None) -> File:
        if self.cut_off:
            self.refused.set()
            raise LinkLost
        self.opened_at.append(time.monotonic())
        return super().open(path, stat)

    def list(self, path: str) -> Folder:
        self.watched.set()
        return super().list(path)


@contextmanager
def listing(folder: Path, source: LocalSource) -> Iterator[tuple[Lister, Mailbox]]:
    mailbox, throttle = Mailbox(), Throttle()
    lister = Lister(source, [str(folder)], None, mailbox, throttle)
    thread = threading.Thread(target=lister.run)
    throttle.first_painted()
    thread.start()
    try:
        yield lister, mailbox
    finally:
        throttle.stop()
        lister.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def collect(mailbox: Mailbox, enough: Callable[[Mail], bool]) -> list[Mail]:
    """All mail up to the one that is enough."""
    end = time.monotonic() + PATIENCE
    mails: list[Mail] = []
    while not mails or not enough(mails[-1]):
        assert mailbox.wait(end - time.monotonic()), mails
        mails.append(mailbox.collect())
    return mails


def test_garbage_is_collected_again_once_everything_is_listed(tmp_path: Path) -> None:
    source = Gated()
    with listing(tmp_path, source) as (_, mailbox):
        collect(mailbox, lambda mail: mail.listed)
        assert source.watched.wait(PATIENCE)
        assert gc.isenabled()


def test_the_end_of_the_walk_before_does_not_end_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    source = Gated()
    with listing(tmp_path, source) as (lister, mailbox):
        assert source.watched.wait(PATIENCE)  # so the walk has ended and was delivered
        source.gate.clear()
        lister.rescan()
        assert not mailbox.collect().listed
        source.gate.set()
        assert collect(mailbox, lambda mail: mail.listed)


def test_half_a_file_is_given_its_time_also_after_the_link_was_down(tmp_path: Path) -> None:
    source = Gated()
    with listing(tmp_path, source) as (_, mailbox):
        collect(mailbox, lambda mail: mail.listed)
        assert source.watched.wait(PATIENCE)
        source.cut_off = True
        (tmp_path / "half.json").write_text('{"id": ')
        assert source.refused.wait(PATIENCE)
        source.cut_off = False
        collect(mailbox, lambda mail: any(file.kind == "problem" for file in mail.files))
        assert time.monotonic() - source.opened_at[0] >= STILL_SECONDS


def test_a_run_is_counted_again_when_another_of_its_files_grows(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "formats" / "claude_code" / "agents" / "input", tmp_path / "there")
    part = next((tmp_path / "there").rglob("agent-ant01.jsonl"))
    last = part.read_bytes().split(b"\n")[-2]
    with listing(tmp_path, Gated()) as (_, mailbox):
        counted = collect(mailbox, lambda mail: any(run.deep for file in mail.files for run in file.runs))
        (spans,) = {run.spans for mail in counted for file in mail.files for run in file.runs if run.deep}
        assert spans is not None
        with part.open("ab") as writer:
            writer.write(last.replace(b"msg_w1", b"msg_w2").replace(b'"uuid":"', b'"uuid":"new') + b"\n")
        collect(mailbox, lambda mail: any(run.spans == spans + 1 for file in mail.files for run in file.runs))


def test_a_part_that_came_before_its_main_file_is_no_run_of_its_own_once_that_is_there(tmp_path: Path) -> None:
    case = ROOT / "tests" / "formats" / "atif" / "agents" / "input"
    part, main = "trajectory.wasp.json", "trajectory.json"
    shutil.copy(case / part, tmp_path)
    with listing(tmp_path, LocalSource()) as (_, mailbox):
        mails = collect(mailbox, lambda mail: mail.watching is not None)
        assert all(file.runs for mail in mails for file in mail.files)

        shutil.copy(case / main, tmp_path / "written")
        (tmp_path / "written").rename(tmp_path / main)
        mails = collect(mailbox, lambda mail: any(file.part_of for file in mail.files))

    came = {Path(file.path).name: file for mail in mails for file in mail.files}
    assert came[main].runs
    assert (came[part].runs, came[part].part_of) == ((), str(tmp_path / main))


def test_the_thread_that_counts_finds_the_causes(tmp_path: Path) -> None:
    Night(tmp_path).fill(12)
    with listing(tmp_path, LocalSource()) as (_, mailbox):
        mails = collect(mailbox, lambda mail: mail.watching is not None)
    runs = {run.ref: run for mail in mails for file in mail.files for run in file.runs}
    before = cause._failure_of.cache_info().misses
    assert len(groups(runs.values())) == 12
    assert cause._failure_of.cache_info().misses == before


def test_the_complete_list_is_urgent(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "cli" / "traces" / "paprika", tmp_path / "traces")
    with listing(tmp_path / "traces", LocalSource()) as (_, mailbox):
        assert collect(mailbox, lambda mail: mail.total is not None and not mail.stage)[-1].asked, (
            "or it waits for its turn"
        )


def test_work_that_can_wait_starts_after_the_list() -> None:
    throttle, order = Throttle(), list[str]()

    def work() -> None:
        throttle.wait_for_list()
        order.append("work")

    thread = threading.Thread(target=work)
    thread.start()
    order.append("list")
    throttle.list_complete()
    thread.join(PATIENCE)
    assert order == ["list", "work"]
