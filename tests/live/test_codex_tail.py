"""A folder of concurrent Codex threads: tailing it ends with the result of a full read."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.live.replay import grown
from tests.shared import SHARED, needs_shared, sample

TIME = re.compile(rb"2026-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CASES = Path(__file__).parents[1] / "formats" / "codex"


def followed(source: Path, folder: Path, seed: int) -> None:
    """Follow the threads of `source` while they are written, as if that were now."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z").encode()
    grown(
        source,
        folder,
        seed,
        {path: TIME.sub(now, path.read_bytes()) for path in source.rglob("*.jsonl")},
        _may_be_written,
    )


def _may_be_written(path: Path, unwritten: dict[Path, bytes]) -> bool:
    """A fork begins when its original is there, an agent when the thread that spawns it has begun."""
    first = path.read_bytes().partition(b"\n")[0]
    if b'"forked_from_id"' in first:
        return all(path <= other for other in unwritten)
    before = [other for other in unwritten if other < path]
    begun = all(
        len(unwritten[other]) + len(other.read_bytes().partition(b"\n")[0]) < other.stat().st_size for other in before
    )
    return begun or b'"parent_thread_id"' not in first


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", ["threads", "turns"])
def test_threads_are_followed(tmp_path: Path, case: str, seed: int) -> None:
    followed(CASES / case / "input", tmp_path, seed)


@needs_shared
@pytest.mark.shared
@pytest.mark.parametrize("seed", range(2))
def test_real_threads_are_followed(tmp_path: Path, seed: int) -> None:
    assert SHARED is not None
    followed(sample("codex", "generated-0.169.0"), tmp_path, seed)
