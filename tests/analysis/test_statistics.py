"""Statistics equal a plain recount, count nothing twice, and say None where no trace says."""

from __future__ import annotations

from math import isfinite
from statistics import quantiles

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import examples
from tests.views.build import make_run, make_span, runs
from tracetui.analysis.statistics import By, Row, Statistics
from tracetui.model import Operation, Run, Span, Status, Usage
from tracetui.model.tally import CONTAINERS

CHAT, TOOL, AGENT, NODE = Operation.CHAT, Operation.EXECUTE_TOOL, Operation.INVOKE_AGENT, Operation.NODE

"""Whole runs take their time to be made."""


def rows_by(by: By, *runs: Run) -> dict[str, Row]:
    statistics = Statistics(by)
    for run in runs:
        statistics.add(run)
    return {row.name: row for row in statistics.rows()}


def above(run: Run, span: Span) -> list[Span]:
    """The spans that it is within."""
    i = run.index[span.id]
    return [run.spans[j] for j in range(i) if j + run.sizes[j] > i]


def inherited(span: Span) -> bool:
    return "inherited" in span.note.split(" · ")


@settings(max_examples=examples(20))
@given(st.lists(runs(), max_size=3))
def test_tools_equal_a_plain_recount(drawn: list[Run]) -> None:
    rows = rows_by(By.TOOL, *drawn)

    calls = [(run, span) for run in drawn for span in run.spans if span.operation is TOOL and not inherited(span)]
    assert {*rows} == {span.name for _, span in calls}
    for name, row in rows.items():
        own_calls = [(run, span) for run, span in calls if span.name == name]
        assert row.count == len(own_calls)
        assert row.errors == sum(span.status is Status.ERROR for _, span in own_calls)
        assert row.runs == len({id(run) for run, _ in own_calls})
        outer = [
            span.duration_ms
            for run, span in own_calls
            if not any(
                ancestor.operation is TOOL and ancestor.name == name and not inherited(ancestor)
                for ancestor in above(run, span)
            )
            and span.duration_ms is not None
            and isfinite(span.duration_ms)
            and span.duration_ms >= 0
        ]
        assert row.total_ms == (pytest.approx(sum(outer)) if outer else None)


@settings(max_examples=examples(20))
@given(st.lists(runs(), max_size=3), st.sampled_from([By.OPERATION, By.AGENT, By.TOOL, By.NODE]))
def test_no_token_is_counted_twice(drawn: list[Run], by: By) -> None:
    recorded = 0
    for run in drawn:
        for i, span in enumerate(run.spans):
            within = run.spans[i + 1 : i + run.sizes[i]]
            own = span.operation not in CONTAINERS or not any(below.usage for below in within)
            if span.usage and own and not inherited(span):
                recorded += span.usage.input_tokens or 0

    counted = sum(row.usage.input_tokens or 0 for row in rows_by(by, *drawn).values())

    assert counted == recorded if by in (By.OPERATION, By.AGENT) else counted <= recorded


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_ranks_are_exact(times: list[float]) -> None:
    run = make_run([make_span(str(i), "search", TOOL, i, ms) for i, ms in enumerate(times)])

    row = rows_by(By.TOOL, run)["search"]

    for value, share in ((row.p50_ms, 0.5), (row.p95_ms, 0.95)):
        assert value in times
        assert value is not None
        assert sum(ms <= value for ms in times) >= share * len(times)
        assert sum(ms < value for ms in times) < share * len(times)
    if len(times) > 1:
        low, high = min(times), max(times)
        assert low <= quantiles(times, n=2, method="inclusive")[0] <= high


def test_usage_of_an_agent_is_that_of_its_calls() -> None:
    run = make_run(
        [
            make_span("a", "lead", AGENT, 0, 900, usage=Usage(input_tokens=300, cost_usd=0.3)),
            make_span(
                "1", "gpt", CHAT, 0, 100, parent_id="a", usage=Usage(input_tokens=100, cost_usd=0.1), model="gpt"
            ),
            make_span("t", "ask", TOOL, 1, 700, parent_id="a"),
            make_span("b", "helper", AGENT, 1, 700, parent_id="t", usage=Usage(input_tokens=200, cost_usd=0.2)),
            make_span("2", "gpt", CHAT, 1, 100, parent_id="b", model="gpt"),
        ],
        agent="lead",
        duration_ms=900.0,
    )

    assert rows_by(By.AGENT, run)["helper"].usage == Usage(input_tokens=200, cost_usd=0.2)
    assert rows_by(By.AGENT, run)["lead"].usage.input_tokens == 100
    assert rows_by(By.TOOL, run)["ask"].usage.input_tokens == 200
    assert rows_by(By.MODEL, run)["gpt"].usage.input_tokens == 100
    assert rows_by(By.MODEL, run)["gpt"].count == 2
    assert sum(row.usage.input_tokens or 0 for row in rows_by(By.OPERATION, run).values()) == 300


def test_a_call_within_a_call_of_the_same_name_takes_no_more_time() -> None:
    spans = [
        make_span("1", "walk", TOOL, 0, 100),
        make_span("2", "walk", TOOL, 0, 60, parent_id="1"),
        make_span("3", "walk", TOOL, 1, 10),
    ]

    row = rows_by(By.TOOL, make_run(spans))["walk"]

    assert (row.count, row.total_ms, row.p50_ms, row.p95_ms) == (3, 110, 60, 100)


def test_the_usage_of_a_run_without_any_below_is_its_models_and_agents() -> None:
    run = make_run([make_span("1", "gpt", CHAT)], usage=Usage(output_tokens=7), model="gpt", agent="coder")

    assert rows_by(By.MODEL, run)["gpt"].usage.output_tokens == 7
    assert rows_by(By.AGENT, run)["coder"].usage.output_tokens == 7
    assert rows_by(By.TOOL, run) == {}


def test_nothing_is_made_up_and_nothing_inherited_counted() -> None:
    run = make_run([make_span("1", "plan", NODE), make_span("2", "plan", NODE, 0, 50, note="cached · inherited")])

    row = rows_by(By.NODE, run)["plan"]

    assert (row.count, row.p50_ms, row.total_ms, row.usage) == (1, None, None, Usage())


def test_longest_rows_come_first() -> None:
    spans = [make_span("1", "b", TOOL, 0, 5), make_span("2", "c", TOOL, 0, 9), make_span("3", "a", TOOL)]

    assert [*rows_by(By.TOOL, make_run(spans))] == ["c", "b", "a"]
