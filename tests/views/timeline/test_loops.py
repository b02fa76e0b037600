"""Loops in the timeline: folded into a row each, and nothing lost by it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.diff.build import Step, run_of
from tests.shared import examples
from tests.views.build import REF, START, check_rows, make_run, make_span, runs, texts
from tests.views.timeline.test_spans import all_of, growths, keys_of
from tracetui.analysis.assessment import Assessment, assess
from tracetui.model import Body, Header, Limit, Operation, Run, RunBody, Span, Status, Usage
from tracetui.model.build import RunBuilder
from tracetui.views.glyphs import ASCII, UNICODE
from tracetui.views.rows import Fold
from tracetui.views.timeline.spans import END, Folds, SpanRows

TOOL = Operation.EXECUTE_TOOL


def body_of(span: Span) -> Body:
    return Body(input=[span.name, span.preview], output=span.note)


def calls(count: int, **of: dict[str, Any]) -> list[Span]:
    """Calls ``0``, ``1`` … of a second each; what is said of one by its number, ``c3={…}``, holds for it alone."""
    return [
        make_span(
            str(i),
            **{
                "name": "search", "operation": TOOL, "start": i * 2, "ms": 1000, "step": i + 1, "preview": "KfW 442",
                "usage": Usage(total_tokens=100), **of.get(f"c{i}", {}),
            },
        )
        for i in range(count)
    ]  # fmt: skip


def folded(run: Run, *, going: bool = False, unfolded: frozenset[str] = frozenset(), **how: Any) -> SpanRows:
    folds = Folds.of(assess(run, body_of), run, going=going).with_unfolded(unfolded)
    return SpanRows(run, tree=False, **how).fold_loops(folds)


LOOP = make_run([*calls(6, c0={"preview": "first"}, c5={"preview": "last"})])


def test_a_loop_has_one_row_with_the_time_tokens_and_bar_of_all_its_calls() -> None:
    rows = folded(LOOP)
    assert keys_of(rows) == ["0", "1", "5"]
    assert texts(rows, 120)[1].startswith("  2 ▸ ↻ search ×4 (identical)  time lost 3.0s, 300 tokens   400  4.0s ")
    assert texts(rows, 110)[1].startswith('  2 ▸ ↻ search ×4 (identical) "KfW 442"               400  4.0s ')
    bars = [text.count("█") for text in texts(rows, 110)]
    assert bars[1] > 5 * bars[0]
    check_rows(rows, 110)


def test_in_a_narrow_pane_the_title_comes_first() -> None:
    assert texts(folded(LOOP), 36)[1] == "  2 ▸ ↻ search ×4 (identical)   4.0s"
    assert texts(folded(LOOP, glyphs=ASCII), 36)[1] == "  2 > @ search x4 (identical)   4.0s"


def test_a_hidden_call_has_the_index_of_its_loop_row() -> None:
    rows = folded(LOOP)
    assert [rows.index(str(i)) for i in range(6)] == [0, 1, 1, 1, 1, 2]
    assert [call.id for call in rows.folded_calls(1)] == ["1", "2", "3", "4"]
    assert rows.folded_calls(0) == []
    assert rows.hidden == 3


def test_a_loop_unfolds_and_folds_by_any_of_its_calls() -> None:
    rows = folded(LOOP)
    assert rows.fold(1) == Fold("1", False)
    assert rows.fold(0) is None
    assert rows.reveal("1") is rows
    assert rows.reveal("0") is rows
    assert rows.reveal(END) is rows
    for hidden in ("2", "4"):
        unfolded = rows.reveal(hidden)
        assert keys_of(unfolded) == ["0", "1", "2", "3", "4", "5"]
        assert [unfolded.fold(i) for i in range(6)] == [None, *[Fold("1", True)] * 4, None]
    assert "↻ ×4" in texts(unfolded)[1]
    assert "↻" not in texts(unfolded)[2]


def test_failed_calls_of_a_loop_are_counted_and_marked() -> None:
    rows = folded(make_run(calls(4, c2={"status": Status.ERROR})))
    assert texts(rows, 60)[0].startswith("  1 ▸ ↻ search ×4 (same call) 1✗")
    assert rows.mark(0) == "status.error"
    assert rows.line(0, 60)[0].style == "status.error"


def test_the_texts_of_folded_calls_are_searchable() -> None:
    rows = folded(make_run(calls(4, c3={"status": Status.ERROR, "error": None, "note": "HTTP 503"})))
    assert "HTTP 503" in rows.plain(0)
    assert rows.plain(0).count("KfW 442") == 2  # the same words once


def test_a_cycle_is_one_row() -> None:
    rows = folded(make_run([*calls(8, **{f"c{i}": {"name": "parse", "preview": "page"} for i in (1, 3, 5, 7)})]))
    assert keys_of(rows) == ["0"]
    assert texts(rows, 90)[0].startswith("  1 ▸ ↻ search → parse ×4 (identical)")


def test_calls_below_calls_are_not_counted_twice() -> None:
    spans = calls(4, **{f"c{i}": {"name": "inner", "ms": 400, "parent_id": str(i - 1)} for i in (1, 3)})
    assert texts(folded(make_run(spans)), 50)[0].split()[-1] == "2.0s"


def test_trees_and_filtered_or_sorted_timelines_fold_no_loops() -> None:
    rows = folded(LOOP)
    everything = {"0", "1", "2", "3", "4", "5"}
    assert set(keys_of(rows.with_filter(lambda span: True))) == everything
    assert set(keys_of(rows.with_filter(None, longest_first=True))) == everything
    assert rows.with_filter(None, longest_first=True).fold(1) is None
    assert keys_of(rows.with_filter(lambda span: True).with_filter(None)) == keys_of(rows)
    tree = SpanRows(LOOP, tree=True, folds=rows.folds)
    assert set(keys_of(tree)) == everything
    assert "↻ ×4" in texts(tree)[1]


def test_the_step_that_doomed_the_run_is_marked_unless_it_failed_itself() -> None:
    policy = RunBody(limits=(Limit("max_repeat_hashes", 3, 4, violated=True),))
    refused = make_span("p", "max_repeat_hashes", Operation.POLICY, status=Status.ERROR)
    rows = folded(make_run([*calls(4), refused], status=Status.ERROR, body=policy))
    assert "search ×4 (identical)  ! likely lost" in texts(rows, 100)[0]
    assert texts(rows, 40)[0].split()[-2:] == ["!", "4.0s"]
    assert [i for i, text in enumerate(texts(rows.reveal("2"), 100)) if "likely lost" in text] == [1]

    alone = make_run(calls(2, c1={"status": Status.ERROR, "preview": "other"}), status=Status.ERROR)
    assert assess(alone, body_of).point_of_no_return is not None
    assert not any("likely lost" in text for text in texts(folded(alone)))


# ---- growing


def test_a_loop_that_may_grow_is_not_folded_before_it_has_ended() -> None:
    assert len(folded(make_run(calls(4)), going=True)) == 4
    assert len(folded(make_run(calls(4)))) == 1
    assert len(folded(make_run(calls(5, c4={"preview": "other"})), going=True)) == 5
    assert len(folded(make_run(calls(6, c4={"preview": "other"}, c5={"preview": "next"})), going=True)) == 3


def test_loops_stay_folded_while_the_run_grows_and_unfold_on_change() -> None:
    builder = RunBuilder(REF, body_of)
    builder.add(
        [*calls(4), make_span("x", "fetch", TOOL), make_span("y", "write", TOOL)],
        header=Header(id="r", name="r", ended=False),
    )
    rows = folded(builder.build(moving=True), going=True)
    assert keys_of(rows)[:3] == ["0", "x", "y"]

    builder.add([make_span("z", "test", TOOL)])
    rows = rows.with_run(builder.build(moving=True))
    assert keys_of(rows)[:4] == ["0", "x", "y", "z"]

    builder.add([replace(calls(4)[2], status=Status.ERROR)])
    assert keys_of(rows.with_run(builder.build(moving=True)))[:5] == ["0", "1", "2", "3", "x"]


def test_an_earlier_assessment_holds_for_unchanged_calls() -> None:
    builder = RunBuilder(REF, body_of)
    builder.add([*calls(4), make_span("x", "fetch", TOOL), make_span("y", "write", TOOL)])
    assessment = assess(builder.build(), body_of)
    builder.add([make_span("z", "test", TOOL)])
    now = builder.build()
    assert [loop.first for loop in Folds.of(assessment, now, going=True).loops] == [0]
    assert not Folds.of(assessment, make_run(calls(2)), going=True).loops


# ---- any run


@st.composite
def repeating(draw: st.DrawFn) -> Run:
    """Stretches of calls, some of them again and again; some below others."""
    spans: list[Span] = []
    for _ in range(draw(st.integers(1, 5))):
        cycle = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3))
        for name in cycle * draw(st.integers(1, 4)):
            above = draw(st.sampled_from([None, None, None, "below"])) and spans and spans[-1].id
            status = draw(st.sampled_from([Status.OK, Status.OK, Status.OK, Status.ERROR]))
            operation = draw(st.sampled_from([TOOL, TOOL, TOOL, Operation.TURN]))
            number = len(spans)
            spans.append(make_span(str(number), name, operation, number, 500, status=status, parent_id=above or None))
    return make_run(spans)


def check_folds(rows: SpanRows, plain: SpanRows) -> None:
    """Hidden and visible are all; unfolded, the rows are those of a timeline without loops."""
    assert rows.folds is not None
    visible = [rows.key(i) for i in range(len(rows))]
    hidden = [call.id for i in range(len(rows)) for call in rows.folded_calls(i)[1:]]
    assert sorted([*map(str, visible), *hidden]) == sorted(map(str, keys_of(plain)))
    assert not {*visible} & {*hidden}
    for key in hidden:
        at = rows.index(key)
        assert at is not None
        assert key in [call.id for call in rows.folded_calls(at)]
        assert key in keys_of(rows.reveal(key))
    everything = rows.fold_loops(rows.folds.with_unfolded(rows.folds.keys))
    assert keys_of(everything) == keys_of(plain)
    assert [everything.index(span.id) for span in rows.run.spans] == [plain.index(span.id) for span in rows.run.spans]
    for i in range(len(plain)):
        row = everything.key(i)
        position = everything.run.index[row] if isinstance(row, str) else -1
        if position < 0 or not [*rows.folds.notes(position, UNICODE)]:  # nothing is said of loops in it
            assert plain.line(i, 70) == everything.line(i, 70)


@given(repeating(), st.data(), st.integers(1, 200))
def test_folding_hides_and_shows_without_losing_anything(run: Run, data: st.DataObject, width: int) -> None:
    rows = folded(run, unfolded=frozenset(data.draw(st.sets(st.sampled_from([span.id for span in run.spans])))))
    check_folds(rows, SpanRows(run, tree=False))
    check_rows(rows, width)


@settings(max_examples=examples(25))
@given(runs(), st.integers(1, 200))
def test_any_run_can_be_folded(run: Run, width: int) -> None:
    assessment = assess(run, lambda span: Body(input=span.name))
    rows = SpanRows(run, tree=False, now=START + 1000).fold_loops(Folds.of(assessment, run, going=False))
    check_rows(rows, width)
    check_folds(rows, SpanRows(run, tree=False, now=START + 1000))


@given(growths())
def test_folds_of_a_run_that_grew_are_those_that_still_hold(chunks: list[list[Span]]) -> None:
    builder = RunBuilder(REF, body_of)
    rows: SpanRows | None = None
    for chunk in chunks:
        builder.add(chunk, header=Header(id="r", name="r", ended=False))
        run = builder.build(moving=True)
        if rows is not None:
            rows = rows.with_run(run)
            assert all_of(rows) == all_of(SpanRows(run, tree=False, folds=rows.folds))
        now = folded(run)
        check_folds(now, SpanRows(run, tree=False))
        rows = now


# ---- how much is compared


def test_comparisons_are_bounded_and_omissions_counted() -> None:
    run = run_of([Step(input="q", output=1)] * 10 + [Step(name="other", input="q", output=2)] * 4)
    assert [loop.times for loop in assess(run, run.load).loops] == [10, 4]

    few: Assessment = assess(run, run.load, max_calls=7)
    assert ([loop.times for loop in few.loops], few.left_out) == ([7], 7)
    some = assess(run, run.load, max_calls=12)
    assert ([loop.times for loop in some.loops], some.left_out) == ([10, 2], 2)


@pytest.mark.parametrize(("most", "times"), [(10, []), (100, [4])])
def test_large_bodies_are_not_read_beyond_a_size(most: int, times: list[int]) -> None:
    asked: list[str] = []

    def large(span: Span) -> Body:
        asked.append(span.id)
        return Body(input="q", output=1, raw=b"x" * 10)

    assessment = assess(make_run(calls(4)), large, max_bytes=most)
    assert [loop.times for loop in assessment.loops] == times
    assert len(asked) * 10 <= most
