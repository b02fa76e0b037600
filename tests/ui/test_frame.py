"""Pane titles, and the parts of the header that fit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.sessions import ANSWER, session
from tests.store.build import make_summary
from tracetui.analysis.liveness import State, summary_state
from tracetui.formats.claude_code import ClaudeCode
from tracetui.live.mailbox import WatchState
from tracetui.model import Problem, Run, RunRef, Status, StatusSource
from tracetui.store.store import Store
from tracetui.testing import read_run
from tracetui.text import Clean
from tracetui.ui.commands import COMMANDS, RUNS, STEPS
from tracetui.ui.widgets.frame import Vitals, _fitting, _Part, footer, header, sentence
from tracetui.ui.widgets.line_view import title_line
from tracetui.ui.widgets.lines import named_keys
from tracetui.views.detail.run import run_rows
from tracetui.views.glyphs import ASCII, UNICODE, Glyphs
from tracetui.views.labels import standing_of
from tracetui.views.rows import Piece, width_of
from tracetui.views.timeline.header import ending, run_heading


def plain(line: tuple[Piece, ...]) -> str:
    return "".join(piece.text for piece in line)


def test_the_least_important_part_of_the_header_is_dropped_first() -> None:
    parts = [
        _Part((Piece(Clean(text)),), drop) for text, drop in (("61 runs", 0), (" + 9 child", 3), (" 17 folders", 6))
    ]
    assert [plain(_fitting(parts, room)) for room in (40, 20, 10, 2)] == [
        "61 runs + 9 child 17 folders",
        "61 runs + 9 child",
        "61 runs",
        "61 runs",
    ]


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize("width", range(60, 140, 4))
def test_no_hint_of_the_footer_is_cut(width: int, glyphs: Glyphs) -> None:
    left, right = footer(COMMANDS, RUNS, width, 0, hidden=4, glyphs=glyphs)
    assert width_of(named_keys(left) if glyphs is ASCII else left) <= width - width_of(right) - 3


def test_the_footer_names_one_key_that_goes_back() -> None:
    def hints(pane: str, level: int) -> str:
        return plain(footer([c for c in COMMANDS if c.id in ("back", "quit")], pane, 120, level)[0])

    assert hints(RUNS, 0) == "q quit  "
    assert hints(STEPS, 1) == "Esc back  "


def test_a_title_is_not_cut_to_a_few_letters() -> None:
    title, tabs = (Piece(Clean("step 11 search")),), (Piece(Clean("error  input  attributes")),)
    for width in (44, 70):
        line = title_line(3, "Detail", title, tabs, width=width, focused=False, glyphs=UNICODE)
        assert ("step 11 search" in plain(line)) is (width == 70)
        assert "…" not in plain(line)
        assert width_of(line) == width


def test_the_header_begins_with_a_number_where_no_run_is_read() -> None:
    store = Store()
    store.problems = {"/d.db": (Problem("/d.db", "byte 0", "not a SQLite database"),)}
    vitals = Vitals(WatchState(), Counter(), State.UNKNOWN)
    _, right = header(("/traces",), store, UNICODE, vitals, None, 200)
    assert plain(right).startswith("0 runs")
    assert "unreadable" not in plain(right)
    assert "1 file unreadable" in plain(sentence(store, Settled(), vitals, None, OpenedSteps(), None, 200))


NOW = 1_800_000_000.0


class Settled(NamedTuple):
    stage: str = ""
    seen: int = 0
    total: int = 0


class OpenedSteps(NamedTuple):
    run: Run | None = None
    assessment: None = None


def test_a_run_without_texts_has_its_status_once() -> None:
    run = make_summary(prompt=None, status=Status.OK, status_source=StatusSource.DERIVED, steps=500)
    vitals = Vitals(WatchState(), Counter(), State.ENDED)
    text = plain(sentence(Store(), Settled(), vitals, run, OpenedSteps(), None, 160))
    assert text.strip() == "status ok (inferred)  ·  500 steps"


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize("ago", [60, 9 * 3600])
def test_a_session_without_a_recorded_end_has_its_state_only(ago: float, glyphs: Glyphs, tmp_path: Path) -> None:
    path = session("s", ANSWER).write(tmp_path, NOW, ago)
    run = read_run(ClaudeCode(), RunRef("claude-code", str(path)))
    summary = run.summary
    assert summary.status is Status.UNKNOWN
    state, _ = summary_state(summary, now=NOW, changed_at=summary.modified_at)
    status = standing_of(summary, state, NOW, glyphs)
    rows = run_rows(run, width=80, glyphs=glyphs, standing=status)
    vitals = Vitals(WatchState(), Counter(), state, NOW)
    texts = [rows.plain(row) for row in range(len(rows))]
    texts.append(plain(sentence(Store(), Settled(), vitals, summary, OpenedSteps(run), None, 160)))
    texts += map(plain, run_heading(run, 160, now=NOW, glyphs=glyphs, state=state))
    assert any(status.short_label in text for text in texts)
    assert not any("unknown" in text or "no end record" in text for text in texts)
    assert ending(run) == ()
