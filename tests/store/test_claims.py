"""Which of several runs counts a response that all of them have."""

from __future__ import annotations

from itertools import permutations

from tracetui.model import Operation, RunRef, RunSummary, Usage
from tracetui.model.claims import Claim, ClaimColumns, ClaimKind
from tracetui.store.claims import Claims

RESPONSE = ClaimKind(Operation.CHAT, "m", None)


def _run(name: str, start: float, *keys: int) -> RunSummary:
    claims = ClaimColumns()
    for key in keys:
        claims.add(Claim(key, Usage(10, 1), RESPONSE))
    usage = Usage(10 * len(keys), len(keys))
    return RunSummary.of(
        RunRef("x", name),
        id=name,
        name="x",
        started_at=start,
        usage=usage,
        llm_calls=len(keys),
        claims=claims.packed(None),
    )


RUNS = (_run("original", 1.0, 1, 2), _run("fork", 2.0, 1, 2, 3), _run("copy", 3.0, 1, 2))


def _calls(claims: Claims, runs: tuple[RunSummary, ...]) -> dict[str, int | None]:
    return {run.id: claims.net(run).llm_calls for run in runs}


def test_a_response_counts_once_in_any_order_of_runs() -> None:
    for order in permutations(RUNS):
        claims = Claims(order)
        assert _calls(claims, RUNS) == {"original": 2, "fork": 1, "copy": 0}
        assert [claims.net(run).relation for run in RUNS] == [None, "fork", "copy"]


def test_claims_of_a_deleted_run_pass_on() -> None:
    claims = Claims(RUNS)
    claims.remove(RUNS[0].ref)
    assert _calls(claims, RUNS[1:]) == {"fork": 3, "copy": 0}
    assert {run.id for run in claims.take_changed()} == {"fork", "copy"}


def test_the_first_of_equal_owners_is_named_in_any_order_of_runs() -> None:
    runs = (_run("b", 1.0, 1), _run("a", 2.0, 2), _run("both", 3.0, 1, 2))
    for order in permutations(runs):
        claims = Claims(order)
        assert claims.net(runs[2]).counts_in == runs[0].ref.address


def test_runs_given_at_once_count_as_those_added_one_by_one() -> None:
    repeats = _run("repeats", 0.5, 7, 7, 1 << 63, 3)
    runs = (*RUNS, repeats, _run("other", 4.0, 1 << 63, 9))
    at_once, by_one = Claims(runs), Claims()
    for run in runs:
        by_one.add(run)
    by_one.take_changed()
    assert [at_once.net(run) for run in runs] == [by_one.net(run) for run in runs]
    assert at_once.net(runs[4]).llm_calls == 1
    assert at_once.net(repeats) is repeats, "no other run has its claims"
    for claims in (at_once, by_one):
        claims.remove(repeats.ref)
    assert {run.id for run in at_once.take_changed()} == {run.id for run in by_one.take_changed()} == {"fork", "other"}
    assert [at_once.net(run) for run in runs if run != repeats] == [by_one.net(run) for run in runs if run != repeats]
