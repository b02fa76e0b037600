"""What is taken along, by keys on the built-in samples: exports, code for the clipboard, one masked value."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from tests.ui.conftest import Opener, line, press, text_of, until
from tracetui.redact import MASK
from tracetui.ui.app import TraceApp

RESEARCHER = "paprika/0690e0f0*.json"
"""Failed in a search that was given an API key."""


def secret_of(path: Path) -> str:
    """The API key in that run."""
    args = json.loads(path.read_text())["steps"][-1]["args"]
    return str(args["api_key"])


async def export_to(pilot: Pilot[int], path: str) -> None:
    """Press x, and answer with a path."""
    await press(pilot, "x", "ctrl+u")
    for character in path:
        pilot.app.post_message(events.Key(character, character))  # settling after each would take seconds
    await press(pilot, "enter")


async def wait_for_message(app: TraceApp, pilot: Pilot[int], text: str) -> None:
    """Wait until the message line says so."""
    await until(pilot, lambda: text in line(app, 1), what=f"{text!r} on {line(app, 1)!r}")


@pytest.mark.parametrize("form", ["md", "html", "json"])
async def test_a_run_is_written_without_its_secrets(opened: Opener, samples: Path, tmp_path: Path, form: str) -> None:
    (path,) = samples.glob(RESEARCHER)
    written = tmp_path / f"run.{form}"
    async with opened(path, size=(200, 40)) as (app, pilot):
        await export_to(pilot, str(written))
        await wait_for_message(app, pilot, "readable by you only; secrets masked")

    text = written.read_text()
    assert secret_of(path) in path.read_text()
    assert secret_of(path) not in text
    assert "timed out after 30s" in text
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    if form == "json":
        assert sum(json.loads(text)["masked"].values()) > 0


async def test_the_prompt_is_complete_on_a_narrow_screen(opened: Opener, samples: Path) -> None:
    (path,) = samples.glob(RESEARCHER)
    async with opened(path, size=(80, 24)) as (app, pilot):
        await press(pilot, "x")
        assert line(app, 1).startswith(" export this run to:   researcher-0690e0f0")
        assert line(app, 23).startswith(" .md, .html or .json; secrets masked ")


async def test_the_whole_triage_is_written(opened: Opener, samples: Path, tmp_path: Path) -> None:
    written = tmp_path / "triage.json"
    async with opened(samples, size=(200, 40)) as (app, pilot):
        await press(pilot, "T", "v", "k")
        await export_to(pilot, str(written))
        await wait_for_message(app, pilot, "wrote")

    data = json.loads(written.read_text())
    assert data["schema"] == "tracetui/triage/1"
    assert [cause["verdict"] for cause in data["causes"]].count("known") == 1
    assert any(cause["contrast"] for cause in data["causes"])
    assert data["next"].startswith("tracetui show ")


async def test_a_failed_export_is_reported_and_leaves_no_file(opened: Opener, samples: Path, tmp_path: Path) -> None:
    there = tmp_path / "there.md"
    there.write_text("mine")
    before = sorted(samples.rglob("*"))
    async with opened(samples, size=(200, 40)) as (app, pilot):
        for path, message in (
            (there, f"{there} already exists; choose another name"),
            (samples / "new.md", "contains traces and is never written to"),
            (tmp_path / "no" / "new.md", "can't be written: No such file or directory"),
            (tmp_path, f"{tmp_path} is a directory; name a file in it"),
        ):
            await export_to(pilot, str(path))
            await wait_for_message(app, pilot, message)
            assert "--force" not in line(app, 1)
        await press(pilot, "x")
        assert line(app, 1).split()[-1] == str(tmp_path)
        await press(pilot, "escape")

    assert there.read_text() == "mine"
    assert sorted(samples.rglob("*")) == before
    assert list(tmp_path.iterdir()) == [there]


@pytest.mark.parametrize(
    ("sample", "moves", "form", "fragments"),
    [
        (RESEARCHER, ["[", "m"], "c", ["curl https://api.openai.com/", "$API_KEY", '"model": "gpt-4o"']),
        (RESEARCHER, [], "f", ['"operation": "execute_tool"', '"query": "KfW 442 budget"']),
        (RESEARCHER, [], "t", ["def test_", "json.loads("]),
        ("graphs/workflows.db", [], "g", ["get_checkpoint(", "superstep="]),
    ],
    ids=["curl", "fixture", "test", "fork"],
)
async def test_a_step_is_copied_as_code(
    opened: Opener,
    samples: Path,
    monkeypatch: pytest.MonkeyPatch,
    sample: str,
    moves: list[str],
    form: str,
    fragments: list[str],
) -> None:
    (path,) = samples.glob(sample)
    copied: list[str] = []

    def copy(self: TraceApp, text: str) -> int:
        copied.append(text)
        return len(text)

    monkeypatch.setattr(TraceApp, "copy", copy)
    async with opened(path) as (_app, pilot):
        await press(pilot, "enter", *moves, "y", form)
        await until(pilot, lambda: bool(copied), what="something copied")

    assert [fragment for fragment in fragments if fragment not in copied[0]] == []
    assert copied[0].isascii()
    if sample == RESEARCHER:
        assert secret_of(path) not in copied[0]


async def test_only_a_model_call_can_be_copied_as_curl(opened: Opener, samples: Path) -> None:
    (path,) = samples.glob(RESEARCHER)
    async with opened(path) as (app, pilot):
        await press(pilot, "enter", "y", "c")
        await wait_for_message(app, pilot, "curl works on model calls only")


async def test_one_key_shows_one_masked_value_until_the_step_is_left(opened: Opener, samples: Path) -> None:
    (path,) = samples.glob(RESEARCHER)
    secret = secret_of(path)
    async with opened(path, size=(160, 40)) as (app, pilot):
        await press(pilot, "enter", "3")
        assert secret not in text_of(app)
        row = next(i for i in range(len(app.main.detail.rows)) if MASK in app.main.detail.rows.plain(i))
        assert app.main.detail.move_to_key(app.main.detail.rows.key(row))
        await press(pilot, "R")  # several values in a row
        await wait_for_message(app, pilot, "R reveals one value: go to its own row")
        assert secret not in text_of(app)
        await press(pilot, ">", "g", "R")
        await wait_for_message(app, pilot, "no masked value in this row")
        await press(pilot, "G", "R")
        await until(pilot, lambda: secret in text_of(app), what="the value")
        await press(pilot, "R")
        assert secret not in text_of(app)
        await press(pilot, "R")
        await until(pilot, lambda: secret in text_of(app), what="the value again")
        await press(pilot, "2", "k", "j", "3")
        assert secret not in text_of(app)
