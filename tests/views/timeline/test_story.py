"""The story of a run: rows of turns, unfolded to calls and sub-agents; growing gives the same rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.analysis.test_turns import growths, session
from tests.views.build import START, check_rows, make_run, make_span, texts
from tracetui.analysis.effects.actions import Action, Todo, verb
from tracetui.model import Error, Header, Operation, Run, RunRef, Span, Status
from tracetui.model.build import RunBuilder
from tracetui.views.glyphs import ASCII, UNICODE
from tracetui.views.timeline.story import StoryRows, initially_open
from tracetui.views.timeline.work import action_pieces

TOOL, MESSAGE, CHAT = Operation.EXECUTE_TOOL, Operation.MESSAGE, Operation.CHAT


def keys(rows: StoryRows) -> list[Any]:
    return [rows.key(i) for i in range(len(rows))]


def test_a_turn_is_one_line_of_prompt_work_and_answer() -> None:
    rows = StoryRows(session())
    assert [" ".join(text.split()) for text in texts(rows, 90)] == [
        "1 ▸ fix the parser → read ×2 1✗ → delegated to helper → “done” 15.0s",
        "2 ▸ thanks → interrupted 1.0s",
    ]
    assert rows.header(90)[2].text.strip() == "turn · 16.0s worked of 1h00m"
    check_rows(rows, 90)
    check_rows(rows, 130)


def test_an_open_item_of_a_checklist_is_no_separator() -> None:
    todos = (Todo("fix", "done"), Todo("doc", "open"))
    pieces = action_pieces(Action("planned", "", todos=todos), Span("s", "TodoWrite", TOOL), 80, UNICODE)
    assert "".join(piece.text for piece in pieces).endswith("1 of 2 done  ✓ fix  □ doc ")


def test_a_turn_without_a_text_says_so() -> None:
    spans = [make_span("u", "user", MESSAGE, 0, preview=" "), make_span("t", "Bash", TOOL, 1, 100)]
    assert "1 ▸ (no prompt) → ran" in " ".join(texts(StoryRows(make_run(spans)), 80)[0].split())


def test_the_axis_leaves_idle_time_out_and_names_its_length() -> None:
    rows = StoryRows(session())
    heading = "".join(piece.text for piece in rows.header(140))
    assert "1h00m" in heading.split("time")[1]
    first, second = texts(rows, 140)
    assert first.count("█") > 25 > second.count("█")


def test_a_failed_turn_shows_its_reason() -> None:
    spans = [
        make_span("u", "user", MESSAGE, 0, preview="search"),
        make_span("c", "opus", CHAT, 1, 100),
        *(make_span(f"t{i}", "WebSearch", TOOL, 2 + i, 100, parent_id="c") for i in range(4)),
        make_span("e", "API", Operation.OTHER, 9, 1, status=Status.ERROR, error=Error("503")),
    ]
    assert " ".join(texts(StoryRows(make_run(spans)), 80)[0].split()).startswith(
        "1 ▸ search → searched the web ×4 → failed: 503"
    )


def test_unfolding_shows_calls_then_sub_agents_and_records_last() -> None:
    rows = StoryRows(session(), opened=frozenset({"u1"}))
    assert keys(rows) == ["u1", "t1", "t2", "a", "c2", "m", "u2"]
    assert texts(rows, 80)[0].split("  ")[0].strip() == "1 ▾ fix the parser"
    assert texts(rows, 80)[5].strip(" ┊") == "1 record"
    rows = rows.refold(rows.all_folds)
    assert keys(rows) == ["u1", "t1", "t2", "a", "au", "at", "c2", "m", "u2", "i"]
    assert (rows.parent(4), rows.parent(3), rows.parent(0)) == (3, 0, None)


def test_a_hidden_span_has_the_row_that_contains_it_and_can_be_revealed() -> None:
    rows = StoryRows(session())
    assert [rows.index(key) for key in ("at", "m", "u2", "none")] == [0, 0, 1, None]
    assert keys(rows.reveal("at")) == ["u1", "t1", "t2", "a", "au", "at", "c2", "m", "u2"]
    assert rows.reveal("u2") is rows
    assert "Bash" in rows.plain(0)
    assert rows.mark(0) is None


def test_the_answer_of_a_turn_is_its_last_model_call() -> None:
    rows = StoryRows(session(), opened=frozenset({"u1"}))
    answer = rows.answer(0)
    assert answer is not None
    assert answer.id == "c2"
    assert rows.answer(1) is None


def test_a_short_story_opens_unfolded_and_a_long_one_folded() -> None:
    assert initially_open(session()) == {"u1", "u2"}
    spans = [make_span(str(i), "user" if i % 5 == 0 else "Bash", MESSAGE if i % 5 == 0 else TOOL, i) for i in range(50)]
    assert initially_open(make_run(spans)) == frozenset()
    assert len(initially_open(make_run(spans), room=50)) == 10


def test_ascii_rows_have_no_other_characters() -> None:
    rows = StoryRows(session(), opened=frozenset({"u1"}), glyphs=ASCII)
    assert all(text.replace("“", "").replace("”", "").isascii() for text in texts(rows, 130))
    assert UNICODE is not ASCII


def test_tool_names_of_several_agents_are_one_verb() -> None:
    assert {verb(name) for name in ("Bash", "exec_command", "run_shell_command", "shell")} == {"ran"}
    assert verb("docs__lookup") == "docs__lookup"


@given(growths())
def test_a_story_that_grows_equals_one_drawn_at_once(chunks: list[list[Span]]) -> None:
    builder = RunBuilder(RunRef("any", "a"), lambda span: None)  # type: ignore[arg-type,return-value]
    rows: StoryRows | None = None
    for chunk in chunks:
        builder.add(chunk, header=Header(id="a", name="a"))
        run: Run = builder.build()
        now = START + 99
        rows = StoryRows(run, now=now) if rows is None else rows.with_run(run, now=now)
        opened = rows.refold(rows.all_folds)
        for grown, fresh in ((rows, StoryRows(run, now=now)), (opened, StoryRows(run, now=now, opened=opened.opened))):
            assert texts(grown, 120) == texts(fresh, 120)
            assert keys(grown) == keys(fresh)
        assert len(set(keys(opened))) == len(opened)
        assert all(opened.index(span.id) is not None for span in run.spans)
        assert all(rows.index(span.id) is not None for span in run.spans)


def long_session(random: Random) -> Iterator[list[Span]]:
    """500 appended chunks of a session with long turns: calls that end later, sub-agents, records, idle time."""
    at, turn, ended, open_calls = START, "", 0, list[Span]()
    for number in range(500):
        at += random.choice([1, 1, 1, 5, 600])
        chunk = []
        if not turn or random.random() < 0.01:
            turn = f"turn{number}"
            chunk.append(Span(turn, "turn", Operation.TURN, started_at=at))
            chunk.append(Span(f"u{number}", "user", MESSAGE, turn, preview=f"do {number}", started_at=at))
        name, operation = random.choice(
            [("Bash", TOOL), ("Read", TOOL), ("Edit", TOOL), ("opus", CHAT), ("helper", Operation.INVOKE_AGENT)]
        )
        span = Span(f"s{number}", name, operation, turn, preview=f"x{number}", started_at=at, status=Status.RUNNING)
        chunk.append(span)
        open_calls.append(span)
        if operation is Operation.INVOKE_AGENT:
            chunk += [Span(f"a{number}.{i}", "Bash", TOOL, span.id, started_at=at, duration_ms=9) for i in range(9)]
        if random.random() < 0.2:
            chunk.append(Span(f"h{number}", "hook", Operation.HOOK, turn, started_at=at))
        while ended < len(open_calls) - random.choice([1, 1, 2, 40]):
            status = random.choice([Status.OK, Status.OK, Status.ERROR])
            chunk.append(msgspec.structs.replace(open_calls[ended], status=status, duration_ms=700))
            ended += 1
        yield chunk


@pytest.mark.parametrize("seed", range(3))
def test_a_long_story_that_grows_equals_one_drawn_at_once(seed: int) -> None:
    random = Random(seed)
    builder = RunBuilder(RunRef("any", "a"), lambda span: None)  # type: ignore[arg-type,return-value]
    rows: StoryRows | None = None
    for number, chunk in enumerate(long_session(random)):
        builder.add(chunk, header=Header(id="a", name="a"))
        run, now = builder.build(), START + 10**6
        rows = StoryRows(run, now=now) if rows is None else rows.with_run(run, now=now)
        if random.random() < 0.1:
            rows = rows.reveal(random.choice(run.spans).id, records=random.random() < 0.5)
        if random.random() < 0.02:
            rows = rows.refold(random.choice([frozenset(), rows.all_folds]))
        assert rows.marked is not None
        if number % 25 == 0:
            fresh = StoryRows(run, now=now, opened=rows.opened)
            assert keys(rows) == keys(fresh)
            assert texts(rows, 130) == texts(fresh, 130)
            assert list(rows.marked) == list(fresh.marked) == [i for i in range(len(fresh)) if fresh.mark(i)]
            assert [rows.index(span.id) for span in run.spans] == [fresh.index(span.id) for span in run.spans]


def calls_of_an_append(steps: int) -> int:
    """How many functions are called when a call is appended to a story of one turn with so many calls."""
    calls = [make_span(f"t{i}", "Bash" if i % 2 else "Read", TOOL, i, 500) for i in range(steps + 1)]
    builder = RunBuilder(RunRef("any", "a"), lambda span: None)  # type: ignore[arg-type,return-value]
    builder.add([make_span("u", "user", MESSAGE, 0), *calls[:-1]], header=Header(id="a", name="a"))
    rows = StoryRows(builder.build(), opened=frozenset({"u"}))
    rows = rows.with_run(builder.build())
    builder.add(calls[-1:])
    before, called = sys.getprofile(), 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    run = builder.build()
    sys.setprofile(count)
    try:
        rows = rows.with_run(run)
        rows.line(len(rows) - 1, 120)
        assert not rows.marked
    finally:
        sys.setprofile(before)
    return called


def test_an_appended_call_costs_the_same_in_a_long_turn() -> None:
    assert calls_of_an_append(4000) < 1.3 * calls_of_an_append(400)
