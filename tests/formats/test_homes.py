"""Where traces are on a machine: what formats say of it, and what of it is there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

import pytest

from tracetui.formats import programs, registry
from tracetui.formats.base import CERTAIN, Homed
from tracetui.sources.base import File
from tracetui.sources.local import LocalSource

HOMED = [fmt for fmt in registry.formats() if isinstance(fmt, Homed)]


class Plugin:
    """A format of another package, as far as this is about it."""

    name = title = "plugin"
    home_variables = ("PLUGIN_HOME",)

    def sniff(self, file: File) -> int:
        return CERTAIN

    def homes(self, environ: Mapping[str, str], home: PurePath) -> Sequence[PurePath]:
        return [PurePath(environ["PLUGIN_HOME"])]


SESSION = '{"type":"user","uuid":"u","parentUuid":null,"isSidechain":false,"sessionId":"s","message":{"content":"hi"}}'
ROLLOUT = '{"type":"session_meta","payload":{"id":"r"}}'


def write(path: Path, changed: float, content: str = SESSION) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (changed, changed))


def test_places_are_counted_where_they_are_there(tmp_path: Path) -> None:
    write(tmp_path / ".claude/projects/one/a.jsonl", 1000)
    write(tmp_path / ".claude/projects/two/b.jsonl", 3000)
    write(tmp_path / ".claude/todos/c.json", 9000)
    write(tmp_path / ".codex/sessions/2026/01/02/rollout.jsonl", 2000, ROLLOUT)
    (tmp_path / ".codex/archived_sessions").mkdir()
    write(tmp_path / ".pi/agent/sessions/notes.txt", 2000, "no session of pi")

    homes = programs.homes(LocalSource(), {}, tmp_path)

    assert [(home.path, home.files, home.more, home.changed_at) for home in homes] == [
        (str(tmp_path / ".claude/projects"), 2, False, 3000),
        (str(tmp_path / ".codex/sessions"), 1, False, 2000),
    ]
    assert homes[0].title == registry.load("claude-code").title


@pytest.mark.parametrize("form", HOMED, ids=lambda form: str(getattr(form, "name", form)))
def test_the_environment_says_where_a_place_is(form: Homed) -> None:
    home = PurePath("/home/me")
    usual = form.homes({}, home)
    assert usual
    assert form.homes(dict.fromkeys(form.home_variables, ""), home) == usual
    for name in form.home_variables:
        moved = form.homes({name: "/elsewhere"}, home)
        assert moved != usual
        assert any(path.is_relative_to("/elsewhere") for path in moved)


def test_no_more_is_counted_than_somebody_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        write(tmp_path / f".claude/projects/p/{number}.jsonl", 1000)
    monkeypatch.setattr(programs, "MOST_FILES", 3)
    (home,) = programs.homes(LocalSource(), {}, tmp_path)
    assert (home.files, home.more, home.counted) == (3, True, "over 3 files")


def test_a_plugin_names_places_and_one_that_fails_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "plugged/run.log", 1000)
    monkeypatch.setattr(registry, "formats", lambda: (Plugin(),))
    assert programs.variables() == ["PLUGIN_HOME"]
    assert [
        home.title for home in programs.homes(LocalSource(), {"PLUGIN_HOME": str(tmp_path / "plugged")}, tmp_path)
    ] == ["plugin"]
    assert programs.homes(LocalSource(), {}, tmp_path) == []
