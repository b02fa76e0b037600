"""ccpa trace: coding sessions of a teacher (claude-code) and of the student (apr-code) that repeats them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tracetui.demo.files import line, put, uid, zulu

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
