"""The replays of a run as rows; and that the list tells a replay also where there is room for little more."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.build import HOSTILE, check_line, check_rows, text_of_line, texts
from tracetui.model import FirstError, RunRef, RunSummary, Status
from tracetui.text import Clean
from tracetui.views.diff.steps import ReplayRows
from tracetui.views.glyphs import UNICODE
from tracetui.views.list.result import result_phrase


class Result(NamedTuple):
    same: bool
    label: Clean = Clean("step 4 search · input≠ args.query")


ORIGINAL = RunSummary.of(
    ref=RunRef("any", "a"), id="rag-1", name="rag", status=Status.OK, steps=3, duration_ms=62.0, deep=True
)


def replay(ident: str, **more: object) -> RunSummary:
    return ORIGINAL.replace(ref=RunRef("any", ident), id=ident, replay_of="rag-1", relation="fork", **more)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_original_shares_the_columns_of_its_replays(width: int) -> None:
    runs = [replay("rag-1-fork"), replay("rag-1-fork-ee8223", status=Status.ERROR), replay("new")]
    results = {runs[0].ref: Result(False), runs[1].ref: Result(True)}
    rows = ReplayRows(runs, results, lambda ref: "fork")
    check_rows(rows, width)
    names, original = (text_of_line(line) for line in rows.heading(ORIGINAL, width))
    drawn = texts(rows, width)

    assert names.split() == ["run", "is", "a", "steps", "time", "vs.", "original"]
    for line in (original, *drawn):
        assert line[names.index("steps") + 4] == "3"
        assert line[names.index("time") : names.index("time") + 4] == "62ms"
    assert "compared with the others" in original
    at = names.index("vs.")
    assert [line[at] for line in drawn] == ["≠", "=", "·"]


@given(HOSTILE, HOSTILE, st.integers(24, 200))
def test_no_name_breaks_the_heading(ident: str, name: str, width: int) -> None:
    run = ORIGINAL.replace(id=ident, name=name)
    for line in ReplayRows([], {}, lambda ref: None).heading(run, width):
        check_line(line, width)


def test_the_replay_sign_comes_before_the_error() -> None:
    failed = replay("b", status=Status.ERROR, first_error=FirstError("no such thing, and more of it", "KeyError"))

    assert text_of_line(result_phrase(failed)) == f"{UNICODE.replay} KeyError: no such thing, and more of it rag-1 fork"
    assert text_of_line(result_phrase(replay("c"))) == f"{UNICODE.replay} rag-1 fork"
    assert not text_of_line(result_phrase(failed.replace(relation=None))).startswith(UNICODE.replay)
