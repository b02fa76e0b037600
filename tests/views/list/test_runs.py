"""What a row of the list says of a run, and what the heading of a group says of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.store.build import make_summary
from tests.views.build import check_rows, texts
from tracetui.analysis.arrangement import Item
from tracetui.analysis.liveness import State
from tracetui.model import FirstError, Operation, RunSummary, Score, Status, Usage
from tracetui.model.run import LastEvent
from tracetui.views.labels import deciding_excerpt, spending_text
from tracetui.views.list.columns import COLUMNS, fit_columns
from tracetui.views.list.runs import RunRows

ASKED = "count the lines in notes.txt and write the number down"


def row(run: RunSummary, width: int = 80) -> str:
    (text,) = texts(RunRows([run], now=1_763_730_600.0), width)
    return text


@pytest.mark.parametrize(
    ("known", "cell"),
    [
        ({"status": Status.OK}, "count the lines in notes.txt"),
        ({"status": Status.UNKNOWN, "deep": True}, "count the lines in notes.txt"),
        ({"status": Status.RUNNING}, "count the lines in notes.txt"),
        (
            {"status": Status.ERROR, "first_error": FirstError("m", "TimeoutError", name="Bash")},
            "TimeoutError: m  count the",
        ),
        ({"status": Status.CANCELLED, "status_word": "stopped"}, "stopped  count the lines in"),
        ({"status": Status.OK, "relation": "fork", "replay_of": "01a1f8db"}, "01a1f8db fork  count the"),
        ({"status": Status.OK, "result": "goal met 2/2"}, "goal met 2/2  count the"),
    ],
)
def test_the_prompt_is_visible_on_eighty_columns(known: dict[str, Any], cell: str) -> None:
    text = row(make_summary(prompt=ASKED, **known))
    assert cell in text
    assert text.count("count the") == 1


@pytest.mark.parametrize(
    ("name", "parent", "label"),
    [
        ("tides", None, "tides dover #2"),
        ("tides_of_the_channel", None, "tides_of_the_channel dover #2"),
        ("tides_of_the_channel_of_the_north", None, "tides_of_the_channel_o… dover #2"),
        ("tides", "p", "  dover #2"),
    ],
)
def test_a_top_level_run_shows_its_name_and_label(name: str, parent: str | None, label: str) -> None:
    run = make_summary(label="dover #2", parent=parent).replace(name=name)
    above = run.replace(id="p", parent=None, ref=replace(run.ref, path="/traces/p.json"))
    assert label in texts(RunRows([above, run], now=1_763_730_600.0), 80)[1]


def test_a_narrow_fork_shows_its_prompt_instead_of_its_original() -> None:
    fork = make_summary(prompt="find another way", relation="fork", replay_of="0690e0f0", status=Status.OK)
    assert "↺ fork  find anoth" in row(fork, 45)
    assert "↺ 0690e0f0 fork  find another way" in row(fork, 90)


def test_a_long_cause_replaces_the_prompt() -> None:
    error = FirstError("Step limit exceeded: 11 of 10", None)
    text = row(make_summary(prompt=ASKED, status=Status.ERROR, first_error=error), 66)
    assert "Step limit exceeded: 11 of 10 " in text
    assert "count" not in text


@pytest.mark.parametrize("width", [20, 54, 80, 140])
def test_of_a_long_folder_both_ends_are_seen(width: int) -> None:
    items: list[Item] = [(f"/home/me/{'deeper/' * 20}project", 12)]
    rows = RunRows(items, now=0.0)
    check_rows(rows, width)
    (text,) = texts(rows, width)
    assert text.startswith("/ho")
    assert "oject " in text
    assert text.endswith(" 12")


def test_the_columns_fit() -> None:
    for width in range(34, 200):
        assert sum(size for _, size in fit_columns(width)) + len(fit_columns(width)) - 1 <= width, width


def test_names_get_the_room_that_they_want_and_no_column_is_cut() -> None:
    for width in range(34, 200):
        short, long = fit_columns(width, name=8), fit_columns(width, name=18)
        for columns in (short, long):
            assert sum(size for _, size in columns) + len(columns) - 1 <= max(width, 34), width
        assert dict(short)["name"] <= dict(long)["name"], width
        if width >= 53:
            assert dict(long)["name"] >= 16, width
            assert dict(long)["result"] >= 16, width


def test_a_long_name_is_worth_more_than_an_id() -> None:
    assert "id" in dict(fit_columns(84, name=10))
    assert "id" not in dict(fit_columns(84, name=30))


def test_columns_without_values_leave_their_cells_to_the_results() -> None:
    prompt = "Hi! I'd like to book a flight from San Francisco"
    runs: list[Item] = [
        make_summary(name, status=Status.OK, prompt=prompt, deep=True).replace(name=name)
        for name in ("trace", "planner")
    ]
    rows = RunRows(runs, now=1_763_730_600.0)

    assert [(name, size) for name, size in rows.columns(53) if size > 1] == [
        ("name", 8),
        ("result", 37),
        ("age", 4),
    ]
    assert "tok" not in dict(rows.columns(120))


@pytest.mark.parametrize(("seconds", "age"), [(240, "4m"), (3 * 86400, "3d"), (300 * 86400, "10mo")])
def test_an_age_by_the_time_of_the_file_is_marked(seconds: int, age: str) -> None:
    now = 1_763_730_600.0
    known = make_summary(started_at=now - seconds, time_zone="UTC", modified_at=now)
    unknown = make_summary(started_at=None, modified_at=now - seconds)

    assert row(known).endswith(f" {age}")
    assert row(unknown).endswith(" ~42w" if age == "10mo" else f" ~{age}")


@pytest.mark.parametrize("width", [66, 74, 78, 96])
def test_a_result_is_worth_more_than_an_id(width: int) -> None:
    columns = dict(fit_columns(width, name=14, facts=COLUMNS))
    assert columns["result"] >= 22
    assert {"time", "step", "age"} <= set(columns)
    assert "id" not in columns or columns["result"] >= 24


@pytest.mark.parametrize("width", [60, 78, 118])
def test_scores_have_a_column_if_any_run_has_one(width: int) -> None:
    plain = [make_summary(str(number)) for number in range(20)]
    scored = make_summary("x", scores=(Score("reward", 0.0, False),))
    assert "score" in dict(RunRows([*plain, scored], now=0.0).columns(width))
    assert "score" not in dict(RunRows([*plain], now=0.0).columns(width))


@pytest.mark.parametrize(
    ("costed", "sorted_by", "shown"), [(0, "", False), (1, "", False), (2, "", True), (1, "cost", True)]
)
def test_a_column_of_costs_needs_a_tenth_of_the_runs_or_the_sort(costed: int, sorted_by: str, shown: bool) -> None:
    runs = [make_summary(str(i), usage=Usage(cost_usd=1.0) if i < costed else None) for i in range(20)]
    assert ("cost" in dict(RunRows([*runs], now=0.0, sorted_by=sorted_by).columns(80))) is shown


def spent(tokens: int | None, usd: float | None) -> Usage | None:
    return None if tokens is None and usd is None else Usage(input_tokens=tokens, cost_usd=usd)


USED = st.builds(spent, st.sampled_from([None, 0, 10, 250]), st.sampled_from([None, 0.0, 0.25, 2.0]))


@example(before=[spent(10, 0.25), None, None, None], changes=[(0, None)])
@given(before=st.lists(USED, min_size=4, max_size=4), changes=st.lists(st.tuples(st.integers(0, 3), USED)))
def test_the_sums_of_the_list_and_its_groups_follow_their_runs(
    before: list[Usage | None], changes: list[tuple[int, Usage | None]]
) -> None:
    runs = [make_summary(str(i), usage=usage) for i, usage in enumerate(before)]
    items: list[Item] = [("today", 3), *runs[:3], ("yesterday", 1), runs[3]]
    rows = RunRows([*items], now=0.0)
    rows.prepare()
    for number, usage in changes:
        runs[number] = make_summary(str(number), usage=usage)
        place, heading = (number + 1, 0) if number < 3 else (5, 4)
        assert {place} <= {*rows.renew(runs[number])} <= {place, heading}
    fresh = RunRows([("today", 3), *runs[:3], ("yesterday", 1), runs[3]], now=0.0)
    assert rows.costed is fresh.costed
    assert spending_text(rows.spent) == spending_text(fresh.spent)
    assert [texts(rows, 100)[i] for i in (0, 4)] == [texts(fresh, 100)[i] for i in (0, 4)]


def test_columns_that_no_counted_run_fills_give_their_room_away() -> None:
    empty = make_summary("a", deep=True, model=None, errors=0, steps=None)
    full = make_summary("b", deep=True, model="m", errors=1, steps=3)
    assert {"model", "err", "step"}.isdisjoint(dict(RunRows([empty], now=0.0).columns(150)))
    assert {"model", "err", "step"} <= set(dict(RunRows([empty, full], now=0.0).columns(150)))


def test_the_task_of_a_trial_is_beside_its_result() -> None:
    run = make_summary("a", task="airline-46", result="reward 0", prompt="Book a flight for me")
    line = "".join(piece.text for piece in RunRows([run], now=0.0).line(0, 76))
    assert "airline-46" in line


@pytest.mark.parametrize(
    ("state", "label"),
    [(State.RUNNING, "running: Bash 3m"), (State.QUIET, "quiet: Bash 3m"), (State.STALLED, "stalled? Bash, 3m")],
)
def test_an_open_call_is_the_result_of_a_running_run(state: State, label: str) -> None:
    now = 1_763_730_600.0
    last = LastEvent(Operation.EXECUTE_TOOL, "Bash", Status.RUNNING, "Bash", now - 200)
    run = make_summary(status=Status.RUNNING, prompt=ASKED, time_zone="UTC", last=last)
    rows = RunRows([run], now=now, state_of=lambda _: state)
    assert f"{label}  count the lines" in "".join(piece.text for piece in rows.line(0, 80))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("sqlite3.OperationalError: database is locked", "OperationalError: database is locked"),
        ("RuntimeError [HG_NODE_FAILED]: Node failed", "Node failed"),
        ("http.RuntimeError: 504 Gateway Timeout", "504 Gateway Timeout"),
        ("OSError: [Errno 28] No space left on device", "OSError: No space left on device"),
        ("Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'total'\n", "KeyError: 'total'"),
        ("RuntimeError", "RuntimeError"),
    ],
)
def test_the_deciding_words_of_an_error_come_first(error: str, reason: str) -> None:
    assert deciding_excerpt(error) == reason
