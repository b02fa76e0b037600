"""The screens *files* and *audit* by keys."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.claude_sessions import REFUSED, bash, write_session
from tests.cli.test_files import edit, write
from tests.ui.conftest import Opener, line, press, settle, text_of, until
from tracetui.ui.app import TraceApp
from tracetui.ui.screens.effects import AuditScreen, BlameScreen, EffectsScreen, FilesScreen
from tracetui.views.effects import EffectRows

SIZE = (120, 40)
TOKEN = "ghp_" + "a1B2c3D4e5" * 4


@pytest.fixture(autouse=True)
def no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder isn't in a repository."""
    monkeypatch.chdir(tmp_path)


def write_runs(folder: Path) -> Path:
    """Two sessions that change files and push."""
    steps = [write("src/a.py", "one\ntwo\n"), bash("git push -f origin main"), bash("rm -rf build")]
    write_session(folder / "one.jsonl", steps)
    steps = [
        edit("src/a.py", "two\n", "2\n"),
        bash("git push --force", REFUSED, is_error=True),
        bash("sed -i s/1/2/ b.py"),
    ]
    write_session(folder / "two.jsonl", steps, hour=10)
    return folder


def has_rows(app: TraceApp) -> bool:
    """Whether the screen shows rows."""
    return isinstance(app.screen, EffectsScreen) and isinstance(app.screen.list.rows, EffectRows)


async def screen_of(app: TraceApp, pilot: Pilot[int], key: str) -> EffectsScreen[Any]:
    """The screen that a key opens, with its rows."""
    await press(pilot, key)
    await until(pilot, lambda: isinstance(app.screen, EffectsScreen), what=key)
    await until(pilot, lambda: "reading" not in line(app, 1) and has_rows(app), what=key)
    await settle(pilot)
    assert isinstance(app.screen, EffectsScreen)
    return app.screen


def rows(app: TraceApp) -> list[list[str]]:
    """The words of each row of the list."""
    lines = text_of(app).splitlines()
    end = next((i for i, text in enumerate(lines) if " Preview" in text), len(lines))
    return [text.strip("▌◂ ").split() for text in lines[4:end] if text.strip()]


async def test_a_narrow_header_has_the_numbers(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_runs(tmp_path / "runs"), size=(80, 24)) as (app, pilot):
        await screen_of(app, pilot, "A")
        assert line(app, 0).rstrip().endswith("2 runs · 4 edits · +3 −1")
        await press(pilot, "escape")
        await screen_of(app, pilot, "U")
        assert "2 runs · " in line(app, 0)


async def test_files_are_listed_by_folder_and_unfold_to_edits(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_runs(tmp_path / "runs"), size=SIZE) as (app, pilot):
        screen = await screen_of(app, pilot, "A")
        assert isinstance(screen, FilesScreen)
        file_rows = rows(app)
        assert [row[:5] for row in file_rows if row[0] == "▸"] == [
            ["▸", "b.py", "1", "1", "—"],
            ["▸", "build", "1", "1", "—"],
            ["▸", "a.py", "2", "2", "3"],
        ]
        assert "not looked at" in line(app, 1)
        await press(pilot, "G")
        assert "l unfold" in line(app, -1)
        await press(pilot, "l")
        assert "l unfold" not in line(app, -1)
        assert [row[0] for row in rows(app)[-2:]] == ["write", "edit"]
        await press(pilot, "j")
        await until(pilot, lambda: "Write" in text_of(app), what="the step of the write")
        await press(pilot, "enter")
        await until(pilot, lambda: app.screen is app.main, what="the step")
        assert app.main.state.ref is not None
        assert app.main.state.ref.path.endswith("one.jsonl")
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(app.screen, FilesScreen), what="the files again")


async def test_files_of_the_open_run(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_runs(tmp_path / "runs"), size=SIZE) as (app, pilot):
        await press(pilot, "enter")
        await screen_of(app, pilot, "A")
        assert "of run two" in line(app, 0)
        assert [row[1] for row in rows(app) if row[0] == "▸"] == ["b.py", "a.py"]


async def test_all_edits_of_a_file_are_one_diff_without_secrets(opened: Opener, tmp_path: Path) -> None:
    steps = [
        write("src/a.py", "one\ntwo\n"),
        edit("src/a.py", "two\n", f"token = '{TOKEN}'\n"),
        bash("echo 3 >> src/a.py"),
    ]
    write_session(tmp_path / "runs" / "one.jsonl", steps)
    async with opened(tmp_path / "runs", size=SIZE) as (app, pilot):
        await screen_of(app, pilot, "A")
        await press(pilot, "d")
        preview = text_of(app).partition(" Preview")[2]
        assert [text for text in ("+ one", "− two", "+ token = '", "aren't recorded") if text not in preview] == []
        assert TOKEN not in preview
        await press(pilot, "d")
        await until(pilot, lambda: " Preview step" in text_of(app), what="the step again")


