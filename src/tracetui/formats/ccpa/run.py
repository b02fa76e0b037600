"""A ccpa session as a run: its header, what it says about itself, and the session of the teacher that it replays."""

from __future__ import annotations

import re
from typing import Any, Final

from tracetui.formats.ccpa.records import end_word, first_string, moment, whole
from tracetui.formats.ccpa.session import Session
from tracetui.formats.scalars import layout, number
from tracetui.model import Error, FirstError, Header, RunBody, Status, StatusSource, Usage
from tracetui.model.status import plain_word, status_of
from tracetui.sources.base import File

STUDENT_ACTOR: Final = "apr-code"
_STEM: Final = re.compile(r"(\.ccpa-trace)?(\.jsonl|\.ndjson|\.json)?$")
_STUDENT: Final = re.compile(r"(^|-)student(?![a-z])")
_TEACHER: Final = re.compile(r"(^|-)teacher(?![a-z])")


def header_of(session: Session, file: File, *, failed: bool | None) -> Header:
    """The header as far as it is known; `failed` says whether a span failed, None where that was not looked at."""
    start, end = session.start or {}, None if session.end is None else session.end.record
    stem = file.name[: _STEM.search(file.name).start()] or file.name  # type: ignore[union-attr]  # matches anything
    ident, actor = first_string(start, "session_id"), first_string(start, "actor")
    started_at, zone = moment(start.get("ts"))
    word = None if end is None else end_word(end)
    relation, original = _original(file, stem, actor)
    return Header(
        id=ident or stem,
        name=actor or stem,
        agent=actor,
        model=session.model,
        status=None if word is None else status_of(word),
        status_word=word,
        status_source=None if word is None else StatusSource.EXPLICIT,
        ended=end is not None,
        started_at=started_at,
        time_zone=zone,
        duration_ms=None if end is None else number(end.get("elapsed_ms")),
        usage=None if end is None else _usage(end),
        replay_of=(ident or stem) if relation else None,
        replay_of_path=original,
        relation=relation,
        error=_cause(word, failed),
        prompt=session.prompt or "",
        writer=layout(start.get("v")),
        size=file.stat.size,
    )


def run_body(session: Session, header: Header) -> RunBody:
    """All that the session says about itself: its first record's fields, and its last one whole."""
    end = None if session.end is None else session.end.record
    attributes: dict[str, Any] = dict(session.start or {})
    if end is not None:
        attributes["session_end" if "session_end" not in attributes else "session_end record"] = end
    failed = header.status is Status.ERROR and header.status_word is not None
    return RunBody(
        error=Error(_ended(header.status_word), header.status_word) if failed and header.status_word else None,
        last_user=session.last_user,
        last_assistant=session.last_assistant,
        attributes=attributes,
    )


def _cause(word: str | None, failed: bool | None) -> FirstError | None:
    """The end reason as the cause of a failed run.

    ``error`` names no cause: where a call failed, that call is it. A limit that was reached is the cause itself, since
    the run went on after its failed calls.
    """
    if word is None or status_of(word) is not Status.ERROR:
        return None
    if plain_word(word) in ("error", "failed", "failure") and failed is not False:
        return None
    return FirstError(_ended(word), word)


def _ended(word: str) -> str:
    return f"session ended: {word}"


def _usage(end: dict[str, Any]) -> Usage | None:
    taken, given = whole(end.get("tokens_in")), whole(end.get("tokens_out"))
    total = taken + given if taken is not None and given is not None else None
    return Usage(taken, given, total) or None


def _original(file: File, stem: str, actor: str | None) -> tuple[str | None, str | None]:
    """(``student``, path of the teacher's file) where this session replays one.

    No field says so: upstream keeps both in one folder, as ``teacher`` and ``student``, or ``NAME-teacher`` and
    ``NAME-student-HOW``; they share the session id.
    """
    named = _STUDENT.search(stem)
    if named is None and (actor != STUDENT_ACTOR or _TEACHER.search(stem)):
        return None, None
    prefix = stem[: named.start()] + named.group(1) if named else ""
    path = file.sibling(f"{prefix}teacher{file.name[len(stem) :]}")
    return ("student" if named or path else None), path
