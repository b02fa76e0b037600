"""A ccpa session while its records come in: which answer belongs to which call, which hook to which call, how it ends.

Also its header, and the session of the teacher that it replays.
"""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from msgspec.structs import replace

from tracetui.errors import FormatError
from tracetui.formats.agent_log import CANCELLED, ERROR, EXPLICIT, RUNNING, UNKNOWN, Call, Conversation
from tracetui.formats.ccpa.records import End, Start, kind_of
from tracetui.formats.fields import unknown_fields
from tracetui.formats.jsonl import Line
from tracetui.formats.lines import record_on
from tracetui.formats.scalars import child, layout, word
from tracetui.model import PREVIEW, Error, FirstError, Header, RunBody, Span
from tracetui.model.span import plain_word, status_of
from tracetui.sources.base import File, LinkLost

STUDENT_ACTOR: Final = "apr-code"
_FEW: Final = 64
"""Records among which the list stage looks for the prompt: what is further back, the deep pass finds."""
_LOOK_BACK: Final = 4 << 20
"""Bytes in which the list stage looks for an end: no session has more after its end."""
_LARGEST_META: Final = 1 << 16
_TIME_LIMIT: Final = 64
_STEM: Final = re.compile(r"(\.ccpa-trace)?(\.jsonl|\.ndjson|\.json)?$")
_STUDENT: Final = re.compile(r"(^|-)student(?![a-z])")
_TEACHER: Final = re.compile(r"(^|-)teacher(?![a-z])")


