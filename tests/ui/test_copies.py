"""A run that is relationship_of twice: the list says so, ``D`` compares the two tellings, statistics count it once."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.formats import opencode_build
from tests.shared import settled
from tests.ui.conftest import Opener, press, until
from tests.ui.test_repeats import go_to, relationship_of
from tests.ui.test_statistics import counts, statistics
from tracetui.model import RunRef
from tracetui.ui.screens.diff import DiffScreen

DATABASE = opencode_build.CASES / "database" / "input" / "opencode.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A database, and what was exported of one of its sessions."""
    made = tmp_path / "made"
    made.mkdir()
    shutil.copy(DATABASE, made / "opencode.db")
    with closing(sqlite3.connect(f"{DATABASE.as_uri()}?immutable=1", uri=True)) as db:
        (made / "export.json").write_text(json.dumps(opencode_build.exported(db, "ses_a")))
    return settled(made, tmp_path / "traces")


async def test_the_list_marks_an_export_as_a_copy(opened: Opener, folder: Path) -> None:
    copy, original = (
        RunRef("opencode", str(folder / "export.json")),
        RunRef("opencode", str(folder / "opencode.db"), "ses_a"),
    )
    async with opened(folder) as (app, pilot):
        assert relationship_of(app, copy)[0] == f"{app.look.glyphs.replay} copy"
        assert "copy" not in relationship_of(app, original)[0]
        await go_to(app, pilot, copy)
        await press(pilot, "D")
        screen = app.screen
        assert isinstance(screen, DiffScreen)
        await until(pilot, lambda: screen.diff is not None, what="a comparison")
        assert screen.diff is not None
        assert (screen.diff.a.summary.ref, screen.diff.b.summary.ref) == (original, copy)


async def test_a_copy_is_counted_once(opened: Opener, folder: Path) -> None:
    async with opened(folder) as (app, pilot):
        totals = counts(await statistics(app, pilot))
    (folder / "export.json").unlink()
    async with opened(folder) as (app, pilot):
        assert counts(await statistics(app, pilot)) == totals
