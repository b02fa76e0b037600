"""Where the work of a run went."""

from __future__ import annotations

from hypothesis import given

from tests.views.build import check_rows, make_run, make_span, runs, texts
from tracetui.analysis.work import work_of
from tracetui.model import Operation, Run, Span, Status, Usage
from tracetui.views.detail.run import add_work
from tracetui.views.rows import Jump
from tracetui.views.sheet import Sheet

CHAT, TOOL, AGENT = Operation.CHAT, Operation.EXECUTE_TOOL, Operation.INVOKE_AGENT


def call(number: int, input_tokens: int | None, parent_id: str | None = None) -> Span:
    """A model call that was given so many tokens."""
    usage = Usage(input_tokens, 10) if input_tokens is not None else None
    return make_span(f"m{number}", "gpt-4o", CHAT, number, 100, step=number, usage=usage, parent_id=parent_id)


def session() -> Run:
    """Two tools, one of which failed, and a sub-agent with a window of its own."""
    return make_run(
        [
            call(1, 1000),
            make_span("a", "Read", TOOL, 1, 500, step=1),
            call(2, 9000),
            make_span("b", "Bash", TOOL, 2, 3000, step=2),
            make_span("c", "Bash", TOOL, 6, 2000, step=2, status=Status.ERROR),
            make_span("d", "explore", AGENT, 8, 900, step=2),
            call(7, 400, parent_id="d"),
            call(3, None),
            call(4, 5000),
        ]
    )


def work_sheet(run: Run, width: int) -> Sheet:
    sheet = Sheet("run", width)
    add_work(sheet, work_of(run))
    return sheet


def test_the_longest_tool_comes_first_and_leads_to_what_failed() -> None:
    rows = work_sheet(session(), 70).rows()
    lines = texts(rows, 70)
    assert lines[0].startswith("tools    ■ Bash     2×    1✗    5.0s  ━")
    assert lines[1].startswith("         ■ Read     1×     ·   500ms  ━")
    key = rows.key(0)
    assert isinstance(key, Jump)
    assert key.spans == ("c",)


def test_the_course_of_the_window_leaves_agents_out_that_have_their_own() -> None:
    done = work_of(session())
    assert [window.tokens for window in done.windows] == [1000, 9000, 5000]
    lines = texts(work_sheet(session(), 70).rows(), 70)
    assert lines[2] == "context  ▁█▅"
    assert lines[3].startswith("         first 1.0k  most 9.0k at step 2  last 5.0k")


def test_of_very_many_calls_the_fullest_are_kept() -> None:
    run = make_run([call(i, 100 + i % 7) for i in range(3000)])
    windows = work_of(run).windows
    assert len(windows) <= 240
    assert max(window.tokens for window in windows) == 106


@given(runs())
def test_any_run_has_rows_that_hold(run: Run) -> None:
    for width in (20, 60):
        check_rows(work_sheet(run, width).rows(), width)
