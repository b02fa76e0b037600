"""A file of many runs is opened and decompressed once when its runs are read in a row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.formats import inspect_build as build
from tracetui.analysis.search import Hit, Needle, Options
from tracetui.live.jobs import statistics_job
from tracetui.live.load import FileCaches, read_run
from tracetui.live.scan import scan
from tracetui.live.search import Outcome, grep, grep_job
from tracetui.model import Problem, RunRef
from tracetui.sources.base import Stat
from tracetui.sources.local import LocalFile, LocalSource

SAMPLES = 40


class CountedFile(LocalFile):
    """A file that counts reads to its end: an archive's directory, or a whole document."""

    def __init__(self, path: str, stat: Stat | None, on_open: Callable[[], None]) -> None:
        super().__init__(path, stat)
        self._on_open = on_open

    def read(self, offset: int, size: int) -> bytes:
        if offset + size == self.stat.size:
            self._on_open()
        return super().read(offset, size)


class CountedSource(LocalSource):
    """Counts how often a file is read to its end."""

    opened = 0

    def open(self, path: str, stat: Stat | None = None) -> LocalFile:
        return CountedFile(path, stat, self._count)

    def _count(self) -> None:
        self.opened += 1


@pytest.fixture(params=["archive", "document"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log of many samples."""
    samples = [build.sample(f"s{n}", input=f"Where? {n}", events=build.agent()) for n in range(SAMPLES)]
    samples[7]["input"] += " Rockall"
    if request.param == "archive":
        path = tmp_path / "log.eval"
        path.write_bytes(build.archive(build.members(build.head("e"), samples), build.STORED))
    else:
        path = tmp_path / "log.json"
        path.write_text(json.dumps({**build.ended(build.head("e"), samples), "samples": samples}))
    return path


def refs(path: Path) -> list[RunRef]:
    return [run.ref for file in scan(LocalSource(), [str(path)], deep=False) for run in file.runs]


def test_statistics_read_a_log_once(log: Path) -> None:
    listed, source = refs(log), CountedSource()
    assert len(listed) == SAMPLES
    for _ in statistics_job(listed).work(source):
        pass
    assert source.opened == 1


def test_alternating_runs_of_two_logs_read_each_log_once(log: Path) -> None:
    other = log.with_name(f"other{log.suffix}")
    other.write_bytes(log.read_bytes())
    listed = [ref for pair in zip(refs(log), refs(other), strict=True) for ref in pair]
    source = CountedSource()
    for _ in statistics_job(listed).work(source):
        pass
    assert source.opened == 2

    job, source = grep_job(listed, Needle("Rockall"), Options()), CountedSource()
    steps = [*job.work(source)]
    assert sum(step.done for step in steps) == job.total == 2
    hits = [hit for step in steps for hit in step.new if isinstance(hit, Hit)]
    assert {hit.ref for hit in hits} == {ref for ref in listed if ref.key == "s7_epoch_1"}
    assert source.opened <= 6


def test_bodies_of_all_runs_read_a_log_once(log: Path) -> None:
    source, shared = CountedSource(), FileCaches()
    for ref in refs(log):
        run = read_run(source, ref, shared.for_run(ref))
        assert all(run.load(span).raw or run.load(span).attributes for span in run.spans)
    assert source.opened == 1


def test_a_search_reads_a_log_once(log: Path) -> None:
    source = CountedSource()
    hits = [hit for hit in grep(source, [str(log)], Needle("Rockall")) if isinstance(hit, Hit)]
    assert hits
    assert {hit.ref.key for hit in hits} == {"s7_epoch_1"}
    assert source.opened <= 4  # to scan it (its bytes, then its members), to list it, to read it


def test_an_archive_without_a_match_is_passed(log: Path) -> None:
    source = CountedSource()
    assert [result for result in grep(source, [str(log)], Needle("Fastnet")) if result is not None] == [Outcome.PASSED]
    assert source.opened <= 2  # its bytes, then its members


def test_a_log_that_changed_is_opened_again(log: Path, tmp_path: Path) -> None:
    source, shared = LocalSource(), FileCaches()
    (ref, *_) = refs(log)
    before = read_run(source, ref, shared.for_run(ref))
    other = tmp_path / "next"
    other.write_bytes(log.read_bytes().replace(b"Where?", b"Which?"))
    if log.suffix == ".eval":  # its checksums with it
        samples = [build.sample("s0", input="Which?", events=build.agent())]
        other.write_bytes(build.archive(build.members(build.head("e"), samples), build.STORED))
    other.replace(log)
    after = read_run(source, ref, shared.for_run(ref))
    assert (before.summary.prompt[:6], after.summary.prompt[:6]) == ("Where?", "Which?")


def test_an_archive_with_a_member_that_cannot_be_read_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    data = build.archive(build.members(build.head("e"), [build.sample("s1", events=build.agent())]), build.STORED)
    place = data.index(b"port Dover" if b"port Dover" in data else b"port dover")
    path.write_bytes(data[:place] + b"HARB" + data[place + 4 :])
    items = [*grep(LocalSource(), [str(path)], Needle("Fastnet"))]
    assert Outcome.PASSED not in items
    assert any(isinstance(item, Problem) and "broken" in item.reason for item in items)


def test_messages_shared_by_calls_are_reported_once(tmp_path: Path) -> None:
    log = build.EventLog("k")
    for count in (1, 2, 3):
        log.add("model", model=build.MODEL, input=[], input_refs=[[0, count]], output=build.answer("yes"))
    shared = [build.QUESTION, build.ANSWERED | {"content": "attachment://5ea5"}, build.CALLED]
    shared_sample = build.sample(
        "s1",
        input="?",
        events=log.events,
        messages=[],
        events_data={"messages": shared},
        attachments={"5ea5": "off Rockall"},
    )
    path = tmp_path / "log.eval"
    path.write_bytes(build.archive(build.members(build.head("e"), [shared_sample])))
    (ref,) = refs(path)
    run = read_run(LocalSource(), ref)
    given = [run.load(span).input_messages for span in run.spans]
    assert [len(messages) for messages in given] == [1, 2, 3]
    assert all(messages[0] is given[0][0] for messages in given)
    assert given[2][1] is given[1][1]

    def hits(*, repeats: bool) -> list[str]:
        results = grep(LocalSource(), [str(path)], Needle("Rockall"), Options(repeats=repeats))
        return [hit.span or "" for hit in results if isinstance(hit, Hit)]

    second, third = (span.id for span in run.spans[1:])
    assert hits(repeats=False) == [second]
    assert hits(repeats=True)[:2] == [second, third]
