"""Real files of append-only formats, replayed over time: events equal a full read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.live.replay import by_id, grown
from tests.shared import needs_shared, sample
from tracetui.formats import registry

pytestmark = [needs_shared, pytest.mark.shared]
GROWING: Final = {
    "ccpa": ("ccpa/in_progress", "*.jsonl"),
    "otlp": ("otel-otlp-json", "*.otlp.jsonl"),
    "pi": ("pi/generated-0.74.2", "*.jsonl"),
    "copilot": ("copilot-cli/generated-1.0.102", "*.jsonl"),
    "gemini": ("gemini-cli/generated-0.61.0", "session-*.jsonl"),
}
"""By format: a folder of the samples, and its files that are appended to."""


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", [name for name in GROWING if name in registry.BUILT_IN])
def test_events_over_time_equal_one_full_read(tmp_path: Path, name: str, seed: int) -> None:
    place, pattern = GROWING[name]
    source, folder = sample(*place.split("/")), tmp_path / "traces"
    unwritten = {path: path.read_bytes() for path in source.rglob(pattern)}
    assert unwritten
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(pattern), copy_function=shutil.copyfile)
    grown(source, folder, seed, unwritten, seen=by_id)
