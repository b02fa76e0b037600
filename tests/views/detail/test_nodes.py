"""The tables of nodes are those of the document that describes them, to the character."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.build import make_run, make_span
from tracetui.analysis.work import NodeStats, node_stats
from tracetui.model import Error, Operation, Run, RunBody, Span, Status
from tracetui.text import clean
from tracetui.views.detail.tabs import node_summary, node_table, node_title

NODE, ROUTE, GRAPH = Operation.NODE, Operation.ROUTE, Operation.INVOKE_WORKFLOW


def node(number: int, name: str, ms: float | None, operation: Operation = NODE, **rest: Any) -> Span:
    rest.setdefault("status_word", "completed")
    return make_span(f"{number}:{name}", name, operation, None, ms, step=number, **rest)


def failed(number: int, name: str, message: str, **rest: Any) -> Span:
    return node(number, name, None, status=Status.ERROR, error=Error(message, None), status_word="failed", **rest)


def run_of(spans: list[Span], layout: str = "RunLog", **header: Any) -> Run:
    return make_run(spans, body=RunBody(layout=layout), **header)


def text(run: Run) -> str:
    return "\n".join(node_table(run))


def test_steps_have_one_row_each_with_their_decisions() -> None:
    spans = [
        node(0, "classify", 120, ROUTE, note="→ account_support"),
        node(1, "account_support", 2400),
        node(2, "format_response", 45),
    ]
    assert text(run_of(spans, name="support_router", duration_ms=2565.0)) == (
        "RunLog: support_router | 2.6s | 3 nodes | 0 errors\n"
        "\n"
        "  Step  Node              Duration  Status     Decision\n"
        "  ────  ────────────────  ────────  ─────────  ─────────────────\n"
        "     0  classify            120ms   completed  → account_support\n"
        "     1  account_support    2400ms   completed\n"
        "     2  format_response      45ms   completed"
    )


def test_a_failure_is_shown_inline_and_a_label_beside_the_name() -> None:
    spans = [node(0, "embed", 180), failed(1, "llm_call", "504 Gateway Timeout")]
    assert text(run_of(spans, name="rag_pipeline", label="[item 12]", duration_ms=1200.0)) == (
        "RunLog: rag_pipeline [item 12] | 1.2s | 2 nodes | 1 error\n"
        "\n"
        "  Step  Node       Duration  Status\n"
        "  ────  ─────────  ────────  ───────────────────────────\n"
        "     0  embed        180ms   completed\n"
        "     1  llm_call         —   FAILED: 504 Gateway Timeout"
    )


def test_statistics_where_nodes_ran_many_times() -> None:
    spans = []
    for number, (name, ms) in enumerate({"embed": 180, "llm_call": 9360, "format": 48, "validate": 14.4}.items()):
        spans += [node(number, name, ms)] + [
            make_span(f"{name}{i}", name, NODE, None, ms, step=number) for i in range(49)
        ]
    assert text(run_of(spans, name="rag_pipeline", duration_ms=492_000.0)) == (
        "RunLog: rag_pipeline | 8m12s | 4 nodes | 0 errors\n"
        "\n"
        "  Node        Runs   Total    Avg     Errors  Cached\n"
        "  ──────────  ─────  ───────  ──────  ──────  ──────\n"
        "  embed         50    9.0s    180ms        0       0\n"
        "  llm_call      50   7m48s   9360ms        0       0\n"
        "  format        50    2.4s     48ms        0       0\n"
        "  validate      50    0.7s     14ms        0       0"
    )


def test_a_workflow_has_its_status_in_the_title() -> None:
    spans = [node(0, "embed", 180), failed(1, "llm_call", "503 Service Unavailable")]
    header = {"id": "batch-2024-01-16", "duration_ms": 130_000.0}
    broken = run_of(spans, "Workflow", **header, status=Status.ERROR, status_word="failed")
    assert node_title(broken) == "Workflow: batch-2024-01-16 | FAILED | 2 steps | 2m10s"
    fine = run_of(spans[:1], "Workflow", **header, status=Status.OK, status_word="completed")
    assert node_title(fine) == "Workflow: batch-2024-01-16 | completed | 1 step | 2m10s"


def map_run() -> Run:
    spans = []
    for i in range(3):
        item = make_span(f"item{i}", f"[item {i}]", GRAPH, None, 100)
        work = [
            make_span(f"{i}a", "embed", NODE, None, 10, parent_id=item.id),
            make_span(
                f"{i}b", "ask", NODE, None, 30 + i, parent_id=item.id, status=Status.ERROR if i == 1 else Status.OK
            ),
            make_span(f"{i}c", "attempt 1", Operation.OTHER, None, 5, parent_id=f"{i}b"),
        ]
        spans += [item, *work]
    return run_of(spans, "Workflow", id="batch", duration_ms=300.0, status=Status.ERROR, status_word="partial",
                  result="1 of 3 failed")  # fmt: skip


def test_a_map_shows_statistics_over_its_items() -> None:
    lines = node_table(map_run())
    assert lines[0] == "Workflow: batch | PARTIAL | 1 of 3 failed | 0.3s"
    assert [line.split() for line in lines[4:]] == [
        ["embed", "3", "30ms", "10ms", "0", "0"],
        ["ask", "3", "93ms", "31ms", "1", "0"],
    ]


def test_statistics_leave_failed_and_cached_runs_out_of_the_average() -> None:
    spans = [
        node(0, "ask", 100),
        node(1, "ask", 300),
        node(2, "ask", 0, note="cached"),
        failed(3, "ask", "x"),
        node(4, "map_item", 0, status_word="restored"),
    ]
    assert node_stats(run_of(spans)) == {"ask": NodeStats(count=4, total_ms=400, avg_ms=200, errors=1, cached=1)}
    assert node_stats(run_of([failed(0, "ask", "x")]))["ask"].avg_ms is None


def test_inherited_steps_do_not_make_a_node_run_twice() -> None:
    spans = [
        node(0, "retrieve", 5, note="inherited"),
        failed(1, "generate", "boom", note="inherited"),
        node(2, "generate", 7, note="cached"),
    ]
    assert [line.split()[1:] for line in node_table(run_of(spans))[4:]] == [
        ["retrieve", "5ms", "completed", "(inherited)"],
        ["generate", "—", "FAILED:", "boom"],
        ["generate", "7ms", "cached"],
    ]


def test_inherited_steps_are_no_work_of_this_run() -> None:
    spans = [
        node(0, "retrieve", 500, note="inherited"),
        failed(1, "generate", "boom", note="→ END · inherited"),
        node(2, "generate", 7),
    ]
    run = run_of(spans, duration_ms=8.0)
    assert node_stats(run) == {"generate": NodeStats(count=1, total_ms=7, avg_ms=7)}
    assert node_summary(run) == "1 node, 8ms, 0 errors | slowest: generate (7ms)"


def test_a_map_log_counts_failed_items() -> None:
    run = map_run()
    assert node_title(run_of(list(run.spans), name="rag", duration_ms=300.0, result="1 of 3 failed")) == (
        "RunLog: rag | 1 of 3 failed | 0.3s | 2 nodes | 1 error"
    )


def test_summary_in_one_line() -> None:
    spans = [node(0, "embed", 100), node(1, "retrieve", 150), node(2, "llm_call", 1800), node(3, "format", 50)]
    assert node_summary(run_of(spans, duration_ms=2100.0)) == "4 nodes, 2.1s, 0 errors | slowest: llm_call (1.8s)"
    assert node_summary(run_of([], duration_ms=None)) == "0 nodes, —, 0 errors"


def test_a_run_without_nodes_has_only_its_title() -> None:
    assert node_table(run_of([], name="empty", duration_ms=12.0)) == ["RunLog: empty | 12ms | 0 nodes | 0 errors"]


@pytest.mark.parametrize(
    ("ms", "label"),
    [(0.0307, "0.031ms"), (4.06, "4.1ms"), (12.4, "12ms"), (9360, "9360ms"), (12_500, "12.5s"), (468_000, "7m48s")],
)
def test_durations_of_steps(ms: float, label: str) -> None:
    assert node_table(run_of([node(0, "n", ms)]))[-1].split()[2] == label


@pytest.mark.parametrize(
    ("ms", "label"),
    [(61.9, "62ms"), (720, "0.7s"), (59_960, "1m00s"), (725_000, "12m05s"), (3_900_000, "1h05m"), (None, "—")],
)
def test_durations_of_totals(ms: float | None, label: str) -> None:
    assert node_title(run_of([], duration_ms=ms)).split(" | ")[1] == label


@given(
    st.lists(st.tuples(st.text(max_size=8), st.text(max_size=40)), max_size=6), st.sampled_from(["RunLog", "Workflow"])
)
def test_every_line_passed_the_gate(parts: list[tuple[str, str]], layout: str) -> None:
    spans = [failed(i, name, message, note=f"→ {message}") for i, (name, message) in enumerate(parts)]
    run = run_of(spans, layout, id="\x1b[2J", name="\x9b1m", label="\u202e", status_word="\x07", status=Status.ERROR)
    for line in [*node_table(run), node_summary(run)]:
        assert clean(line) == line
