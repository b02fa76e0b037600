"""A session as a run: its header, what it says about itself, and the session that it was forked from."""

from __future__ import annotations

import re
from typing import Final

from tracetui.errors import FormatError
from tracetui.formats.fields import unknown_fields
from tracetui.formats.labels import folder_of
from tracetui.formats.pi.facts import Facts
from tracetui.formats.scalars import between, layout, mapping, text
from tracetui.formats.tail import parse
from tracetui.model import PREVIEW, Header, RunBody, StatusSource
from tracetui.sources.base import File

AGENT: Final = "pi"
_NAME: Final = re.compile(r"[\w.@+-]{1,200}\.jsonl")
FOLDER: Final = re.compile(r"--.{0,250}--")
"""The folder of a project."""


def header_of(facts: Facts, file: File) -> Header:
    """The header as far as it is known.

    No record says how a session ended: it can always be gone on with. It stands as its last response does, and goes on
    where that called tools, or where something came after it.
    """
    head = facts.head or {}
    cwd = text(head.get("cwd"))
    original, path = original_of(facts, file)
    return Header(
        id=text(head.get("id")) or file.name.removesuffix(".jsonl"),
        name=folder_of(cwd) or AGENT,
        agent=AGENT,
        model=facts.model,
        status=facts.status,
        status_word=facts.word,
        status_source=None if facts.status is None else StatusSource.EXPLICIT,
        ended=facts.status is not None,
        error=facts.failure,
        started_at=facts.first,
        duration_ms=between(facts.first, facts.last) or None,
        replay_of=original if facts.forked else None,
        replay_of_path=path if facts.forked else None,
        relation="fork" if facts.forked else None,
        parent=None if facts.forked else original,
        prompt=facts.prompt or facts.command or "",
        source=cwd[:PREVIEW] if cwd is not None else None,
        writer=layout(head.get("version")),
        size=file.stat.size,
        fields=unknown_fields(facts.strange),
    )


def run_body(facts: Facts) -> RunBody:
    """All that the session says about itself, but for what its entries say."""
    attributes = dict(facts.head or {})
    if facts.title is not None:
        attributes["session_info.name"] = facts.title
    return RunBody(
        last_user=facts.last_user,
        last_assistant=facts.last_assistant,
        attributes=attributes,
        extent=facts.extent,
    )


def original_of(facts: Facts, file: File) -> tuple[str | None, str | None]:
    """Id and path of the session that this one comes from.

    It is told by the path that it had on the machine that wrote this one. Only the last two parts of that count: a file
    of that name beside this one, or in a folder of another project beside this one's.
    """
    if facts.original is None:
        return None, None
    *_, folder, name = ["", *re.split(r"[/\\]", facts.original)]
    stem = name.removesuffix(".jsonl")
    if not _NAME.fullmatch(name) or name == file.name:
        return stem.rpartition("_")[2] or None, None
    relative, path = name, file.sibling(name)
    if path is None and FOLDER.fullmatch(folder):
        relative = f"../{folder}/{name}"
        there = file.folder(f"../{folder}").entries
        path = next((one.path for one in there if one.skipped is None and _last(one.path) == name), None)
    return (_ident(file, relative) if path is not None else None) or stem.rpartition("_")[2], path


def _last(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _ident(file: File, relative: str) -> str | None:
    """The id of the session in another file, as that tells it."""
    try:
        with file.other(relative) as other:
            record, _ = parse(other.head.partition(b"\n")[0])
    except (OSError, FormatError):
        return None
    return text(mapping(record).get("id"))
