"""Agents at work, in a process of their own: ``python -m tests.bench.writers FOLDER RUNS RATE SECONDS``.

`RUNS` ccpa sessions grow by `RATE` steps a second each; a step is a call and its result, written at once. Their prompts
are their names, `agent-000` and so on; they get no end record. When the time is over, one line tells the bytes written.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.live.sessions import Session, line_of

PAYLOAD = "what the command printed, a line or two of it, as they mostly are " * 3


class Writer:
    """The process; as a context manager it leaves nothing running."""

    def __init__(self, folder: Path, *, runs: int, rate: float, seconds: float) -> None:
        command = [sys.executable, "-m", "tests.bench.writers", str(folder), str(runs), str(rate), str(seconds)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def at_work(self) -> bool:
        """Whether it still writes."""
        return self.process.poll() is None

    def written(self) -> int:
        """Bytes that were written, once it has ended."""
        return int(self.process.communicate()[0])


def step_lines(number: int, content: str = PAYLOAD) -> bytes:
    """One step: ``probe-N``, so near the beginning of its line that a pager shows it, and what came of it."""
    use = {"type": "tool_use", "name": "Bash", "input": {"command": f"probe-{number:05}"}, "id": f"t{number}"}
    call = {"kind": "assistant_turn", "blocks": [use], "turn": 2 * number - 1, "stop_reason": "tool_use"}
    result = {"kind": "tool_result", "tool_use_id": f"t{number}", "turn": 2 * number, "ok": True, "content": content}
    return line_of(call) + line_of(result)


def begin(path: Path, steps: int = 0) -> Session:
    """A new session that has made so many steps."""
    session = Session(path, path.name.partition(".")[0])
    session.write_bytes(b"".join(step_lines(number) for number in range(1, steps + 1)))
    return session


def main(folder: Path, runs: int, rate: float, seconds: float) -> int:
    """Write until the time is over; the bytes that were written."""
    names = [f"agent-{number:03}" for number in range(runs)]
    sessions = [Session(folder / f"{name}.ccpa-trace.jsonl", name, prompt=name) for name in names]
    began = time.monotonic()
    written = 0
    for step in range(1, int(rate * seconds) + 1):
        for number, session in enumerate(sessions):
            due = began + (step + number / runs) / rate
            time.sleep(max(0.0, due - time.monotonic()))
            lines = step_lines(step)
            session.write_bytes(lines)
            written += len(lines)
    return written


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])))
