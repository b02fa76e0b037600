"""The queue of the triage as rows."""

from __future__ import annotations

import pytest

from tests.store.build import make_summary
from tracetui.analysis.triage import groups
from tracetui.model import FirstError, RunSummary, Status
from tracetui.store.judgement import Judgement
from tracetui.views.rows import Line, width_of
from tracetui.views.triage import QueueRows, heading

STARTED, NOW = 1_763_730_562.0, 1_763_734_162.0


def failed(own: str) -> RunSummary:
    error = FirstError("no answer", type="TimeoutError", name="search")
    return make_summary(own, status=Status.ERROR, first_error=error, started_at=STARTED, duration_ms=34_700.0)


def words(line: Line) -> str:
    return "".join(piece.text for piece in line)


@pytest.mark.parametrize("width", [40, 61, 79])
def test_numbers_of_causes_and_of_runs_stand_under_their_headings(width: int) -> None:
    runs = {run.ref: run for run in map(failed, "ab")}
    (group,) = groups(runs.values())
    rows = QueueRows([group], runs, lambda _: Judgement(), unfolded={group.digest}, now=NOW)
    head, signature, run = heading(width), rows.line(0, width), rows.line(1, width)
    assert {width_of(line) for line in (head, signature, run)} == {width}
    ends = {name: words(head).index(name) + len(name) for name in ("runs", "lost", "last")}
    assert words(signature)[: ends["runs"]].endswith(" 2")
    assert words(signature)[: ends["lost"]].endswith(" 1m09s")
    assert words(run)[: ends["lost"]].endswith(" 34.7s")
    assert [words(line)[: ends["last"]].split()[-1] for line in (signature, run)] == ["1h", "1h"]
