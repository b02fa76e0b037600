"""A run that several files record is one run: the others are copies of it, and nothing of it counts twice."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.formats import inspect_build, opencode_build
from tracetui.analysis.statistics import By
from tracetui.live.jobs import statistics_job
from tracetui.live.scan import scan
from tracetui.model import RunSummary
from tracetui.sources.local import LocalSource
from tracetui.store.relations import Relations, copies_of, pairs_of

DATABASE = opencode_build.CASES / "database" / "input" / "opencode.db"


def listed(folder: Path, *, deep: bool = True) -> list[RunSummary]:
    return [run for file in scan(LocalSource(), [str(folder)], deep=deep) for run in file.runs]


def relations_by_name(runs: list[RunSummary]) -> dict[str, tuple[str, str]]:
    """What each run is to which other, by their addresses without the folder."""
    relations, links = Relations(runs), dict[str, tuple[str, str]]()
    for run in runs:
        relation, original = relations.relation(run.ref), relations.original(run.ref)
        if relation is not None and original is not None:
            links[run.ref.address.rpartition("/")[2]] = relation, original.address.rpartition("/")[2]
    return links


def counted(runs: list[RunSummary]) -> tuple[int, Any]:
    """How many runs count, and what their tools did."""
    copies = copies_of(runs)
    job = statistics_job([run.ref for run in runs if run.ref not in copies])
    for _ in job.work(LocalSource()):
        pass
    assert job.result is not None
    result = job.result()
    return result.runs, result.rows[By.TOOL]


# ---- opencode


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """A folder with a database; its records of `ses_a` can be exported beside it."""
    shutil.copy(DATABASE, tmp_path / "opencode.db")
    return tmp_path


def exported(session: str) -> dict[str, Any]:
    with closing(sqlite3.connect(f"{DATABASE.as_uri()}?immutable=1", uri=True)) as db:
        return opencode_build.exported(db, session)


def export(folder: Path, session: str, **info: Any) -> None:
    document = exported(session)
    document["info"] |= info
    (folder / f"a-{session}.json").write_text(json.dumps(document))  # comes before the database


@pytest.mark.parametrize("deep", [False, True])
def test_an_export_is_a_copy_of_what_the_database_tells(sessions: Path, deep: bool) -> None:
    before = relations_by_name(listed(sessions, deep=deep))
    export(sessions, "ses_a")
    assert relations_by_name(listed(sessions, deep=deep)) == before | {"a-ses_a.json": ("copy", "opencode.db#ses_a")}


def test_files_of_older_versions_are_copies(sessions: Path) -> None:
    opencode_build.stored(exported("ses_a"), sessions / "storage")
    assert relations_by_name(listed(sessions))["ses_a.json"] == ("copy", "opencode.db#ses_a")


def test_repeated_records_count_once(sessions: Path) -> None:
    alone = counted(listed(sessions))
    export(sessions, "ses_a")
    opencode_build.stored(exported("ses_a"), sessions / "storage")
    both = listed(sessions)
    assert counted(both) == alone
    assert alone[0] == len(both) - 2


def test_another_session_of_that_id_is_no_copy(sessions: Path) -> None:
    export(sessions, "ses_a", time={"created": opencode_build.at(7_000), "updated": opencode_build.at(7_001)})
    assert "copy" not in [relation for relation, _ in relations_by_name(listed(sessions)).values()]


def test_a_copy_is_a_pair_only_where_repetitions_are_asked_for(sessions: Path) -> None:
    before = pairs_of(listed(sessions))
    export(sessions, "ses_a")
    runs = listed(sessions)
    assert [pair.replay for pair in pairs_of(runs)] == [pair.replay for pair in before]
    (pair,) = [pair for pair in pairs_of(runs, repeats=True) if pair.relation == "copy"]
    assert pair.original is not None
    assert (pair.replay.id, pair.original.ref.key) == ("ses_a", "ses_a")


def test_a_fork_recorded_elsewhere_is_a_pair_with_its_original(tmp_path: Path) -> None:
    forks = [run for run in listed(DATABASE) if run.relation == "fork"]
    fork = next(run for run in forks if run.replay_of is not None)
    assert fork.replay_of is not None
    for ident in (fork.id, fork.replay_of):
        export(tmp_path, ident)
    expected = {"repeat": (f"a-{fork.id}.json", f"a-{fork.replay_of}.json")}
    assert {relation: (of, to) for of, (relation, to) in relations_by_name(listed(tmp_path)).items()} == expected


# ---- Inspect


def retried(folder: Path) -> tuple[Path, Path]:
    """A log in which one of two samples failed, and the one that went on with it: the other one was copied."""
    good = inspect_build.sample("dover", events=inspect_build.agent())
    bad = inspect_build.retried("brest") | {"error": {"message": "RuntimeError('fog')", "traceback": ""}}
    resumed = inspect_build.sample("brest", events=inspect_build.agent("b"), uuid="uuid-again")
    paths = []
    for number, samples in enumerate([[good, bad], [good, resumed]]):
        spec = inspect_build.head(f"eval{number}")
        paths.append(folder / f"2026-03-02T0{number}-00-00_tides_task.eval")
        paths[-1].write_bytes(inspect_build.archive(inspect_build.members(spec, samples)))
    return paths[0], paths[1]


@pytest.mark.parametrize("deep", [False, True])
def test_samples_that_a_retry_copied_are_copies(tmp_path: Path, deep: bool) -> None:
    first, second = retried(tmp_path)
    related = relations_by_name(listed(tmp_path, deep=deep))
    assert related[f"{second.name}#dover_epoch_1"] == ("copy", f"{first.name}#dover_epoch_1")
    assert [of for of, (relation, _) in related.items() if relation == "copy"] == [f"{second.name}#dover_epoch_1"]


def test_copied_samples_count_once(tmp_path: Path) -> None:
    first, second = retried(tmp_path)
    runs, rows = counted(listed(tmp_path))
    assert runs == len(listed(tmp_path)) - 1
    alone = [counted(listed(path))[1] for path in (first, second)]
    copied = counted([run for run in listed(first) if run.ref.key == "dover_epoch_1"])[1]
    for row in rows:
        whole = sum(other.count for table in alone for other in table if other.name == row.name)
        assert row.count == whole - sum(other.count for other in copied if other.name == row.name)


def test_samples_without_an_id_of_their_own_are_no_copies(tmp_path: Path) -> None:
    sample = inspect_build.sample("dover")
    del sample["uuid"]
    for number in range(2):
        members = inspect_build.members(inspect_build.head(f"eval{number}"), [sample])
        (tmp_path / f"{number}.eval").write_bytes(inspect_build.archive(members))
    assert {relation for relation, _ in relations_by_name(listed(tmp_path)).values()} == {"repeat"}
