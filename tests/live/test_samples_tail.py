"""Real files of formats that append, written anew over time: what is told of them comes to what reading them gives.

The files of a folder grow at once, torn and in bursts; the rest is there from the start. Sessions that are in several
files have tests of their own, which know what their writers write first.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.live.replay import Replay, by_id, until_equal
from tests.shared import needs_shared, sample
from tracetui.formats import registry
from tracetui.live.following.tail import Tail
from tracetui.sources.local import LocalSource

pytestmark = [needs_shared, pytest.mark.shared]
GROWING: Final = {
    "ccpa": ("ccpa/in_progress", "*.jsonl"),
    "otlp": ("otel-otlp-json", "*.otlp.jsonl"),
    "pi": ("pi/generated-0.74.2", "*.jsonl"),
    "copilot": ("copilot-cli/generated-1.0.102", "*.jsonl"),
}
"""By format: a folder of the samples, and its files that are appended to."""


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", [name for name in GROWING if name in registry.BUILT_IN])
def test_what_is_told_over_time_is_what_is_read_at_once(tmp_path: Path, name: str, seed: int) -> None:
    place, pattern = GROWING[name]
    source, folder = sample(*place.split("/")), tmp_path / "traces"
    growing = [path.relative_to(source) for path in sorted(source.rglob(pattern))]
    assert growing
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(pattern), copy_function=shutil.copyfile)
    tail, replay, random = Tail(LocalSource(), [str(folder)], from_start=True), Replay(), Random(seed)
    left = {path: (source / path).read_bytes() for path in growing}
    with closing(tail):
        while left:
            path = random.choice(sorted(left))
            size = random.choice((1, 300, 4_000, 40_000))
            if random.random() < 0.5:  # a burst of whole lines
                size = left[path].find(b"\n", min(size, len(left[path]) - 1)) + 1 or len(left[path])
            with (folder / path).open("ab") as stream:
                stream.write(left[path][:size])
            left[path] = left[path][size:]
            if not left[path]:
                del left[path]
            replay.take(tail.events(0.0))
        until_equal(tail, replay, str(folder), by_id)
    assert len(replay.runs) >= len(growing)
