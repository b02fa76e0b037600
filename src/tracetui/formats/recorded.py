"""What a source records about a file beside its content (`Facts`), as part of the run in it."""

from __future__ import annotations

from msgspec.structs import replace

from tracetui.formats.base import Chunk
from tracetui.model import RunSummary
from tracetui.sources.base import FACTS, Facts, File


def summary_with_facts(run: RunSummary, file: File) -> RunSummary:
    """The summary of a run, with the tags that the source of its file records."""
    facts: Facts | None = file.memo.get(FACTS)
    return run if facts is None else run.replace(tags=(*run.tags, *facts.tags))


def chunk_with_facts(chunk: Chunk, file: File) -> Chunk:
    """A chunk of a run: its header with the tags, its body with the attributes that the source of its file records."""
    facts: Facts | None = file.memo.get(FACTS)
    if facts is None:
        return chunk
    header, body = chunk.header, chunk.body
    if header is not None:
        header = replace(header, tags=(*header.tags, *facts.tags))
    if body is not None:
        body = replace(body, attributes={**body.attributes, **facts.attributes}, commits=facts.commits)
    return replace(chunk, header=header, body=body)
