"""Every key of the table is pressed in every pane that has it, on the built-in samples."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace
from textual.binding import Binding
from textual.pilot import Pilot
from textual.screen import Screen

from tests.shared import SEARCHES
from tests.ui.conftest import Opener, press, settle, skip_painting, text_of, until
from tests.ui.test_hostile import assert_harmless
from tracetui.ui.app import TraceApp
from tracetui.ui.commands import (
    ANY,
    AUDIT,
    BLAME,
    COMMANDS,
    CONTEXT,
    DIFF,
    EVERYWHERE,
    FACETS,
    FILES,
    FINDINGS,
    HITS,
    LISTS,
    LIVE,
    MAIN,
    REPLAYS,
    RUNS,
    STATISTICS,
    TASKS,
    TODAY,
    TREE,
    TRIAGE,
    Command,
    Keys,
    of_pane,
)
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.screens.help import arrange
from tracetui.ui.state import arrange_runs, filter_runs
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.effects import EffectRows

WAYS: Final = {
    TODAY: ("H",),
    LIVE: ("L",),
    REPLAYS: ("D",),
    FACETS: ("P",),
    HITS: ("ampersand", *"refund", "enter"),
    FINDINGS: ("C",),
    STATISTICS: ("S",),
    TASKS: ("M",),
    TREE: ("d",),
    FILES: ("A",),
    AUDIT: ("U",),
    BLAME: ("B",),
}
"""Keys that lead from the list of runs to lists over the whole screen."""
LEAVES: Final = frozenset({"quit", "interrupt", "end-now", "suspend"})
"""What ends or stops the program from the list of runs."""


ORIGINAL: Final = "d20b6eb4"
"""Id of a run that has a replay among the samples."""


def with_replays(samples: Path, folder: Path) -> Path:
    """A folder with a run that has two replays."""
    original = next((samples / "paprika").glob(f"{ORIGINAL}*"))
    shutil.copy(original, folder)
    for number in (1, 2):
        record = json.loads(original.read_bytes())
        record["replay_of"], record["record_id"] = record["record_id"], f"replay-{number}"
        (folder / f"replay-{number}.json").write_text(json.dumps(record))
    return folder


def tried(pane: str, commands: Sequence[Command]) -> list[Command]:
    """The commands of a pane that are tried in it: in the suite, each in every third of the panes that have it."""
    of_the_pane = of_pane(pane, commands)
    if SEARCHES:
        return of_the_pane
    return [command for command in of_the_pane if pane in _share(command, commands.index(command))]


def _share(command: Command, number: int) -> list[str]:
    return sorted(command.panes)[number % min(3, len(command.panes)) :: 3]


def pressed(key: str) -> list[str]:
    """A key of the table as keys to be pressed."""
    if len(key) == 2 and key[0] in "[]yzvm'x":
        return [key[0], "b" if key[1] == ANY else key[1]]
    return [key]


async def go_to(app: TraceApp, pilot: Pilot[int], pane: str) -> None:
    """Come to a pane from wherever keys have led, with a failed run under the cursor."""
    for _ in range(12):
        screen = app.screen
        if isinstance(screen, BaseScreen) and pane in screen.views:
            break
        if screen is app.main:
            app.main.focus_pane(RUNS)
            app.main.become(filter_runs(arrange_runs(app.main.state, failures=False), ""))
            app.main.runs.rearrange()
            await settle(pilot)
            if pane == REPLAYS:
                app.main.runs.move_to_key(next(ref for ref in app.main.runs.refs() if ORIGINAL in ref.path))
            if pane == TREE:
                app.main.become(replace(app.main.state, marked=tuple(app.main.runs.refs()[:3])))
            if pane == BLAME:
                await press(pilot, *WAYS[FILES])
                await until(pilot, lambda: isinstance(pane_of(app, FILES).rows, EffectRows), what="the files")
            await press(pilot, *(("T",) if pane in TRIAGE else ("K",) if pane in CONTEXT else WAYS[pane]))
        else:
            await pilot.press("escape")
            await settle(pilot)
    screen = app.screen
    assert isinstance(screen, BaseScreen), pane
    assert pane in screen.views
    if pane in MAIN and pane != RUNS and not app.main.state.level:
        app.main.focus_pane(RUNS)
        await press(pilot, "enter")
    if pane in MAIN | TRIAGE | CONTEXT:
        getattr(screen, "focus_pane")(pane)  # noqa: B009
        await settle(pilot)
    if pane in LISTS - {BLAME}:  # that needs a repository
        await until(pilot, lambda: not isinstance(app.screen, BaseScreen) or app.screen.views[pane].cursor is not None)


def pane_of(app: TraceApp, pane: str) -> LineView:
    """A pane of the current screen."""
    assert isinstance(app.screen, BaseScreen)
    return app.screen.views[pane]


def assert_on_the_sheet(app: TraceApp, pane: str) -> None:
    """Every key that works in a pane is in its help."""
    commands = [slot.command for slot in arrange(pane, app.commands, 3) if slot.command is not None]
    listed = {key for command in commands for key in command.keys}
    bound = set(app.screen.active_bindings)
    assert bound
    assert bound | {key for command in of_pane(pane, app.commands) for key in command.keys} <= listed


@pytest.mark.parametrize("pane", sorted(MAIN | TRIAGE | LISTS | CONTEXT))
async def test_every_key_of_every_pane_is_taken_and_on_the_help_sheet(
    opened: Opener, samples: Path, pane: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(TraceApp, "action_suspend_process", lambda self: None)
    monkeypatch.setattr(TraceApp, "edit", lambda self, text: None)
    monkeypatch.setattr(Screen, "_compositor_refresh", skip_painting)
    monkeypatch.chdir(tmp_path)  # what is exported goes here
    done: list[str] = []
    perform = BaseScreen.perform

    async def note(self: BaseScreen, command: Binding, letter: str = "") -> None:
        done.append(command.id or "")
        await perform(self, command, letter)

    monkeypatch.setattr(BaseScreen, "perform", note)
    folder = with_replays(samples, tmp_path) if pane == REPLAYS else samples
    async with opened(folder, size=(120, 30)) as (app, pilot):
        await go_to(app, pilot, pane)
        assert_on_the_sheet(app, pane)
        for command in tried(pane, app.commands):
            if command.id in LEAVES:
                continue
            for key in command.keys:
                done.clear()
                await go_to(app, pilot, pane)
                for press in pressed(key):
                    await pilot.press(press)
                await pilot.pause()
                assert command.id in done or key in ("ctrl+p",), (command.id, key, done)
                screen = app.screen
                if (
                    not isinstance(screen, BaseScreen)
                    or screen.focused not in screen.views.values()
                    or screen.keys.pending
                ):
                    await pilot.press("escape")  # a prompt, help, the palette, a sequence
                await until(pilot, lambda: isinstance(app.screen, BaseScreen), what="a screen of panes")
                assert_harmless(app)
        assert text_of(app)


@pytest.mark.parametrize("base", [BaseScreen, LineView])
def test_no_screen_and_no_pane_has_keys_beside_the_table(base: type) -> None:
    classes: list[type] = base.__subclasses__()
    for widget_class in classes:
        classes += widget_class.__subclasses__()
        own = set(vars(widget_class))
        assert not own & {"BINDINGS", "on_key", "_on_key"}, widget_class
        assert not [name for name in own if name.startswith("key_")], widget_class
    assert len(classes) > 5


def test_every_command_is_tried_in_a_pane() -> None:
    assert {command for pane in EVERYWHERE for command in tried(pane, COMMANDS)} == {*COMMANDS}


def test_no_pane_is_left_out() -> None:
    assert EVERYWHERE == MAIN | TRIAGE | LISTS | CONTEXT | DIFF  # the panes of comparisons have a test of their own
    assert all(command.panes for command in COMMANDS)
    assert all(command.keys for command in COMMANDS)


@pytest.mark.parametrize("pane", ["runs", "queue", "pairs"])
async def test_help_names_panes_as_their_titles_do(opened: Opener, samples: Path, pane: str) -> None:
    async with opened(samples, size=(200, 50)) as (app, pilot):
        if pane == "pairs":
            app.main.runs.move_to_key(next(ref for ref in app.store.runs if app.store.relations.original(ref)))
            await press(pilot, "D")
        elif pane == "queue":
            await press(pilot, "T")
        screen = app.screen
        assert isinstance(screen, BaseScreen)
        commands = {command.keys[0]: command for command in of_pane(pane, app.commands)}
        for number, view in enumerate(screen.views.values(), 1):
            command = commands[str(number)]
            names = [*getattr(view, "names", {}).values()] or [view.pane_name]
            assert any(command.title == name.lower() for name in names), (command.title, names)
            assert all(name in command.help for name in names), (command.help, names)


def test_no_half_sequence_swallows_the_next_key() -> None:
    keys = Keys()
    assert keys.press("]", {"]t", "j"}) == ("", "")
    assert keys.press("j", {"]t", "j"}) == ("j", "")
    keys.press("]", {"]t", "escape"})
    assert keys.press("escape", {"]t", "escape"}) == ("", "")  # cancels the sequence only


async def test_a_prompt_has_its_label_beside_the_input(opened: Opener, samples: Path) -> None:
    async with opened(samples / "ccpa", size=(80, 24)) as (app, pilot):
        await press(pilot, "f", *"abc")
        assert next(line for line in text_of(app).splitlines() if "abc" in line).split() == ["filter:", "abc"]
