"""The built-in samples: what every one of them is meant to be, judged by the readers."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path

import pytest

from tracetui import demo
from tracetui.analysis.gate import Verdict, gate
from tracetui.analysis.run_tree import run_tree
from tracetui.analysis.tasks import matrix
from tracetui.live.load import read_run
from tracetui.live.scan import ScannedFile, scan
from tracetui.model import Problem, Run, RunSummary
from tracetui.sources.local import LocalSource

NOW = datetime(2025, 6, 3, 14, 30, tzinfo=UTC)

INTENDED = """
ccpa/0025-rename/student.ccpa-trace.jsonl           ok
ccpa/0025-rename/teacher.ccpa-trace.jsonl           ok
ccpa/0027-hook-block/student.ccpa-trace.jsonl       ok
ccpa/0027-hook-block/teacher.ccpa-trace.jsonl       ok
ccpa/0031-changelog/student.ccpa-trace.jsonl        ok
ccpa/0031-changelog/teacher.ccpa-trace.jsonl        ok
ccpa/0042-failing-test/student.ccpa-trace.jsonl     error
ccpa/0042-failing-test/teacher.ccpa-trace.jsonl     error
ccpa/agent.ccpa-trace.jsonl                         unknown
ccpa/borrow-check.ccpa-trace.jsonl                  ok
ccpa/primes.ccpa-trace.jsonl                        error
graphs/batch.maplog.json                            error
graphs/rag.runlog.json                              ok
graphs/support.runlog.json                          error
graphs/workflows.db#approve-11                      ok
graphs/workflows.db#approve-12                      paused
graphs/workflows.db#batch-001                       error
graphs/workflows.db#draft-007                       ok
graphs/workflows.db#mapper-001                      ok
graphs/workflows.db#rag-001                         ok
graphs/workflows.db#rag-001-fork                    ok
graphs/workflows.db#rag-002                         ok
graphs/workflows.db#rag-f-001                       error
graphs/workflows.db#rag-f-001-r1                    ok
graphs/workflows.db#rag-live-001                    unknown
graphs/workflows.db#refactor-19                     cancelled
graphs/workflows.db#report-001                      ok
graphs/workflows.db#router-001                      ok
graphs/workflows.db#router-001-ck                   ok
latticeflow/audit.json                              error
latticeflow/tau-airline.jsonl#tau-airline-12        ok
latticeflow/tau-airline.jsonl#tau-airline-13        ok
latticeflow/tau-airline.jsonl#tau-airline-14        ok
latticeflow/trip.json                               ok
latticeflow/visa.json                               unknown
latticeflow/weather.json                            ok
paprika/0690e0f0                                    error
paprika/2c77f479                                    error
paprika/31f2c860                                    error
paprika/47c0da0f                                    ok
paprika/5a4be7c2                                    ok
paprika/64aa9bc0                                    ok
paprika/7e41d9ad                                    ok
paprika/8be0a99b                                    error
paprika/9d13aa1f                                    ok
paprika/a91f039c                                    ok
paprika/b07c55fd                                    error
paprika/bb5e10c4                                    ok
paprika/d20b6eb4                                    ok
paprika/e4417b8b                                    error
paprika/f6a0820b                                    error
paprika/v0/1b9f3343                                 ok
paprika/v0/5de8b11f                                 error
paprika/v0/aa20c76c                                 error
paprika/v0/c3d9e1bb                                 ok
penelope/appeal/test_result.json                    error
penelope/coverage/test_result.json                  ok
penelope/documented/trace.json                      ok
penelope/floods/test_result.json                    error
penelope/refund/test_result.json                    ok
penelope/scooter/test_result.json                   error
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("demo") / "traces"
    demo.write(place, NOW)
    return place


@cache
def scanned(folder: Path) -> tuple[ScannedFile, ...]:
    return tuple(scan(LocalSource(), [str(folder)], deep=True))


def runs(folder: Path) -> dict[str, RunSummary]:
    """The runs that nobody started but the user, by short address."""
    summaries = [summary for file in scanned(folder) for summary in file.runs if summary.parent is None]
    return {short(summary.ref.address, folder): summary for summary in summaries}


def short(address: str, folder: Path) -> str:
    relative = Path(address).relative_to(folder).as_posix()
    name = relative.rsplit("/", 1)[-1]
    return relative.replace(name, name[:8]) if relative.startswith("paprika") else relative


def opened(folder: Path, address: str) -> Run:
    return read_run(LocalSource(), runs(folder)[address].ref)


def test_every_run_has_the_intended_status(folder: Path) -> None:
    intended = dict(line.split() for line in INTENDED.split("\n") if line)
    assert {address: str(summary.status) for address, summary in sorted(runs(folder).items())} == intended


def test_only_the_intended_file_is_unreadable(folder: Path) -> None:
    broken = [short(file.path, folder) for file in scanned(folder) if file.kind == "problem"]
    ignored = sorted(Path(file.path).name for file in scanned(folder) if file.kind == "ignored")
    assert broken == ["paprika/77aa3137"]
    assert ignored == ["NOTES.txt", *["meta.toml"] * 4, "nightly.json"]


def test_no_run_has_a_problem_but_the_intended(folder: Path) -> None:
    refs = [summary.ref for file in scanned(folder) for summary in file.runs]
    problems: list[Problem] = [problem for ref in refs for problem in read_run(LocalSource(), ref).problems]
    assert [(problem.where, problem.reason) for problem in problems] == [
        ("steps[1]", "the input hash doesn't match the input")
    ]


