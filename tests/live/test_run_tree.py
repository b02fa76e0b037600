"""The job behind the run tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trials import BOOKING, FOUR, LOOKUP, write_trials
from tracetui.analysis.run_tree import StepRef
from tracetui.analysis.tasks import Trial, as_trials
from tracetui.live import jobs as module
from tracetui.live.jobs import Job, Step, TreeResult, run_tree_job
from tracetui.live.scan import scan
from tracetui.model import Problem, Run, RunRef
from tracetui.redact import Redactor
from tracetui.sources.local import LocalSource

SECRET = "sk-proj-" + "Zx81" * 12


def trials_in(folder: Path) -> tuple[Trial, ...]:
    files = scan(LocalSource(), [str(folder)], deep=True)
    return as_trials(sorted((run for file in files for run in file.runs), key=lambda run: run.trial or ""))


def finish(job: Job) -> tuple[TreeResult, list[Step]]:
    steps = [*job.work(LocalSource())]
    assert job.result is not None
    result = job.result()
    assert isinstance(result, TreeResult)
    return result, steps


def test_every_trial_is_read_once_and_reported(tmp_path: Path) -> None:
    write_trials(tmp_path)
    trials = trials_in(tmp_path)
    job = run_tree_job(trials)
    assert job.result is not None
    assert job.result() is None
    result, steps = finish(job)
    assert sum(step.done for step in steps) == job.total == len(FOUR)
    assert [trial.run.trial for trial in result.tree.trials] == [trial.run.trial for trial in trials]
    assert len(result.decisive_at) == len(result.tree.forks) == 3


def test_loaded_runs_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trials(tmp_path)
    trials = trials_in(tmp_path)
    first, _ = finish(run_tree_job(trials))
    loaded: dict[RunRef, Run] = {run.summary.ref: run for run in first.tree.runs}

    def fail(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(module, "read_steps", fail)
    second, _ = finish(run_tree_job(trials, texts=True, loaded=loaded))
    assert second.texts
    assert second.tree.nodes > first.tree.nodes


def test_unreadable_trials_are_reported_and_left_in_the_result(tmp_path: Path) -> None:
    write_trials(tmp_path)
    trials = trials_in(tmp_path)
    Path(trials[2].run.ref.path).unlink()
    result, steps = finish(run_tree_job(trials))
    assert [trial.run.trial for trial in result.tree.unreadable] == [trials[2].run.trial]
    assert [type(item) for step in steps for item in step.new] == [Problem]


def test_trials_beyond_the_limit_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trials(tmp_path)
    monkeypatch.setattr(module, "MAX_TRIALS", 3)
    result, _ = finish(run_tree_job(trials_in(tmp_path)))
    assert (len(result.tree.runs), result.left_out) == (3, 1)


def test_steps_are_compared_exactly_and_shown_masked(tmp_path: Path) -> None:
    tokens = (SECRET, SECRET[:-4] + "9999")
    write_trials(tmp_path, [((LOOKUP, ("login", {"token": token}), BOOKING), True) for token in tokens])
    result, _ = finish(run_tree_job(trials_in(tmp_path), redactor=Redactor()))
    assert len(result.tree.forks) == 1
    assert {type(step) for step in result.arguments} == {StepRef}
    assert not any(token[8:] in text for text in result.arguments.values() for token in tokens)
