"""How outcomes of runs are counted, and which task a run did."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.build import make_summary
from tracetui.model import Outcome, PassRule, RunSummary, Score, Status, TaskKey
from tracetui.store.facts import OutcomeCounts
from tracetui.store.relations import Relations
from tracetui.store.store import Store

OK, ERROR, RUNNING = Status.OK, Status.ERROR, Status.RUNNING
PASSED, FAILED = Outcome.PASSED, Outcome.FAILED
HUNDRED = [(OK, PASSED)] * 49 + [(OK, FAILED)] * 48 + [(ERROR, None)] * 3


def runs_of(*kinds: tuple[Status, Outcome | None]) -> list[RunSummary]:
    return [make_summary(f"r{i}", status=status, outcome=outcome) for i, (status, outcome) in enumerate(kinds)]


@pytest.mark.parametrize(
    ("kind", "fields", "rate"),
    [
        ((OK, PASSED), {"passed", "evaluated", "rated"}, 1.0),
        ((OK, FAILED), {"failed", "wrong", "evaluated", "rated"}, 0.0),
        ((ERROR, None), {"failed", "errors", "rated"}, 0.0),
        ((ERROR, FAILED), {"failed", "errors", "evaluated", "rated"}, 0.0),
        ((ERROR, PASSED), {"passed", "failed", "errors", "evaluated", "rated"}, 1.0),
        ((RUNNING, None), {"running"}, None),
        ((Status.PAUSED, None), {"running"}, None),
        ((RUNNING, PASSED), {"passed", "evaluated", "rated"}, 1.0),
        ((OK, None), {"unscored"}, None),
        ((Status.UNKNOWN, None), {"unscored"}, None),
        ((Status.CANCELLED, FAILED), {"failed", "wrong", "evaluated", "rated"}, 0.0),
    ],
)
def test_runs_count_by_outcome(kind: tuple[Status, Outcome | None], fields: set[str], rate: float | None) -> None:
    counts = OutcomeCounts.of(runs_of(kind))
    names = ("passed", "failed", "errors", "wrong", "evaluated", "rated", "running", "unscored")
    assert {name for name in names if getattr(counts, name)} == fields
    assert counts.pass_rate == rate


kinds = st.lists(st.tuples(st.sampled_from(Status), st.none() | st.sampled_from(Outcome)), max_size=12)


@given(kinds)
def test_counts_add_up_and_are_taken_back(pairs: list[tuple[Status, Outcome | None]]) -> None:
    runs = runs_of(*pairs)
    counts = OutcomeCounts.of(runs)
    assert counts.rated + counts.ungraded + counts.running + counts.unscored == counts.runs == len(runs)
    assert counts.failed == sum(run.failed for run in runs)
    assert counts.wrong == sum(run.is_wrong for run in runs)
    for run in runs:
        counts.add(run, -1)
    assert counts == OutcomeCounts()


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        (HUNDRED, "51 of 100 runs failed (3 errors, 48 wrong answers)"),
        ([(ERROR, None), (OK, None)], "1 of 2 runs failed"),
        ([(ERROR, FAILED), (OK, FAILED)], "2 of 2 runs failed (1 error, 1 wrong answer)"),
        ([(OK, FAILED)], "1 of 1 run failed (1 wrong answer)"),
        ([], "0 of 0 runs failed"),
    ],
)  # fmt: skip
def test_the_sentence_tells_errors_and_wrong_answers_apart(
    pairs: list[tuple[Status, Outcome | None]], sentence: str
) -> None:
    assert OutcomeCounts.of(runs_of(*pairs)).failures == sentence


def test_the_store_applies_the_rule_to_what_comes_in() -> None:
    run = make_summary("a", status=OK, scores=(Score("reward", 0.4),))
    store = Store(PassRule.parse("reward>=0.5"))
    store.apply([_FileResult(run)], 0.0)
    assert store.runs[run.ref].is_wrong
    assert (store.overview.failed, store.overview.outcomes.wrong, store.newly_failed()) == (1, 1, [run.ref])
    before = store.revision
    store.put(run, 1.0)
    assert store.revision == before


class _FileResult:
    whole, problems, unclaimed, near_miss = True, (), False, ""

    def __init__(self, run: RunSummary) -> None:
        self.path, self.runs = run.ref.path, (run,)


# ---- tasks


def tasks(*runs: RunSummary) -> dict[str, TaskKey | None]:
    relations = Relations(runs)
    return {run.id: relations.task(run) for run in runs}


def test_a_named_task_comes_before_a_derived_one() -> None:
    runs = (make_summary("a", task="t1", repeats="k"), make_summary("b", repeats="k"), make_summary("c"))
    assert tasks(*runs) == {"a": TaskKey("t1"), "b": TaskKey("k", derived=True), "c": None}
    assert (TaskKey("t").source, TaskKey("t", derived=True).source) == ("trace", "derived")


def test_replays_forks_and_retries_inherit_their_originals_task() -> None:
    task_keys = tasks(
        make_summary("a", task="t1"),
        make_summary("b", replay_of="a", relation="retry", repeats="k"),
        make_summary("c", replay_of="b"),
        make_summary("d", replay_of="a", task="t2"),
        make_summary("e", replay_of="a", relation="fork", repeats="k"),
        make_summary("f", replay_of="gone", repeats="k2"),
        make_summary("g", replay_of="f"),
    )
    own = TaskKey("k2", derived=True)
    assert task_keys == {
        **dict.fromkeys("abce", TaskKey("t1")),
        "d": TaskKey("t2"),
        "f": own,
        "g": own,
    }


def test_originals_in_a_circle_have_no_task_to_give() -> None:
    task_keys = tasks(make_summary("a", replay_of="b", repeats="k"), make_summary("b", replay_of="a"))
    assert task_keys == {"a": TaskKey("k", derived=True), "b": None}


def test_a_long_chain_of_replays_is_followed_once() -> None:
    links = [make_summary(str(i), replay_of=str(i + 1)) for i in range(20_000)]
    task_keys = tasks(*links, make_summary("20000", task="t"))
    assert set(task_keys.values()) == {TaskKey("t")}


def test_runs_of_one_named_task_are_repetitions() -> None:
    first, other = make_summary("a", task="t", started_at=1.0), make_summary("b", task="t", started_at=2.0, repeats="k")
    alike = make_summary("c", repeats="k", started_at=3.0)
    relations = Relations([other, alike, first])
    assert relations.repeats(first.ref) == [other.ref]
    assert relations.relation(other.ref) == "repeat"
    assert relations.relation(alike.ref) is None