async def test_a_query_about_other_runs_leaves_the_files_of_the_open_run(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_runs(tmp_path / "runs"), size=SIZE) as (app, pilot):
        await press(pilot, "enter")
        screen = await screen_of(app, pilot, "A")
        before = rows(app)
        await press(pilot, "f", *"does:push-force", "enter")
        await until(pilot, lambda: all(app.surveys.facts_of(run)[1] for run in app.store.runs.values()), what="facts")
        await settle(pilot)
        await press(pilot, "escape")
        assert app.screen is screen
        assert rows(app) == before


async def test_files_are_compared_with_the_repository_of_the_current_folder(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "src").mkdir()
    (tmp_path / "shop" / "src" / "a.py").write_text("one\nby hand\n")
    monkeypatch.chdir(tmp_path / "shop")
    async with opened(write_runs(tmp_path / "runs"), size=SIZE) as (app, pilot):
        await screen_of(app, pilot, "A")
        assert line(app, 1).strip().startswith("1 of 3 files changed since, 2 gone")
        assert "≠ 1 of 2 stand" in text_of(app)


async def test_findings_are_listed_by_rule_with_their_counts(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_runs(tmp_path / "runs"), size=SIZE) as (app, pilot):
        screen = await screen_of(app, pilot, "U")
        assert isinstance(screen, AuditScreen)
        assert (
            line(app, 1).strip().startswith("1 serious finding in 1 run, 1 more denied · worst: overwrites or deletes")
        )
        counts = {row[1]: row[2:5] for row in rows(app) if row[0] in "▾▸"}
        assert counts["push-force"] == ["1", "1", "2"]
        assert counts["delete"] == ["1", "·", "1"]
        await press(pilot, "]", "r", "]", "r")
        assert "git push --force" in screen.list.rows.plain(screen.list.position)
        await press(pilot, "enter")
        await until(pilot, lambda: app.screen is app.main, what="the step")
        assert app.main.state.ref is not None
        assert app.main.state.ref.path.endswith("two.jsonl")


async def test_an_allowed_finding_does_not_count_until_undone(opened: Opener, tmp_path: Path) -> None:
    folder = write_runs(tmp_path / "runs")
    async with opened(folder, size=SIZE) as (app, pilot):
        await screen_of(app, pilot, "U")
        await press(pilot, "]", "r", "space")
        assert "push-force on push origin main allowed" in line(app, 1)
        assert ["▾", "push-force", "·", "1", "1"] in [row[:5] for row in rows(app)]
    async with opened(folder, size=SIZE) as (app, pilot):
        await screen_of(app, pilot, "U")
        assert ["▾", "push-force", "·", "1", "1"] in [row[:5] for row in rows(app)]
        await press(pilot, "]", "r", "]", "r", "space")
        assert "allowed" in line(app, 1)
        await press(pilot, "u")
        assert "Undone: " in line(app, 1)


async def test_one_screen_opens_the_other_and_runs_without_effects_say_so(opened: Opener, tmp_path: Path) -> None:
    write_session(tmp_path / "runs" / "one.jsonl", [bash("ls")])
    async with opened(tmp_path / "runs", size=(80, 24)) as (app, pilot):
        await press(pilot, "A")
        await until(pilot, lambda: "no file changed" in text_of(app), what="A")
        await press(pilot, "U")
        await until(pilot, lambda: "no findings" in text_of(app), what="U")
        await press(pilot, "escape")
        assert app.screen is app.main


async def test_a_filter_by_effects_reads_all_runs(opened: Opener, tmp_path: Path) -> None:
    write_session(tmp_path / "runs" / "three.jsonl", [bash("ls")], hour=12)
    async with opened(write_runs(tmp_path / "runs"), size=SIZE) as (app, pilot):
        await press(pilot, "f", *"does:push-force", "enter")
        await until(pilot, lambda: [ref.path[-9:] for ref in app.main.runs.refs()] == ["one.jsonl"], what="the match")


