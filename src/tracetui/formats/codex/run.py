"""A Codex thread as a run: its header, and what it says about itself."""

from __future__ import annotations

import re
from typing import Final

from tracetui.formats.codex.state import State
from tracetui.formats.codex.turns import outcome_of_turn
from tracetui.formats.fields import unknown_fields
from tracetui.formats.labels import folder_of
from tracetui.formats.scalars import child, moment, string, version, without, word
from tracetui.model import PREVIEW, Header, RunBody, Status, StatusSource
from tracetui.sources.base import File

_STEM: Final = re.compile(r"^rollout-[\dT:-]{10,25}-(?=[0-9a-f]{8}-)|\.(?:jsonl|json)$")
_AGENT: Final = "codex"


def header_of(session: State, file: File) -> Header:
    """The header as far as it is known."""
    meta = {} if session.meta is None else session.meta.payload
    stem = _STEM.sub("", file.name) or file.name
    spawn = child(child(child(meta, "source"), "subagent"), "thread_spawn")
    original = string(meta.get("forked_from_id")) or string(child(meta, "history_base").get("thread_id"))
    branch = word(child(meta, "git").get("branch"))
    status, name, ended = end_of(session)
    stamp = None if session.meta is None else session.meta.envelope.get("timestamp")
    started = moment(meta.get("timestamp"))
    return Header(
        id=string(meta.get("id")) or stem,
        name=folder_of(meta.get("cwd")) or stem,
        agent=word(meta.get("agent_nickname")) or word(spawn.get("agent_nickname")) or _AGENT,
        model=session.first_model,
        status=status,
        status_word=name,
        status_source=None if status is None else StatusSource.EXPLICIT,
        ended=ended,
        started_at=moment(stamp) if started is None else started,
        replay_of=original,
        relation=None if original is None else "fork",
        parent=string(meta.get("parent_thread_id")) or string(spawn.get("parent_thread_id")),
        prompt=session.prompt or "",
        tags=(branch[:PREVIEW],) if branch is not None else (),
        source=(string(meta.get("cwd")) or "")[:PREVIEW] or None,
        writer=version(meta.get("cli_version")),
        fields=unknown_fields(session.strange),
    )


def end_of(session: State) -> tuple[Status | None, str | None, bool]:
    """(status, its word, whether it ended): the last turn's, and no end while that goes on."""
    if session.end is None or session.end.name == "task_started":
        return None, None, False
    status, name, _ = outcome_of_turn(session.end, session.end_failure)
    return status, name, True


def body_of_run(session: State) -> RunBody:
    """All that the thread says about itself in its first record."""
    if session.meta is None:
        return RunBody(last_user=session.last_user, last_assistant=session.last_assistant)
    meta = session.meta
    attributes = without(meta.payload, "base_instructions")
    attributes |= {f"record.{key}" if key in attributes else key: value for key, value in meta.envelope.items()}
    instructions = meta.payload.get("base_instructions")
    prompt = (
        instructions if isinstance(instructions, str) else string(child(meta.payload, "base_instructions").get("text"))
    )
    if isinstance(instructions, dict):
        instructions = without(instructions, "text") if prompt is not None else instructions
    if instructions is not None and not isinstance(instructions, str) and instructions != {}:
        attributes["base_instructions"] = instructions
    return RunBody(
        last_user=session.last_user,
        last_assistant=session.last_assistant,
        system_prompt=prompt,
        attributes=attributes,
        extent=(session.meta_at[0], session.meta_at[1]),
    )
