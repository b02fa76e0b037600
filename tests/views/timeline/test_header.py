"""The silence strip, the sentence above a stalled run, and the counts per minute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.build import START, check_line, make_run, make_span, runs, text_of_line
from tracetui.analysis.liveness import Liveness, State, liveness
from tracetui.model import Error, Operation, Run, Status
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs
from tracetui.views.rows import width_of
from tracetui.views.timeline.header import FRAME, arrival_counts, liveness_sentence, liveness_strip

TOOL = Operation.EXECUTE_TOOL
MINUTES = (3, 5, 9, 3, 1, 0, 0, 0)
NOW = START + 432
"""7m12s after the start."""


def planner(name: str = "Bash", *, ended: bool = False) -> Run:
    """The run of the picture: fast calls, one that failed, one of 1m31s, and one that is open for 3m58s."""
    calls = [make_span(str(i), name, TOOL, i * 4.0, 9000.0, step=i) for i in range(1, 25)]
    failed = make_span("f", name, TOOL, 36, 9000, step=25, status=Status.ERROR, error=Error("exit 1"))
    slow = make_span("s", name, TOOL, 103, 91_000, step=26)
    waits = make_span("w", name, TOOL, 194, step=27, status=Status.RUNNING)
    if ended:
        return make_run([*calls, failed, slow], started_at=START, status=Status.ERROR)
    return make_run([*calls, failed, slow, waits], started_at=START, ended=False)


def stand(run: Run, *, silent: float = 221, seen: bool = True) -> Liveness:
    """How it stands at `NOW`."""
    return liveness(run, now=NOW, arrivals=[NOW - silent] if seen else [], changed_at=NOW - silent)


def strip_texts(run: Run, width: int, glyphs: Glyphs = UNICODE, *, silent: float = 221) -> tuple[str, str]:
    left, right = liveness_strip(stand(run, silent=silent), width, glyphs, per_minute=MINUTES)
    return text_of_line(left), text_of_line(right)


def test_the_strip_is_that_of_the_picture() -> None:
    assert strip_texts(planner(), 120) == (
        "◐ running  silent 3m41s · open ■ Bash 3m58s · earlier calls 9s, longest 1m31s → stalled?",
        "events/min ▃▅█▃▁▁▁▁ now 0",
    )
    expected = "◐ quiet  silent 30s · open ■ Bash 3m58s · earlier calls 9s, longest 1m31s"
    assert strip_texts(planner(), 120, silent=30)[0] == expected


@pytest.mark.parametrize(
    ("width", "left", "right"),
    [
        (120, "◐ running  silent 3m41s · open ■ Bash 3m58s · earlier calls 9s, longest 1m31s → stalled?", True),
        (100, "◐ running  silent 3m41s · open ■ Bash 3m58s · earlier calls 9s, longest 1m31s → stalled?", False),
        (80, "◐ running  silent 3m41s · open ■ Bash 3m58s · gap 9s → stalled?", False),
        (70, "◐ running  silent 3m41s · open ■ Bash 3m58s · gap 9s → stalled?", False),
        (60, "◐ stalled?  silent 3m41s · open ■ Bash 3m58s", False),
        (40, "◐ stalled?  silent 3m41s", False),
        (15, "◐ stalled?", False),
        (8, "◐", False),
    ],
)
def test_narrow_strips_keep_the_most_important_facts(width: int, left: str, right: bool) -> None:
    strip = strip_texts(planner(), width)
    assert strip[0] == left
    assert strip[1].startswith("events/min") is right


def test_a_narrow_strip_replaces_the_sparkline_by_a_rate() -> None:
    assert strip_texts(planner(), 96)[1] == "0/min"
    assert strip_texts(planner(), 60)[1] == "0/min"
    assert liveness_strip(stand(planner()), 120)[1] == ()


def test_a_long_name_is_cut_at_its_end() -> None:
    left = strip_texts(planner("mcp__server__" + "x" * 60), 120)[0]
    assert "open ■ mcp__server__xxxxxxxxxx… 3m58s · earlier calls" in left


def test_ascii_shows_the_same_in_ascii() -> None:
    left, right = strip_texts(planner(), 120, ASCII)
    assert left == "R running  silent 3m41s - open # Bash 3m58s - earlier calls 9s, longest 1m31s > stalled?"
    assert right == "events/min .-#._ now 0".replace("_", "____")


def test_ended_and_paused_runs_show_their_state() -> None:
    left, _ = liveness_strip(stand(planner(ended=True)), 120)
    assert text_of_line(left) == "✗ error  ended, last change 3m41s ago"
    paused, _ = liveness_strip(stand(make_run([], status=Status.PAUSED)), 120)
    assert text_of_line(paused) == "‖ paused  waiting for a human, 3m41s"


def test_an_unknown_state_has_a_question_mark() -> None:
    run = make_run([], ended=False, status_word="active")
    left, _ = liveness_strip(stand(run, silent=86_400, seen=False), 120)
    assert text_of_line(left) == "? unknown  silent 1d00h"
    assert text_of_line(liveness_sentence(stand(run, silent=86_400, seen=False), run, 120, now=NOW)) == (
        "unknown recorded as active; no writes for 1d · 0 steps"
    )


def test_an_old_session_without_an_end_shows_its_duration_only() -> None:
    silent = make_run([], ended=False)
    assert stand(silent, silent=86_400, seen=False).state is State.UNKNOWN
    assert liveness_sentence(stand(silent, silent=86_400, seen=False), silent, 120, now=NOW) == ()
    recorded = make_run([], ended=False, status_word="active", duration_ms=5000.0)
    text = text_of_line(liveness_sentence(stand(recorded, silent=86_400, seen=False), recorded, 120, now=NOW))
    assert text.endswith("0 steps in 5s"), "not since it began, days ago"


def test_the_sentence_names_the_open_call_and_the_progress() -> None:
    run = planner()
    text = text_of_line(liveness_sentence(stand(run), run, 120, now=NOW))
    assert text == (
        "stalled? Bash running for 3m58s; Bash calls take 9s (p95) · 27 steps in 7m12s · 1 error, recovered"
    )
    assert text_of_line(liveness_sentence(stand(run), run, 92, now=NOW)).endswith(" · 27 steps in 7m12s")
    assert text_of_line(liveness_sentence(stand(run), run, 64, now=NOW)).endswith("9s (p95)")
    assert liveness_sentence(stand(run, silent=1), run, 120, now=NOW) == ()


def test_a_stall_without_an_open_call_names_the_silence() -> None:
    run = make_run([make_span(str(i), "Read", TOOL, i * 9.0, 9000) for i in range(8)], ended=False)
    assert text_of_line(liveness_sentence(stand(run), run, 120, now=NOW)) == (
        "stalled? no new events for 3m41s; typical gap 9s (p95) · 8 steps in 7m12s"
    )


def test_arrivals_are_counted_by_minute() -> None:
    arrivals = [NOW - 600, NOW - 479, NOW - 61, NOW - 60, NOW - 59, NOW, NOW + 5]
    assert arrival_counts(arrivals, NOW) == (1, 0, 0, 0, 0, 0, 2, 3)
    assert arrival_counts([], NOW, 3) == (0, 0, 0)


@given(
    runs(),
    st.lists(st.floats(0, 1e6), max_size=20).map(sorted),
    st.floats(0, 1e7),
    st.integers(0, 160),
    st.sampled_from([UNICODE, ASCII]),
)
def test_every_width_is_kept(run: Run, arrived: list[float], silent: float, width: int, glyphs: Glyphs) -> None:
    arrivals = [START + at for at in arrived]
    now = START + 1e6 + silent
    current = liveness(run, now=now, arrivals=arrivals, changed_at=START + 1e6)
    left, right = liveness_strip(current, width, glyphs, per_minute=arrival_counts(arrivals, now))
    for line in (left, right, sentence := liveness_sentence(current, run, width, glyphs, now=now)):
        check_line(line, width)
    assert width_of(left) + width_of(right) + (1 if right else 0) <= max(0, width - FRAME)
    nameless = run.summary.status is Status.UNKNOWN and not run.summary.status_word
    waits = current.state is State.STALLED or (current.state is State.UNKNOWN and not nameless)
    assert bool(sentence) is waits or width == 0


@given(st.lists(st.floats(allow_nan=False), max_size=40), st.floats(allow_nan=False, allow_infinity=False))
def test_counting_never_raises(arrivals: list[float], now: float) -> None:
    assert sum(arrival_counts(arrivals, now)) <= len(arrivals)
