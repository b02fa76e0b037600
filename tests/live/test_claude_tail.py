"""A folder of concurrent Claude Code sessions with sub-agents: events equal a fresh read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.live.replay import grown
from tests.shared import needs_shared, sample

CASES = Path(__file__).parents[1] / "formats" / "claude_code"
LONE = "newt9"
"""A sub-agent without a known call: it comes first in a fresh read, else where it arrived."""

FORKS = {"f1000000": "f0000000", "f2000000": "f0000000", "1b25fa54": "723b78ff"}
"""Sessions that were forked, with their originals."""


def followed(source: Path, folder: Path, seed: int) -> None:
    """Tail the sessions of `source` while they are written, among other files."""
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.jsonl", f"*{LONE}*"))
    files = [path for path in source.rglob("*.jsonl") if LONE not in path.name]
    grown(source, folder, seed, {path: path.read_bytes() for path in files}, _may_be_written)


def _may_be_written(path: Path, unwritten: dict[Path, bytes]) -> bool:
    """A sub-agent begins when its session has, a fork when its original is there."""
    if (original := FORKS.get(path.name[:8])) is not None:
        return not any(original in str(other) for other in unwritten)
    if not path.name.startswith("agent-"):
        return True
    mains = [other for other in unwritten if path.is_relative_to(other.with_suffix(""))]
    return all(len(unwritten[main]) < main.stat().st_size - 2_000 for main in mains)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", ["agents", "rewind", "session", "fork"])
def test_sessions_are_followed(tmp_path: Path, case: str, seed: int) -> None:
    followed(CASES / case / "input", tmp_path / "there", seed)


@needs_shared
@pytest.mark.shared
@pytest.mark.parametrize("seed", range(2))
def test_real_sessions_are_followed(tmp_path: Path, seed: int) -> None:
    followed(sample("claude-code", "generated-2.1.197"), tmp_path / "there", seed)
