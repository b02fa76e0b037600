"""What something cost: as the trace says, else estimated and said to be."""

from __future__ import annotations

import pytest

from tests.views.build import make_run, texts
from tracetui.analysis import prices
from tracetui.analysis.assessment import Assessment, assess
from tracetui.analysis.statistics import By, Statistics, estimate_of
from tracetui.model import Operation, Run, Span, Usage
from tracetui.views.detail.tabs import tab_rows
from tracetui.views.list.tables import StatisticRows
from tracetui.views.timeline import header

MODEL = "claude-sonnet-4-5"
USED = Usage(input_tokens=100_000, output_tokens=10_000)
ORIGIN = f"estimated by {prices.origin()}"


def run_of(*spans: Span) -> Run:
    return make_run(list(spans), model=MODEL)


def call(ident: str, model: str = MODEL, usage: Usage = USED) -> Span:
    return Span(id=ident, name="call", operation=Operation.CHAT, model=model, usage=usage)


def assessed(run: Run) -> Assessment:
    return assess(run, run.load)


def tab_text(run: Run, tab: str, assessment: Assessment | None) -> str:
    span = run.spans[0]
    return "\n".join(texts(tab_rows(run, span, run.load(span), tab, width=120, assessment=assessment)))


def above(run: Run, assessment: Assessment | None) -> str:
    return "".join(piece.text for line in header.run_heading(run, 100, assessment=assessment) for piece in line)


def test_an_estimate_is_marked_with_its_source() -> None:
    run = run_of(call("a"), call("b", "claude-haiku-4-5"), call("c", "home-made \x1b[31m"))
    assessment = assessed(run)
    assert f"~$0.60  {ORIGIN}, models claude-haiku-4-5, {MODEL}" in tab_text(run, "run", assessment)
    assert "excludes home-made ␛[31m (no known price)" in tab_text(run, "run", assessment)
    assert f"~$0.45  {ORIGIN}, model {MODEL}" in tab_text(run, "overview", assessment)
    assert "~$0.60" in above(run, assessment)


def test_nothing_is_estimated_before_the_run_was_assessed() -> None:
    run = run_of(call("a"))
    for text in (tab_text(run, "run", None), tab_text(run, "overview", None), above(run, None)):
        assert "$" not in text


def test_a_recorded_cost_is_shown_unmarked() -> None:
    run = run_of(call("a", usage=Usage(100_000, 10_000, cost_usd=0.01)))
    for text in (
        tab_text(run, "run", assessed(run)),
        tab_text(run, "overview", assessed(run)),
        above(run, assessed(run)),
    ):
        assert "$0.01" in text
        assert "~" not in text


def test_an_unpriced_model_has_an_unknown_cost() -> None:
    run = run_of(call("a", "home-made"))
    assert estimate_of(run) is None
    assert "cost     —" in tab_text(run, "run", assessed(run))
    assert "cost     —" in tab_text(run, "overview", assessed(run))


def test_a_missing_price_library_shows_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(call("a"))
    monkeypatch.setattr(prices, "installed", lambda: False)
    assert f"cost     —  pip install '{prices.EXTRA}' to estimate it" in tab_text(run, "run", assessed(run))
    assert "pip" not in tab_text(run, "run", None)
    assert "pip" not in tab_text(run_of(Span(id="a", name="x")), "run", assessed(run_of(Span(id="a", name="x"))))
    monkeypatch.setenv(prices.SWITCH, "off")
    assert "pip" not in tab_text(run, "run", assessed(run))


def test_statistics_mark_partly_estimated_costs() -> None:
    counted = Statistics(By.MODEL)
    counted.add(
        run_of(call("a"), call("b", usage=Usage(1, 1, cost_usd=0.05)), call("c", "told", Usage(1, 1, cost_usd=2.0)))
    )
    rows = texts(StatisticRows(counted.rows()), width=100)
    assert [row.split()[-3] for row in rows] == ["~$0.50", "$2.00"]
