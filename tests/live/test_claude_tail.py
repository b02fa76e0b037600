"""A folder of Claude Code sessions that are written at once, with sub-agents: what is told comes to a fresh reading."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.live.replay import Replay, until_equal
from tests.shared import needs_shared, sample
from tracetui.live.following.tail import Tail
from tracetui.sources.local import LocalSource

CASES = Path(__file__).parents[1] / "formats" / "claude_code"
LONE = "newt9"
"""A sub-agent that no call is known of: it stands first in a run that is read afresh, else where it came."""

FORKS = {"f1000000": "f0000000", "1b25fa54": "723b78ff"}


def grown(source: Path, folder: Path, seed: int) -> None:
    """Append what the sessions of `source` hold to files of the same names, torn and in bursts, and look between."""
    random = Random(seed)
    files = [path for path in sorted(source.rglob("*.jsonl")) if LONE not in path.name]
    left = {path: path.read_bytes() for path in files}
    folder.mkdir()
    for path in source.rglob("*"):
        target = folder / path.relative_to(source)
        if path.is_dir():
            target.mkdir(parents=True)
        elif path not in left and LONE not in path.name:
            shutil.copyfile(path, target)
    tail, replay = Tail(LocalSource(), [str(folder)], from_start=True), Replay()
    with closing(tail):
        while left:
            path = random.choice([path for path in left if _may_be_written(path, left)])
            size = random.choice((1, 300, 4_000, 40_000))
            with (folder / path.relative_to(source)).open("ab") as stream:
                stream.write(left[path][:size])
            left[path] = left[path][size:]
            if not left[path]:
                del left[path]
            replay.take(tail.events(0.0))
        until_equal(tail, replay, str(folder))


def _may_be_written(path: Path, left: dict[Path, bytes]) -> bool:
    """A sub-agent begins when its session has, a fork when its original is there."""
    if (original := FORKS.get(path.name[:8])) is not None:
        return not any(original in str(other) for other in left)
    if not path.name.startswith("agent-"):
        return True
    mains = [other for other in left if path.is_relative_to(other.with_suffix(""))]
    return all(len(left[main]) < main.stat().st_size - 2_000 for main in mains)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", ["agents", "rewind", "session", "fork"])
def test_sessions_are_followed(tmp_path: Path, case: str, seed: int) -> None:
    grown(CASES / case / "input", tmp_path / "there", seed)


@needs_shared
@pytest.mark.shared
@pytest.mark.parametrize("seed", range(2))
def test_real_sessions_are_followed(tmp_path: Path, seed: int) -> None:
    grown(sample("claude-code", "generated-2.1.197"), tmp_path / "there", seed)
