"""The live agent of the demo: coding sessions written step by step as a ccpa recorder writes them.

``python -m tracetui.demo.ccpa FOLDER`` writes below FOLDER until its standard input ends.
"""

from __future__ import annotations

import hashlib
import json
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tracetui.demo.files import uid, zulu
from tracetui.processes import own_command

Json = dict[str, Any]


@dataclass
class Session:
    """One session as its recorder writes it: records in order, turns counted up."""

    slug: str
    started: datetime
    prompt: str
    turn: int = 0
    calls: int = 0
    records: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        work = hashlib.sha256(f"/home/dev/{self.slug}".encode()).hexdigest()
        about = {"session_id": uid(self.slug), "ts": zulu(self.started)[:19] + "Z", "actor": "claude-code"}
        self._add("session_start", **about, model="claude-sonnet-4-6", cwd_sha256=work)
        self._add("user_prompt", turn=0, text=self.prompt)

    def answer(self, text: str, *call: tuple[str, Json]) -> str:
        """Add an assistant turn with at most one tool call; return the id of the last call."""
        self.turn += 1
        blocks: list[Json] = [{"type": "text", "text": text}] if text else []
        for name, arguments in call:
            self.calls += 1
            blocks.append({"type": "tool_use", "id": self._call_id, "name": name, "input": arguments})
        self._add("assistant_turn", turn=self.turn, blocks=blocks, stop_reason="tool_use" if call else "end_turn")
        return self._call_id

    def result(self, call_id: str, ok: bool, content: str, effects: Json) -> None:
        """Add the result of a tool call, in a turn of its own."""
        self.turn += 1
        effect = {"side_effects": effects} if effects else {}
        self._add("tool_result", turn=self.turn, tool_use_id=call_id, ok=ok, content=content, **effect)

    def end(self, elapsed_ms: int, reason: str) -> None:
        """Add the end of the session."""
        tokens = {"tokens_in": 48_200, "tokens_out": 3_100}
        self._add("session_end", turn=self.turn, stop_reason=reason, elapsed_ms=elapsed_ms, **tokens)

    @property
    def _call_id(self) -> str:
        return f"toolu_{self.slug[:4]}_{self.calls}"

    def _add(self, kind: str, **fields: Any) -> None:
        self.records.append({"v": 1, "kind": kind, **fields})


FAILED: Final = "tests/test_cursor.py::test_half_line FAILED\nE   assert 0 == 17\n1 failed, 11 passed in 0.42s\n"
PASSED: Final = "............                                                             [100%]\n12 passed in 0.40s\n"
EDITS: Final = (
    (
        "Two tests still fail; the offset is in characters, the file in bytes.",
        "offset += len(text)",
        "offset += len(data)",
    ),
    (
        "The last half line is dropped. It has to wait for its end.",
        "lines = data.split(b'\\n')",
        "*lines, rest = data.split(b'\\n')",
    ),
    ("And it is read again from where it began.", "offset += len(data)", "offset += len(data) - len(rest)"),
)
ROUNDS: Final = 4
QUICK, CALL, TEST = 0.7, 1.6, 5.0
"""Seconds for a small tool, a model call, and the tests."""


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """Context: a live agent writes to `folder` in a separate process."""
    command = [*own_command("tracetui.demo.ccpa"), str(folder)]
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - ourselves
    try:
        yield
    finally:
        assert agent.stdin is not None
        agent.stdin.close()
        agent.wait()


def _now() -> datetime:
    return datetime.now(UTC)


def work(folder: Path, rest: Callable[[float], bool], clock: Callable[[], datetime] = _now) -> None:
    """Write one session after another. `rest` waits for some seconds; it returns True to stop."""
    number = 0
    while True:
        number += 1
        began = clock()
        session = Session(f"live-{began:%H%M%S}", began, "advance() loses the last line of a growing file; mend it")
        path = folder / "ccpa" / f"{session.slug}.ccpa-trace.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            written = 0
            for pause in _steps(session, fails=number % 2 == 1):
                file.write(_lines(session.records[written:]))
                written = len(session.records)
                if rest(pause):
                    return
            elapsed = int((clock() - began).total_seconds() * 1000)
            session.end(elapsed, "error" if number % 2 else "end_turn")
            file.write(_lines(session.records[written:]))
        if rest(TEST):
            return


def _lines(records: list[Json]) -> bytes:
    lines = (json.dumps(record, separators=(",", ":"), ensure_ascii=False) for record in records)
    return "".join(f"{line}\n" for line in lines).encode()


def _steps(session: Session, *, fails: bool) -> Iterator[float]:
    """Add records to the session; yield the seconds until the next one."""
    yield CALL
    yield from _call(
        session, "I read the failing test first.", "Read", {"path": "tests/test_cursor.py"}, "def test_half_line():"
    )
    yield from _call(
        session, "", "Grep", {"pattern": "def advance", "path": "src/"}, "src/cursor.py:17:def advance(self) -> int:"
    )
    for turn in range(ROUNDS):
        text, old, new = EDITS[turn % len(EDITS)]
        edit = {"path": "src/cursor.py", "old_string": old, "new_string": new}
        yield from _call(session, text, "Edit", edit, "edited src/cursor.py")
        green = turn == ROUNDS - 1 and not fails
        output = PASSED if green else FAILED
        yield from _call(
            session, "", "Bash", {"command": "pytest -q tests/test_cursor.py"}, output, ok=green, takes=TEST
        )
    session.answer("Green: the half line now waits for its end." if not fails else "I can't make the last test pass.")
    yield QUICK


def _call(
    session: Session, text: str, tool: str, arguments: Json, answer: str, *, ok: bool = True, takes: float = QUICK
) -> Iterator[float]:
    call_id = session.answer(text, (tool, arguments))
    yield takes
    session.result(call_id, ok, answer, {"exit_code": 0 if ok else 1} if tool == "Bash" else {})
    yield CALL


def main() -> None:
    """Write sessions until standard input ends."""
    work(Path(sys.argv[1]), lambda seconds: bool(select.select([sys.stdin], [], [], seconds)[0]))


if __name__ == "__main__":
    main()
