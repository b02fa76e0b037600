"""Views and copies beside those of test_views.py show no secret, in a terminal or a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.canaries import CANARY
from tests.redact.test_views import cases, excerpt_of  # noqa: F401 - fixture
from tests.ui.conftest import Opener, opened, press, text_of, until  # noqa: F401 - fixture
from tracetui.redact import MASK
from tracetui.sources import local

COPIES = ("l", "p", "y", "c", "t", "f", "g", "r")
PAGES = ("K", "B", "question_mark", "ctrl+p", "H", "P", "L", "S")


@pytest.mark.parametrize("is_served", [False, True], ids=["terminal", "browser"])
@pytest.mark.parametrize("name", ["claude-code", "paprika"])
async def test_no_further_view_or_copy_has_a_secret(
    name: str,
    is_served: bool,
    cases: dict[str, Path],  # noqa: F811
    opened: Opener,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_served:
        monkeypatch.setattr(local, "_allowed", lambda: (str(cases[name]),))
    async with opened(cases[name], size=(160, 40)) as (app, pilot):
        copied: list[str] = []
        shown: dict[str, str] = {}
        """Text of all screens, by the key that opened them."""
        monkeypatch.setattr(app, "copy", copied.append)

        async def see(*keys: str) -> None:
            for key in keys:
                await press(pilot, key)
                shown[keys[0]] = shown.get(keys[0], "") + text_of(app)

        for ref in [*app.store.runs][:1]:
            app.main.enter(ref)
            await until(pilot, lambda: app.main.settled, what="the run")
            for _ in range(min(2, len(app.main.steps.rows))):
                for copy in COPIES:
                    await see("y", copy)
                app.main.steps.action_move(1)
            for page in PAGES:
                await see(page, "j")
                await press(pilot, "escape")
        leaks = [excerpt_of(text) for text in (*shown.values(), *copied) if CANARY in text]
        assert not leaks
        assert len(copied) > len(COPIES)
        assert any(MASK in text for text in shown.values())
