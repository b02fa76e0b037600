"""The failures of a directory by cause."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.night import CAUSES, Night
from tests.shared import needs_shared, sample
from tracetui import demo
from tracetui.analysis.cause import old_digest_of, previous_digest_of
from tracetui.analysis.triage import CauseVerdicts, Group, groups, new_causes, splits_of, variants_of
from tracetui.live.scan import scan
from tracetui.model import FirstError, Operation, RunRef, RunSummary, Score, Status, Usage
from tracetui.model.run import judge
from tracetui.sources.local import LocalSource
from tracetui.store.judgement import CauseRef, Verdict
from tracetui.store.sidecar import Sidecar


def run(key: str, message: str | None = "boom", **more: Any) -> RunSummary:
    """A run that failed with that message, or one that did not (None)."""
    error = None if message is None else FirstError(message, "ValueError", "s", "search", Operation.EXECUTE_TOOL)
    status = Status.OK if message is None else Status.ERROR
    fields: dict[str, Any] = {"id": key, "name": "planner", "agent": "planner", "started_at": 5.0, **more}
    return RunSummary.of(ref=RunRef("any", "runs.db", key), status=status, first_error=error, **fields)


def listed(folder: Path) -> list[RunSummary]:
    """All runs below a folder, counted."""
    return [run for scanned in scan(LocalSource(), [str(folder)], deep=True) for run in scanned.runs]


def keys(group: Group) -> list[str | None]:
    """Which runs are in a group."""
    return [ref.key for ref in group.runs]


def test_runs_are_grouped_by_what_made_them_fail() -> None:
    first = run("1", "timed out after 30s", started_at=1.0, duration_ms=100.0, usage=Usage(2, 3))
    last = run("2", "timed out after 5ms", started_at=9.0, duration_ms=50.0)
    other, fine = run("3", "no such key", duration_ms=500.0, usage=None), run("4", None, duration_ms=9e9)
    biggest, group = groups([first, fine, other, last])

    assert keys(biggest) == ["3"]
    assert (biggest.wasted_ms, biggest.wasted_tokens) == (500.0, None)
    assert (keys(group), group.example.key, group.agents) == (["2", "1"], "2", ("planner",))
    assert (group.first_seen, group.last_seen, group.wasted_ms, group.wasted_tokens) == (1.0, 9.0, 150.0, 5)
    assert group.id.startswith("F-")


def test_a_run_recorded_twice_failed_once() -> None:
    original, copy = run("1", identity="i", duration_ms=100.0), run("2", identity="i", duration_ms=100.0)
    (group,) = groups([copy, original])
    assert (keys(group), group.wasted_ms) == (["1"], 100.0)
    assert groups([run("1", None, identity="i"), copy]) == []  # the telling that counts says that it went well


def test_unrecorded_waste_is_unknown() -> None:
    (group,) = groups([run("1", started_at=None, agent=None)])

    assert (group.first_seen, group.last_seen, group.wasted_ms, group.wasted_tokens) == (None, None, None, None)
    assert group.agents == ()


def test_waste_of_a_child_counts_once() -> None:
    batch = run("batch", "one", duration_ms=100.0, usage=Usage(total_tokens=50))
    same = run("batch/1", "one", parent="batch", duration_ms=30.0, usage=Usage(total_tokens=20))
    other = run("batch/2", "two", parent="batch", duration_ms=40.0)
    below = run("batch/2/a", "two", parent="batch/2", duration_ms=15.0)
    lost = run("lost", "three", parent="nobody", duration_ms=7.0)
    fine = run("batch/3", None, parent="batch", duration_ms=20.0)
    causes = groups([below, batch, fine, same, other, lost])

    assert [(keys(group), group.wasted_ms, group.wasted_tokens) for group in causes] == [
        (["batch", "batch/1"], 60.0, 50),
        (["batch/2", "batch/2/a"], 40.0, None),
        (["lost"], 7.0, None),
    ]


def test_waste_below_a_passed_run_counts_once() -> None:
    batch = run("batch", "one", duration_ms=100.0)
    fine = run("batch/1", None, parent="batch", duration_ms=40.0)
    below = run("batch/1/a", "two", parent="batch/1", duration_ms=15.0)
    causes = groups([below, fine, batch])

    assert [(keys(group), group.wasted_ms) for group in causes] == [(["batch"], 85.0), (["batch/1/a"], 15.0)]


def test_a_run_that_is_its_own_parent_wastes_what_it_took() -> None:
    (group,) = groups([run("a", parent="a", duration_ms=3.0)])

    assert group.wasted_ms == 3.0


messages = st.sampled_from(["one", "two 2", "two 3", "", "three 'x'", None])
runs = st.builds(
    lambda key, message, started, took, parent: run(
        str(key), message, started_at=started, duration_ms=took, parent=parent
    ),
    st.integers(0, 30),
    messages,
    st.none() | st.integers(0, 3).map(float),
    st.none() | st.floats(0, 1e9),
    st.none() | st.integers(0, 30).map(str),
)


@given(st.lists(runs, max_size=30, unique_by=lambda run: run.ref), st.randoms(use_true_random=False))
def test_the_order_in_which_runs_arrive_does_not_matter(given_runs: list[RunSummary], shuffled: random.Random) -> None:
    expected = groups(given_runs)
    shuffled.shuffle(given_runs)

    assert groups(given_runs) == expected
    assert variants_of(given_runs) == variants_of(given_runs[::-1])
    assert sorted(ref for group in expected for ref in group.runs) == sorted(
        run.ref for run in given_runs if run.status is Status.ERROR
    )


def test_a_night_of_five_hundred_failures_has_its_twelve_causes(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.fill(500, 100)
    triaged = groups(listed(tmp_path))
    causes = [{night.causes[ref.path] for ref in group.runs} for group in triaged]

    assert sum(len(group.runs) for group in triaged) == 500
    assert sorted(cause for named in causes for cause in named) == sorted(CAUSES)
    assert all(len(named) == 1 for named in causes)
    assert len({group.id for group in triaged}) == len(triaged)
    wasted = [night.wasted_ms[cause] for (cause,) in causes]
    assert [group.wasted_ms for group in triaged] == pytest.approx(wasted)
    assert wasted == sorted(wasted, reverse=True)


@needs_shared
def test_the_causes_of_the_real_samples() -> None:
    titles = {}
    for name in ("paprika", "ccpa", "hypergraph", "penelope", "latticeflow"):
        titles[name] = {group.title.exact: len(group.runs) for group in groups(listed(sample(name)))}

    assert titles == {
        "paprika": {
            "tool exploded: connection reset · fail": 2,
            "max_steps: Step limit exceeded: 11 > 10": 2,
            "max_tokens: Token budget exceeded: 600 > 500": 2,
        },
        "ccpa": {"max_tokens: session ended: max_tokens": 3, "wall_timeout: session ended: wall_timeout": 1},
        "hypergraph": {
            "RuntimeError: [HG_NODE_FAILED]: Node 'generate' raised RuntimeError · generate": 16,
            "504 Gateway Timeout · generate": 6,
            "504 Gateway Timeout · rag": 1,
        },
        "penelope": {"goal not met: Politeness: Turn 1": 1, "timeout: ended after 2 of 10 turns": 1},
        "latticeflow": {},
    }


def test_the_causes_of_the_built_in_samples(tmp_path: Path) -> None:
    demo.write(tmp_path, datetime(2026, 3, 2, 12, tzinfo=UTC))
    causes = groups(listed(tmp_path))

    assert [(group.id, len(group.runs), group.title.exact) for group in causes] == [
        ("F-1642", 1, "timeout: ended after 2 of 8 turns"),
        ("F-c50f", 3, "TimeoutError: search timed out after 30s · search"),
        ("F-0d46", 2, "exit 101: panic: thread 'parse_empty' · Bash (src/parse.rs)"),
        ("F-c4e1", 2, "504 Gateway Timeout · llm_call"),
        ("F-6db0", 2, "max_steps: Step limit exceeded: <n> > <n>"),
        ("F-301c", 2, "RuntimeError: [HG_NODE_FAILED]: Node 'generate' raised RuntimeError · generate"),
        ("F-dfc4", 1, "max_tokens: Token budget exceeded: 13394 > 12000"),
        ("F-0c69", 1, "critic gave no verdict in 3 rounds"),
        ("F-7888", 1, "RuntimeError: 504 Gateway Timeout · generate"),
        ("F-f1a5", 1, f"goal not met: {TURNS}"),
        ("F-3e9b", 1, "goal not met: Says yes or no: No turn answers the question"),
        ("F-19c0", 1, "max_tokens: session ended: max_tokens"),
        ("F-5f09", 1, "ConnectionError: warehouse refused the connection · export"),
        ("F-f191", 1, "max_repeat_hashes: Input hash 6aff72a5... repeated 4 times (limit: 3)"),
        ("F-0d88", 1, f"Replay mismatch at step 4: {HASHES}"),
    ]


HASHES = "expected input_hash=bd215e8bd863ec3a, got input_hash=db43e7774544a6a7"
TURNS = "States the deadline for an appeal: Turns 3 and 5 avoid the question, turn 4 failed"


def wrong(key: str, task: str | None, reward: float | None = 0.0, **more: Any) -> RunSummary:
    """A run that ended well with that reward for a task; None: it was not scored."""
    passed = None if reward is None else reward == 1
    reason = "" if passed is not False else f"check of {task} failed"
    score = Score("reward", reward, passed, "result.json reward", "1 passed, 0 failed", reason)
    judgment = judge([score])
    fields = {"status": Status.OK, "first_error": None, "scores": (score,), "task": task, **more}
    return run(key).replace(outcome=judgment.outcome, outcome_source=judgment.source, **fields)


def test_wrong_answers_are_one_heading_per_scorer_with_a_row_per_task() -> None:
    error = wrong("e", "a", 1.0).replace(status=Status.ERROR, first_error=FirstError("boom"))
    answers = [wrong("1", "a"), wrong("2", "a"), wrong("3", "a", 1.0), wrong("4", "b"), wrong("5", "b", None)]
    heading, other = sorted(groups([*answers, wrong("6", None), error]), key=lambda group: -len(group.runs))

    assert (heading.title.exact, len(heading.runs)) == ("wrong answers · reward", 4)
    assert [(task.name, len(task.runs), task.passed, task.trials) for task in heading.tasks] == [
        ("a", 2, 2, 4),  # the error with reward 1 passed: rates use the outcome
        ("", 1, 0, 0),
        ("b", 1, 0, 1),
    ]
    assert heading.tasks[0].reasons == ("check of a failed",)
    assert keys(other) == ["e"]
    assert (variants_of(answers), splits_of(answers)) == ([], [])


@pytest.fixture
def sidecar(tmp_path: Path) -> Sidecar:
    """A new verdict file."""
    return Sidecar(tmp_path / "state")


def test_verdicts_on_wrong_answers_are_given_per_task(sidecar: Sidecar) -> None:
    first, other = wrong("1", "a"), wrong("2", "b")
    (heading,) = groups([first, other], sidecar)
    verdicts = CauseVerdicts(sidecar)
    sidecar.judge(heading.tasks[0].ref, Verdict.KNOWN)

    assert (verdicts.of_run(first).verdict, verdicts.of_run(other).verdict) == ("known", None)
    assert (verdicts.of_group(heading).verdict, verdicts.is_new(heading)) == (None, True)
    sidecar.judge(heading.tasks[1].ref, Verdict.KNOWN)
    assert (verdicts.of_group(heading).verdict, verdicts.is_new(heading)) == ("known", False)


def test_users_merge_and_split_causes(sidecar: Sidecar) -> None:
    runs = [run("1", "no such table"), run("2", "no such column"), run("3", "no such column")]
    column, table = sorted(groups(runs), key=lambda group: group.title.exact)
    sidecar.merge(column.ref, table.ref)
    sidecar.judge(table.ref, Verdict.REAL)
    (merged,) = groups(runs, sidecar)
    verdicts = CauseVerdicts(sidecar)

    assert (merged.digest, merged.title, merged.merged) == (table.digest, table.title, (column.digest,))
    assert keys(merged) == ["1", "2", "3"]
    assert {verdicts.of_run(run).verdict for run in runs} == {"real"}
    assert groups(runs, Sidecar(file=Path(sidecar.path))) == [merged]
    sidecar.merge(column.ref, None)
    assert len(groups(runs, sidecar)) == 2
    sidecar.undo()
    assert len(groups(runs, sidecar)) == 1


def test_a_verdict_on_a_merged_cause_counts_where_the_other_has_none(sidecar: Sidecar) -> None:
    runs = [run("1", "no such table"), run("2", "no such column")]
    first, other = groups(runs)
    sidecar.judge(first.ref, Verdict.FLAKY)
    sidecar.merge(first.ref, other.ref)
    (merged,) = groups(runs, sidecar)

    assert CauseVerdicts(sidecar).of_group(merged).verdict == "flaky"


def test_causes_merged_in_a_circle_are_one(sidecar: Sidecar) -> None:
    runs = [run("1", "a"), run("2", "b"), run("3", "c")]
    a, b, c = groups(runs)
    for cause, other in ((a, b), (b, c), (c, b)):
        sidecar.merge(cause.ref, other.ref)
    (merged,) = groups(runs, sidecar)

    assert merged.digest == min(b.digest, c.digest)


def test_a_cause_is_split_by_the_user_by_what_varies(sidecar: Sidecar) -> None:
    runs = [run(str(number), f"no row {number % 2} in shard {number}") for number in range(4)]
    (group,) = groups(runs)
    assert [(split.by, split.label, split.parts) for split in splits_of(runs)] == [("1", "<n>", 2), ("2", "<n>", 4)]
    assert variants_of(runs)[0].text.exact == "ValueError: no row 0 in shard 0"
    sidecar.judge(group.ref, Verdict.KNOWN)
    sidecar.split(group.ref, "1")
    even, odd = sorted(groups(runs, sidecar), key=lambda group: group.title.exact)

    assert (even.title.exact, keys(even)) == ("ValueError: no row 0 in shard <n> = 0 · search", ["0", "2"])
    sidecar.judge(odd.ref, Verdict.REAL)
    assert {even.split_of, odd.split_of} == {group.digest}
    verdicts = CauseVerdicts(sidecar)
    assert [verdicts.of_group(group).verdict for group in (even, odd)] == ["known", "real"]
    assert [verdicts.of_run(run).verdict for run in runs] == ["known", "real", "known", "real"]


def test_equivalent_errors_are_split_by_their_texts(sidecar: Sidecar) -> None:
    runs = [run("1", "request timed out"), run("2", "deadline exceeded"), run("3", "deadline exceeded")]
    (group,) = groups(runs)
    assert group.title.exact == "timed out · search"
    assert [(split.by, split.parts) for split in splits_of(runs)] == [("text", 2)]
    sidecar.split(group.ref, "text")

    assert {len(group.runs): group.title.exact for group in groups(runs, sidecar)} == {
        1: "ValueError: request timed out · search",
        2: "ValueError: deadline exceeded · search",
    }


def test_verdicts_of_version_0_1_still_apply(sidecar: Sidecar) -> None:
    known, other = run("1", "HTTP 404"), run("2", "HTTP 500")  # they were one signature
    student = run("3", "HTTP 500", agent="student")  # and this was another
    digest = old_digest_of(known)
    assert digest == old_digest_of(other) != old_digest_of(student)
    sidecar.judge(CauseRef(str(digest)), Verdict.KNOWN)
    verdicts = CauseVerdicts(sidecar)
    not_found, server = sorted(groups([known, other, student], sidecar), key=lambda group: group.title.exact)

    assert verdicts.of_group(not_found).verdict == "known"
    assert verdicts.of_group(server).verdict is None  # the student's was never judged
    assert [verdicts.of_run(run).verdict for run in (known, other, student)] == ["known", "known", None]
    assert new_causes([not_found, server], verdicts) == [server]
    sidecar.judge(not_found.ref, Verdict.REAL)
    assert verdicts.of_group(not_found).verdict == verdicts.of_run(known).verdict == "real"


def test_verdicts_on_causes_that_were_split_later_still_apply(sidecar: Sidecar) -> None:
    install, check, plain = (
        run("1", "Command 'npm ci' returned non-zero exit status 1."),
        run("2", "Command 'pytest -q' returned non-zero exit status 1."),
        run("3", "no shape here"),
    )
    digest = previous_digest_of(install)
    assert digest == previous_digest_of(check)
    sidecar.judge(CauseRef(str(digest)), Verdict.KNOWN)
    verdicts = CauseVerdicts(sidecar)
    by_run = {group.runs: verdicts.of_group(group).verdict for group in groups([install, check, plain], sidecar)}

    assert by_run == {(install.ref,): "known", (check.ref,): "known", (plain.ref,): None}
    assert [verdicts.of_run(run).verdict for run in (install, check, plain)] == ["known", "known", None]
    (group,) = groups([check], sidecar)
    sidecar.judge(group.ref, Verdict.REAL)
    assert (verdicts.of_run(check).verdict, verdicts.of_run(install).verdict) == ("real", "known")


def test_ten_thousand_runs_are_grouped_at_once() -> None:
    many = [
        run(str(i), f"call {2**40 * (i + 3):x} of job-{i} failed after {i}s" if i % 10 == 0 else None)
        for i in range(10_000)
    ]
    began = time.process_time()
    causes = groups(many)

    assert [len(group.runs) for group in causes] == [1_000]
    assert time.process_time() - began < 1  # measured: 0.02 s
