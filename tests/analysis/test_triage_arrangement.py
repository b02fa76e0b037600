"""Causes, sorted, grouped and filtered."""

from __future__ import annotations

from msgspec.structs import replace

from tests.store.build import make_summary
from tracetui.analysis.arrangement import Arrangement
from tracetui.analysis.triage import CAUSE_CHOICES, CAUSES, NEW_SECONDS, Group, arrange_causes, groups
from tracetui.model import FirstError, Operation, Outcome, RunRef, RunSummary, Score, Status, Usage

NOW = 1_763_734_162.0
DAY = 86_400.0


def failed(kind: str, ago: float | None = 0.0, ms: float = 1.0, tokens: int = 0, **fields: object) -> RunSummary:
    """A run that failed that many seconds before `NOW`."""
    error = FirstError("text", type=kind, name="search", operation=Operation.EXECUTE_TOOL)
    started = None if ago is None else NOW - ago
    run = make_summary(f"{kind}{ago}", status=Status.ERROR, first_error=error, started_at=started, time_zone="UTC")
    return run.replace(duration_ms=ms, usage=Usage(tokens, 0), agent=f"{kind}-agent", **fields)


RUNS = [
    failed("A", 3 * DAY, ms=10.0),
    failed("A", 60.0, ms=10.0),
    failed("B", 3600.0, ms=5.0, tokens=100),
    failed("C", None, ms=1.0, tokens=50, ref=RunRef("other", "/c.json")),
]
WRONG = make_summary("w", started_at=NOW - 2 * DAY, time_zone="UTC").replace(
    outcome=Outcome.FAILED,
    scores=(Score("reward", 0.0, False),),
)


def causes_and_headings(arrangement: Arrangement, runs: list[RunSummary] = RUNS) -> list[str]:
    """Error types of the causes, and headings with their numbers."""
    verdicts = {"B": "known"}
    items = arrange_causes(
        groups(runs), arrangement, now=NOW, verdict_of=lambda group: verdicts.get(group.texts.type.exact)
    )
    return [item.texts.type.exact if isinstance(item, Group) else f"{item[0]} {item[1]}" for item in items]


def test_every_sort_order_and_its_reverse() -> None:
    orders = {
        name: "".join(causes_and_headings(replace(CAUSES, sort=name))) for name in CAUSE_CHOICES.sorts if name != "id"
    }
    assert orders == {
        "lost": "ABC",
        "runs": "ABC",
        "newest": "ABC",
        "first seen": "BAC",
        "tokens": "BCA",
        "name": "ABC",
    }
    assert "".join(causes_and_headings(replace(CAUSES, sort="first seen", reverse=True))) == "CAB"
    by_id = arrange_causes(groups(RUNS), replace(CAUSES, sort="id"), now=NOW, verdict_of=str)
    digests = [group.digest for group in by_id]  # type: ignore[union-attr]
    assert digests == sorted(digests)


def test_every_group() -> None:
    both = [*RUNS, WRONG]
    assert causes_and_headings(replace(CAUSES, group="kind"), both) == [
        "errors in execute_tool 3", "A", "B", "C", "wrong answers 1", "reward",
    ]  # fmt: skip
    assert causes_and_headings(replace(CAUSES, group="agent"))[::2] == ["A-agent 1", "B-agent 1", "C-agent 1"]
    assert causes_and_headings(replace(CAUSES, group="verdict")) == ["to review 2", "A", "C", "known 1", "B"]
    assert causes_and_headings(replace(CAUSES, group="format"))[-2:] == ["other 1", "C"]
    days = causes_and_headings(replace(CAUSES, group="day"))
    assert days[0].startswith("first seen 2025-")
    assert days[-2:] == ["first seen unknown 1", "C"]


def test_a_cause_is_new_for_a_day_after_its_first_run() -> None:
    assert causes_and_headings(replace(CAUSES, new=True)) == ["B"]
    (group,) = groups([failed("A", 100.0), failed("A", 50.0)])
    assert group.starts == (NOW - 100.0, NOW - 50.0)
    assert group.is_new(group.starts[0] + NEW_SECONDS)
    assert not group.is_new(group.starts[0] + NEW_SECONDS + 1)
    (undated,) = groups([failed("C", None)])
    assert not undated.is_new(NOW)