def test_nested_runs_name_their_parent(folder: Path) -> None:
    parents = {summary.id: summary.parent for file in scanned(folder) for summary in file.runs if summary.parent}
    assert parents["report-001/section/rag"] == "report-001/section"
    assert parents["report-001/section"] == "report-001"
    assert {ident for ident, parent in parents.items() if parent == "batch-001"} == {f"batch-001/{n}" for n in range(4)}


def test_replays_and_retries_name_their_original(folder: Path) -> None:
    summaries = runs(folder)
    original = summaries["paprika/7e41d9ad"].id
    assert (summaries["paprika/a91f039c"].replay_of, summaries["paprika/a91f039c"].relation) == (original, "replay")
    assert summaries["paprika/e4417b8b"].replay_of == summaries["paprika/d20b6eb4"].id
    assert summaries["paprika/v0/c3d9e1bb"].replay_of == summaries["paprika/v0/1b9f3343"].id
    assert summaries["graphs/workflows.db#rag-f-001-r1"].relation == "retry"
    assert summaries["graphs/workflows.db#rag-001-fork"].relation == "fork"
    assert summaries["ccpa/0025-rename/student.ccpa-trace.jsonl"].relation == "student"


def test_three_failures_share_a_cause(folder: Path) -> None:
    causes = [summary.first_error for summary in runs(folder).values() if summary.agent == "researcher"]
    assert sum(cause is not None and "search timed out after 30s" in cause.message for cause in causes) == 3


def test_one_input_hash_is_wrong(folder: Path) -> None:
    wrong = []
    for address in runs(folder):
        if address.startswith("paprika"):
            run = opened(folder, address)
            checks = [check for span in run.spans for check in run.load(span).checks]
            wrong += [address for check in checks if check.matches is None]
    assert wrong == ["paprika/9d13aa1f"]


def test_each_file_of_the_package_has_an_age() -> None:
    templates = Path(demo.__file__).with_name("night")
    names = {path.relative_to(templates).as_posix() for path in templates.rglob("*") if path.is_file()}
    assert names - {"ages.json"} == json.loads((templates / "ages.json").read_bytes()).keys()


def test_the_same_moment_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    demo.write(tmp_path, NOW)
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name
        assert (tmp_path / name).stat().st_mtime == (folder / name).stat().st_mtime, name


def test_the_samples_are_small_and_in_the_past(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_500_000
    assert all(path.stat().st_mtime <= NOW.timestamp() for path in files)


def test_the_database_is_left_as_after_a_clean_exit(folder: Path) -> None:
    place = folder / "graphs" / "workflows.db"
    assert not place.with_name("workflows.db-wal").exists()
    with sqlite3.connect(f"file:{place}?immutable=1", uri=True) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT version FROM _schema_version").fetchone() == (6,)


def test_penelope_times_are_local(tmp_path: Path) -> None:
    demo.write(tmp_path, NOW.astimezone(timezone(timedelta(hours=5))))
    result = json.loads((tmp_path / "penelope" / "coverage" / "test_result.json").read_bytes())
    assert result["end_time"] == "2025-06-03T18:59:00.000000"


def test_a_time_without_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="timezone"):
        demo.write(tmp_path, NOW.replace(tzinfo=None))


def test_temporary_leaves_nothing() -> None:
    with demo.temporary() as place:
        assert (place / "NOTES.txt").exists()
        assert place.parent.stat().st_mode & 0o077 == 0
    assert not place.parent.exists()


# ---- repeated trials


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("trials") / "trials"
    demo.SETS["trials"](place, NOW)
    return place


def test_the_trials_have_a_decisive_fork_and_one_that_could_be_chance(trials: Path) -> None:
    tasks = matrix(run for file in scanned(trials) for run in file.runs)
    assert {(task.name, task.counts.scored) for task in tasks.tasks} == {(name, 12) for name in demo.trials.TASKS}
    assert [(group.model, rates.counts.passed) for group, rates in tasks.groups.items()] == [
        ("oak-2", 44),
        ("oak-3", 31),
    ]
    trees = {task.name: run_tree(task.trials, lambda ref: read_run(LocalSource(), ref)) for task in tasks.tasks}
    decisive = {name: fork.step for name, tree in trees.items() if (fork := tree.first_fork) and fork.is_decisive}
    assert decisive == {"refund-late": 2}
    chance = trees["swap-size"].first_fork
    assert chance is not None
    assert chance.p == 1
    assert trees["track-parcel"].first_fork is None
    assert not any(file.problems for file in scanned(trials))


def test_the_second_model_regressed(trials: Path) -> None:
    sets = [matrix(run for file in scanned(trials / model) for run in file.runs) for model in demo.trials.MODELS]
    comparison = gate(*sets)
    assert (comparison.verdict, len(comparison.lower), len(comparison.higher)) == (Verdict.REGRESSION, 7, 1)


def test_the_trials_are_small_old_and_reproducible(trials: Path, tmp_path: Path) -> None:
    files = [path for path in trials.rglob("*") if path.is_file()]
    assert len(files) == 240
    assert sum(path.stat().st_size for path in files) < 600_000
    assert all(path.stat().st_mtime <= NOW.timestamp() for path in files)
    demo.SETS["trials"](tmp_path, NOW)
    assert all((tmp_path / path.relative_to(trials)).read_bytes() == path.read_bytes() for path in files)
