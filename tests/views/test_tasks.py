"""The task matrix as rows: what fits a width, cells, column groups, totals."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.build import summary, trials_of
from tests.canaries import CANARY, SHAPED
from tests.hostile import ATTACKS
from tests.views.build import text_of_line
from tracetui.analysis.tasks import Group, Matrix, Result, Trial, arrange, matrix
from tracetui.model import RunSummary, Status, Usage
from tracetui.views.glyphs import ASCII
from tracetui.views.rows import width_of
from tracetui.views.tasks import TaskRows, labels_of, note_lines, notes, percent, trial_line, trial_sign


def rows_of(runs: list[RunSummary], **options: object) -> TaskRows:
    table = matrix(runs)
    return TaskRows(table, table.tasks, **options)  # type: ignore[arg-type]


def measured(task: str, passed: int, scored: int, **fields: str) -> list[RunSummary]:
    """Trials with tokens, cost and time."""
    usage = Usage(total_tokens=123_456, cost_usd=1234.5)
    return trials_of(task, passed, scored, usage=usage, duration_ms=61_000.0, steps=321, **fields)


MANY = [run for i in range(9) for run in measured(f"task-{i}-with-a-long-name", i, 8)]
MODELS = [run for model in ("oak", "elm", "ash") for run in measured("a", 2, 4, folder=f"{model}/", model=model)]
WIDE = measured("many", 50, 100) + trials_of("few", 1, 1, prompt="Prune the tree")


@pytest.mark.parametrize("runs", [MANY, MODELS, WIDE, trials_of("a", 1, 2), [summary("a", 0)]])
@given(width=st.integers(38, 240))
def test_lines_fit_and_numbers_are_never_cut(runs: list[RunSummary], width: int) -> None:
    rows = rows_of(runs)
    heads = rows.heading(width)
    lines = [rows.line(i, width) for i in range(len(rows))]
    assert all(width_of(line) <= width for line in (*heads, *lines))
    start = max(text_of_line(line).find(" ") for line in lines)
    for line in (heads[-1], *lines):
        assert not re.search(r"\d…|…\d", text_of_line(line)[max(start, 45) :])
    columns = text_of_line(heads[-2]).split()
    if any(run.outcome for run in runs):
        assert "pass^1" in columns
        assert all(re.search(r"\d%|—", text_of_line(line)) for line in lines)


def test_more_width_shows_more_columns() -> None:
    rows = rows_of(MANY)
    headings = [text_of_line(rows.heading(width)[-2]) for width in (50, 80, 120, 200)]
    assert "tokens" not in headings[0]
    assert "passed" in headings[1]
    assert "cost" in headings[2]
    assert "tokens min–max" in headings[3]
    assert [len(heading.split()) for heading in headings] == sorted(len(heading.split()) for heading in headings)


def test_columns_without_a_value_are_absent() -> None:
    heads = text_of_line(rows_of([run for i in range(3) for run in trials_of(f"t{i}", i, 2)]).heading(200)[-2])
    assert heads.split() == ["task", "1", "2", "pass^1", "passed", "pass^2"]
    unscored = text_of_line(rows_of([summary("a", i, duration_ms=5.0) for i in range(2)]).heading(200)[-2])
    assert unscored.split() == ["task", "1", "2", "time", "time", "min–max"]


def test_groups_without_a_scored_trial_have_no_rates() -> None:
    rows = rows_of([summary("a", 0, model="oak"), summary("a", 1, model="elm")])
    assert [text_of_line(line).split() for line in rows.heading(80)] == [
        ["elm", "oak"],
        ["task", "1", "1"],
        ["1", "task"],
    ]
    assert text_of_line(rows.line(0, 80)).split() == ["a", "—", "—"]


def test_totals_are_means_over_tasks_and_trials() -> None:
    rows = rows_of(trials_of("a", 1, 1, duration_ms=1_000.0) + trials_of("b", 0, 3, duration_ms=3_000.0))
    assert text_of_line(rows.heading(120)[-1]).split()[:7] == ["2", "tasks", "50%", "1/4", "0%", "0%", "2.5s"]


@pytest.mark.parametrize(
    ("trial", "sign"),
    [
        (Trial(summary("a", 0, passed=True), Result.PASSED), "✓"),
        (Trial(summary("a", 0, passed=True, status=Status.ERROR), Result.PASSED), "✓"),
        (Trial(summary("a", 0, passed=False), Result.FAILED), "⊗"),
        (Trial(summary("a", 0, passed=False, status=Status.ERROR), Result.FAILED), "✗"),
        (Trial(summary("a", 0), Result.UNSCORED), "—"),
        (Trial(summary("a", 0, status=Status.CANCELLED), Result.UNSCORED), "—"),
        (Trial(summary("a", 0, status=Status.RUNNING), Result.RUNNING), "◐"),
        (Trial(summary("a", 0, status=Status.PAUSED), Result.RUNNING), "‖"),
        (Trial(summary("a", 0, passed=True), Result.PASSED, "fork"), "↺"),
        (Trial(summary("a", 0, passed=True), Result.PASSED, "copy"), "="),
    ],
)
def test_every_result_has_a_sign(trial: Trial, sign: str) -> None:
    assert trial_sign(trial)[0] == sign
    assert trial_sign(trial, ASCII)[0].isascii()


def test_the_cell_cursor_is_marked_and_its_page_shown() -> None:
    cursor = [(0, 0)]
    rows = rows_of(WIDE, cursor=lambda: cursor[0])
    index = next(i for i, task in enumerate(rows.tasks) if task.name == "many")
    for column in range(100):
        cursor[0] = index, column
        line = rows.line(index, 60)
        assert [piece.text for piece in line if "reverse" in piece.style] == ["✓" if column < 50 else "⊗"]
        number = (column + 1) % 10
        heads, place = text_of_line(rows.heading(60)[-2]), text_of_line(line).index(text_of_line(line).strip()[0])
        assert str(number) in heads[place:]
    narrow = rows_of(trials_of("a", 1, 3), cursor=lambda: (0, 2))
    assert "[⊗]" in text_of_line(narrow.line(0, 80))


def test_groups_are_named_by_their_differences() -> None:
    def labels(*groups: Group) -> list[str]:
        return [*labels_of(groups).values()]

    assert labels(Group("x", "m"), Group("x", "n")) == ["m", "n"]
    assert labels(Group("x", "m"), Group("y", "m")) == ["x", "y"]
    assert labels(Group("x", "m"), Group("x", "n"), Group("y", "m")) == ["x m", "x n", "y m"]
    assert labels(Group("x", "m", "/a/old"), Group("x", "m", "/a/new")) == ["old", "new"]
    assert labels(Group("x", "m", "/a/runs"), Group("x", "m", "/b/runs")) == ["/a/runs", "/b/runs"]
    assert labels(Group("x", "m"), Group("x", None)) == ["m", "x"]
    assert labels(Group(None, None)) == ["—"]


def test_the_trial_line_shows_the_outcome() -> None:
    runs = measured("a", 1, 2, model="oak")
    (task,) = matrix(runs).tasks
    left, right = trial_line(task, task.trials[1], "oak", 120)
    assert text_of_line(left).startswith("trial 2 of 2  ⊗ wrong answer")
    assert text_of_line(right) == "oak · 123k tok · $1234.50 · 1m01s · 321 steps"
    assert trial_line(task, task.trials[1], "oak", 60)[1] == ()


def test_the_trial_line_ends_with_its_prompt_if_it_fits() -> None:
    prompt = "Swap the jacket of W-2081 for a larger one, please"
    runs = measured("a", 1, 2, model="oak", prompt=prompt)
    (task,) = matrix(runs).tasks
    assert text_of_line(trial_line(task, task.trials[1], "oak", 160)[0]).endswith(f"  {prompt}")
    left, right = trial_line(task, task.trials[1], "oak", 110)
    assert text_of_line(left).endswith("…")
    assert right
    assert len(text_of_line(left)) + len(text_of_line(right)) <= 106
    assert "Swap" not in text_of_line(trial_line(task, task.trials[1], "oak", 80)[0])


def test_first_inputs_are_complete_before_ranges_have_a_column() -> None:
    prompt = "Swap the jacket of W-2081 for a larger one, please"
    rows = rows_of(measured("a", 1, 2, model="oak", prompt=prompt))
    assert text_of_line(rows.line(0, 160)).endswith(f"  {prompt}")
    assert "min–max" not in text_of_line(rows.heading(120)[-2])
    assert "min–max" in text_of_line(rows.heading(190)[-2])


@pytest.mark.parametrize(("rate", "label"), [(0.0, "0%"), (0.001, "1%"), (0.999, "99%"), (1.0, "100%"), (None, "—")])
def test_only_all_is_all(rate: float | None, label: str) -> None:
    assert percent(rate) == label


def test_every_limit_of_the_rates_has_a_phrase() -> None:
    runs = [*trials_of("a", 1, 1), summary("b", 0), summary("b", 1, status=Status.RUNNING), summary(None, 0)]
    runs.append(summary("a", 1, replay_of=runs[0].id, relation="fork"))
    table = matrix(runs)
    assert notes(table, unreadable=2) == [
        "1 task with 1 scored trial: stability unknown",
        "3 trials not rated: 1 no outcome, 1 still running, 1 inherited or copied",
        "1 run without a task",
        "2 unreadable files; `tracetui doctor` lists them",
    ]
    assert all(width_of(line) <= 60 for line in note_lines(table, 2, 60))
    assert note_lines(Matrix((), table.rates, {}), 0, 60) != []


def test_decisive_forks_by_chance_are_a_sentence() -> None:
    lines = note_lines(matrix(measured("a", 4, 8)), 0, 120)
    assert [text_of_line(line) for line in lines] == ["Chance alone makes up to 0.05 forks of the run trees decisive"]


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_names_are_cleaned_and_secrets_masked(name: str) -> None:
    runs = trials_of(name, 1, 2, model=name, prompt=name) + trials_of("a", 1, 1, model="oak")
    rows = rows_of(runs)
    task = rows.tasks[0]
    lines = [*rows.heading(160), *(rows.line(i, 160) for i in range(2)), *trial_line(task, task.trials[0], name, 160)]
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", "".join(map(text_of_line, lines)))
    secret = rows_of(trials_of(f"use {SHAPED['github']}", 1, 2, prompt=SHAPED["github"]))
    assert CANARY not in "".join(text_of_line(line) for line in (*secret.heading(200), secret.line(0, 200)))


def test_rows_are_found_by_task() -> None:
    table = matrix(MANY)
    rows = TaskRows(table, arrange(table.tasks, "name"))
    assert [rows.index(rows.key(i)) for i in range(len(rows))] == [*range(len(rows))]
    assert rows.index("gone") is None
    assert {rows.mark(i) for i in range(len(rows))} == {"status.warn", "status.error", None}
    assert rows.plain(0) == "task-0-with-a-long-name  ⊗⊗⊗⊗⊗⊗⊗⊗  0%  0/8"
