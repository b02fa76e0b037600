"""A live agent: writes ccpa traces step by step.

``python -m tracetui.demo.agent FOLDER`` writes below FOLDER until its standard input ends.
"""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tracetui.demo.ccpa import Session
from tracetui.demo.files import line

Json = dict[str, Any]

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
    command = [sys.executable, "-m", "tracetui.demo.agent", str(folder)]
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
            for pause in _story(session, fails=number % 2 == 1):
                file.write(b"".join(map(line, session.records[written:])))
                written = len(session.records)
                if rest(pause):
                    return
            elapsed = int((clock() - began).total_seconds() * 1000)
            session.ends(elapsed, 48_200, 3_100, "error" if number % 2 else "end_turn")
            file.write(b"".join(map(line, session.records[written:])))
        if rest(TEST):
            return


def _story(session: Session, *, fails: bool) -> Iterator[float]:
    """Add events to the session; yields the seconds until the next one."""
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
    session.says("Green: the half line now waits for its end." if not fails else "I can't make the last test pass.")
    yield QUICK


def _call(
    session: Session, text: str, tool: str, arguments: Json, answer: str, *, ok: bool = True, takes: float = QUICK
) -> Iterator[float]:
    calls = session.says(text, (tool, arguments))
    yield takes
    session.result(calls, (ok, answer, {"exit_code": 0 if ok else 1} if tool == "Bash" else {}))
    yield CALL


def main() -> None:
    """Write sessions until standard input ends."""
    work(Path(sys.argv[1]), lambda seconds: bool(select.select([sys.stdin], [], [], seconds)[0]))


if __name__ == "__main__":
    main()
