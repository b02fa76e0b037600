"""What events come to: the same whatever their order, and nothing that a foreign line can upset."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.build import make_summary
from tracetui.store.judgement import (
    SCHEMA,
    Event,
    Judgement,
    Judgements,
    Verdict,
    after,
    event_of,
    identity,
    line_of,
)

RUNS = [make_summary("a"), make_summary("b"), make_summary("b", agent="student"), make_summary("b", prompt="")]
CAUSES = ["f" * 64, "0" * 64]
IDS = [f"{n:02x}" for n in range(12)]


def make_event(own: str = "00", second: int = 0, **rest: object) -> Event:
    about = {} if "signature" in rest or rest.get("do") == "undo" else {"run": identity(RUNS[0])}
    given = {"do": "verdict", "verdict": Verdict.FLAKY, **about, **rest}
    return Event(at=f"2026-11-21T09:00:{second:02}.000000Z", event=own, schema=SCHEMA, **given)  # type: ignore[arg-type]


ABOUT = st.sampled_from([{"run": identity(run)} for run in RUNS] + [{"signature": cause} for cause in CAUSES])
WHAT = st.one_of(
    st.builds(lambda verdict: {"do": "verdict", "verdict": verdict}, st.sampled_from([None, *Verdict])),
    st.builds(lambda text: {"do": "note", "note": text}, st.sampled_from(["", "one", "two"])),
    st.builds(lambda do, tag: {"do": do, "tag": tag}, st.sampled_from(["tag", "untag"]), st.sampled_from("xy")),
)
EVENTS = st.one_of(
    st.builds(lambda about, what: {**about, **what}, ABOUT, WHAT),
    st.builds(lambda letter, run: {"do": "mark", "letter": letter, "run": identity(run)}, st.sampled_from("mn"),
              st.sampled_from(RUNS)),
    st.builds(lambda cause, into: {"do": "merge", "signature": cause, "into": into}, st.sampled_from(CAUSES),
              st.sampled_from(["", *CAUSES])),
    st.builds(lambda cause, by: {"do": "split", "signature": cause, "by": by}, st.sampled_from(CAUSES),
              st.sampled_from(["", "1", "text"])),
    st.builds(lambda own: {"do": "undo", "undoes": own}, st.sampled_from(IDS)),
).flatmap(
    lambda fields: st.builds(lambda own, second: make_event(own, second, **fields), st.sampled_from(IDS),
                             st.integers(0, 5))
)  # fmt: skip


def everything(state: Judgements) -> tuple[object, ...]:
    """All that can be asked."""
    runs = [state.of(run, cause) for run in RUNS for cause in (None, *CAUSES)]
    return (
        *runs,
        *(state.of_causes(cause) for cause in CAUSES),
        *(state.merged_into(cause) for cause in CAUSES),
        *(state.split_part(cause) for cause in CAUSES),
        *state.marks(),
        *state.tags(),
    )


def state_of(events: list[Event]) -> Judgements:
    state = Judgements()
    for event in events:
        state.add(event)
    return state


@given(st.lists(EVENTS, max_size=20), st.data())
def test_the_order_of_events_and_their_repetition_mean_nothing(events: list[Event], data: st.DataObject) -> None:
    other = (
        data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events), max_size=3)))) if events else []
    )
    first, second = Judgements(), Judgements()
    for event in events:
        first.add(event)
        everything(first)  # what was asked in between must not stick
    for event in other:
        second.add(event)

    assert everything(first) == everything(second)


@given(st.lists(EVENTS, max_size=12, unique_by=lambda event: event.event), EVENTS)
def test_undone_event_leaves_no_trace(events: list[Event], last: Event) -> None:
    events = [event for event in events if event.event != last.event and event.undoes != last.event]
    if last.do == "undo":
        return
    undo = make_event("undo", 59, do="undo", undoes=last.event, verdict=None)
    void = [event for event in [*events, undo] if event is not last]

    state = state_of([*events, last])
    everything(state)
    state.add(undo)

    assert everything(state) == everything(state_of(void))
    assert state.event(last.event) is None


def test_a_runs_own_verdict_wins_and_a_later_run_comes_judged() -> None:
    state = Judgements()
    state.add(make_event("01", 1, signature=CAUSES[0], verdict=Verdict.KNOWN))
    state.add(make_event("02", 2, signature=CAUSES[0], do="note", note="the vendor knows"))
    assert state.of(RUNS[1], CAUSES[0]) == Judgement(
        Verdict.KNOWN, "cause", "the vendor knows", (), "2026-11-21T09:00:01.000000Z"
    )
    assert state.of(RUNS[1]) == state.of(RUNS[1], CAUSES[1]) == Judgement()

    state.add(make_event("03", 0, verdict=Verdict.REAL))
    judgement = state.of(RUNS[0], CAUSES[0])
    assert (judgement.verdict, judgement.source, judgement.note) == (Verdict.REAL, "run", "the vendor knows")

    state.add(make_event("04", 4, verdict=None))
    assert state.of(RUNS[0], CAUSES[0]).source == "cause"


def test_a_run_is_known_by_what_it_is_and_not_by_its_path() -> None:
    run = make_summary("x")
    same = [make_summary("x", path="/elsewhere/y.json"), make_summary("x", prompt="")]
    others = [make_summary("y"), make_summary("x", agent="apr-code"), make_summary("x", prompt="other"),
              make_summary("x", started_at=0.0), make_summary("x", started_at=None)]  # fmt: skip

    assert all(identity(run).agrees(identity(variant)) for variant in same)
    assert not any(identity(run).agrees(identity(variant)) for variant in others)


@given(st.text(st.characters(codec=None), max_size=400), st.none() | st.floats(), st.text(st.characters(codec=None)))
def test_any_run_has_an_identity_that_can_be_written(own: str, start: float | None, prompt: str) -> None:
    run = make_summary(own, started_at=start, prompt=prompt, agent=own)
    event = make_event(run=identity(run), title=own[:120])
    line = line_of(event)

    assert event_of(line).run == identity(run)
    assert line.count(b"\n") == 1
    state = state_of([event_of(line)])
    assert state.of(run).verdict is Verdict.FLAKY


def test_two_long_ids_are_two() -> None:
    first, second = make_summary("x" * 300 + "a"), make_summary("x" * 300 + "b")
    assert identity(first) != identity(second)
    assert len(identity(first).id) < 250


def test_a_line_can_be_read_by_people_and_shown_by_terminals() -> None:
    line = line_of(
        make_event(do="note", verdict=None, note="naïve 東京\x1b]0;x\x07\u202e\x9b31m\u2028\U000e0041\ud800")
    )

    assert "naïve 東京" in line.decode()
    assert all(ord(character) >= 32 and not 127 <= ord(character) < 160 for character in line.decode().rstrip("\n"))
    assert "\\u202e" in line.decode()
    assert event_of(line).note == "naïve 東京\x1b]0;x\x07\u202e\x9b31m\u2028\U000e0041\\ud800"
    assert line.startswith(b'{"at":"2026-11-21T09:00:00.000000Z","do":"note",')


def raw(**changed: object) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(line_of(make_event())), **changed})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"at":"2026', "truncated"),
        (b"[1]", "Expected `object`"),
        (b"<<<<<<< HEAD", "malformed"),
        (b"{}", "it names no schema"),
        (raw(schema="tracetui/verdicts/2"), "its schema is not tracetui/verdicts/1"),
        (raw(verdict="perhaps"), "perhaps"),
        (raw(do="explode"), "explode"),
        (raw(at="yesterday"), "its time"),
        (raw(at="2026-13-41T09:00:00.000000Z"), "its time"),
        (raw(at="9999-12-31T23:59:59.999999Z"), "its time"),
        (raw(run=None), "either a run or a signature"),
        (raw(signature="f"), "either a run or a signature"),
        (raw(event=""), "no id"),
        (raw(do="tag"), "no tag"),
        (raw(do="mark"), "a letter"),
        (raw(do="mark", letter="\x1b"), "a letter"),
        (raw(do="undo"), "what it undoes"),
        (raw(note="x" * 5000), "length <= 4000"),
        (raw(title="x" * 5000), "length <= 1000"),
        (raw(run={"format": "any"}), "missing required field"),
        (raw(title="x")[:-2] + b'\xff"}', "utf-8"),
        (b'{"x":' + b"[" * 60_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_a_line_that_says_nothing_tells_why(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        event_of(line)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_a_reason(line: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert event_of(line).event


def test_fields_of_later_versions_are_let_pass() -> None:
    assert event_of(raw(mood="good")) == make_event()


def test_new_events_follow_known_ones_with_a_clock_ahead() -> None:
    assert after(0.0, "") == "1970-01-01T00:00:00.000000Z"
    assert after(0.0, "2026-11-21T09:00:00.999999Z") == "2026-11-21T09:00:01.000000Z"
    assert after(0.0, "8999-12-31T23:59:59.999999Z") == "8999-12-31T23:59:59.999999Z"


def test_a_mark_leads_to_the_run_wherever_it_is() -> None:
    state = state_of([make_event("01", 1, do="mark", verdict=None, letter="m", span="s3")])
    mark = state.mark("m")

    assert mark is not None
    assert mark.span == "s3"
    moved = make_summary("a", path="/elsewhere/z.json")
    assert mark.among([RUNS[1], moved, RUNS[0]]) is moved
    assert mark.among(RUNS[1:]) is None
    assert state.mark("n") is None


def test_a_settled_thing_costs_nothing_to_ask_again() -> None:
    state = state_of([make_event(f"{n:04}", 1, verdict=Verdict.REAL) for n in range(500)])
    first = state.of(RUNS[0])

    assert state.of(RUNS[0]) is first
