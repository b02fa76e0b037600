"""Two runs compared, as rows: the answer is in the first line, every word is there, nothing is wider than its pane."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.diff.build import STEPS, VALUES, Step, chat, node, run_of
from tests.shared import examples
from tests.views.build import HOSTILE, check_line, check_rows, runs, text_of_line, texts
from tracetui.analysis.step_diff import (
    CACHE_BREAK,
    NOISE,
    Look,
    Section,
    Sign,
    context_sections,
    difference_label,
    state_sections,
    step_sections,
)
from tracetui.diff.comparison import Comparison, Diff, compare
from tracetui.diff.step import StateDiff, context_diff
from tracetui.diff.values import Change
from tracetui.model import Body, FirstError, Message, Operation, Run, Status, StatusSource, Text
from tracetui.text import exact
from tracetui.views.diff.steps import PairRows, run_rows, sentence, summary
from tracetui.views.diff.text import ComparedRows, Folds, LineKey, breaks
from tracetui.views.glyphs import ASCII, UNICODE

ALL_OPEN = Folds(everything=True)
SEARCHES = [Step(input={"q": "a"}, output="x"), Step(input={"q": "b"}, output="y"), Step(input={"q": "c"}, output="z")]


def look_of(comparison: Comparison, diff: Diff, place: int) -> Look:
    """What the change pane shows for a row."""
    row = diff.rows[place]
    a = None if row.a is None else diff.a.load(diff.a.spans[row.a])
    b = None if row.b is None else diff.b.load(diff.b.spans[row.b])
    return Look("changes", ("changes",), tuple(step_sections(a, b, comparison.changes(row))))


def compared(a: Run, b: Run, **options: Any) -> tuple[Comparison, Diff]:
    """Two runs compared to the end."""
    comparison = Comparison(a, b, **options)
    *_, diff = comparison.steps()
    return comparison, diff


def conversation(*messages: tuple[str, str]) -> tuple[Message, ...]:
    """A conversation."""
    return tuple(Message(role, (Text(text),)) for role, text in messages)


def section(a: str | None, b: str | None) -> Section:
    """Two texts beside each other."""
    sign = Sign.SAME if a == b else Sign.ADDED if a is None else Sign.REMOVED if b is None else Sign.EDITED
    return Section(sign, "messages[0] user", lambda: (a, b))


def rows_of(*sections: Section, width: int = 120, side: bool = True, **options: Any) -> ComparedRows:
    """The rows of some sections."""
    return ComparedRows(Look("changes", ("changes",), sections), width=width, side_by_side=side, **options)


# ---- the pairs


def test_every_step_has_a_row_with_its_sign() -> None:
    a = [*SEARCHES[:2], Step(Operation.HOOK, "guard"), Step(input={"q": "d"})]
    b = [SEARCHES[0], Step(input={"q": "b"}, output="other"), Step(input={"q": "d"}), Step(Operation.CHAT, "gpt")]
    lines = texts(PairRows(compare(run_of(a), run_of(b, ident="b"))), 120)
    assert any(" = " in line and "search" in line for line in lines)
    assert any("≠ output" in line for line in lines)
    assert any("− only A" in line for line in lines)
    assert any("only B" in line and "gpt" in line for line in lines)


def test_downstream_rows_are_dim_with_an_arrow_and_errors_stay_red() -> None:
    a = [Step(input={"q": "a"}, output="Paris 2023"), Step(name="fetch", input={"url": "Paris 2023"})]
    b = [Step(input={"q": "a"}, output="London 2024"), Step(name="fetch", input={"url": "London 2024"}, failed=True)]
    diff = compare(run_of(a), run_of(b, ident="b"))
    assert diff.rows[1].downstream
    line = PairRows(diff).line(1, 120)
    assert "↓" in text_of_line(line)
    styles = {piece.text: piece.style for piece in line}
    assert [style for text, style in styles.items() if text == "fetch"][-1].startswith("status.error")
    assert text_of_line(PairRows(diff, glyphs=ASCII).line(1, 120)).count("!v") == 1


def test_the_summary_counts_rows_and_shows_the_extra_time_of_b() -> None:
    a, b = run_of(SEARCHES, duration_ms=1000.0), run_of(SEARCHES[:2], ident="b", duration_ms=3100.0)
    assert text_of_line(summary(compare(a, b))) == "= same 2 · − only A 1 · Δ time +2.1s"


def test_the_sentence_names_the_first_difference_or_none() -> None:
    same = compare(run_of(SEARCHES), run_of(SEARCHES, ident="b"))
    assert text_of_line(sentence(same, UNICODE, 120)).startswith("= No differences  ·  3 steps")
    other = [*SEARCHES[:2], Step(input={"q": "Rome"}, output="z")]
    diff = compare(run_of(SEARCHES), run_of(other, ident="b"))
    text = text_of_line(sentence(diff, UNICODE, 120))
    assert text.startswith("≠ First difference: step 3 search, input changed: q")
    assert "c → Rome" in text
    assert diff.first is not None
    assert difference_label(diff, diff.first) == "step 3 search · input≠ q"


def test_a_changed_decision_is_named() -> None:
    def routed(ident: str, way: str) -> Run:
        return run_of([node("route")], ident=ident, bodies={"s0": Body(attributes={"decision": way})})

    diff = compare(routed("a", "billing"), routed("b", "refunds"))
    assert "decided billing → refunds" in text_of_line(sentence(diff, UNICODE, 120))


def test_as_long_as_rows_are_not_compared_none_of_them_counts_as_the_same() -> None:
    diff = next(iter(Comparison(run_of(SEARCHES), run_of(SEARCHES, ident="b")).steps()))
    assert not diff.complete
    assert "no differences so far" in text_of_line(sentence(diff, UNICODE, 120))
    assert all(" · " in line and " = " not in line for line in texts(PairRows(diff), 120))


def test_keys_of_pairs_survive_further_comparison() -> None:
    steps = Comparison(run_of(SEARCHES), run_of(SEARCHES[1:], ident="b")).steps()
    first, *_, last = steps
    before, after = PairRows(first), PairRows(last)
    for i in range(len(before)):
        assert after.index(before.key(i)) is not None or first.rows[i].b is None


@settings(max_examples=examples(30))
@given(runs(), runs(), st.integers(20, 220), st.booleans())
def test_any_two_runs_give_rows_that_fit(a: Run, b: Run, width: int, ascii_glyphs: bool) -> None:
    glyphs = ASCII if ascii_glyphs else UNICODE
    for diff in Comparison(a, b).steps():
        check_rows(PairRows(diff, glyphs=glyphs), width)
        check_line(summary(diff), 10_000)
        check_line(sentence(diff, glyphs, width), 10_000)
        check_rows(run_rows(diff, width=max(24, width), glyphs=glyphs), 10_000)


# ---- one pair


def test_a_prompt_is_compared_by_message_then_by_words() -> None:
    a, b = chat("Be careful.", "Yes.", "EV subsidies for 2023"), chat("Be careful.", "Yes.", "EV subsidies for 2024")
    step = [Step(Operation.CHAT, "gpt")]
    comparison, diff = compared(run_of(step, bodies={"s0": a}), run_of(step, ident="b", bodies={"s0": b}))
    assert diff.first is not None
    assert diff.first.path == "messages[2].content"
    rows = ComparedRows(look_of(comparison, diff, 0), width=120, side_by_side=True)
    lines = texts(rows, 120)
    assert "2 unchanged messages" in lines[0]
    at = rows.first_at(diff.first.path)
    assert at is not None
    assert "2023" in lines[at]
    strong = [piece.text for piece in rows.line(at, 120) if "word" in piece.style]
    assert strong == ["2023", "2024"]


def test_a_message_that_differs_in_ids_only_counts_as_the_same() -> None:
    first, second = chat("at 2025-01-01T00:00:00Z"), chat("at 2025-02-02T00:00:00Z")
    step = [Step(Operation.CHAT, "gpt")]
    comparison, diff = compared(run_of(step, bodies={"s0": first}), run_of(step, ident="b", bodies={"s0": second}))
    assert diff.same
    sections = look_of(comparison, diff, 0).sections
    assert (sections[0].sign, sections[0].note) == (Sign.SAME, NOISE)


def test_a_step_of_one_run_is_shown_in_full() -> None:
    comparison, diff = compared(run_of(SEARCHES), run_of(SEARCHES[:2], ident="b"))
    lines = texts(ComparedRows(look_of(comparison, diff, 2), width=120, side_by_side=True), 120)
    assert lines[0].startswith("− ▾ q  only A")
    assert any("z" in line for line in lines)


def test_contexts_show_the_change_of_each_message_and_the_cache_break() -> None:
    a = conversation(("system", "Be brief."), ("user", "one two three"), ("assistant", "ok"))
    b = conversation(
        ("system", "Be brief."), ("user", "one two four"), ("assistant", "ok"), ("user", "entirely new words")
    )
    sections = context_sections(a, b, context_diff(a, b))
    assert [section.sign for section in sections] == [Sign.SAME, Sign.EDITED, Sign.SAME, Sign.ADDED]
    assert [CACHE_BREAK in section.note for section in sections] == [False, True, False, False]


def test_states_show_differences_first() -> None:
    difference = StateDiff(
        1, {"q": 1, "docs": [1]}, {"q": 1, "docs": [2]}, (Change("output", "docs[0]", "docs[0]", 1, 2),)
    )
    assert [(section.sign, section.label) for section in state_sections(difference)] == [
        (Sign.EDITED, "docs[0]"),
        (Sign.SAME, "q"),
    ]


# ---- texts


def test_long_stretches_that_are_the_same_are_folded_with_a_count_and_open() -> None:
    lines = [f"line {i}" for i in range(40)]
    a, b = "\n".join(lines), "\n".join([*lines[:20], "CHANGED", *lines[21:]])
    rows = rows_of(section(a, b))
    rows_text = texts(rows, 120)
    folded = [i for i, line in enumerate(rows_text) if "unchanged lines" in line]
    assert len(folded) == 2
    assert "17 unchanged lines" in rows_text[folded[0]]
    fold = rows.fold(folded[0])
    assert fold is not None
    opened = rows_of(section(a, b), folds=Folds(frozenset({fold.key})))
    assert any("line 3" in line for line in texts(opened, 120))
    inside = opened.index(LineKey(0, 0, 5))
    assert inside is not None
    assert opened.parent(inside) == opened.index(fold.key)


def test_lines_are_paired_side_by_side_and_stacked_in_unified_view() -> None:
    beside = texts(rows_of(section("one old word\nsame", "one new word\nsame")), 120)
    assert any("old" in line and "new" in line for line in beside)
    below = texts(rows_of(section("one old word\nsame", "one new word\nsame"), side=False), 120)
    assert [line[0] for line in below[1:3]] == ["−", "+"]


@pytest.mark.parametrize("in_b", [False, True])
def test_a_text_of_one_side_takes_the_whole_width(in_b: bool) -> None:
    text = "a sentence of eighty cells that has no other side to stand beside in this row. "
    rows = rows_of(section(None, text) if in_b else section(text, None), width=120)
    assert any(text.strip() in line for line in texts(rows, 120))


def test_an_unwrapped_line_is_one_row() -> None:
    rows = rows_of(section("a" * 500, "b" * 500), wrap=False)
    assert len(rows) == 3
    assert "a" * 500 in text_of_line(rows.line(1, 600))


def test_search_finds_folded_lines() -> None:
    rows = rows_of(section("x\nneedle\ny", "x\nneedle\ny"), section("same", "same"))
    assert len(rows) == 1
    assert "needle" in rows.plain(0)


TEXTS = st.lists(HOSTILE | st.sampled_from(["one two three", "four five", "x" * 90, "日本語" * 30]), max_size=12).map(
    "\n".join
)


@given(TEXTS, TEXTS, st.integers(40, 160), st.booleans())
def test_every_word_of_both_texts_is_there_when_all_folds_are_open(a: str, b: str, width: int, side: bool) -> None:
    rows = rows_of(section(a, b), width=width, side=side, folds=ALL_OPEN)
    check_rows(rows, width, most=10_000)
    drawn = " ".join(texts(rows, width))
    for line in (*a.split("\n"), *b.split("\n")):
        for word in exact(line).split(" "):
            assert len(word) > 8 or word.rstrip() in drawn  # a longer one may be broken; `texts` ends with no blank
    plain = "\n".join(rows.plain(i) for i in range(len(rows)))
    assert all(line in plain for line in (*a.split("\n"), *b.split("\n")))


@given(st.lists(st.tuples(st.none() | TEXTS, st.none() | TEXTS), max_size=6), st.integers(24, 200), st.data())
def test_any_sections_under_any_folds_give_rows_that_fit(
    pairs: list[tuple[str | None, str | None]], width: int, data: st.DataObject
) -> None:
    sections = [section(a, b) for a, b in pairs]
    options: dict[str, Any] = {"width": width, "side": data.draw(st.booleans()), "wrap": data.draw(st.booleans())}
    folds = Folds(everything=data.draw(st.none() | st.booleans()))
    for _ in range(3):
        rows = rows_of(*sections, folds=folds, **options)
        check_rows(rows, width)
        assert all(0 <= row < len(rows) for row in rows.differences)
        keys = [fold.key for i in range(len(rows)) if (fold := rows.fold(i)) is not None]
        for i in range(len(rows)):
            above = rows.parent(i)
            assert above is None or (above < i and rows.fold(above) is not None)
        if not keys:
            break
        folds = folds._replace(toggled=folds.toggled ^ {data.draw(st.sampled_from(keys))})


@given(st.text(max_size=200).map(exact), st.integers(4, 40))
def test_rows_of_a_line_are_all_of_it_and_fit(text: Any, width: int) -> None:
    from tracetui.text import Clean, cells

    starts = [*breaks(text, width), len(text)]
    parts = [Clean(text[i:j]) for i, j in pairwise(starts)]
    assert "".join(parts) == text
    assert all(cells(part) <= width for part in parts)


@given(STEPS, STEPS, VALUES)
def test_every_pair_of_any_runs_has_rows(a: Sequence[Step], b: Sequence[Step], value: Any) -> None:
    comparison, diff = compared(run_of(a), run_of([*b, Step(input=value, output=value)], ident="b"))
    for place, row in enumerate(diff.rows):
        look = look_of(comparison, diff, place)
        rows = ComparedRows(look, width=100, side_by_side=True, folds=ALL_OPEN)
        check_rows(rows, 100)
        assert (len(rows.differences) > 0) == any(section.differs for section in look.sections)
        assert row.changes == 0 or rows.differences


@pytest.mark.parametrize("side", [True, False])
def test_painting_a_huge_message_costs_only_its_visible_rows(side: bool) -> None:
    def seconds(paragraphs: int) -> float:
        lines = [f"paragraph {i} says this and that about subsidies" for i in range(paragraphs)]
        middle = paragraphs // 2
        pair = section("\n".join(lines), "\n".join([*lines[: middle - 1], "another", *lines[middle:]]))
        assert len(pair.compared.hunks) == 3
        begin = time.process_time()
        rows = rows_of(pair, side=side)
        assert len(rows) < 20
        for i in range(len(rows)):
            rows.line(i, 120)
        return time.process_time() - begin

    seconds(200)  # what is computed once
    assert seconds(20_000) < 20 * seconds(200)


def test_runs_without_common_steps_show_the_criteria_compared() -> None:
    _, diff = compared(run_of([Step(), Step()]), run_of([Step(Operation.HOOK, "other")], ident="b"))

    text = text_of_line(sentence(diff, UNICODE, 200))
    assert text.startswith("≠ No steps in common  ·  2 only in A, 1 only in B, compared by operation, name")


def test_the_summary_names_two_different_formats() -> None:
    a, b = run_of([Step()]), run_of([Step()], ident="b")
    other = replace(b.summary, ref=replace(b.summary.ref, format="another"))
    _, diff = compared(a, replace(b, summary=other))

    assert text_of_line(summary(diff)).startswith("any and another: fields of both formats · = same 1")


@pytest.mark.parametrize("width", [40, 78, 120])
def test_an_error_is_shown_to_its_last_word(width: int) -> None:
    message = " ".join(f"word{i}" for i in range(60))
    failed = run_of([Step(failed=True)], ident="b", status=Status.ERROR, error=FirstError(message, "ValueError"))
    _, diff = compared(run_of([Step()]), failed)
    rows = run_rows(diff, width=width)
    check_rows(rows, width)

    drawn = " ".join(texts(rows, width)).split()
    assert all(word in drawn for word in message.split())


def test_only_an_inferred_end_shows_its_source() -> None:
    a, b = (
        run_of([Step()], ident=ident, status=Status.OK, status_source=source)
        for ident, source in (("a", StatusSource.EXPLICIT), ("b", StatusSource.DERIVED))
    )
    _, diff = compared(a, b)
    (ends,) = [line for line in texts(run_rows(diff, width=120), 120) if line.startswith("ends")]
    assert ends.count("ok") == 2
    assert "explicit" not in ends
    assert "ok  inferred from the last event" in ends
