"""Real files of formats that append, written while the app's workers look: list and open run are as read at once."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.shared import PATIENCE, needs_shared, sample
from tracetui.formats import registry
from tracetui.live.engine import Engine
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.model import Run, RunRef
from tracetui.sources.local import LocalSource
from tracetui.store.claims import Claims
from tracetui.store.store import Store
from tracetui.testing.reading import plain

pytestmark = [needs_shared, pytest.mark.shared]
GROWING: Final = {
    "claude-code": ("claude-code/generated-2.1.197", "723b78ff*.jsonl"),
    "codex": ("codex/generated-0.169.0", "*45dc*.jsonl"),
    "otlp": ("otel-otlp-json", "pydantic-ai-v5.otlp.jsonl"),
    "pi": ("pi/generated-0.74.2", "*01a1f8df*.jsonl"),
    "copilot": ("copilot-cli/generated-1.0.102", "*.jsonl"),
    "gemini": ("gemini-cli/generated-0.61.0", "session-*.jsonl"),
}
"""By format: a folder of the samples, and the file in it that grows; the others are there from the start."""


class Reader:
    """Collects mail as the app does, and opens the first run of a file."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self._engine, self._path = engine, str(path)
        self.store, self.runs = Store(), dict[RunRef, Run]()
        self.open: RunRef | None = None

    def look(self, seconds: float) -> None:
        """Collect mail within so many seconds."""
        if not self._engine.wait(seconds):
            return
        mail = self._engine.collect()
        assert mail.failure is None
        self.store.apply(mail.files, time.time())
        self.runs.update(mail.runs)
        if self.open is None and (mine := [ref for ref in self.store.runs if ref.path == self._path]):
            self.open = mine[0]
            self._engine.open(self.open)
            self._engine.enter(self.open)

    def known(self) -> Any:
        """The list, and the open run."""
        run = self.runs.get(self.open) if self.open is not None else None
        return {ref.address: plain(row) for ref, row in self.store.runs.items()}, None if run is None else spans_of(run)

    def expected(self, root: Path) -> Any:
        """The same, read from scratch."""
        summaries = [run for file in scan(LocalSource(), [str(root)], deep=True) for run in file.runs]
        run = None if self.open is None else spans_of(read_run(LocalSource(), self.open))
        claims = Claims(summaries)
        return {summary.ref.address: plain(claims.net(summary)) for summary in summaries}, run


def spans_of(run: Run) -> Any:
    """Every header in order with its depth, and the run's own values."""
    return plain(run.summary), [plain(span) for span in run.spans], list(run.depths), sorted(map(str, run.problems))


@pytest.mark.parametrize("name", [name for name in GROWING if name in registry.BUILT_IN])
def test_the_list_and_the_open_run_end_equal_to_the_disk(tmp_path: Path, name: str) -> None:
    place, pattern = GROWING[name]
    root, random = tmp_path / "traces", Random(name)
    shutil.copytree(sample(*place.split("/")), root, copy_function=shutil.copyfile)
    path = next(root.rglob(pattern))
    data = path.read_bytes()
    start = data.index(b"\n", len(data) // 10) + 1
    path.write_bytes(data[:start])
    engine = Engine(LocalSource(), [str(root)])
    reader = Reader(engine, path)
    engine.first_painted()
    engine.start()
    try:
        deadline = time.monotonic() + PATIENCE
        while reader.open is None or reader.open not in reader.runs:
            assert time.monotonic() < deadline
            reader.look(0.1)
        while start < len(data):
            size = random.choice((1, 300, 4_000, 20_000))
            with path.open("ab") as stream:
                stream.write(data[start : start + size])
            start += size
            reader.look(0.01)
        while (known := reader.known()) != (expected := reader.expected(root)):
            if time.monotonic() > deadline:
                assert known == expected
            reader.look(0.1)
    finally:
        engine.stop()
    assert reader.open is not None
    assert len(reader.runs[reader.open].spans) > 5
