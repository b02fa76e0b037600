"""A session as a run: its header, what it says about itself, and its totals recounted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from tracetui.formats.fields import unknown_fields
from tracetui.formats.labels import folder_of, task_key
from tracetui.formats.opencode.records import Info, Record, seconds, whole
from tracetui.formats.opencode.session import Tree
from tracetui.formats.opencode.spans import Told
from tracetui.formats.scalars import child, number
from tracetui.model import PREVIEW, Header, RunBody, Status, StatusSource, Total, Usage

LEADING: Final = 8
"""Messages at the beginning of a session that say what it is about."""
AGENT: Final = "opencode"
STALE_MS: Final = 15 * 60_000.0
"""So long after something was heard of a session, while others went on, it isn't running any more for all we know."""
_COUNTS: Final = ("input", "output", "reasoning")


def header_of(
    info: Info, leading: Sequence[Told], last: Told | None, *, stale: bool, original: str | None = None
) -> Header:
    """The header, by the first `LEADING` messages of a session and its last one.

    A database, what was exported of it and older files may tell the same session. A fork begins with the same question
    at the same time, wherever it is told.

    A session never ends, it can always be gone on with; but its last turn does.
    """
    status, source, name = None, None, None
    if last is not None and last.end is not None:
        status, source, name, _ = last.end
    elif stale:
        status, source = Status.UNKNOWN, StatusSource.DERIVED
    created = info.created if info.created is not None or not leading else leading[0].created
    first = next((told for told in leading if told.is_prompt), None)
    return Header(
        id=info.id,
        name=folder_of(info.directory) or AGENT,
        agent=info.agent or next((told.agent for told in leading if told.agent), None) or AGENT,
        model=info.model or next((told.model for told in leading if told.model), None),
        status=status,
        status_word=name,
        status_source=source,
        ended=last is not None and last.end is not None,
        started_at=seconds(created),
        replay_of=original,
        relation=None if original is None else "fork",
        repeats=None if first is None or first.created is None else task_key(AGENT, f"{first.created}\n{first.said}"),
        identity=None if info.created is None else task_key(AGENT, f"{info.id}\n{info.created}"),
        parent=info.parent,
        prompt="" if first is None else first.said[:PREVIEW],
        tags=(info.branch[:PREVIEW],) if info.branch else (),
        source=(info.directory or "")[:PREVIEW] or None,
        writer=info.version and info.version[:PREVIEW],
    )


def header_of_tree(tree: Tree, *, stale: bool) -> Header:
    """The header of a run all of which was read."""
    told = tree.root.told
    last = told[-1] if told else None
    header = header_of(tree.root.info, told[:LEADING], last, stale=stale, original=tree.original)
    fields = unknown_fields(*(told.strange for session in tree.sessions.values() for told in session.told))
    return replace(header, size=tree.size, fields=fields)


def run_body(tree: Tree, attributes: Record, raw: bytes = b"") -> RunBody:
    """Everything that is said about the run as a whole."""
    info, told = tree.root.info, tree.root.told
    asked = [one.said for one in told if one.is_prompt and one.said]
    answered = [one.said for one in told if one.role == "assistant" and one.said]
    used = sum((one.usage for one in told), Usage())
    return RunBody(
        last_user=asked[-1] if asked else None,
        last_assistant=answered[-1] if answered else None,
        totals=tuple(totals(info, used)),
        attributes=attributes,
        raw=raw,
    )


def totals(info: Info, used: Usage) -> Iterator[Total]:
    """What a session declares, recounted over its own steps: those that a fork copied count, those of sub-agents not.

    Sessions from before opencode counted have zeros everywhere, which says nothing.
    """
    tokens, cache = info.tokens, child(info.tokens, "cache")
    declared = [whole(tokens.get(name)) for name in _COUNTS] + [whole(cache.get(name)) for name in ("read", "write")]
    cost = number(info.cost)
    if not any(declared) and not cost:
        return
    fresh = None
    if used.input_tokens is not None:
        fresh = used.input_tokens - (used.cache_read_tokens or 0) - (used.cache_creation_tokens or 0)
    said = None if used.output_tokens is None else used.output_tokens - (used.reasoning_tokens or 0)
    counted = [fresh, said, used.reasoning_tokens, used.cache_read_tokens, used.cache_creation_tokens]
    names = [*(f"tokens.{name}" for name in _COUNTS), "tokens.cache.read", "tokens.cache.write"]
    for name, stated, found in zip(names, declared, counted, strict=True):
        if stated is not None:
            yield Total(name, stated, found)
    if cost is not None:
        same = used.cost_usd is not None and math.isclose(cost, used.cost_usd, rel_tol=1e-9, abs_tol=1e-12)
        yield Total("cost", cost, cost if same else used.cost_usd)
