"""ccpa trace: coding sessions of a teacher (claude-code) and of the student (apr-code) that repeats them.

A live agent writes them step by step: ``python -m tracetui.demo.ccpa FOLDER`` writes below FOLDER until its standard
input ends.
"""

from __future__ import annotations

import hashlib
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tracetui.demo.files import line, put, uid, zulu
from tracetui.processes import own_command

Json = dict[str, Any]

MODELS = {"claude-code": "claude-sonnet-4-6", "apr-code": "qwen3-coder-30b-a3b-q4km"}


@dataclass
class Session:
    """One session as its recorder writes it: records in order, turns counted up."""

    slug: str
    started: datetime
    prompt: str
    actor: str = "claude-code"
    schema: int = 1
    turn: int = 0
    calls: int = 0
    records: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        work = hashlib.sha256(f"/home/dev/{self.slug}".encode()).hexdigest()
        about = {"session_id": uid(self.slug), "ts": zulu(self.started)[:19] + "Z", "actor": self.actor}
        self.records.append(self._record("session_start", **about, model=MODELS[self.actor], cwd_sha256=work))
        self.records.append(self._record("user_prompt", turn=0, text=self.prompt))

    def says(self, text: str, *calls: tuple[str, Json], thinks: str = "", stop: str = "") -> list[str]:
        """One assistant turn; returns the ids of its tool calls."""
        self.turn += 1
        blocks: list[Json] = [{"type": "thinking", "thinking": thinks}] if thinks else []
        if text:
            blocks.append({"type": "text", "text": text})
        ids = []
        for name, arguments in calls:
            self.calls += 1
            ids.append(f"toolu_{self.slug[:4]}_{self.calls}")
            blocks.append({"type": "tool_use", "id": ids[-1], "name": name, "input": arguments})
        reason = stop or ("tool_use" if calls else "end_turn")
        self._add("assistant_turn", blocks=blocks, stop_reason=reason)
        return ids

    def result(self, ids: list[str], *answers: tuple[bool, str, Json]) -> None:
        """The tool results, in one turn."""
        self.turn += 1
        for ident, (ok, content, effects) in zip(ids, answers, strict=True):
            effect = {"side_effects": effects} if effects else {}
            self._add("tool_result", tool_use_id=ident, ok=ok, content=content, **effect)

    def hook(self, event: str, matcher: str, decision: str, output: str) -> None:
        """A hook fired on the current turn."""
        code = {"allow": 0, "warn": 1, "block": 2}[decision]
        self._add("hook_event", event=event, matcher=matcher, decision=decision, exit_code=code, output=output)

    def skill(self, name: str, source: str) -> None:
        """A skill was invoked before the next turn."""
        self._add("skill_invocation", name=name, source=source, instructions_injected=True)

    def ends(self, elapsed_ms: int, tokens_in: int, tokens_out: int, reason: str = "end_turn") -> Session:
        """The session ends."""
        self._add("session_end", stop_reason=reason, elapsed_ms=elapsed_ms, tokens_in=tokens_in, tokens_out=tokens_out)
        return self

    def _add(self, kind: str, **fields: Any) -> None:
        self.records.append(self._record(kind, turn=self.turn, **fields))

    def _record(self, kind: str, **fields: Any) -> Json:
        version = {"v": self.schema}
        return {**version, "kind": kind, **fields} if self.schema == 1 else {"kind": kind, **version, **fields}


def write(folder: Path, now: datetime) -> None:
    """Four pairs of teacher and student, and three single sessions, one of which never ended."""
    for actor, later in (("claude-code", 0), ("apr-code", 2)):
        for session in _pair(actor, now + timedelta(seconds=later)):
            _put(folder / "ccpa" / session.slug, session)
    for session in (_skills(now), _capped(now), _open(now)):
        put(
            folder / "ccpa" / f"{session.slug}.ccpa-trace.jsonl",
            _lines(session),
            session.started + timedelta(minutes=1),
        )


def _put(folder: Path, session: Session) -> None:
    side = "teacher" if session.actor == "claude-code" else "student"
    put(folder / f"{side}.ccpa-trace.jsonl", _lines(session), session.started + timedelta(seconds=2))
    meta = f'[fixture]\nid = "{session.slug}"\ncovers = ["builtin-tools"]\ndescription = "{session.prompt}"\n'
    put(folder / "meta.toml", meta.encode(), session.started)


def _lines(session: Session) -> bytes:
    return b"".join(line(record) for record in session.records)


def _pair(actor: str, now: datetime) -> list[Session]:
    return [_rename(actor, now), _changelog(actor, now), _blocked(actor, now), _failing(actor, now)]


def _rename(actor: str, now: datetime) -> Session:
    session = Session(
        "0025-rename", now - timedelta(minutes=41), "Find compute_offset and rename it to compute_index", actor
    )
    old, new = "compute_offset", "compute_index"
    calls = session.says(
        "",
        ("Grep", {"pattern": f"fn {old}", "path": "src/", "regex": False}),
        ("Edit", {"path": "src/lib.rs", "old_string": old, "new_string": new, "replace_all": True}),
    )
    found = f"src/lib.rs:42:fn {old}(items: &[Item]) -> usize {{"
    changed = {"files_written": ["src/lib.rs"], "exit_code": 0}
    session.result(calls, (True, found, {"exit_code": 0}), (True, "replaced 4 occurrences in src/lib.rs", changed))
    session.says(f"Renamed {old} to {new}: the definition and three callers, all in src/lib.rs.")
    return session.ends(820, 290, 56)


