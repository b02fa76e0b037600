"""The parse ledger in words."""

from __future__ import annotations

import pytest

from tests.views.build import make_run
from tracetui.model import Ledger
from tracetui.views.detail.run import run_rows
from tracetui.views.glyphs import ASCII
from tracetui.views.labels import ledger_text, share


@pytest.mark.parametrize(
    ("ledger", "text"),
    [
        (Ledger(1000), "parsed 100 % of bytes"),
        (Ledger(), "coverage unknown"),
        (
            Ledger(1000, 8, (("gale", 2), ("mist", 1), ("rain", 4)), 1, ("2.1.197",)),
            "parsed 99.2 % of bytes · unknown kinds 3 (rain ×4, gale ×2, mist ×1) · torn lines 1"
            " · writer version 2.1.197",
        ),
        (
            Ledger(10_000_000, 1, (("a", 1), ("b", 1), ("c", 1), ("d", 9)), 0, ("1", "2", "3", "4", "5")),
            "parsed 99.9 % of bytes · unknown kinds 4 (d ×9, a ×1, b ×1 …) · writer versions 3, 4, 5 and 2 more",
        ),
    ],
)
def test_the_ledger_in_words(ledger: Ledger, text: str) -> None:
    assert ledger_text(ledger) == text


def test_narrow_ledgers_name_fewer_kinds_without_cutting() -> None:
    ledger = Ledger(1000, 8, (("gale", 2), ("mist", 1), ("rain", 4)), 1, ("1", "2", "3"))
    some = "unknown kinds 3 (rain ×4 …) · torn lines 1 · writer versions 3 and 2 more"
    assert ledger_text(ledger, width=106) == f"parsed 99.2 % of bytes · {some}"
    least = "parsed 99.2 % of bytes · unknown kinds 3 · torn lines 1 · 3 writer versions"
    assert ledger_text(ledger, width=80) == least
    assert ledger_text(ledger, width=1) == least.replace(" of bytes", "")


def test_names_of_kinds_and_versions_are_clean_and_short() -> None:
    hostile = "\x1b[31m" + "x" * 500
    text = ledger_text(Ledger(10, 1, ((hostile, 1),), 0, (hostile,)))
    assert "\x1b" not in text
    assert len(text) < 200
    assert ledger_text(Ledger(10, 1, (("gale", 2),)), glyphs=ASCII).isascii()


def test_only_a_complete_share_is_100_percent() -> None:
    assert [share(part) for part in (1, 0.99999, 0.5, 0)] == ["100 %", "99.9 %", "50.0 %", "0.0 %"]


def test_the_run_tab_shows_the_ledger() -> None:
    run = make_run([], size=1000, writer="2.1.197")
    rows = run_rows(run, width=60)
    lines = ["".join(piece.text for piece in rows.line(i, 60)) for i in range(len(rows))]
    at = next(i for i, line in enumerate(lines) if line.startswith("read "))
    assert "parsed 100 % of bytes · writer version" in lines[at]
    assert "2.1.197" in " ".join(lines[at : at + 2])


def test_unknown_fields_are_named_after_unknown_kinds() -> None:
    ledger = Ledger(1_000, 8, (("rain", 4),), fields=(("user.old", 2), ("user.newThing", 41)))
    text = "parsed 99.2 % of bytes · unknown kinds 1 (rain ×4) · unknown fields 2 (user.newThing ×41, user.old ×2)"
    assert ledger_text(ledger) == text
    assert ledger_text(ledger, width=80) == "parsed 99.2 % of bytes · unknown kinds 1 · unknown fields 2"
    assert ledger_text(ledger, width=90) == (
        "parsed 99.2 % · unknown kinds 1 (rain ×4) · unknown fields 2 (user.newThing ×41 …)"
    )
