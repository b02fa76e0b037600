"""What is loaded until the first rows are on the screen: only what they need, since loading is most of the start."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cli.run import HERE

LATER: Final = (
    # of the system, of other machines, of settings that few have
    *("ctypes", "sqlite3", "tomllib", "watchfiles", "rapidfuzz"),
    *(
        "tracetui.sources.ssh",
        "tracetui.sources.remote",
        "tracetui.sources.sqlite",
        "tracetui.testing",
        "tracetui.demo",
    ),
    # of other commands, and of screens that nobody has opened yet
    *(
        "tracetui.diff",
        "tracetui.views.diff.steps",
        "tracetui.live.differ",
        "tracetui.live.tail",
    ),
    *("tracetui.export.diff", "tracetui.export.json", "tracetui.export.text"),
    *("tracetui.store.query", "tracetui.store.sidecar", "tracetui.analysis.cause"),
    *("tracetui.live.jobs", "tracetui.live.search", "tracetui.analysis.search"),
    *("tracetui.ui.screens.triage", "tracetui.ui.screens.lists"),
    *("tracetui.ui.screens.diff", "tracetui.ui.screens.overlay"),
    *("obstore", "clickhouse_connect", "tracetui.sources.bucket", "tracetui.sources.ssh"),
    # of prices, and of what is asked where no place is named
    *(
        "genai_prices",
        "pydantic",
        "tracetui.analysis.statistics",
        "tracetui.formats.programs",
        "tracetui.ui.screens.today",
    ),
    # of formats that no file has, of graders, and of shell commands: their patterns take long to compile
    *("tracetui.formats.otlp.format", "tracetui.formats.otlp.files", "tracetui.formats.grading"),
    *("tracetui.analysis.effects.shell", "tracetui.analysis.effects.shell_tables"),
)
"""Modules, with what is in them. Threads may load them before the first paint if they are quick, its own thread not."""

APP: Final = """
import sys, threading
from tracetui.cli.parser import parse
from tracetui.cli.reading import source_of

parse(sys.argv[1:])
import tracetui.ui.app as app
from tracetui.live.engine import Engine

loaded, ours = set(sys.modules), threading.main_thread()

def note(event, details):
    if event == "import" and threading.current_thread() is ours:
        loaded.add(details[0])

class Painted(app.TraceApp):
    def _display(self, screen, renderable):
        super()._display(screen, renderable)
        self.exit(self.seen)

sys.addaudithook(note)
app.FIRST_MAIL_SECONDS = 60.0  # a busy machine must not paint without rows first
app.config.load()
with source_of(sys.argv[1:]) as source:
    engine = Engine(source, sys.argv[1:])
    engine.start()
    seen = Painted(engine, sys.argv[1:]).run(headless=True)
    engine.stop()
assert seen, "painted without rows"
print(*sorted(loaded))
"""

LIST: Final = """
import sys
from tracetui.cli import main
main(["ls", "--no-cache", sys.argv[1]])
print(*sorted(sys.modules))
"""


@pytest.mark.parametrize("program", [APP, LIST], ids=["app", "ls"])
def test_nothing_is_loaded_that_the_first_rows_do_not_need(program: str, tmp_path: Path) -> None:
    shutil.copytree(HERE / "traces" / "paprika", tmp_path / "traces")

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "traces")],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    loaded = done.stdout.split("\n")[-2].split()
    assert "tracetui.views.list.result" in loaded
    assert [name for name in loaded if any(name == late or name.startswith(f"{late}.") for late in LATER)] == []
