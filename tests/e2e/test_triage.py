"""From forty failed runs of four formats to a verdict on each of their four causes, in twelve keys at most."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.formats.test_harbor import recorded, trial
from tests.night import Night
from tests.shared import SEARCHES
from tests.terminal import TRACETUI, Terminal

pytestmark = pytest.mark.e2e
ERRORS = ("timeout of search", "rate limit", "no such file")
VERDICTS = {"r": "real", "f": "flaky", "k": "known", "i": "ignore"}
MOST_KEYS = 12
SIZES = [(80, 24), (200, 60)]


def forty_failures(folder: Path) -> None:
    """Ten failed runs of each cause: errors in three formats, and wrong answers to two tasks in a fourth."""
    Night(folder).fill(30, 12, ERRORS)
    for number in range(10):
        task = f"task-{number % 2}"
        named = {"task_name": task, "trial_name": f"{task}__{number}"}
        wrong = {"verifier_result": {"rewards": {"reward": 0.0}}}
        trial(folder / f"{task}__{number}", {**recorded(), **named, **wrong})


@pytest.mark.search
@pytest.mark.parametrize("size", SIZES if SEARCHES else SIZES[:1], ids=lambda size: "x".join(map(str, size)))
def test_forty_failures_of_four_formats_are_reviewed_in_twelve_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    folder, state = tmp_path / "runs", tmp_path / "state"
    folder.mkdir()
    forty_failures(folder)
    environment = {"XDG_STATE_HOME": str(state), "TZ": "UTC"}
    pressed: list[str] = []
    with Terminal(*TRACETUI, str(folder), size=size, env=environment) as terminal:

        def press(*keys: str) -> None:
            pressed.extend(keys)
            terminal.type(*keys)

        terminal.expect("40 of 52 failed")
        terminal.wait_for("scanning|counting", gone=True)
        terminal.wait_quiet()
        press("T")
        terminal.expect("0 of 4 causes reviewed")
        assert "40 of 52 runs failed" in terminal.text()
        for number, (letter, verdict) in enumerate(VERDICTS.items(), 1):
            press("v", letter)
            terminal.wait_for(f"marked {verdict}|Mark 2 tasks {verdict}")
            if "Mark 2 tasks" in terminal.text():  # the heading of the wrong answers
                press("\r")
                terminal.expect(f"2 tasks marked {verdict}")
            if number == len(VERDICTS):
                terminal.expect("all reviewed")
        assert len(pressed) <= MOST_KEYS
        terminal.type("q", "q")
        assert terminal.wait_exit() == 0

    checked = subprocess.run(
        [*TRACETUI, "triage", str(folder), "--json", "--fail-on", "new"],
        capture_output=True,
        check=True,  # no cause is left
        env={**os.environ, "XDG_STATE_HOME": str(state)},
    )
    causes = json.loads(checked.stdout)["causes"]
    assert sorted(cause["count"] for cause in causes) == [10, 10, 10, 10]
    verdicts = {cause["verdict"] for cause in causes}
    assert verdicts == {*VERDICTS.values()}