class Session(Conversation):
    """What is known of one session; see `tracetui.formats.jsonl.Session`. `calls` has the latest call of each id."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.start: Start | None = None
        self.model: str | None = None
        """The model of the first record."""
        self.head = b""
        """The line of the first record."""
        self.end: End | None = None
        self.tail = Line()
        """The line of the last record."""
        self.closed = False
        """The latest record ended the session."""
        self.prompt: str | None = None
        """The beginning of the first prompt."""
        self.last_user: str | None = None
        self.last_assistant: str | None = None
        self.failed = False
        """A span has failed."""
        self.turn: Span | None = None
        """The latest turn of the assistant."""
        self.recent: dict[str, Call] = {}
        """The calls of the latest turn by id, answered or not."""
        self.early: dict[str, list[Span]] = {}
        """Hooks by the id of a call that has not come yet."""

    # ---- records

    def take(self, record: Any, line: Line) -> None:
        if self.closed and not isinstance(record, End):
            self.problem(line, f"{kind_of(record)} after session_end")
            self.closed = False
        if self.records == 0 and not isinstance(record, Start):
            self.problem(line, f"the first record is {kind_of(record)}, not session_start")
        self.records += 1
        record.take(self, line)

    def add(self, span: Span) -> None:
        """Give out a new span or a newer version of one."""
        if span.status is ERROR:
            self.failed = True
        self._changed[span.id] = span

    def add_call(self, key: str | None, call: Call, line: Line) -> None:
        """Add a call to the latest turn; `key` is its id."""
        if key is None:
            self.problem(line, f"a call of {call.name[:PREVIEW]} has no id: its answer cannot be told")
            call.status, call.source = UNKNOWN, None
            self.call(None, call)
            return
        before = self.calls.get(key)
        if before is not None and not before.at.more:
            self.problem(line, f"call id {key[:PREVIEW]!r} is used again before its answer came")
            if before.status is RUNNING:
                before.status, before.source = UNKNOWN, None
                self.emit(before)
        self.recent[key] = call
        self.call(key, call)
        if key in self.early:
            for hook in self.early.pop(key):
                self.add_hook(hook, call)

    def add_hook(self, hook: Span, call: Call) -> None:
        """Put a hook below its call; one that blocks a call which has not run means that it never will."""
        self.add(replace(hook, parent_id=call.id))
        if hook.status is ERROR and call.status is RUNNING:
            call.status, call.source, call.status_word = CANCELLED, hook.status_source, hook.status_word
            call.note = "blocked"
            self.emit(call)

    # ---- the list stage

    @property
    def settled(self) -> bool:
        """No later record changes what the list stage takes from the beginning."""
        return self.start is not None and (self.prompt is not None or self.records >= _FEW)

    @property
    def stands(self) -> bool:
        """The end is known, or the session has none."""
        if self.end is not None:
            return True
        file, size = self.file, self.file.stat.size
        start = max(0, size - _LOOK_BACK)
        return b"session_end" not in (file.head if size <= len(file.head) else file.read(start, _LOOK_BACK))

    # ---- the session as a whole

    @cached_property
    def fixture(self) -> str | None:
        """Id of the fixture that was worked on, as the ``meta.toml`` in the same folder records it."""
        try:
            with self.file.other("meta.toml") as other:
                data = other.read_all() if other.stat.size <= _LARGEST_META else b""
            meta = tomllib.loads(data.decode())
        except LinkLost:
            raise
        except (OSError, ValueError, RecursionError, FormatError):  # there is none, or it is something else
            return None
        found = word(child(meta, "fixture").get("id"))
        return found and found[:PREVIEW]

    def header(self) -> Header:
        """The header as far as it is known."""
        file, start, end = self.file, self.start or Start(), self.end or End()
        name = file.name
        stem = name[: _STEM.search(name).start()] or name  # type: ignore[union-attr]  # matches anything
        started_at, zone = _moment(start.ts)
        relation, original = _original(file, name, stem, start.actor)
        word = end.word
        return Header(
            id=start.session_id or stem,
            name=start.actor or stem,
            agent=start.actor,
            model=start.model,
            status=None if word is None else status_of(word),
            status_word=word,
            status_source=None if word is None else EXPLICIT,
            ended=self.ended,
            started_at=started_at,
            time_zone=zone,
            duration_ms=end.elapsed_ms,
            usage=end.usage,
            replay_of=(start.session_id or stem) if relation else None,
            replay_of_path=original,
            relation=relation,
            task=self.fixture,
            error=_cause(word, None if self.skipped else self.failed),
            prompt=self.prompt or "",
            writer=layout(start.v),
            size=file.stat.size,
            fields=unknown_fields(self.unknown),
        )

    def run_body(self) -> RunBody:
        """The last messages, the fields of the first record, and the last record."""
        attributes: dict[str, Any] = dict(record_on(self.head) or {})
        word = None
        if self.end is not None:
            word = self.end.word
            attributes["session_end" if "session_end" not in attributes else "session_end record"] = record_on(
                self.tail.data
            )
        failed = word and status_of(word) is ERROR
        return RunBody(
            error=Error(_ended(word), word) if word and failed else None,
            last_user=self.last_user,
            last_assistant=self.last_assistant,
            attributes=attributes,
        )


def _moment(value: str | None) -> tuple[float | None, str | None]:
    """An ISO 8601 time as (seconds since the epoch, zone); the zone is None for a time without one."""
    if value is None or len(value) > _TIME_LIMIT:
        return None, "UTC"
    try:
        found = datetime.fromisoformat(value.strip())
        if found.tzinfo is None:
            return found.replace(tzinfo=UTC).timestamp(), None
        return found.timestamp(), "UTC"
    except (ValueError, OverflowError):
        return None, "UTC"


def _cause(word: str | None, failed: bool | None) -> FirstError | None:
    """The end reason as the cause of a failed run; `failed` is whether a span failed, None if that is not known.

    ``error`` names no cause: where a call failed, that call is it. A limit that was reached is the cause itself, since
    the run continued after its failed calls.
    """
    if word is None or status_of(word) is not ERROR:
        return None
    if plain_word(word) in ("error", "failed", "failure") and failed is not False:
        return None
    return FirstError(_ended(word), word)


def _ended(word: str) -> str:
    return f"session ended: {word}"


def _original(file: File, name: str, stem: str, actor: str | None) -> tuple[str | None, str | None]:
    """(``student``, path of the teacher's file) where this session replays one.

    No field has this: upstream keeps both in one folder, as ``teacher`` and ``student``, or ``NAME-teacher`` and
    ``NAME-student-HOW``; they share the session id.
    """
    named = _STUDENT.search(stem)
    if named is None and (actor != STUDENT_ACTOR or _TEACHER.search(stem)):
        return None, None
    prefix = stem[: named.start()] + named.group(1) if named else ""
    path = file.sibling(f"{prefix}teacher{name[len(stem) :]}")
    return ("student" if named or path else None), path
