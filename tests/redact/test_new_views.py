"""Views, copies and pages beside those of test_views.py show no secret, in a terminal or a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.test_diff_description import model_call, phrases
from tests.canaries import CANARY
from tests.cli.run import Cli
from tests.desk import Call, write_trial
from tests.export.test_document import cli  # noqa: F401 - fixture
from tests.export.test_story import page
from tests.redact.test_reach import runs_in
from tests.redact.test_views import TEXTS, cases, excerpt_of  # noqa: F401 - fixture
from tests.ui.conftest import Opener, opened, press, text_of, until  # noqa: F401 - fixture
from tracetui import masking
from tracetui.analysis.links import links_of
from tracetui.live.load import read_run
from tracetui.model import Body
from tracetui.model.masked import masked_bodies, masked_body
from tracetui.redact import MASK, Redactor
from tracetui.sources import local
from tracetui.sources.local import LocalSource
from tracetui.views.links import link_text

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
        texts: dict[str, str] = {}
        """Text of all screens, by the key that opened them."""
        monkeypatch.setattr(app, "copy", copied.append)

        async def see(*keys: str) -> None:
            for key in keys:
                await press(pilot, key)
                texts[keys[0]] = texts.get(keys[0], "") + text_of(app)

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
        leaks = [excerpt_of(text) for text in (*texts.values(), *copied) if CANARY in text]
        assert not leaks
        assert len(copied) > len(COPIES)
        assert any(MASK in text for text in texts.values())


@pytest.mark.parametrize("text", TEXTS)
def test_no_story_of_a_session_has_a_secret(text: str) -> None:
    html = page(text, e=Body(input={"file_path": text, "old_string": text, "new_string": f"{text} again"}, output=text))
    assert CANARY not in html
    assert MASK in html


@pytest.mark.parametrize("text", TEXTS)
def test_no_description_of_a_comparison_has_a_secret(text: str) -> None:
    """The secrets differ, so that the description is about them."""
    first, other = text, text.replace(CANARY, CANARY + "z")
    redactor = masking.comparing()
    assert redactor is not None
    for a, b in (
        (model_call(first), model_call(other)),
        (Body(input={"command": first}), Body(input={"command": other})),
        (Body(output=first), Body(output=other)),
        (Body(output={"text": first}), Body(output={"text": other})),
    ):
        described = phrases(masked_body(a, redactor), masked_body(b, redactor))
        assert described
        assert CANARY not in str(described)


def test_no_link_has_a_secret(tmp_path: Path, cli: Cli) -> None:  # noqa: F811
    calls: list[Call] = []
    for number, text in enumerate(TEXTS[::2]):
        value = {"text": text, "password": f"{CANARY}a1", "id": f"K-241{number}"}
        calls += [("update_key", value, text), ("update_key", value, f"Error: {text} of K-241{number} is in use")]
    run = str(write_trial(tmp_path, "t__0", calls, passed=False))
    exact, *masked_texts = (
        cli("show", address, *options).text
        for address, options in (
            (f"{run}/links", ["--json"]),
            (f"{run}/links", ["--json", "--redact"]),
            (f"{run}/3.1", ["--origin", "K-2410"]),
            (f"{run}/3.1", ["--origin", "K-2410", "--json", "--redact"]),
        )
    )
    assert CANARY in exact
    assert not [excerpt_of(text) for text in masked_texts if CANARY in text]
    trial = masked_bodies(read_run(LocalSource(), runs_in(tmp_path)[0].ref), Redactor())  # as the app opens it
    links = links_of(trial)
    assert links
    for link in links:
        assert CANARY not in link_text(trial, link, link.source.span)
