"""Errors of several thousand characters: the part that a header keeps of them is enough to find the cause."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.formats.codex_build import call, encoded, message, meta, output
from tracetui.analysis.cause import failure_of, old_digest_of, shared_cause
from tracetui.formats import guard, registry
from tracetui.model import CUT, MESSAGE_HEAD, MESSAGE_LIMIT, FirstError, RunRef, RunSummary, Status, excerpt
from tracetui.sources.local import LocalSource

FRAMES: Final = 60
HEADER: Final = "Traceback (most recent call last):\n"


def python(log: str = "") -> str:
    """A traceback of Python through a library, which calls user code at its end."""
    frames = [
        f'  File "/venv/lib/python3.12/site-packages/pump/{i}.py", line {i}, in run\n    go()\n' for i in range(60)
    ]
    own = '  File "/app/tools/load.py", line 7, in load\n    raise ValueError(name)\n'
    return f"{log}{HEADER}{''.join(frames)}{own}ValueError: no column named 'tide' in 31 rows\n"


def chained() -> str:
    """A traceback below another one, whose header is in the part that is cut."""
    first = f"{HEADER}  File \"/app/a.py\", line 3, in a\n    b()\nKeyError: 'boat'\n"
    return f"{first}\nDuring handling of the above exception, another exception occurred:\n\n{python()}"


def node(log: str = "", frames: int = FRAMES) -> str:
    """A stack of Node, which begins with the message."""
    own = "    at load (/app/src/load.js:7:11)\n"
    library = [f"    at step{i} (/app/node_modules/pump/lib/run.js:{i}:9)\n" for i in range(frames)]
    return f"{log}TypeError: Cannot read properties of undefined (reading 'tide')\n{own}{''.join(library)}"


def rust(log: str = "") -> str:
    """A panic of Rust with its backtrace."""
    frames = [
        f"  {i:2}: pump::run::step{i}\n             at /registry/src/pump-1.0/src/run.rs:{i}:9\n" for i in range(60)
    ]
    panic = "thread 'main' panicked at src/load.rs:7:11:\nno column named tide\n"
    return (
        f"{log}{panic}stack backtrace:\n{''.join(frames)}note: run with `RUST_BACKTRACE=full` for a verbose backtrace\n"
    )


def source_line() -> str:
    """Node prints the line of code above the error that nothing caught."""
    return node("/app/src/load.js:7\n    return row.tide.high;\n                   ^\n\n")


LOG: Final = "".join(f"step {i}: pumped {i * 37} l in {i}.5s\n" for i in range(150))
ERRORS: Final = {
    "python": (python(), "ValueError: no column named 'tide' in 31 rows (load in load.py)"),
    "python after a log": (python(LOG), "ValueError: no column named 'tide' in 31 rows (load in load.py)"),
    "chained": (chained(), "ValueError: no column named 'tide' in 31 rows (load in load.py)"),
    "node": (node(), "TypeError: Cannot read properties of undefined (reading 'tide') (load in load.js)"),
    "node, uncaught": (
        source_line(),
        "TypeError: Cannot read properties of undefined (reading 'tide') (load in load.js)",
    ),
    "node after a log": (
        node(LOG, 8),
        "TypeError: Cannot read properties of undefined (reading 'tide') (load in load.js)",
    ),
    "rust": (rust(), "panic: no column named tide (src/load.rs)"),
}


def harbor(folder: Path, error: str) -> Path:
    path = folder / "result.json"
    exception = {"exception_type": "", "exception_message": error, "occurred_at": "2026-03-02T09:00:00Z"}
    path.write_text(json.dumps({"task_name": "tides", "trial_name": "t1", "exception_info": exception}))
    return path


def codex(folder: Path, error: str) -> Path:
    path = folder / "rollout-2026-03-02T09-15-00-019cadd4-5620-7001-8000-000000000001.jsonl"
    path.write_bytes(
        encoded([meta(), message("user", "go"), call("c"), output("c", f"Exit code: 1\nOutput:\n{error}")])
    )
    return path


def pi(folder: Path, error: str) -> Path:
    said = {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]}
    failed = {"role": "toolResult", "toolCallId": "c", "toolName": "bash", "isError": True}
    failed["content"] = [{"type": "text", "text": error}]
    time = "2026-03-14T07:00:00.000Z"
    lines: list[Any] = [
        {"type": "session", "version": 3, "id": "0195a000-0000-7000-8000-000000000001", "timestamp": time, "cwd": "/a"},
        {"type": "message", "id": "aa000001", "parentId": None, "timestamp": time, "message": said},
        {"type": "message", "id": "aa000002", "parentId": "aa000001", "timestamp": time, "message": failed},
    ]
    path = folder / "2026-03-14T07-00-00-000Z_0195a000-0000-7000-8000-000000000001.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def claude_code(folder: Path, error: str) -> Path:
    def line(number: int, role: str, content: Any) -> dict[str, Any]:
        above = f"0{number - 1}" if number > 1 else None
        spoken = {"id": f"m{number}", "role": role, "model": "oak-2", "content": content}
        common = {
            "isSidechain": False,
            "sessionId": "5e55",
            "timestamp": f"2026-03-02T09:00:0{number}Z",
            "version": "2.1",
        }
        return {"type": role, "uuid": f"0{number}", "parentUuid": above, "message": spoken, **common}

    used = [{"type": "tool_use", "id": "c", "name": "Bash", "input": {}}]
    failed = [{"type": "tool_result", "tool_use_id": "c", "content": error, "is_error": True}]
    lines = [line(1, "user", "go"), line(2, "assistant", used), line(3, "user", failed)]
    path = folder / "5e55.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in lines))
    return path


def failed_run(path: Path) -> RunSummary:
    """The run of a file with the error that its call failed with."""
    with LocalSource().open(str(path)) as file:
        fmt = registry.detect(file)
        assert fmt is not None
        (run,) = [item for item in guard.summarize(fmt, file, deep=True) if isinstance(item, RunSummary)]
    assert run.first_error is not None
    error = replace(run.first_error, type=None, name=None, operation=None)
    return run.replace(status=Status.ERROR, first_error=error)


def title(run: RunSummary) -> str:
    failure = failure_of(run)
    assert failure is not None
    return shared_cause(failure.cause, [failure]).title


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("write", [harbor, codex, pi, claude_code], ids=lambda write: write.__name__)
def test_a_long_error_has_the_cause_of_its_message(
    write: Callable[[Path, str], Path], error: str, tmp_path: Path
) -> None:
    text, expected = ERRORS[error]
    assert len(text) > 3_000
    run = failed_run(write(tmp_path, text))
    assert run.first_error is not None
    assert len(run.first_error.message) <= MESSAGE_LIMIT
    assert CUT in run.first_error.message
    assert title(run) == expected


@given(st.text("ab\n…", max_size=3 * MESSAGE_LIMIT) | st.text("ab", min_size=MESSAGE_LIMIT).map(lambda text: text * 3))
def test_an_excerpt_is_the_beginning_and_the_end(text: str) -> None:
    shortened = excerpt(text)
    if len(text) <= MESSAGE_LIMIT:
        assert shortened == text
        return
    end = shortened[MESSAGE_HEAD + len(CUT) :]
    assert shortened == text[:MESSAGE_HEAD] + CUT + end
    assert text.endswith(end)
    assert (MESSAGE_LIMIT - MESSAGE_HEAD) // 2 <= len(end) <= MESSAGE_LIMIT - MESSAGE_HEAD - len(CUT)


def test_verdicts_of_version_0_1_on_long_errors_still_apply() -> None:
    def digest(text: str) -> str | None:
        return old_digest_of(failed_run_of(text).replace(agent="clerk"))

    assert digest(excerpt(python(LOG))) == digest(python(LOG)[:500])
    assert digest(excerpt(node())) != digest(excerpt(rust()))


def failed_run_of(text: str) -> RunSummary:
    return RunSummary.of(ref=RunRef("any", "a"), id="a", name="a", status=Status.ERROR, first_error=FirstError(text))
