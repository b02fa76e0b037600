"""One job at a time over many runs: it reports progress, ends when another starts, and pauses after a key press."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.live.sessions import paprika
from tests.shared import PATIENCE
from tracetui.analysis.contrast import Contrast
from tracetui.analysis.search import Hit, Needle, Options
from tracetui.analysis.statistics import By
from tracetui.live import jobs as module
from tracetui.live.engine import Engine
from tracetui.live.jobs import NEWS_SECONDS, Contrasts, Job, JobProgress, Step, contrast_job, statistics_job
from tracetui.live.scan import scan
from tracetui.live.search import grep_job
from tracetui.model import Problem, RunRef
from tracetui.sources.base import LinkLost, Source
from tracetui.sources.local import LocalSource


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An engine that only runs jobs."""
    engine = Engine(LocalSource(), [str(tmp_path)])
    yield engine
    engine.stop()


def refs(folder: Path) -> list[RunRef]:
    files = scan(LocalSource(), [str(folder)], deep=False)
    return sorted(run.ref for file in files for run in file.runs)


def mail(
    engine: Engine, until: Callable[[JobProgress], bool] = lambda progress: progress.finished
) -> list[JobProgress]:
    """All progress up to that condition."""
    reports: list[JobProgress] = []
    end = time.monotonic() + PATIENCE
    while not reports or not until(reports[-1]):
        assert engine.wait(end - time.monotonic()), "nothing came"
        survey = engine.collect().progress
        if survey is not None:
            reports.append(survey)
    return reports


def test_a_search_reports_every_hit_and_its_end(tmp_path: Path, engine: Engine) -> None:
    for number in range(30):
        paprika(tmp_path / f"{number:02}.json", f"{number:02}")
    known = refs(tmp_path)
    (tmp_path / "07.json").unlink()

    engine.start_job(grep_job(known, Needle("found 2"), Options()))
    reports = mail(engine)

    new = [item for survey in reports for item in survey.new]
    assert [item.ref for item in new if isinstance(item, Hit)] == [ref for ref in known if "07" not in ref.path]
    assert [Path(item.path).name for item in new if isinstance(item, Problem)] == ["07.json"]
    assert (reports[-1].done, reports[-1].total, reports[-1].finished) == (30, 30, True)
    assert [survey.done for survey in reports] == sorted(survey.done for survey in reports)
    assert not any(survey.finished for survey in reports[:-1])


def test_a_search_stops_at_its_limit(tmp_path: Path, engine: Engine) -> None:
    for number in range(9):
        paprika(tmp_path / f"{number:02}.json", f"{number:02}", steps=1)

    engine.start_job(grep_job(refs(tmp_path), Needle("found 1"), Options(), most=4))
    reports = mail(engine)

    assert sum(len(survey.new) for survey in reports) == 4
    assert reports[-1].more


