"""The timeline and the span tree."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.shared import examples
from tests.views.build import (
    REF,
    START,
    check_line,
    check_rows,
    make_run,
    make_span,
    researcher,
    runs,
    text_of_line,
    texts,
)
from tracetui.analysis import navigation
from tracetui.model import Body, Criterion, Header, Limit, Operation, Run, RunBody, Span, Status, Usage
from tracetui.model.build import RunBuilder
from tracetui.store.query import for_spans
from tracetui.views.glyphs import ASCII
from tracetui.views.rows import Fold
from tracetui.views.timeline.chart import Chart
from tracetui.views.timeline.header import run_heading
from tracetui.views.timeline.spans import END, SpanRows


def test_the_timeline_leaves_containers_out() -> None:
    rows = SpanRows(researcher(), tree=False)
    assert [rows.key(i) for i in range(len(rows))] == ["1", "2", "9", "9a", "10", "11", END]


def test_a_row_shows_step_kind_name_argument_and_time() -> None:
    rows = SpanRows(researcher(), tree=False)
    assert texts(rows, 50)[1] == '  2 ■ search "EV subsidies 2024"             600ms'
    assert texts(rows, 50)[2] == "  3 ■ fetch bmwk.de/foerderung/e-auto         1.4s"


def test_a_failed_span_is_red_and_has_its_sign() -> None:
    rows = SpanRows(researcher(), tree=False)
    line = rows.line(5, 60)
    assert [piece.style for piece in line if piece.text.strip() in ("5", "✗", "search", "30.0s")] == [
        "status.error",
        "status.error",
        "status.error bold",
        "status.error bold",
    ]
    assert rows.mark(5) == "status.error"
    assert rows.mark(4) is None


def test_columns_line_up_with_the_heading() -> None:
    rows = SpanRows(researcher(), tree=True)
    for width in (50, 62, 78, 118):
        header = text_of_line(rows.header(width))
        end = header.index("time") + 4
        for i in range(len(rows) - 1):
            line = text_of_line(rows.line(i, width))
            assert len(line) == len(header)
            assert line[end - 1] in "s—"
            assert line[end : end + 1] in (" ", "")


def test_bars_lie_to_scale() -> None:
    rows = SpanRows(researcher(), tree=False)
    bars = [text_of_line(tuple(p for p in rows.line(i, 118) if p.style.startswith("bar."))) for i in range(6)]
    widths = [len(bar) for bar in bars]
    assert widths[5] > 30 > 3 > widths[1]
    starts = [text_of_line(rows.line(i, 118)).find(bar) for i, bar in enumerate(bars)]
    assert starts == sorted(starts)


def test_tree_folds_by_span() -> None:
    run = researcher()
    rows = SpanRows(run, tree=True)
    assert rows.fold(0) == Fold("r", True)
    assert rows.fold(1) is None
    assert texts(rows, 60)[4].startswith("          ⊢ robots allow")
    folded = rows.refold(frozenset({"9"}))
    assert [folded.key(i) for i in range(len(folded))] == ["r", "1", "2", "9", "10", "11", END]
    assert "▸ ■ fetch bmwk.de/foerderung/e-auto  1 below" in texts(folded, 118)[3]
    assert folded.index("9a") == 3
    assert folded.hidden == 1


def test_a_fold_does_not_hide_that_something_failed() -> None:
    rows = SpanRows(researcher(), tree=True, folded=frozenset({"r"}))
    assert len(rows) == 2
    assert rows.mark(0) == "status.error"
    assert "6 below 1✗" in texts(rows, 80)[0]


def test_parents() -> None:
    rows = SpanRows(researcher(), tree=True)
    assert rows.parent(4) == 3
    assert rows.parent(0) is None


def test_a_container_has_the_timeline_index_of_its_first_child() -> None:
    rows = SpanRows(researcher(), tree=False)
    assert rows.index("r") == 0
    assert rows.index("nobody") is None


def test_a_failed_run_ends_with_its_cause() -> None:
    run = researcher()
    rows = SpanRows(run, tree=False)
    assert texts(rows)[-1] == "    ╰ run ends here  TimeoutError: search timed out after 30s"
    assert not rows.selectable(len(rows) - 1)
    assert rows.key(len(rows) - 1) == END
    assert rows.index(END) == len(rows) - 1


def test_the_cause_is_the_violated_limit_or_that_none_fired() -> None:
    spans = [make_span("1", "a", Operation.CHAT, 0, 1, step=1)]
    fired = RunBody(limits=(Limit("max_steps", 10, 11, violated=True),))
    assert texts(SpanRows(make_run(spans, status=Status.ERROR, body=fired), tree=False))[-1].endswith(
        "policy max_steps 11 > 10"
    )
    quiet = RunBody(limits=(Limit("max_steps", 10, 2),))
    assert texts(SpanRows(make_run(spans, status=Status.ERROR, body=quiet), tree=False))[-1].endswith(
        "no limit ended it"
    )
    unmet = RunBody(criteria=(Criterion("a", False), Criterion("b", True)))
    assert texts(SpanRows(make_run(spans, status=Status.ERROR, body=unmet), tree=False))[-1].endswith(
        "1 of 2 criteria not met"
    )


def test_a_run_without_an_end_has_no_end_record() -> None:
    run = make_run([make_span("1", "a", Operation.CHAT)], ended=False)
    assert texts(SpanRows(run, tree=False))[-1].strip() == "… no end record"


def test_without_any_time_there_is_no_column_of_times() -> None:
    run = make_run([make_span("1", "Bash", Operation.EXECUTE_TOOL), make_span("2", "Bash", Operation.EXECUTE_TOOL)])
    rows = SpanRows(run, tree=False)
    assert texts(rows, 80)[0].strip() == "■ Bash"
    assert text_of_line(rows.header(80)).rstrip().endswith("step")


def test_with_durations_only_spans_lie_end_to_end() -> None:
    run = make_run([make_span("1", "a", Operation.NODE, ms=100.0), make_span("2", "b", Operation.NODE, ms=300.0)])
    chart = SpanRows(run, tree=False).chart
    assert chart.end_to_end
    assert chart.total_ms == 400
    assert "0 end to end" in text_of_line(SpanRows(run, tree=False).header(80))
    assert chart.extent(1) == (100.0, 400.0)


def test_laid_end_to_end_a_container_begins_with_its_first_child() -> None:
    spans = [
        make_span("a", "a", Operation.NODE, ms=50.0),
        make_span("g", "g", Operation.NODE, ms=400.0),
        make_span("g1", "g1", Operation.NODE, ms=100.0, parent_id="g"),
        make_span("g2", "g2", Operation.NODE, ms=200.0, parent_id="g"),
        make_span("b", "b", Operation.NODE, ms=10.0),
    ]
    chart = SpanRows(make_run(spans), tree=True).chart
    assert [chart.extent(i) for i in range(5)] == [(0, 50), (50, 450), (50, 150), (150, 350), (450, 460)]


def test_an_open_span_grows_until_now() -> None:
    run = make_run([make_span("1", "Bash", Operation.EXECUTE_TOOL, 0, status=Status.RUNNING)], status=Status.RUNNING)
    rows = SpanRows(run, tree=False, now=START + 238)
    assert "3m58s" in texts(rows, 60)[0]
    assert rows.chart.extent(0) == (0, 238_000)


def test_the_axis_excludes_idle_time_and_shows_its_length() -> None:
    calls = [make_span("1", "a", Operation.EXECUTE_TOOL, 0, 10_000)]
    calls.append(make_span("2", "b", Operation.EXECUTE_TOOL, 3_610, 30_000))
    rows = SpanRows(make_run(calls), tree=False)
    assert rows.chart.total_ms == 40_000
    assert rows.chart.extent(1) == (10_000, 40_000)
    assert "1h00m" in text_of_line(rows.header(120))


def test_the_axis_of_a_run_that_waits_ends_with_its_last_event() -> None:
    calls = [make_span("1", "a", Operation.EXECUTE_TOOL, 0, 10_000)]
    rows = SpanRows(make_run(calls, status=Status.RUNNING), tree=False, now=START + 100_000)
    assert rows.chart.total_ms < 12_000
    assert not text_of_line(rows.header(120)).endswith("s")


def nested(levels: int) -> SpanRows:
    """Spans each within the one before, and at each level a second one."""
    spans = [make_span("0", "root", Operation.INVOKE_AGENT, 0)]
    for level in range(1, levels):
        spans.append(make_span(f"{level}", "in", Operation.INVOKE_AGENT, level, parent_id=f"{level - 1}"))
        spans.append(make_span(f"{level}b", "beside", Operation.CHAT, level, parent_id=f"{level - 1}"))
    return SpanRows(make_run(spans), tree=True)


def test_guides_lead_to_the_cursor_only() -> None:
    rows = nested(5)
    assert not any("│" in text for text in texts(rows, 60))
    assert rows.follow_cursor(rows.index("3") or 0)
    guides = {rows.key(i): text.count("│") for i, text in enumerate(texts(rows, 60))}
    assert guides == {"0": 0, "1": 0, "2": 1, "3": 2, "4": 3, "4b": 3, "3b": 2, "2b": 1, "1b": 0}
    assert not rows.follow_cursor(rows.index("3") or 0)
    assert rows.follow_cursor(rows.index("1b") or 0)
    assert not rows.follow_cursor(rows.index("1b") or 0)


def test_deep_rows_have_a_number_instead_of_guides() -> None:
    rows = nested(300)
    rows.follow_cursor(rows.index("299") or 0)
    row = text_of_line(rows.line(rows.index("299") or 0, 120))
    assert "299" in row
    assert "│" not in row


def test_heading() -> None:
    first, second = run_heading(researcher(), 60, now=START + 180)
    assert text_of_line(first) == "✗ researcher failed at step 5 of 5 · search"
    assert text_of_line(second) == "gpt-4o · 42.9s · 2.1k tok                  13:09:22Z, 3m ago"


def test_a_naive_time_is_labeled() -> None:
    run = make_run([], started_at=START, time_zone=None, status=Status.OK)
    assert "13:09:22 local, zone unknown" in text_of_line(run_heading(run, 100)[1])


def test_a_recovered_error_is_counted_not_blamed() -> None:
    spans = [
        make_span("1", "Bash", Operation.EXECUTE_TOOL, status=Status.ERROR),
        make_span("2", "opus", Operation.CHAT, step=1),
    ]
    assert text_of_line(run_heading(make_run(spans, status=Status.OK), 100)[0]) == (
        "✓ researcher ok · 1 step · 1 error inside"
    )


def test_errors_are_the_innermost() -> None:
    spans = [
        make_span("a", "agent", Operation.INVOKE_AGENT, status=Status.ERROR),
        make_span("b", "Bash", Operation.EXECUTE_TOOL, status=Status.ERROR, parent_id="a"),
        make_span("c", "agent", Operation.INVOKE_AGENT, status=Status.ERROR),
        make_span("d", "opus", Operation.CHAT, parent_id="c"),
    ]
    assert navigation.errors(make_run(spans)) == ["b", "c"]


def keys_of(rows: SpanRows) -> list[object]:
    return [rows.key(i) for i in range(len(rows))]


def test_a_filtered_tree_keeps_the_ancestors_of_matches() -> None:
    failed = for_spans("is:failed or op:hook").matches
    rows = SpanRows(researcher(), tree=True, keep=failed)
    assert keys_of(rows) == ["r", "9", "9a", "11", END]
    assert rows.index("10") == rows.index("9a")
    folded = rows.refold(frozenset({"9"}))
    assert keys_of(folded) == ["r", "9", "11", END]
    assert keys_of(SpanRows(researcher(), tree=False, keep=failed)) == ["9a", "11", END]
    assert keys_of(rows.with_filter(None)) == keys_of(SpanRows(researcher(), tree=True))
    assert keys_of(SpanRows(researcher(), tree=False, keep=for_spans("tool:nothing").matches)) == [END]


def test_the_timeline_can_start_with_the_longest_spans() -> None:
    timeline = SpanRows(researcher(), tree=False)
    rows = timeline.with_filter(None, longest_first=True)
    assert keys_of(rows) == ["11", "10", "1", "9", "2", "9a", END]
    assert [rows.index(key) for key in ("11", "9a", "r", END)] == [0, 5, rows.index("1"), 6]
    assert [text.split()[0] for text in texts(rows, 60)][:4] == ["5", "4", "1", "3"]
    assert rows.header(80) != timeline.header(80)
    assert keys_of(rows.refold(frozenset())) == keys_of(rows)
    assert keys_of(SpanRows(researcher(), tree=True, longest_first=True))[:2] == ["r", "1"]
    check_rows(rows, 80)


def test_running_calls_sort_by_their_elapsed_time() -> None:
    spans = [
        call("a", 0, 5_000),
        make_span("b", "Bash", Operation.EXECUTE_TOOL, 1, status=Status.RUNNING),
        make_span("c", "Bash", Operation.EXECUTE_TOOL),
    ]

    def order(status: Status) -> list[object]:
        run = make_run(spans, status=status)
        return keys_of(SpanRows(run, tree=False, longest_first=True, now=START + 60))[:3]

    assert order(Status.RUNNING) == ["b", "a", "c"]
    assert order(Status.UNKNOWN) == ["a", "b", "c"]


def test_the_cursor_starts_at_the_first_own_prompt() -> None:
    def message(name: str, note: str = "") -> Span:
        return make_span(f"{name}-{note}", name, Operation.MESSAGE, note=note)

    work = make_span("call", "gpt", Operation.CHAT, 1, 1, step=1)
    taken_over = [message("user", "inherited"), message("user", "copied · reverted")]
    prompts = [message("developer"), *taken_over, message("environment"), message("user"), work]
    assert navigation.starting_span(make_run(prompts, status=Status.OK)) == "user-"
    assert navigation.starting_span(make_run([message("system"), work], status=Status.OK)) == "call"
    assert navigation.starting_span(make_run([work, message("user")], status=Status.OK)) == "call", "a sub-agent's"
    assert navigation.starting_span(make_run([message("user"), work], status=Status.RUNNING)) == "call"


def test_bookkeeping_is_dim() -> None:
    hook = make_span("h", "PostToolUse", Operation.HOOK, 0, 1, preview="PostToolUse:Bash")
    rows = SpanRows(make_run([hook, make_span("m", "meta", Operation.META)]), tree=False)
    assert "PostToolUse Bash" in texts(rows)[0]
    assert [piece.style for piece in rows.line(1, 80) if piece.text == "meta"] == ["dim"]


def test_next_same() -> None:
    run = researcher()
    assert navigation.next_similar(run, "2", "tool", 1) == "11"
    assert navigation.next_similar(run, "11", "tool", -1) == "2"
    assert navigation.next_similar(run, "11", "tool", 1) is None
    assert navigation.next_similar(run, "9", "sibling", 1) == "10"
    assert navigation.next_similar(run, "9", "model", 1) == "10"
    assert navigation.next_similar(run, "9", "model", -1) == "1"


def test_an_abandoned_branch_is_initially_folded() -> None:
    def message(ident: str, note: str = "", parent: str | None = None) -> Span:
        return make_span(ident, "user", Operation.MESSAGE, note=note, parent_id=parent)

    branch = make_span("branch", "abandoned branch", Operation.OTHER)
    below = [message("a", "abandoned", "branch"), message("b", "abandoned", "a")]
    run = make_run([message("top"), message("reply", parent="top"), branch, *below], status=Status.OK)
    assert navigation.initial_folds(run) == {"branch"}
    rows = SpanRows(run, tree=True, folded=navigation.initial_folds(run))
    assert "2 below" in texts(rows)[-1]

    timeline = SpanRows(run, tree=False, folded=navigation.initial_folds(run) | {"top"})
    assert [timeline.key(i) for i in range(len(timeline))] == ["top", "reply", "branch"]
    assert "▸" in texts(timeline)[-1]
    assert "2 below" in texts(timeline)[-1]
    assert timeline.index("b") == timeline.index("branch") == 2
    opened = timeline.reveal("b")
    assert [opened.key(i) for i in range(len(opened))] == ["top", "reply", "branch", "a", "b"]
    assert opened.reveal("b") is opened
    assert timeline.reveal("reply") is timeline
    asked = timeline.with_filter(lambda span: span.id == "a")
    assert (asked.key(0), asked.index("a"), asked.reveal("a") is asked) == ("a", 0, True)
    assert len(asked.with_filter(None)) == 3
    assert len(timeline.with_run(run)) == 3


def test_folds_to_depth() -> None:
    assert navigation.fold_all(researcher()) == {"r", "9"}
    assert navigation.fold_to_depth(researcher(), 1) == {"9"}


def test_ascii_rows_are_pure_ascii() -> None:
    rows = SpanRows(researcher(), tree=True, glyphs=ASCII, folded=frozenset({"9"}))
    for i in range(len(rows)):
        assert text_of_line(rows.line(i, 200)).isascii()
    assert text_of_line(rows.header(200)).isascii()


@settings(max_examples=examples(30))
@given(runs(), st.integers(1, 200), st.booleans(), st.data())
def test_any_run_fits_any_width(run: Run, width: int, tree: bool, data: st.DataObject) -> None:
    folded = frozenset(data.draw(st.sets(st.sampled_from([span.id for span in run.spans] or ["0"]))))
    rows = SpanRows(run, tree=tree, folded=folded, now=START + 1000)
    check_rows(rows, width)
    check_line(rows.header(width), width)
    check_line(rows.overview(width), width)
    for line in run_heading(run, width, now=START):
        check_line(line, width)
    for span in run.spans:
        assert rows.index(span.id) is not None


@st.composite
def growths(draw: st.DrawFn) -> list[list[Span]]:
    """What a writer gives, chunk by chunk: spans below one of the last few, or again; rarely anywhere."""
    given_spans = draw(st.lists(any_span(), min_size=1, max_size=30))
    came: list[Span] = []
    for number, span in enumerate(given_spans):
        how = draw(st.sampled_from(["below", "below", "below", "top", "again", "anywhere"])) if number else "top"
        other = came[draw(st.integers(max(0, number - 4), number - 1))] if number else span
        if how == "again":
            other = draw(st.sampled_from(came))
            came.append(replace(span, id=other.id, parent_id=other.parent_id))
        else:
            parent = None if how == "top" else other.id if how == "below" else str(draw(st.integers(0, 30)))
            came.append(replace(span, id=str(number), parent_id=parent))
    cuts = sorted(draw(st.sets(st.integers(1, len(came)), max_size=6)) | {len(came)})
    return [came[start:end] for start, end in zip([0, *cuts], cuts, strict=False)]


def any_span() -> st.SearchStrategy[Span]:
    times = st.none() | st.floats(0, 1e4) | st.sampled_from([float("nan"), float("inf"), -5.0])
    return st.builds(
        Span,
        id=st.just(""),
        name=st.sampled_from(["Bash", "opus"]),
        operation=st.sampled_from([Operation.CHAT, Operation.EXECUTE_TOOL, Operation.TURN, Operation.INVOKE_AGENT]),
        step=st.none() | st.integers(1, 12),
        is_step=st.booleans(),
        status=st.sampled_from([Status.OK, Status.OK, Status.ERROR, Status.RUNNING]),
        started_at=st.none() | times.map(lambda at: None if at is None else START + at),
        duration_ms=times,
        usage=st.none() | st.builds(Usage, st.none() | st.integers(0, 9000)),
    )


def all_of(rows: SpanRows) -> list[object]:
    """Everything that rows say."""
    contents: list[object] = [len(rows), rows.hidden, rows.chart.total_ms, rows.chart.has_tokens]
    for width in (40, 80, 120):
        contents += [rows.header(width), rows.overview(width)]
        contents += [rows.line(i, width) for i in range(len(rows))]
    for i in range(len(rows)):
        contents += [rows.key(i), rows.mark(i), rows.fold(i), rows.parent(i), rows.index(rows.key(i))]
    return contents


@given(
    growths(),
    st.booleans(),
    st.sampled_from([None, "is:failed", "tool:Bash dur>1"]),
    st.booleans(),
    st.frozensets(st.integers(0, 20).map(str), max_size=3),
)
def test_rows_of_a_run_that_grew_are_those_made_from_scratch(
    chunks: list[list[Span]], tree: bool, asked: str | None, longest_first: bool, folded: frozenset[str]
) -> None:
    keep = for_spans(asked).matches if asked else None
    builder = RunBuilder(REF, lambda span: Body())
    rows: SpanRows | None = None
    with pytest.MonkeyPatch.context() as patch:  # few spans are many for the row of the whole run
        patch.setattr("tracetui.views.timeline.chart._PAINTED", 4)
        patch.setattr("tracetui.views.timeline.chart._SAMPLE_LONGEST", 2)
        patch.setattr("tracetui.views.timeline.chart.BLOCK", 2)
        for number, chunk in enumerate(chunks):
            builder.add(chunk, header=Header(id="r", name="r", ended=False))
            run, now = builder.build(moving=True), START + 100 * number
            scratch = SpanRows(run, tree=tree, folded=folded, now=now, keep=keep, longest_first=longest_first)
            rows = rows.with_run(run, now=now) if rows is not None else scratch
            assert all_of(rows) == all_of(scratch)


@pytest.mark.parametrize("timed", [True, False])
def test_a_new_step_costs_the_same_in_a_long_run(timed: bool) -> None:
    def lines_run(count: int) -> int:
        builder = RunBuilder(REF, lambda span: Body())
        builder.add(step(number, timed=timed) for number in range(count))
        rows = SpanRows(builder.build(moving=True), tree=False, now=START + count)
        all_lines(rows)
        builder.add([step(count, timed=timed)])
        run = builder.build(moving=True)
        return lines_of(lambda: all_lines(rows.with_run(run, now=START + count + 1)))

    def all_lines(rows: SpanRows) -> None:
        for index in range(len(rows) - 20, len(rows)):
            rows.line(index, 120)
        rows.header(120)

    few, many = lines_run(2_000), lines_run(40_000)

    assert many < few + 3_000, "up to two blocks of spans are laid again"


def step(number: int, *, timed: bool) -> Span:
    began = START + number if timed else None
    return Span(id=str(number), name="Bash", step=number, is_step=True, started_at=began, duration_ms=900.0)


def lines_of(work: Callable[[], object]) -> int:
    """How many lines of the program `work` runs."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_a_long_span_shows_in_the_overview_of_many() -> None:
    calls = [make_span(str(i), "opus", Operation.CHAT, i, 1, step=i) for i in range(1112)]
    calls[1111] = make_span("1111", "Bash", Operation.EXECUTE_TOOL, 1111, 900_000, step=1111)
    calls += [make_span(str(i), "opus", Operation.CHAT, i, 1, step=i) for i in range(2020, 5000)]
    styles = [piece.style for piece in SpanRows(make_run(calls), tree=False).overview(111)]
    assert styles.count("bar.tool") >= 15


