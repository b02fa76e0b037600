"""A session as a run: its header, and what it says about itself."""

from __future__ import annotations

from typing import Final

from tracetui.formats.claude_code.facts import Facts
from tracetui.formats.claude_code.originals import original_of
from tracetui.formats.fields import unknown_fields
from tracetui.formats.labels import folder_of
from tracetui.formats.scalars import between, version
from tracetui.model import PREVIEW, Header, RunBody, Status, StatusSource
from tracetui.sources.base import File

AGENT: Final = "claude"
_HEAD: Final = 6
"""Characters of the id of a sub-agent that tell it from the others of a session."""


def header_of(facts: Facts, file: File, *, whole: bool = True, size: int | None = None) -> Header:
    """The header as far as it is known. Without `whole` only the beginning of the file was read; `size`: of all files.

    No record says how a session ended: it can always be gone on with. But where the last call of the model failed for
    good, as the record of it says, so did the session.
    """
    stem = file.name.removesuffix(".jsonl")
    ident = facts.agent or facts.named.get("sessionId") or stem
    original, branch = original_of(facts, file), facts.named.get("gitBranch")
    failed = facts.failure if whole else None
    return Header(
        id=ident,
        name=folder_of(facts.named.get("cwd")) or AGENT,
        agent=AGENT,
        model=facts.model,
        status=Status.ERROR if failed is not None else None,
        status_source=StatusSource.EXPLICIT if failed is not None else None,
        ended=False,
        error=failed,
        started_at=facts.first,
        duration_ms=between(facts.first, facts.last) or None,
        replay_of=None if original is None else original[0],
        replay_of_path=None if original is None else original[1],
        relation="fork" if facts.is_fork or original is not None else None,
        parent=facts.named.get("sessionId") if facts.agent is not None else None,
        prompt=facts.prompt or (facts.command or "" if whole else ""),
        tags=(branch[:PREVIEW],) if branch is not None else (),
        source=facts.named.get("cwd", "")[:PREVIEW] or None,
        label=f"agent {facts.agent[:_HEAD]}" if facts.agent is not None else None,
        writer=version(facts.version),
        size=size,
        fields=unknown_fields(facts.strange),
    )


def run_body(facts: Facts) -> RunBody:
    """All that the session says about itself, but for what its records say."""
    return RunBody(
        last_user=facts.last_user,
        last_assistant=facts.last_assistant,
        attributes={**facts.named, **facts.latest},
    )
