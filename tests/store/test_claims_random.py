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
from tracetui.live.scan import ScannedFile, scan
from tracetui.model import RunSummary
from tracetui.sources.local import LocalSource
from tracetui.store.store import Store

STEPS = 12


class Home:
    """A folder of Claude Code sessions, changed at random."""

    folders: tuple[str, ...] = ("projects/-work-a", "projects/-work-b")

    def __init__(self, root: Path, random: Random) -> None:
        self._random, self._root, self._numbers = random, root, count(1)
        for folder in self.folders:
            (root / folder).mkdir(parents=True)
        self.begin()

    @property
    def files(self) -> list[Path]:
        """The sessions."""
        return sorted(path for folder in self.folders for path in (self._root / folder).glob("*.jsonl"))

    def responses(self) -> dict[str, int]:
        """The output tokens of each response, by id."""
        tokens: dict[str, int] = {}
        for path in self.files:
            for line in path.read_text().splitlines():
                if (message := json.loads(line)["message"])["role"] == "assistant":
                    tokens[message["id"]] = message["usage"]["output_tokens"]
        return tokens

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
        return self._root / self._random.choice(self.folders) / self._name(next(self._numbers))

    def _name(self, number: int) -> str:
        return f"{number:08d}-0000-4000-8000-000000000000.jsonl"

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
                        "timestamp": _time(number),
                    }  # fmt: skip
                    file.write(json.dumps(record) + "\n")
                    last = uuid


def _time(number: int) -> str:
    return f"2026-05-01T{number // 60:02d}:{number % 60:02d}:00.000Z"


class GeminiHome(Home):
    """A folder of Gemini sessions."""

    folders = (f"tmp/{'a' * 64}/chats", f"tmp/{'b' * 64}/chats")

    def responses(self) -> dict[str, int]:
        tokens: dict[str, int] = {}
        for path in self.files:
            for line in path.read_text().splitlines():
                if (record := json.loads(line)).get("type") == "gemini":
                    tokens[record["id"]] = record["tokens"]["output"]
        return tokens

    def fork(self) -> None:
        head, *lines = self._any().read_text().splitlines()
        path = self._free()
        kept = [json.dumps(json.loads(head) | {"sessionId": path.stem}), *lines[: self._random.randint(2, len(lines))]]
        path.write_text("".join(f"{line}\n" for line in kept))
        self._append(path, 1)

    def _name(self, number: int) -> str:
        return f"session-2026-05-01T{number // 60:02d}-{number % 60:02d}-{number:08d}.jsonl"

    def _append(self, path: Path, turns: int) -> None:
        with path.open("a") as file:
            if not file.tell():
                began = _time(next(self._numbers))
                head = {"sessionId": path.stem, "projectHash": "a" * 64, "startTime": began, "lastUpdated": began}
                file.write(json.dumps(head | {"kind": "main"}) + "\n")
            for _ in range(turns):
                number = next(self._numbers)
                tokens = {"input": number, "output": 100 + number, "cached": 0, "thoughts": 0, "tool": 0}
                answer = {"content": "done", "thoughts": [], "tokens": tokens, "model": "gemini-3-pro"}
                for record in (
                    {"type": "user", "content": [{"text": f"do {number}"}]},
                    {"type": "gemini", **answer},
                ):
                    own = {"id": f"{number:08d}-{record['type']}-4000-8000-000000000000", "timestamp": _time(number)}
                    file.write(json.dumps(own | record) + "\n")


class CodexHome(Home):
    """A folder of Codex sessions, of which a copy has the id of its original, and no response has an id."""

    folders = ("sessions/2026/05/01", "archived_sessions")

    def responses(self) -> dict[str, int]:
        tokens: dict[str, int] = {}
        for path in self.files:
            head, *records = [json.loads(line)["payload"] for line in path.read_text().splitlines()]
            for record in records:
                if record["type"] == "token_count":
                    used = record["info"]
                    key = f"{head['id']} {used['total_token_usage']['output_tokens']}"
                    tokens[key] = used["last_token_usage"]["output_tokens"]
        return tokens

    def grow(self) -> None:
        """Append turns to the longest copy of a session: copies that go on apart can't be distinguished."""
        texts = {path: path.read_text() for path in self.files}
        longest = [
            path
            for path, text in texts.items()
            if all(text.startswith(other) for other in texts.values() if other.split("\n", 1)[0] in text)
        ]
        self._append(self._random.choice(longest), 1 + self._random.randrange(2))

    fork = Home.copy

    def _name(self, number: int) -> str:
        return (
            f"rollout-2026-05-01T{number // 60:02d}-{number % 60:02d}-00-{number:08d}-0000-7000-8000-000000000000.jsonl"
        )

    def _append(self, path: Path, turns: int) -> None:
        lines = path.read_text().splitlines()
        total = {"input_tokens": 0, "output_tokens": 0}
        for line in lines:
            if (payload := json.loads(line)["payload"]).get("type") == "token_count":
                total = payload["info"]["total_token_usage"]
        with path.open("a") as file:
            number = next(self._numbers)
            if not lines:
                head = {"id": path.stem[28:], "timestamp": _time(number), "cwd": "/work/a", "cli_version": "0.150.0"}
                file.write(json.dumps({"timestamp": _time(number), "type": "session_meta", "payload": head}) + "\n")
            for _ in range(turns):
                number = next(self._numbers)
                used = {"input_tokens": number, "output_tokens": 100 + number}
                total = {name: value + used[name] for name, value in total.items()}
                text = {"type": "output_text", "text": f"done {number}"}
                for kind, payload in (
                    ("event_msg", {"type": "user_message", "message": f"do {number}"}),
                    ("response_item", {"type": "message", "role": "assistant", "content": [text]}),
                    (
                        "event_msg",
                        {"type": "token_count", "info": {"total_token_usage": total, "last_token_usage": used}},
                    ),
                ):
                    file.write(json.dumps({"timestamp": _time(number), "type": kind, "payload": payload}) + "\n")


def _scanned(root: Path) -> dict[str, ScannedFile]:
    return {file.path: file for file in scan(LocalSource(), [str(root)], deep=True)}


def _fresh(files: dict[str, ScannedFile]) -> dict[str, RunSummary]:
    store = Store()
    store.apply(files.values(), 0.0)
    return {ref.address: run for ref, run in store.runs.items()}


@pytest.mark.parametrize("home_of", [Home, GeminiHome, CodexHome])
@pytest.mark.parametrize("seed", seeds(120))
def test_the_followed_list_equals_a_fresh_one_and_counts_each_response_once(
    tmp_path: Path, seed: int, home_of: type[Home]
) -> None:
    home, store, before = home_of(tmp_path, Random(seed)), Store(), dict[str, ScannedFile]()
    for _ in range(STEPS):
        home.change()
        after = _scanned(tmp_path)
        gone = [ScannedFile(path=path) for path in before.keys() - after.keys()]
        store.apply([*gone, *(file for path, file in after.items() if file != before.get(path))], 0.0)
        before = after
        listed = {ref.address: run for ref, run in store.runs.items()}
        assert listed == _fresh(after)
        assert sum(run.usage.output_tokens or 0 for run in listed.values() if run.usage) == sum(
            home.responses().values()
        )
        assert sum(run.llm_calls or 0 for run in listed.values()) == len(home.responses())