def write_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository ``shop`` with a commit of what two sessions wrote, as the current folder; returns their folder."""
    monkeypatch.chdir(folder)
    (folder / "shop" / "src").mkdir(parents=True)
    (folder / "shop" / "src" / "a.py").write_text("total = 0\nprice = 2\nby_hand = 3\n")
    for args in (["init", "-q"], ["add", "-A"], ["-c", "user.name=d", "-c", "user.email=d", "commit", "-qm", "All"]):
        environment = os.environ | dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-05-04T12:00:00Z")
        subprocess.run(["git", *args], cwd=folder / "shop", env=environment, check=True)
    write_session(folder / "runs" / "one.jsonl", [bash("ls"), write("src/a.py", "total = 0\nprice = 1\n")])
    write_session(folder / "runs" / "two.jsonl", [edit("src/a.py", "price = 1\n", "price = 2\n")], hour=10)
    monkeypatch.chdir(folder / "shop")
    return folder / "runs"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("keys", [("A", "B"), ("enter", "B")], ids=["a file", "a step"])
async def test_blame_names_the_session_of_each_line(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, str]
) -> None:
    async with opened(write_repository(tmp_path, monkeypatch), size=SIZE) as (app, pilot):
        if keys[0] == "A":
            await screen_of(app, pilot, "A")
        else:
            await press(pilot, "enter", "G")
        screen = await screen_of(app, pilot, "B")
        assert isinstance(screen, BlameScreen)
        assert "src/a.py" in line(app, 0)
        assert line(app, 1).strip().startswith("2 of 3 lines by a session")
        assert [(row[0], row[1], row[-1]) for row in rows(app)[:3]] == [
            ("1", "one", "0"),
            ("2", "two", "2"),
            ("3", "—", "3"),
        ]
        await press(pilot, "g", "enter")
        await until(pilot, lambda: app.screen is app.main, what="the step")
        assert app.main.state.ref is not None
        assert app.main.state.ref.path.endswith("one.jsonl")


async def test_blame_outside_of_a_repository_names_the_next_step(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_runs(tmp_path / "runs"), size=SIZE) as (app, pilot):
        await screen_of(app, pilot, "A")
        await press(pilot, "B")
        await until(pilot, lambda: "start tracetui in it" in line(app, 1), what="the reason")
        await press(pilot, "escape")
        assert isinstance(app.screen, FilesScreen)


async def test_next_finding_goes_from_step_to_step(opened: Opener, tmp_path: Path) -> None:
    write_session(tmp_path / "runs" / "one.jsonl", [bash("ls"), bash("git push -f"), bash("ls"), bash("rm -r build")])
    async with opened(tmp_path / "runs", size=SIZE) as (app, pilot):
        await press(pilot, "enter", "]", "r")
        await until(pilot, lambda: "push-force (done)" in line(app, 1), what="the first finding")
        await press(pilot, "]", "r")
        assert "delete (done)" in line(app, 1)
        await press(pilot, "]", "r")
        assert "no more findings" in line(app, 1)
        await press(pilot, "[", "r")
        assert "push-force (done)" in line(app, 1)


async def test_files_are_sorted_by_columns_and_filtered_by_a_query(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_runs(tmp_path / "runs"), size=SIZE) as (app, pilot):
        await screen_of(app, pilot, "A")
        await press(pilot, ",")
        assert [row[1] for row in rows(app)] == ["src/a.py", "b.py", "build"]
        assert "Files by edits" in line(app, 2)
        await press(pilot, ";")
        assert [row[1] for row in rows(app)] == ["b.py", "build", "src/a.py"]
        await press(pilot, "f", *"src", "enter")
        assert [row[1] for row in rows(app)] == ["src/a.py"]
        await press(pilot, "escape", "f", *"written", "enter")
        assert "nothing matches the filter" in text_of(app)
        assert line(app, 1).strip().startswith("0 of 3 files")
        await press(pilot, "escape")
        assert len(rows(app)) == 3
        assert isinstance(app.screen, FilesScreen)


async def test_findings_that_match_a_filter_are_exported(opened: Opener, tmp_path: Path) -> None:
    async with opened(write_runs(tmp_path / "runs"), size=SIZE) as (app, pilot):
        await screen_of(app, pilot, "U")
        await press(pilot, "f", *"delete", "enter")
        assert [row[1] for row in rows(app) if row[0] in "▾▸"] == ["delete"]
        await press(pilot, "x", "ctrl+u", *str(tmp_path / "audit.json"), "enter")
        await until(pilot, lambda: "wrote" in text_of(app), what="the document")
        assert [entry["rule"] for entry in json.loads((tmp_path / "audit.json").read_bytes())["findings"]] == ["delete"]