class Steps:
    """A job that runs until it is told to end, and records how it ended."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()
        self.count = 0
        self.finish = False
        self.job = Job("steps", 0, self.work)

    def work(self, source: Source) -> Generator[Step, None, None]:
        self.begun.set()
        try:
            while not self.finish:
                self.count += 1
                yield Step((self.count,), done=1)
        finally:
            self.ended.set()


def test_a_new_job_takes_the_place_of_the_old(engine: Engine) -> None:
    first, second = Steps(), Steps()
    engine.start_job(first.job)
    assert first.begun.wait(PATIENCE)
    second.finish = True

    engine.start_job(second.job)
    reports = mail(engine, lambda survey: survey.job is second.job)

    assert first.ended.wait(PATIENCE)
    assert reports[-1].finished


def test_unread_progress_is_merged_per_job(engine: Engine) -> None:
    steps = Steps()
    engine.start_job(steps.job)
    seen: list[int] = []
    while len(seen) < 3 or seen[-1] < 1000:
        seen += mail(engine, lambda survey: True)[-1].new
    steps.finish = True
    seen += [number for survey in mail(engine) for number in survey.new]

    assert seen == list(range(1, steps.count + 1))


def test_reports_come_no_faster_than_their_interval(engine: Engine) -> None:
    steps = Steps()
    began = time.monotonic()
    engine.start_job(steps.job)
    reports = mail(engine, lambda survey: time.monotonic() - began > 10 * NEWS_SECONDS)
    steps.finish = True

    assert len(reports) <= (time.monotonic() - began) / NEWS_SECONDS + 1


def test_a_stopped_job_reports_nothing(engine: Engine) -> None:
    steps = Steps()
    engine.start_job(steps.job)
    assert steps.begun.wait(PATIENCE)

    engine.stop_job()

    assert steps.ended.wait(PATIENCE)
    engine.collect()
    assert not engine.wait(3 * NEWS_SECONDS)


def test_a_job_pauses_while_a_key_press_reads_something_else(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    paprika(tmp_path / "a.json", "a")
    (ref,) = refs(tmp_path)
    first, second = Steps(), Steps()
    engine.start_job(first.job)
    assert first.begun.wait(PATIENCE)
    monkeypatch.setattr(module, "REST_SECONDS", 1000.0)

    engine.open(ref)
    before = first.count
    for _ in range(50):  # slow work
        refs(tmp_path)
    rested = first.count
    engine.start_job(second.job)

    assert rested - before <= 2
    assert first.ended.wait(PATIENCE)
    assert second.begun.wait(PATIENCE)


def test_a_lost_connection_ends_the_job_and_is_reported(engine: Engine) -> None:
    def work(source: Source) -> Generator[Step, None, None]:
        yield Step(("one",), done=1)
        raise LinkLost("the link to box is down")

    engine.start_job(Job("steps", 2, work))
    reports = mail(engine)

    assert (reports[-1].lost, reports[-1].done, reports[-1].finished) == ("the link to box is down", 1, True)


def test_the_bug_of_a_job_reaches_the_app(engine: Engine) -> None:
    def work(source: Source) -> Generator[Step, None, None]:
        yield Step()
        raise ZeroDivisionError

    engine.start_job(Job("steps", 0, work))
    end = time.monotonic() + PATIENCE
    failure = None
    while failure is None and engine.wait(end - time.monotonic()):
        failure = engine.collect().failure

    assert isinstance(failure, ZeroDivisionError)


def write_sides(folder: Path) -> tuple[list[RunRef], list[RunRef]]:
    """Runs that called a tool with q3, and runs that did not get so far."""
    for number in range(12):
        paprika(folder / f"{number:02}.json", f"{number:02}", steps=3 if number % 3 == 0 else 2)
    known = refs(folder)
    return known[::3], [ref for i, ref in enumerate(known) if i % 3]


def test_contrast_finds_the_planted_features(tmp_path: Path, engine: Engine) -> None:
    a, b = write_sides(tmp_path)
    Path(b[0].path).unlink()

    engine.start_job(contrast_job(a, b))
    reports = mail(engine)

    result = reports[-1].result
    assert isinstance(result, Contrast)
    first = result.findings[0]
    assert (first.label, first.in_a, first.of_a, first.in_b, first.of_b) == (
        "search(q=q3), also search → search → search +1", 4, 4, 0, 7
    )  # fmt: skip
    assert first.example == (a[0], "s2")
    assert result.note == ""
    assert [item.path for survey in reports for item in survey.new] == [b[0].path]
    assert (reports[-1].done, reports[-1].total) == (12, 12)
    assert Contrasts(LocalSource()).compute(a, b) == result


def test_replays_that_first_differ_at_one_step_share_that(tmp_path: Path) -> None:
    paprika(tmp_path / "0.json", "0", steps=3)
    for number in range(1, 21):
        paprika(tmp_path / f"{number:02}.json", f"{number:02}", steps=2 if number <= 10 else 3)
    first, *replays = refs(tmp_path)

    contrast = Contrasts(LocalSource(), original=lambda ref: first if ref in replays else None).compute(
        replays[:10], replays[10:]
    )

    texts = [feature.label for finding in contrast.findings for feature in finding.features]
    assert "first differs from its original at step 3 search (left out)" in texts


def test_contrast_reads_no_more_than_it_says(tmp_path: Path) -> None:
    a, b = write_sides(tmp_path)

    contrast = Contrasts(LocalSource(), most=3).compute(a, b)

    assert contrast.findings == ()  # chance explains three of three
    assert contrast.note == "3 of 4 runs were read; 3 of 8 runs were read"


def test_statistics_count_every_run(tmp_path: Path, engine: Engine) -> None:
    a, b = write_sides(tmp_path)

    engine.start_job(statistics_job([*a, *b]))
    last = mail(engine)[-1]

    assert (last.result.runs, {*last.result.rows}) == (12, {*By})
    assert [(row.name, row.count, row.runs) for row in last.result.rows[By.TOOL]] == [("search", 4 * 3 + 8 * 2, 12)]
