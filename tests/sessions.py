"""Sessions of Claude Code made for tests: a home of any size, with every way in which a session can stand."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

MODEL: Final = "claude-sonnet-4-5-20250929"
ANSWER, OPEN, TOOL, PROMPT = "answer", "open", "tool", "prompt"
"""The last event: the agent's answer, a call without a result, the result of a call, a prompt without an answer."""


class Session:
    """The records of one session, a second apart, the last one `ago` seconds before `now`."""

    def __init__(self, ident: str, cwd: str = "/home/me/shop", model: str = MODEL) -> None:
        self.ident, self.cwd, self.model = ident, cwd, model
        self._records: list[dict[str, Any]] = []

    def _add(self, kind: str, message: dict[str, Any]) -> None:
        number = len(self._records)
        common = {"sessionId": self.ident, "cwd": self.cwd, "isSidechain": False, "version": "2.1.197"}
        ids = {"uuid": f"{self.ident}-{number}", "parentUuid": f"{self.ident}-{number - 1}" if number else None}
        self._records.append({"type": kind, **common, **ids, "message": message})

    def prompt(self, text: str) -> Session:
        """The user writes."""
        self._add("user", {"role": "user", "content": text})
        return self

    def respond(self, *content: dict[str, Any], tokens: int = 1000) -> Session:
        """The model responds."""
        number = len(self._records)
        usage = {
            "input_tokens": tokens, "output_tokens": tokens // 10,
            "cache_creation_input_tokens": 2 * tokens, "cache_read_input_tokens": 5 * tokens,
        }  # fmt: skip
        message = {"id": f"msg-{self.ident}-{number}", "role": "assistant", "model": self.model, "usage": usage}
        self._add("assistant", {**message, "content": list(content), "stop_reason": "end_turn"})
        self._records[-1]["requestId"] = f"req-{self.ident}-{number}"
        return self

    def answer(self, text: str = "Done.", tokens: int = 1000) -> Session:
        """The model answers with a text."""
        return self.respond({"type": "text", "text": text}, tokens=tokens)

    def call(self, name: str = "Bash", key: str | None = None, **arguments: Any) -> Session:
        """The model calls a tool."""
        key = key or f"toolu-{len(self._records)}"
        self._key = key
        return self.respond({"type": "tool_use", "id": key, "name": name, "input": arguments})

    def result(self, text: str = "ok", *, failed: bool = False) -> Session:
        """The tool of the last call returns."""
        block = {"type": "tool_result", "tool_use_id": self._key, "content": text, "is_error": failed}
        self._add("user", {"role": "user", "content": [block]})
        return self

    def fail(self) -> Session:
        """The last call of the model fails for good."""
        self.answer("API Error: overloaded")
        self._records[-1] |= {"isApiErrorMessage": True, "error": "overloaded"}
        return self

    def titled(self, title: str) -> Session:
        """The program gives the session a title."""
        self._records.append({"type": "ai-title", "aiTitle": title, "sessionId": self.ident})
        return self

    def last_line(self, now: float) -> str:
        """The last record as a line of the file, written `now`."""
        _stamp(self._records[-1], now)
        return json.dumps(self._records[-1]) + "\n"

    def write(self, home: Path, now: float, ago: float) -> Path:
        """Write it below the projects of a home; its file is as old as its last record."""
        folder = home / ".claude" / "projects" / self.cwd.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.ident}.jsonl"
        last = len(self._records) - 1
        for number, record in enumerate(self._records):
            _stamp(record, now - ago - (last - number))
        path.write_text("".join(json.dumps(record) + "\n" for record in self._records))
        os.utime(path, (now - ago, now - ago))
        return path


def _stamp(record: dict[str, Any], at: float) -> None:
    record["timestamp"] = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def session(ident: str, end: str = ANSWER, *, title: str = "", prompt: str = "Fix the parser", **how: Any) -> Session:
    """A short session that ends in that way."""
    made = Session(ident, **how).prompt(prompt)
    if title:
        made.titled(title)
    if end == PROMPT:
        return made
    made.call(command="make test")
    if end in (TOOL, ANSWER):
        made.result("2 passed")
    return made.answer("The parser is fixed.") if end == ANSWER else made


def home(folder: Path, now: float, projects: Sequence[str] = ("shop", "parser", "site")) -> Path:
    """A home with sessions of today, of this week and of earlier."""
    session("aaaa-1", OPEN, title="Run the migrations", cwd=f"/home/me/{projects[0]}").write(folder, now, 20)
    session("aaaa-2", title="Fix the parser", cwd=f"/home/me/{projects[1]}").write(folder, now, 3_000)
    session("aaaa-3", TOOL, title="Rename the columns", cwd=f"/home/me/{projects[0]}").write(folder, now, 9_000)
    failing = Session("aaaa-4", cwd=f"/home/me/{projects[2]}").prompt("Publish the site").call(command="make deploy")
    failing.result("exit 2: no such host", failed=True).answer("I could not publish it.").titled("Publish the site")
    failing.write(folder, now, 2 * 86_400)
    session("aaaa-5", title="Write the changelog", cwd=f"/home/me/{projects[2]}").write(folder, now, 30 * 86_400)
    return folder / ".claude" / "projects"


WANTED: Final = "Fix the parser: nested comments"
"""Title of the one session of `large_home` that fixed the parser."""
_TASKS: Final = (
    "Add a page of prices", "Rename the columns", "Write the changelog", "Explain the parser", "Test the lexer",
    "Fix the login form", "Draw the chart of sales", "Speed up the import", "Translate the letters",
    "Fix the date picker",
    "Document the parser", "Move to the new API", "Sort the invoices", "Fix a typo on the front page",
)  # fmt: skip
_TOOLS: Final = ("Bash", "Read", "Edit", "Grep", "WebFetch")
_PROJECTS: Final = ("shop", "parser", "site", "billing", "charts", "letters", "import", "notes")


def large_home(folder: Path, now: float, count: int = 350) -> Path:
    """A home of so many titled sessions of two months, with costs and failed calls; one of them is `WANTED`.

    In that one Bash was called most, and Edit failed most.
    """
    chance = random.Random(17)
    for number in range(count):
        wanted = number == count * 2 // 3
        title = WANTED if wanted else f"{chance.choice(_TASKS)} {number}"
        project = "parser" if wanted else chance.choice(_PROJECTS)
        made = Session(f"{number:08x}-51e5", cwd=f"/home/me/{project}").prompt(f"Please: {title.lower()}").titled(title)
        for turn in range(9 if wanted else chance.randint(1, 12)):
            tool = ("Bash", "Edit", "Bash", "Read", "Bash", "Edit")[turn % 6] if wanted else chance.choice(_TOOLS)
            failed = tool == "Edit" or turn == 2 if wanted else chance.random() < 0.2
            made.call(tool, path=f"{project}/{turn}.py").result("String not found" if failed else "ok", failed=failed)
        made.answer(f"{title}: done.", tokens=20_000 if wanted else chance.randint(500, 40_000))
        made.write(folder, now, 3_600 + number * 14_000)
    return folder / ".claude" / "projects"


__all__ = ["ANSWER", "MODEL", "OPEN", "PROMPT", "TOOL", "WANTED", "Session", "home", "large_home", "session"]