def test_a_run_without_durations_has_no_overview() -> None:
    moments = [make_span(str(i), "Bash", Operation.EXECUTE_TOOL, i, None, step=i) for i in range(3)]
    assert SpanRows(make_run(moments), tree=False).overview(111) == ()


def now_and_then(first: list[Span], then: list[Span], **how: Any) -> tuple[SpanRows, SpanRows]:
    """The rows of a run that was given more spans: grown, and made from scratch."""
    builder = RunBuilder(REF, lambda span: Body())
    builder.add(first)
    rows = SpanRows(builder.build(), **how)
    all_of(rows)
    builder.add(then)
    run = builder.build()
    return rows.with_run(run), SpanRows(run, **how)


def call(ident: str, start: float, ms: float, parent: str | None = None) -> Span:
    return make_span(ident, "Bash", Operation.EXECUTE_TOOL, start, ms, parent_id=parent)


CALLS = [call("a", 0, 100), call("b", 1, 5000), call("c", 2, 300), call("d", 2.5, 50)]


@pytest.mark.parametrize(
    ("then", "how"),
    [
        ([call("b", 1, 50)], {"tree": False}),  # it ended earlier than it said
        ([call("a", 0.5, 100)], {"tree": False}),  # it began later
        ([call("b", 1, 10), call("e", 3, 20)], {"tree": False}),  # no longer one of the longest
        ([call("c", 2, 300, "b")], {"tree": True, "folded": frozenset("b")}),  # same order, another depth
        ([call("e", 3, 1, "d"), call("f", 4, 1, "e"), call("g", 5, 1)], {"tree": True, "folded": frozenset("d")}),
        ([call("e", 3, 1, "d"), call("f", 4, 1, "e")], {"tree": True, "folded": frozenset("ae")}),
    ],
)
def test_changed_spans_are_measured_again(
    then: list[Span], how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracetui.views.timeline.chart._PAINTED", 2)
    monkeypatch.setattr("tracetui.views.timeline.chart._SAMPLE_LONGEST", 1)
    grown, scratch = now_and_then(CALLS, then, **how)
    assert all_of(grown) == all_of(scratch)


@pytest.mark.parametrize("tree", [False, True])
def test_unchanged_spans_are_not_measured_again(tree: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = RunBuilder(REF, lambda span: Body())
    calls = [make_span(str(i), "Bash", Operation.EXECUTE_TOOL, i, 500, step=i, parent_id="r") for i in range(3000)]
    builder.add([make_span("r", "agent", Operation.INVOKE_AGENT, 0), *calls])
    rows = SpanRows(builder.build(), tree=tree, folded=frozenset({"7"}))
    texts(rows, 100)
    measured: list[str] = []
    monkeypatch.setattr("tracetui.views.timeline.chart._reported_tokens", lambda span: measured.append(span.id))
    builder.add([make_span("new", "Bash", Operation.EXECUTE_TOOL, 3001, 1, step=4, parent_id="r")])
    grown = rows.with_run(builder.build())

    assert grown.index("new") == len(rows) - 1  # where the row at the end was
    assert grown.chart.total_ms == pytest.approx(3_001_001)
    assert len(measured) < 10


def test_another_run_is_measured_from_scratch() -> None:
    rows = SpanRows(researcher(), tree=False)
    other = make_run([make_span("1", "Bash", Operation.EXECUTE_TOOL), make_span("x", "Bash", Operation.EXECUTE_TOOL)])
    assert texts(rows.with_run(other)) == texts(SpanRows(other, tree=False))


def test_inherited_spans_of_a_fork_take_no_room_on_the_axis() -> None:
    old = [make_span(f"o{i}", "search", Operation.EXECUTE_TOOL, i - 500.0, 900, note="copied") for i in range(3)]
    own = [make_span(f"n{i}", "search", Operation.EXECUTE_TOOL, float(i), 1000) for i in range(2)]
    chart = Chart(make_run([*old, *own]))
    assert chart.total_ms == 2000
    assert [chart.extent(i) for i in range(5)] == [None, None, None, (0.0, 1000.0), (1000.0, 2000.0)]
    assert round(Chart(make_run(old)).total_ms) == 2900


def test_a_long_model_name_leaves_room_for_the_reply() -> None:
    asked = make_span("1", "claude-sonnet-4-5-20250929", Operation.CHAT, 0, 1000, preview="I read the test.", step=1)
    called = make_span("2", "send_message_to_the_target", Operation.EXECUTE_TOOL, 1, 1000, preview="Hello?", step=2)
    rows = SpanRows(make_run([asked, called]), tree=False)
    assert "◆ claude-sonnet-4-5 I read the test." in texts(rows, 55)[0]
    assert "◆ claude-…net-4-5 I read the …" in texts(rows, 40)[0]
    assert '■ send_me…_target "Hello?"' in texts(rows, 40)[1]
    assert "■ send_message_to_the_target" in texts(rows, 55)[1]
