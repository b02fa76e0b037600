"""Sessions that are copied, forked, grown, moved and deleted in any order: the list counts each response once."""

from __future__ import annotations

import json
import shutil
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.shared import seeds
from tracetui.live.scan import Found, scan
from tracetui.model import RunSummary
from tracetui.sources.local import LocalSource
from tracetui.store.store import Store

STEPS = 12
FOLDERS = ("projects/-work-a", "projects/-work-b")


class Home:
    """A folder of Claude Code sessions, changed at random."""

    def __init__(self, root: Path, random: Random) -> None:
        self._random, self._root, self._numbers = random, root, count(1)
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True)
        self.begin()

    @property
    def files(self) -> list[Path]:
        """The sessions."""
        return sorted(self._root.glob("projects/*/*.jsonl"))

    def responses(self) -> dict[str, int]:
        """The output tokens of each response, by id."""
        found: dict[str, int] = {}
        for path in self.files:
            for line in path.read_text().splitlines():
                if (message := json.loads(line)["message"])["role"] == "assistant":
                    found[message["id"]] = message["usage"]["output_tokens"]
        return found

    def change(self) -> None:
        """Change one file."""
        self._random.choice((self.begin, self.grow, self.grow, self.copy, self.fork, self.move, self.delete))()

    def begin(self) -> None:
        """Begin a session."""
        path = self._free()
        path.write_text("")
        self._append(path, 1 + self._random.randrange(3))

    def grow(self) -> None:
        """Append turns to a session."""
        self._append(self._any(), 1 + self._random.randrange(2))

    def copy(self) -> None:
        """Copy a session as it is."""
        shutil.copyfile(self._any(), self._free())

    def fork(self) -> None:
        """Copy the beginning of a session under a new session id."""
        lines, path = self._any().read_text().splitlines(), self._free()
        records = [json.loads(line) | {"sessionId": path.stem} for line in lines[: self._random.randint(2, len(lines))]]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        self._append(path, 1)

    def move(self) -> None:
        """Rename a session."""
        self._any().rename(self._free())

    def delete(self) -> None:
        """Delete a session, unless it is the last."""
        if len(self.files) > 1:
            self._any().unlink()

    def _any(self) -> Path:
        return self._random.choice(self.files)

    def _free(self) -> Path:
        folder = self._root / self._random.choice(FOLDERS)
        return folder / f"{next(self._numbers):08d}-0000-4000-8000-000000000000.jsonl"

    def _append(self, path: Path, turns: int) -> None:
        lines = path.read_text().splitlines()
        last: str | None = json.loads(lines[-1])["uuid"] if lines else None
        with path.open("a") as file:
            for _ in range(turns):
                number = next(self._numbers)
                usage = {"input_tokens": number, "output_tokens": 100 + number}
                answer = {"id": f"msg_{number:020d}", "model": "claude-sonnet-4-5", "usage": usage, "content": "done"}
                messages: tuple[dict[str, Any], ...] = (
                    {"role": "user", "content": f"do {number}"},
                    {"role": "assistant", "type": "message", "stop_reason": "end_turn", **answer},
                )
                for message in messages:
                    uuid = f"{number:08d}-{message['role']:.4}-4000-8000-000000000000"
                    record = {
                        "type": message["role"], "uuid": uuid, "parentUuid": last, "sessionId": path.stem,
                        "version": "2.1.9", "cwd": "/work/a", "message": message,
                        "timestamp": f"2026-05-01T{number // 60:02d}:{number % 60:02d}:00.000Z",
                    }  # fmt: skip
                    file.write(json.dumps(record) + "\n")
                    last = uuid


def _scanned(root: Path) -> dict[str, Found]:
    return {found.path: found for found in scan(LocalSource(), [str(root)], deep=True)}


def _fresh(files: dict[str, Found]) -> dict[str, RunSummary]:
    store = Store()
    store.apply(files.values(), 0.0)
    return {ref.address: run for ref, run in store.runs.items()}


@pytest.mark.parametrize("seed", seeds(120))
def test_the_followed_list_equals_a_fresh_one_and_counts_each_response_once(tmp_path: Path, seed: int) -> None:
    home, store, before = Home(tmp_path, Random(seed)), Store(), dict[str, Found]()
    for _ in range(STEPS):
        home.change()
        after = _scanned(tmp_path)
        gone = [Found(path=path) for path in before.keys() - after.keys()]
        store.apply([*gone, *(found for path, found in after.items() if found != before.get(path))], 0.0)
        before = after
        listed = {ref.address: run for ref, run in store.runs.items()}
        assert listed == _fresh(after)
        assert sum(run.usage.output_tokens or 0 for run in listed.values() if run.usage) == sum(
            home.responses().values()
        )
        assert sum(run.llm_calls or 0 for run in listed.values()) == len(home.responses())
