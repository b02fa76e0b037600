"""Trajectories of Harbor's trials: the result that stands beside them says how they went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tracetui.formats.atif import Atif
from tracetui.formats.base import Chunk
from tracetui.model import RunRef, RunSummary
from tracetui.sources.local import LocalSource

FORMAT = Atif()
STEPS = [{"step_id": 1, "source": "user", "message": "Prune"}]


def trial(folder: Path, result: Any = None, *, within: str = "agent") -> Path:
    path = folder / "trial-1" / within / "trajectory.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps({"schema_version": "ATIF-v1.7", "agent": {"name": "gardener"}, "steps": STEPS}))
    if result is not None:
        data = result if isinstance(result, bytes) else orjson.dumps(result)
        (path.parent.parent / "result.json").write_bytes(data)
    return path


def outcomes(path: Path) -> set[str]:
    """What both stages say."""
    found = set()
    for deep in (False, True):
        with LocalSource().open(str(path)) as file:
            (summary,) = FORMAT.summarize(file, deep=deep)
        assert isinstance(summary, RunSummary)
        found.add(summary.result)
    return found


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"verifier_result": {"rewards": {"reward": 1.0}}}, "reward 1"),
        ({"verifier_result": {"rewards": {"reward": 0.25, "style": 1}}}, "reward 0.25 · style 1"),
        ({"verifier_result": None, "exception_info": {"exception_type": "AgentTimeoutError"}}, "AgentTimeoutError"),
        ({"verifier_result": {"rewards": {"reward": "high", "other": True}}}, ""),
        ({"verifier_result": {"rewards": [1]}}, ""),
        ({"reward": 1}, ""),
        ([1], ""),
        (b'{"verifier_result": {"rewa', ""),
        (None, ""),
    ],
)
def test_the_reward_of_a_trial_is_its_outcome(tmp_path: Path, result: Any, said: str) -> None:
    assert outcomes(trial(tmp_path, result)) == {said}


def test_a_result_beside_another_folder_is_not_a_trial_s(tmp_path: Path) -> None:
    assert outcomes(trial(tmp_path, {"verifier_result": {"rewards": {"reward": 1}}}, within="runs")) == {""}


def test_a_result_that_comes_later_is_read_then(tmp_path: Path) -> None:
    path = trial(tmp_path)
    reader = FORMAT.open(LocalSource().open(str(path)), RunRef("atif", str(path)))

    def more() -> Chunk:
        with LocalSource().open(str(path)) as file:
            return reader.more(file)

    assert more().spans
    assert not more().spans
    result = {"trial_name": "trial-1", "verifier_result": {"rewards": {"reward": 0}}}
    (path.parent.parent / "result.json").write_bytes(orjson.dumps(result))
    again = more()
    assert again.reset
    assert again.header is not None
    assert again.header.result == "reward 0"
    assert again.body is not None
    assert again.body.attributes["result.json"]["trial_name"] == "trial-1"
