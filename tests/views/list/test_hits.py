"""Rows of search hits."""

from __future__ import annotations

from tracetui.analysis.effects.actions import Action
from tracetui.analysis.search import Hit, Kind
from tracetui.model import Operation, RunRef, Span, Status
from tracetui.text import Clean
from tracetui.views.labels import Standing
from tracetui.views.list.tables import HitRows


def test_a_step_is_shown_once_as_the_story_has_it() -> None:
    span = Span("s1", "Edit", Operation.EXECUTE_TOOL, status=Status.OK)
    action = Action("edited", "parser.py", added=14, removed=5)
    hits = [
        Hit(RunRef("pi", "a"), "s1", 2, "Edit", (span, action), Kind.OUTPUT, ("output",), line, "the ", "lexer", "")
        for line in (1, 2)
    ]
    standing = Standing(Status.OK, Clean("+"), "sec", Clean("ok"), by_last_event=False, basis=Clean(""))
    rows = HitRows(lambda ref: None, standing=lambda run, glyphs: standing)
    rows.extend(hits)
    first, second = ("".join(piece.text for piece in rows.line(row, 100)) for row in (1, 2))
    assert "2 ■ edited parser.py +14 −5 " in first
    assert "edited" not in second
    assert first.index("output") == second.index("output")
    assert "edited parser.py" in rows.plain(2)
