"""The queue of the triage as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import SupportsIndex, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.store.build import make_summary
from tests.views.build import text_of_line
from tracetui.analysis.triage import CauseOrder, Group, Task, groups
from tracetui.model import FirstError, Outcome, RunRef, RunSummary, Score, Status
from tracetui.store.judgement import Judgement
from tracetui.views.rows import width_of
from tracetui.views.triage import Details, Member, QueueRows, Sections, TaskRow, cause_rows, details_heading, heading

STARTED, NOW = 1_763_730_562.0, 1_763_734_162.0


def failed(own: str) -> RunSummary:
    error = FirstError("no answer", type="TimeoutError", name="search")
    return make_summary(own, status=Status.ERROR, first_error=error, started_at=STARTED, duration_ms=34_700.0)


def test_sparklines_of_second_rows_stand_under_their_period() -> None:
    runs = [replace(failed(own), started_at=STARTED + hours * 3600) for own, hours in (("a", 0), ("b", 5))]
    order = CauseOrder(groups(runs))
    rows = QueueRows(order, {run.ref: run for run in runs}, lambda _: Judgement(), details=1, width=60, now=NOW)
    head, second = details_heading(60, order), text_of_line(rows.line(1, 60))
    assert width_of(head) == 60
    assert text_of_line(head).index("over 5h") == second.rstrip().rindex(" ") + 1
    assert details_heading(120, order) == (), "a wide row has its sparkline beside the title"


@pytest.mark.parametrize("width", [40, 61, 79, 120])
def test_numbers_of_causes_and_of_runs_stand_under_their_headings(width: int) -> None:
    runs = {run.ref: run for run in map(failed, "ab")}
    (group,) = groups(runs.values())
    rows = QueueRows(CauseOrder([group]), runs, lambda _: Judgement(), unfolded={group.digest}, now=NOW)
    head, signature, run = heading(width, CauseOrder([group])), rows.line(0, width), rows.line(1, width)
    assert {width_of(line) for line in (head, signature, run)} == {width}
    ends = {name: text_of_line(head).index(name) + len(name) for name in ("runs", "lost", "last")}
    assert text_of_line(signature)[: ends["runs"]].endswith(" 2")
    assert text_of_line(signature)[: ends["lost"]].endswith(" 1m09s")
    assert text_of_line(run)[: ends["lost"]].endswith(" 34.7s")
    assert [text_of_line(line)[: ends["last"]].split()[-1] for line in (signature, run)] == ["1h", "1h"]


@given(st.integers(0, 12), st.dictionaries(st.integers(0, 11), st.integers(0, 5)))
def test_sections_are_the_list_of_their_rows(count: int, below: dict[int, int]) -> None:
    below = {number: rows for number, rows in below.items() if number < count}
    rows = [(number, row) for number in range(count) for row in range(below.get(number, 0) + 1)]
    sections = Sections(count, below)

    assert len(sections) == len(rows)
    assert [sections.find(row) for row in range(len(rows))] == rows
    assert [sections.row(number) for number in range(count)] == [rows.index((number, 0)) for number in range(count)]


def wrong(own: str, task: str) -> RunSummary:
    score = (Score("reward", 0.0, False),)
    return make_summary(own, status=Status.OK, outcome=Outcome.FAILED, scores=score, task=task, started_at=STARTED)


@pytest.mark.parametrize("details", [0, 1, 2])
def test_rows_below_causes_and_tasks_are_found_by_their_keys(details: int) -> None:
    listed = [failed("a"), failed("b"), wrong("c", "x"), wrong("d", "x"), wrong("e", "y")]
    runs = {run.ref: run for run in listed}
    error, answers = sorted(groups(listed), key=lambda group: len(group.tasks))
    x, y = answers.tasks
    order = CauseOrder([("errors", 1), error, ("wrong answers", 1), answers])
    unfolded = {error.digest, answers.digest, x.digest}
    rows = QueueRows(order, runs, lambda _: Judgement(), unfolded=unfolded, details=details, now=NOW)

    below = [*(Member(answers, ref, x) for ref in x.runs)]
    expected = [
        ("errors", 1), error, Details(error), *(Member(error, ref) for ref in error.runs),
        ("wrong answers", 1), answers, Details(answers), TaskRow(answers, x), *below, TaskRow(answers, y),
    ]  # fmt: skip
    items = [item for item in expected if not isinstance(item, Details) or item.group in (error, answers)[:details]]
    assert len(rows) == len(items)
    for index, item in enumerate(items):
        owner = index - isinstance(item, Details)
        assert rows.item(index) == (
            item.group if isinstance(item, Details) else item if rows.selectable(index) else None
        )
        assert rows.index(rows.key(index)) == index
        assert rows.owner(index) == owner
    assert rows.index(RunRef("any", "elsewhere.json")) is None


class Counted(list[Group | tuple[str, int]]):
    """Counts how often an item is read."""

    reads = 0

    def __iter__(self) -> Iterator[Group | tuple[str, int]]:
        self.reads += len(self)
        return super().__iter__()

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> Group | tuple[str, int]: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[Group | tuple[str, int]]: ...
    def __getitem__(self, key: SupportsIndex | slice, /) -> object:
        self.reads += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("count", [50, 1_000])
def test_a_page_of_the_queue_costs_the_same_for_any_number_of_causes(count: int) -> None:
    """Verdicts and folds make the rows again with every key."""
    page, judgments = 20, 0

    def judge(what: Group | Task | RunRef) -> Judgement:
        nonlocal judgments
        judgments += 1
        return Judgement()

    runs = [failed(str(number)) for number in range(count)]
    for number, run in enumerate(runs):
        kind = "".join(chr(ord("a") + int(digit)) for digit in str(number))
        assert run.first_error is not None
        runs[number] = run.replace(first_error=replace(run.first_error, type="ValueError", message=f"no {kind}x"))
    order = CauseOrder(groups(runs))
    order.items = items = Counted(order.items)
    rows = QueueRows(order, {run.ref: run for run in runs}, judge, unfolded={order.groups[3].digest}, now=NOW)
    lines = [rows.line(index, 80) for index in range(page)]

    assert len(order.groups) == count
    assert rows.index(order.groups[40].digest) == 41
    assert len(lines) == page
    assert items.reads <= 2 * page
    assert judgments <= 2 * page


@pytest.mark.parametrize(
    ("duration_ms", "line"),
    [(34_700.0, "1 run of researcher   time lost 34.7s"), (None, "1 run of researcher")],
)
def test_a_cause_shows_recorded_time_lost_only(duration_ms: float | None, line: str) -> None:
    (group,) = groups([replace(failed("a"), duration_ms=duration_ms)])
    rows = cause_rows(group, None, Judgement(), None, width=80, now=NOW)
    assert line in [text_of_line(rows.line(i, 80)).strip() for i in range(len(rows))]


@pytest.mark.parametrize(
    ("message", "beginning"),
    [
        ("Command 'make test' returned non-zero exit status 2.", "make test · exit 2"),
        ("Command 'make lint' returned non-zero exit status 2.", "make lint · exit 2"),
        ("[Errno 28] No space left on device", "No space left on device"),
    ],
)
def test_a_row_begins_with_the_distinctive_part_of_its_cause(message: str, beginning: str) -> None:
    run = make_summary("a", status=Status.ERROR, first_error=FirstError(message, name="run"))
    rows = QueueRows(CauseOrder(groups([run])), {run.ref: run}, lambda _: Judgement(), now=NOW)
    assert f" {beginning} " in text_of_line(rows.line(0, 80))


def test_a_long_title_continues_in_the_second_row_before_what_is_said_of_the_cause() -> None:
    error = FirstError("expected 41 rows, got 42 in the table of invoices", type="AssertionError", name="run_tests")
    run = make_summary("a", status=Status.ERROR, first_error=error, started_at=STARTED)
    rows = QueueRows(CauseOrder(groups([run])), {run.ref: run}, lambda _: Judgement(), details=1, width=58, now=NOW)
    first, second = (text_of_line(rows.line(index, 58)) for index in range(2))
    assert "AssertionError expected <n> rows," in first
    assert "…" not in first + second
    assert second.startswith("    got <n> in the table of")
    assert "  new " in second


def test_a_cause_has_no_second_row_that_only_says_new() -> None:
    run = failed("a")
    rows = QueueRows(CauseOrder(groups([run])), {run.ref: run}, lambda _: Judgement(), details=1, width=58, now=NOW)
    assert len(rows) == 1
    assert "TimeoutError no answer  new  " in text_of_line(rows.line(0, 58))


def test_runs_of_one_moment_have_one_date() -> None:
    (group,) = groups([failed("a"), failed("b")])
    rows = cause_rows(group, None, Judgement(), None, width=56, now=NOW)
    assert "new  at 13:09:22Z" in [text_of_line(rows.line(row, 56)) for row in range(len(rows))]
