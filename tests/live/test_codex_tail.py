"""A folder of Codex threads that are written at once: what is told of it comes to what reading it afresh gives."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from tests.live.replay import Replay, until_equal
from tests.shared import SHARED, needs_shared, sample
from tracetui.live.following.tail import Tail
from tracetui.sources.local import LocalSource

TIME = re.compile(rb"2026-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CASES = Path(__file__).parents[1] / "formats" / "codex"


def grown(source: Path, folder: Path, seed: int) -> None:
    """Append what the files of `source` hold to files of the same names, torn and in bursts, and look between."""
    random = Random(seed)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z").encode()
    left = {path: TIME.sub(now, path.read_bytes()) for path in sorted(source.rglob("*.jsonl"))}
    tail, replay = Tail(LocalSource(), [str(folder)], from_start=True), Replay()
    with closing(tail):
        while left:
            path = random.choice([path for path in left if _may_be_written(path, left)])
            size = random.choice((1, 300, 4_000, 40_000))
            if random.random() < 0.5:  # a burst of whole lines
                size = left[path].find(b"\n", min(size, len(left[path]) - 1)) + 1 or len(left[path])
            target = folder / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("ab") as stream:
                stream.write(left[path][:size])
            left[path] = left[path][size:]
            if not left[path]:
                del left[path]
            replay.take(tail.events(0.0))
        until_equal(tail, replay, str(folder))


def _may_be_written(path: Path, left: dict[Path, bytes]) -> bool:
    """A fork begins when its original is there, an agent when the thread that spawns it has begun."""
    first = path.read_bytes().partition(b"\n")[0]
    if b'"forked_from_id"' in first:
        return all(path <= other for other in left)
    before = [other for other in left if other < path]
    begun = all(
        len(left[other]) + len(other.read_bytes().partition(b"\n")[0]) < other.stat().st_size for other in before
    )
    return begun or b'"parent_thread_id"' not in first


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", ["threads", "turns"])
def test_threads_are_followed(tmp_path: Path, case: str, seed: int) -> None:
    grown(CASES / case / "input", tmp_path, seed)


@needs_shared
@pytest.mark.shared
@pytest.mark.parametrize("seed", range(2))
def test_real_threads_are_followed(tmp_path: Path, seed: int) -> None:
    assert SHARED is not None
    grown(sample("codex", "generated-0.169.0"), tmp_path, seed)
