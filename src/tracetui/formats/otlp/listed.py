"""A trace in the list of a store: counts that the database made, and the root span.

Each value is the one that reading all spans gives, or it is left out until they are read.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tracetui.formats.jsonl import Line
from tracetui.formats.otlp.rows import Row, record_of_row
from tracetui.formats.otlp.trace import Trace
from tracetui.formats.scalars import word
from tracetui.model import RunRef, RunSummary, Status, StatusSource, Usage
from tracetui.model.build import summary_of
from tracetui.sources.base import File

_BEGIN: Final = b'{"Listed":'


class _Root(Row, array_like=True):
    pass


class _Listed(msgspec.Struct, rename="pascal"):
    trace_id: str
    spans: int
    ids: int
    """Different ids of spans."""
    first_ns: str
    """The first start, ``0`` without one."""
    may_fail: int
    """Spans with something that may be an error."""
    may_be_scored: int
    """Spans with something that may be an evaluation."""
    roots: int
    root_first: bool
    """The root begins before all other spans."""
    root: _Root
    """One of the roots."""
    plain_tokens: bool
    """`input` and `output` are those of the trace, unless both are missing."""
    input: int | None
    output: int | None
    plain_models: bool
    """`model` is that of the trace, unless it is empty."""
    model: str
    plain_calls: bool
    """`calls` of models are those of the trace, and steps."""
    calls: int


class _Line(msgspec.Struct, rename="pascal"):
    listed: _Listed


_decode: Final = msgspec.json.Decoder(_Line, strict=False).decode


def is_listed(data: bytes) -> bool:
    """Whether the head of a file is its row in the list of a store."""
    return data.startswith(_BEGIN)


def summary_of_listed(file: File, ref: RunRef) -> RunSummary:
    """The summary of a trace from its row in the list. Raises `ValueError` if it is none."""
    one = _decode(file.head).listed
    trace = Trace(file.path, file.name, summary_only=True)
    is_sure = one.roots == 1 and one.spans == one.ids
    if one.roots == 1:
        trace.take_span(record_of_row(one.root, {}, 0), Line(0, 1, b""), None)
    header = trace.header()
    status, status_word, source = header.status, header.status_word, header.status_source
    if one.roots and not (is_sure and (status is Status.ERROR or not one.may_fail + one.may_be_scored)):
        status, status_word, source = Status.UNKNOWN, None, None
    elif header.ended and status is None:
        status, source = Status.OK, StatusSource.DERIVED
    is_unique, first = one.spans == one.ids, one.root_first and is_sure
    usage = Usage(one.input, one.output) if one.plain_tokens and is_unique else None
    header = msgspec.structs.replace(
        header,
        agent=header.agent if first and trace.agent.value is not None else None,
        model=word(one.model) if one.plain_models else None,
        status=status,
        status_word=status_word,
        status_source=source,
        started_at=int(one.first_ns) / 1e9 if one.first_ns != "0" else None,
        duration_ms=header.duration_ms if is_sure else None,
        usage=usage or None,
        repeats=header.repeats if is_sure else None,
        error=None,
        prompt=header.prompt if first else "",
        scores=(),
        tags=header.tags if is_sure else (),
        source=header.source if first and trace.source.value is not None else None,
        writer=None,
        fields=(),
    )
    made = summary_of(ref, header, None, modified_at=file.stat.mtime, moving=file.moving)
    calls = one.calls if one.plain_calls and is_unique else None
    return made.replace(
        spans=one.ids if is_unique else None,
        steps=calls,
        llm_calls=calls,
        errors=None if one.may_fail else 0,
    )