def _changelog(actor: str, now: datetime) -> Session:
    """The student runs another command than the teacher, and writes another line."""
    session = Session(
        "0031-changelog", now - timedelta(hours=6), "Add a CHANGELOG entry for the new --json flag", actor
    )
    student = actor == "apr-code"
    calls = session.says(
        "Let me see how entries look.", ("Read", {"path": "CHANGELOG.md"}), thinks="Keep the style of the file."
    )
    session.result(
        calls, (True, "# Changelog\n\n## Unreleased\n\n- `ls` sorts by time\n", {"files_read": ["CHANGELOG.md"]})
    )
    command = "git log -3" if student else "git log --oneline -3"
    calls = session.says("", ("Bash", {"command": command}))
    session.result(calls, (True, "1f0c2de ls: add --json\n", {"exit_code": 0}))
    entry = "- Added JSON output" if student else "- `ls --json` prints the list as data"
    edit = {
        "path": "CHANGELOG.md",
        "old_string": "- `ls` sorts by time",
        "new_string": f"- `ls` sorts by time\n{entry}",
    }
    calls = session.says("", ("Edit", edit))
    session.result(calls, (True, "edited CHANGELOG.md", {"files_written": ["CHANGELOG.md"], "exit_code": 0}))
    session.says("Added one line under Unreleased.")
    return session.ends(1400 if student else 1200, 940, 210)


def _blocked(actor: str, now: datetime) -> Session:
    session = Session("0027-hook-block", now - timedelta(hours=7), "Clean up the build directory, everything", actor)
    session.says("", ("Bash", {"command": "rm -rf / --no-preserve-root"}))
    session.hook("PreToolUse", "Bash", "block", "BLOCKED: the command matches a forbidden pattern")
    calls = session.says(
        "That was blocked, and rightly. I'll clean only what the build made.", ("Bash", {"command": "cargo clean"})
    )
    session.hook("PreToolUse", "Bash", "warn", "this deletes target/")
    session.result(calls, (True, "Removed 1204 files, 1.1GiB total", {"exit_code": 0}))
    session.says("target/ is gone; sources are untouched.")
    return session.ends(2300, 410, 96)


def _failing(actor: str, now: datetime) -> Session:
    """The test still fails when the session ends with an error."""
    session = Session(
        "0042-failing-test", now - timedelta(hours=10), "Fix the failing test in tests/parse.rs", actor, schema=2
    )
    calls = session.says(
        "Run it first.", ("Bash", {"command": "cargo test parse"}), thinks="The name says which module."
    )
    output = "running 3 tests\ntest parse_empty ... FAILED\nthread 'parse_empty' panicked at src/parse.rs:17:9\n"
    session.result(calls, (False, output, {"exit_code": 101}))
    edit = {"path": "src/parse.rs", "old_string": "s[0]", "new_string": "s.first()?"}
    calls = session.says("An empty slice is indexed.", ("Edit", edit))
    session.result(calls, (True, "edited src/parse.rs", {"files_written": ["src/parse.rs"], "exit_code": 0}))
    calls = session.says("", ("Bash", {"command": "cargo test parse"}))
    session.result(calls, (False, "error[E0277]: the `?` operator needs an Option\n", {"exit_code": 101}))
    return session.ends(48_200, 5_800, 740, "error")


def _skills(now: datetime) -> Session:
    session = Session("borrow-check", now - timedelta(hours=5), "Why does the borrow checker reject this closure?")
    session.turn = 1
    session.skill("rust-debug", "auto_matched")
    session.turn = 0
    calls = session.says(
        "I'll look at the closure.", ("Agent", {"subagent_type": "explore", "prompt": "find every use of `cache`"})
    )
    session.result(calls, (True, "3 uses, all in src/cache.rs", {}))
    session.says("It borrows `cache` mutably twice. Clone the key before the call – c'est tout.")
    return session.ends(6_100, 1_300, 320)


def _capped(now: datetime) -> Session:
    session = Session("primes", now - timedelta(hours=11), "Print the first 1000 prime numbers")
    primes = [n for n in range(2, 1300) if all(n % d for d in range(2, int(n**0.5) + 1))]
    session.says(", ".join(map(str, primes)) + ",", stop="max_tokens")
    return session.ends(4_200, 24, 4_096, "max_tokens")


def _open(now: datetime) -> Session:
    """Killed while the tool ran: the recorder never wrote an end."""
    session = Session("agent", now - timedelta(hours=4), "Migrate the settings page to the new form library")
    calls = session.says("First, what is there.", ("Grep", {"pattern": "<SettingsForm", "path": "web/"}))
    session.result(calls, (True, "web/settings.tsx:12\nweb/settings.test.tsx:8", {"exit_code": 0}))
    session.says("Two places. I'll start with the component.", ("Read", {"path": "web/settings.tsx"}))
    return session


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
