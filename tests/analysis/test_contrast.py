"""What tells failed runs from the others: planted causes come first, whatever else is different by chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.shared import examples
from tests.views.build import make_run, make_span, runs
from tracetui.analysis.contrast import (
    MAX_FINDINGS,
    Feature,
    Features,
    Finding,
    Kind,
    comparable,
    contrast,
    features,
    fisher,
    without_noise,
)
from tracetui.model import Body, Operation, Outcome, Run, RunRef, Span, Status

CHAT, TOOL, NODE = Operation.CHAT, Operation.EXECUTE_TOOL, Operation.NODE
Call = tuple[str, dict[str, Any]]

"""Whole runs take their time to be made."""


def run_of(calls: list[Call], *, model: str = "gpt", **header: Any) -> Run:
    spans: list[Span] = []
    bodies: dict[str, Body] = {}
    for i, (name, arguments) in enumerate(calls):
        spans.append(make_span(f"c{i}", model, CHAT, i, 5, step=i + 1, model=model))
        spans.append(make_span(f"t{i}", name, TOOL, i, 5))
        bodies[f"t{i}"] = Body(input=arguments)
    return make_run(spans, bodies=bodies, **header)


def side(name: str, runs: list[Run]) -> list[tuple[RunRef, Features]]:
    return [(RunRef("any", f"{name}/{i}"), features(run, run.load)) for i, run in enumerate(runs)]


def night(chance: random.Random, count: int) -> list[list[Call]]:
    """Runs that differ in everything by chance."""
    return [
        [
            (chance.choice(["search", "fetch", "read"]), {"query": f"q{chance.randrange(6)}", "k": chance.randrange(3)})
            for _ in range(chance.randint(3, 8))
        ]
        for _ in range(count)
    ]


PLANTED: dict[str, tuple[Callable[[list[Call]], None], Feature]] = {
    "a tool": (lambda calls: calls.insert(1, ("export", {"to": f"f{len(calls)}"})), Feature(Kind.TOOL, "tool export")),
    "an argument": (
        lambda calls: calls.insert(0, ("search", {"query": "q77"})),
        Feature(Kind.ARGUMENT, "search(query=q77)"),
    ),
    "a sequence": (
        lambda calls: calls.extend([("login", {}), ("read", {})]),
        Feature(Kind.SEQUENCE, "login → read"),
    ),
}


@pytest.mark.parametrize("cause", PLANTED)
@pytest.mark.parametrize("seed", range(5))
def test_a_planted_cause_comes_first(cause: str, seed: int) -> None:
    chance = random.Random(seed)
    plant, wanted = PLANTED[cause]
    bad, good = night(chance, 9), night(chance, 31)
    for calls in bad:
        plant(calls)
    if cause == "a sequence":  # the tool alone is used by others too
        for calls in good:
            calls.insert(0, ("login", {}))
            calls.insert(1, ("fetch", {}))

    first = contrast(side("a", [run_of(calls) for calls in bad]), side("b", [run_of(calls) for calls in good]))[0]

    assert wanted in first.features
    assert (first.in_a, first.of_a, first.in_b, first.of_b) == (9, 9, 0, 31)


def test_a_planted_model_comes_first_also_where_not_all_have_it() -> None:
    chance = random.Random(3)
    bad = [run_of(calls, model="tiny" if i else "gpt") for i, calls in enumerate(night(chance, 8))]
    good = [run_of(calls, model="gpt") for calls in night(chance, 20)]

    first = contrast(side("a", bad), side("b", good))[0]

    assert first.label == "model tiny"
    assert (first.in_a, first.of_a, first.in_b) == (7, 8, 0)
    assert first.example == (RunRef("any", "a/1"), "c0")


def test_equivalent_features_are_one_row_with_the_simplest_first() -> None:
    bad = [run_of([("search", {"q": f"x{i}"}), ("export", {"format": "pdf", "dpi": 300})]) for i in range(9)]
    good = [run_of([("search", {"q": f"y{i}"}), ("fetch", {})]) for i in range(9)]

    (first, *others) = contrast(side("a", bad), side("b", good))

    assert [feature.label for feature in first.features] == [
        "tool export",
        "export(dpi=300)",
        "export(format=pdf)",
        "search → export",
    ]
    assert first.label == "tool export, also export(dpi=300) +2"
    assert others == []


def test_agents_tags_and_nodes_are_features() -> None:
    node = [make_span("1", "plan", NODE, 0, 5), make_span("2", "act", NODE, 1, 5)]
    bad = [make_run(node, agent="new", tags=("v2",)) for _ in range(9)]
    good = [make_run(node[:1], agent="old", tags=("v1",)) for _ in range(9)]

    (first,) = contrast(side("a", bad), side("b", good))

    assert {feature.label for feature in first.features} == {"agent new", "tag v2", "node act", "plan → act"}


def test_one_of_two_weighs_less_than_ten_of_twenty() -> None:
    one_of_two, ten = (
        Finding((), *counts, 0.0, (RunRef("any", "a"), None)) for counts in ((1, 2, 0, 2), (10, 20, 0, 20))
    )

    assert one_of_two.weight < ten.weight


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_p_is_the_share_of_the_assignments_that_are_as_extreme(in_a: int, more_a: int, in_b: int, more_b: int) -> None:
    of_a, of_b = in_a + more_a, in_b + more_b
    having = in_a + in_b
    draws = [sum(run < having for run in drawn) for drawn in combinations(range(of_a + of_b), of_a)]

    assert fisher(in_a, of_a, in_b, of_b) == pytest.approx(sum(drawn >= in_a for drawn in draws) / len(draws))


def test_a_difference_that_chance_explains_is_no_finding() -> None:
    bad = [run_of([("search", {"q": "x"})])] * 3
    good = [run_of([("fetch", {})])] * 5
    assert fisher(3, 3, 0, 5) == pytest.approx(1 / 56)
    assert contrast(side("a", bad), side("b", good)) == []

    false_alarms = 0
    for seed in range(40):
        chance = random.Random(seed)
        runs = side("a", [run_of(calls) for calls in night(chance, 24)])
        false_alarms += bool(contrast(runs[:12], runs[12:]))
    assert false_alarms <= 2


@settings(max_examples=examples(20))
@given(st.lists(runs(), min_size=1, max_size=3), st.lists(runs(), max_size=3), st.randoms())
def test_the_order_of_runs_changes_nothing_but_the_example(a: list[Run], b: list[Run], chance: random.Random) -> None:
    left, right = side("a", a), side("b", b)
    findings = contrast(left, right)
    chance.shuffle(left)
    chance.shuffle(right)

    shuffled = contrast(left, right)

    assert [(finding.features, finding.in_a, finding.in_b) for finding in shuffled] == [
        (finding.features, finding.in_a, finding.in_b) for finding in findings
    ]
    assert len(findings) <= MAX_FINDINGS


@settings(max_examples=examples(20))
@given(st.lists(runs(), min_size=1, max_size=3), st.lists(runs(), max_size=3))
def test_counts_equal_a_plain_recount_and_examples_are_examples(a: list[Run], b: list[Run]) -> None:
    left, right = side("a", a), side("b", b)
    known = dict(left)
    for finding in contrast(left, right):
        for feature in finding.features:
            assert finding.in_a == sum(feature in run_features for _, run_features in left)
            assert finding.in_b == sum(feature in run_features for _, run_features in right)
        ref, span = finding.example
        assert known[ref][finding.features[0]] == span
        assert (finding.of_a, finding.of_b) == (len(a), len(b))


def test_runs_are_compared_with_those_of_the_same_agents_that_did_not_fail() -> None:
    bad, good, other, late, worse = (
        replace(make_run([], agent=agent, status=status).summary, ref=RunRef("any", name))
        for name, agent, status in (
            ("bad", "planner", Status.ERROR),
            ("good", "planner", Status.OK),
            ("other", "coder", Status.OK),
            ("late", "planner", Status.RUNNING),
            ("worse", "planner", Status.ERROR),
        )
    )

    assert comparable([bad, good, other, late, worse], {bad.ref}) == [good.ref]
    assert comparable([bad, other, late, worse], {bad.ref}) == [other.ref]
    assert comparable([bad], {bad.ref}) == []
    passed = other.replace(outcome=Outcome.PASSED)
    wrong = good.replace(outcome=Outcome.FAILED)
    assert comparable([bad, good, wrong, passed], {bad.ref}) == [passed.ref]


def test_a_side_of_equals_has_nothing_of_its_own() -> None:
    same = [run_of([("search", {"q": "x"})]) for _ in range(5)]

    assert contrast(side("a", same), side("b", same)) == []
    assert contrast([], side("b", same)) == []


@pytest.mark.parametrize(
    ("value", "stable"),
    [
        ("cat /tmp/tmp3fa91c/out.txt", "cat <path>"),
        ("/private/var/folders/x1/T/tmpab12/run.log", None),
        ("--out=/var/tmp/a", "--out=<path>"),
        ("C:\\Users\\x\\AppData\\Local\\Temp\\a.txt", None),
        ("sleep 30", "sleep <n>"),
        ("head -n 20 /app/a.csv", "head -n <n> /app/a.csv"),
        ("2026-04-01T10:00:00Z", None),
        ("3f50c6a3-dae3-4188-b18f-4f89edca7a67", None),
        ("git show 9f3a2b7c", "git show <hex>"),
        ("https://host/jobs/9f3a2b7c1d/log", "https://host/jobs/<hex>/log"),
        ("/app/runs/3f50c6a3-dae3-4188-b18f-4f89edca7a67/a", "/app/runs/<id>/a"),
        ("42", None),
        ("pip install numpy==2.0.1", "pip install numpy==2.0.1"),
        ("curl localhost:8080", "curl localhost:8080"),
        ("/app/tmp/answer.txt", "/app/tmp/answer.txt"),
        ("pdf", "pdf"),
        ("…", "…"),
    ],
)
def test_varying_values_are_no_part_of_an_argument(value: str, stable: str | None) -> None:
    assert without_noise(value, numbers=True) == stable


def test_runs_share_no_noise() -> None:
    bad = [
        run_of([("read", {"path": "/tmp/a1", "offset": 2000, "at": "12:30:05", "id": "3f50c6a3dae34188", "as": "pdf"})])
        for _ in range(12)
    ]
    good = [run_of([("read", {"path": "/app/a", "offset": 1, "as": "csv"})]) for _ in range(12)]
    (finding,) = contrast(side("bad", bad), side("good", good))
    assert [feature.label for feature in finding.features] == ["read(as=pdf)"]
