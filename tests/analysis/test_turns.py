"""Turns: every span in exactly one, and the same whether a run is read at once or grows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.views.build import START, make_run, make_span
from tracetui.analysis import navigation
from tracetui.analysis.navigation import WorkTime, digest, is_session, turns_of
from tracetui.model import Header, Operation, Run, RunRef, Span, Status
from tracetui.model.build import RunBuilder
from tracetui.views.timeline.chart import growth

CHAT, TOOL, MESSAGE, AGENT = Operation.CHAT, Operation.EXECUTE_TOOL, Operation.MESSAGE, Operation.INVOKE_AGENT


def session() -> Run:
    """Two turns: the first with two calls and a sub-agent, the second interrupted an hour later."""
    return make_run(
        [
            make_span("m", "meta", Operation.META),
            make_span("u1", "user", MESSAGE, 0, preview="fix the parser"),
            make_span("c1", "opus", CHAT, 1, 1000),
            make_span("t1", "Read", TOOL, 2, 500, parent_id="c1"),
            make_span("t2", "Read", TOOL, 3, 500, parent_id="c1", status=Status.ERROR),
            make_span("t3", "Task", TOOL, 4, 9000, parent_id="c1"),
            make_span("a", "helper", AGENT, 4, 9000, parent_id="t3"),
            make_span("au", "user", MESSAGE, 4, parent_id="a"),
            make_span("at", "Bash", TOOL, 5, 1000, parent_id="a"),
            make_span("c2", "opus", CHAT, 14, 1000, preview="done"),
            make_span("u2", "user", MESSAGE, 3615, preview="thanks"),
            make_span("i", "interrupted", MESSAGE, 3616),
        ]
    )


def ids(run: Run, lane: int | None = None) -> list[tuple[str, str, str]]:
    """First span, last span and head of each turn."""
    return [(run.spans[t.start].id, run.spans[t.stop - 1].id, run.spans[t.head].id) for t in turns_of(run, lane)]


def test_a_turn_is_a_prompt_and_the_work_until_the_next() -> None:
    run = session()
    assert ids(run) == [("m", "c2", "u1"), ("u2", "i", "u2")]
    assert ids(run, run.index["a"]) == [("au", "at", "au")]


def test_a_turn_span_begins_the_turn_of_its_first_prompt() -> None:
    run = make_run(
        [
            make_span("s", "bash", TOOL, 0),
            make_span("x", "turn", Operation.TURN, 1),
            make_span("e", "environment", MESSAGE, 1, parent_id="x"),
            make_span("u", "user", MESSAGE, 1, parent_id="x"),
            make_span("c", "gpt", CHAT, 2, parent_id="x"),
            make_span("v", "user", MESSAGE, 3, parent_id="x"),
        ]
    )
    assert ids(run) == [("s", "s", "s"), ("x", "c", "u"), ("v", "v", "v")]


def test_a_digest_groups_calls_and_replaces_the_call_of_a_sub_agent_by_it() -> None:
    run = session()
    first, second = (digest(run, turn.start, turn.stop) for turn in turns_of(run))
    assert [(group.name, group.count, group.failed, group.lane) for group in first.groups] == [
        ("Read", 2, 1, False),
        ("helper", 1, 0, True),
    ]
    assert (first.last, first.answer) == (run.index["c2"], run.index["c2"])
    assert (second.last, second.answer) == (run.index["i"], None)


def test_idle_time_is_left_out_of_the_time_worked() -> None:
    run = session()
    time = WorkTime([period for turn in turns_of(run) for period in digest(run, turn.start, turn.stop).periods])
    assert (time.worked, time.total, time.longest_gaps) == (16, 3616, [(15, 3600)])
    assert [time.at(START + at) for at in (-1, 10, 15, 2000, 3615, 9999)] == [0, 10, 15, 15, 15, 16]
    assert (WorkTime([]).worked, WorkTime([]).at(START)) == (0, 0)


def test_only_a_conversation_with_tool_calls_is_a_session() -> None:
    assert is_session(session())
    assert not is_session(make_run([make_span("u", "user", MESSAGE), make_span("t", "Bash", TOOL)]))
    assert is_session(
        make_run(
            [make_span("u", "user", MESSAGE), make_span("t", "Bash", TOOL), make_span("h", "Stop", Operation.HOOK)]
        )
    )
    assert not is_session(make_run([make_span("1", "user", MESSAGE), make_span("2", "user", MESSAGE)]))


@st.composite
def growths(draw: st.DrawFn) -> list[list[Span]]:
    """Chunks of a session: spans below any open one, or again with another kind."""
    kinds = [("user", MESSAGE), ("turn", Operation.TURN), ("opus", CHAT), ("Bash", TOOL), ("helper", AGENT)]
    kinds += [("hook", Operation.HOOK), ("abandoned branch", Operation.OTHER)]
    came: list[Span] = []
    for number in range(draw(st.integers(1, 25))):
        name, operation = draw(st.sampled_from(kinds))
        parent = draw(st.sampled_from([None, None, *(span.id for span in came[-4:])]))
        note = draw(st.sampled_from(["", "", "abandoned"]))
        span = Span(str(number), name, operation, parent, note=note, started_at=START + number)
        if came and draw(st.integers(0, 9)) == 0:
            old = draw(st.sampled_from(came))
            span = replace(span, id=old.id, parent_id=old.parent_id)
        came.append(span)
    cuts = sorted({*draw(st.sets(st.integers(1, len(came)), max_size=5)), len(came)})
    return [came[start:end] for start, end in zip([0, *cuts], cuts, strict=False)]


@given(growths())
def test_every_span_is_in_one_turn_and_growing_gives_the_same_turns(chunks: list[list[Span]]) -> None:
    builder = RunBuilder(RunRef("any", "a"), lambda span: None)  # type: ignore[arg-type,return-value]
    before: Run | None = None
    turns: list[navigation.Turn] = []
    for chunk in chunks:
        builder.add(chunk, header=Header(id="a", name="a"))
        run = builder.build()
        delta = growth(before, run) if before is not None else None
        if before is None or delta is None:
            turns = turns_of(run)
        else:
            turns = navigation.grow(turns, before, run, delta.start, delta.changed)
        assert turns == turns_of(run)
        assert [i for turn in turns for i in range(turn.start, turn.stop)] == list(range(len(run.spans)))
        assert all(turn.start <= turn.head < turn.stop for turn in turns)
        before = run
