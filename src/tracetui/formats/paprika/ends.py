"""A v1 record from its two ends: the facts of its run, and its first steps.

Upstream writes the header, then ``steps``, then input, output, error and extensions; its document shows those before
the steps. Only where exactly that is found is it used; everything else (other orders, names that are not known) is left
to reading the whole file. One thing is not seen here, and corrected by the deep pass: a key that is there twice, the
second time between the steps and another array that ends far from the end of the file.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from tracetui.formats.document import Outline
from tracetui.formats.fields import keys_of
from tracetui.formats.paprika.records import (
    STEP,
    Agent,
    Execution,
    ExecutionRecord,
    Place,
    Policy,
    Totals,
    Trace,
    places_of,
)
from tracetui.sources.base import File

_STEPS: Final = b'"steps":'
_ARRAY_END: Final = re.compile(rb"\][ \r\n\t]*(?=[,}])")
_START: Final = 4_096
_NEAR: Final = 1_024
_FAR: Final = 65_536
_FIRST: Final = 2 << 20
_STEP_END: Final = b"\n    },"
_TRIES: Final = 8
_UNSET: Final = msgspec.UNSET


class _Head(ExecutionRecord, kw_only=True):
    """The object up to its steps. All of these must be in it: a name that is not might come later."""

    schema_version: Any
    record_id: str | None
    parent_record_id: str | None
    replay_of: str | None
    agent: Agent | str | None
    execution: Execution | None
    policy: Policy | None
    totals: Totals | None
    input: Any = _UNSET
    error: Any = _UNSET


class _Tail(msgspec.Struct, forbid_unknown_fields=True):
    """The object from the end of its steps on. Nothing else may be in it: it might repeat a field of the head."""

    input: Any = _UNSET
    output: msgspec.Raw = msgspec.Raw(b"")
    error: Any = _UNSET
    environment: msgspec.Raw = msgspec.Raw(b"")
    extensions: msgspec.Raw = msgspec.Raw(b"")


_HEAD: Final = msgspec.json.Decoder(_Head)
_TAIL: Final = msgspec.json.Decoder(_Tail)


class Start(NamedTuple):
    """What comes before the steps, and the byte at which they begin."""

    facts: ExecutionRecord
    cut: int


def start_of(file: File) -> Start | None:
    """The part of a v1 record before its steps; None where that is not all but input and error."""
    data = file.read(0, _START)
    cut = data.find(_STEPS)
    if cut < 0:
        if len(data) < _START or (cut := file.head.find(_STEPS)) < 0:
            return None
        data = file.head
    try:
        return Start(_HEAD.decode(data[:cut].rstrip(b", \r\n\t") + b"}"), cut)
    except (ValueError, RecursionError):
        return None


def quick_facts(file: File, start: Start) -> ExecutionRecord | None:
    """The facts of a v1 record, from both ends of the file; None where these do not hold them."""
    tail = _tail(file, start.cut)
    if tail is None:
        return None
    facts = start.facts
    if tail.error is not _UNSET:
        facts.error = tail.error
    elif facts.error is _UNSET:
        return None
    if bytes(tail.extensions):
        facts.extensions = tail.extensions
    if tail.input is not _UNSET:
        facts.input = tail.input
    elif facts.input is _UNSET:
        facts.input = None
    return facts


def first_steps(file: File) -> tuple[Trace, list[Place]] | None:
    """A huge record with only its first steps, and their places; None where its two ends do not suffice.

    Only for records written with an indent of two, as upstream does: there the end of a step shows.
    """
    start = start_of(file)
    facts = None if start is None else quick_facts(file, start)
    if start is None or facts is None:
        return None
    data = file.read(start.cut, _FIRST)
    begin, end = data.find(b"["), data.rfind(_STEP_END)
    if begin < 0 or end < begin:
        return None
    data = data[begin : end + len(_STEP_END) - 1] + b"]"
    records = list(Outline(b'{"steps":' + data + b"}", file.path).records("steps", STEP))
    raws = [one.raw for one in records]
    trace = Trace(facts, [one.value for one in records], records=raws, groups=[(i,) for i in range(len(raws))])
    return trace, places_of(data, raws, start.cut + begin)


def _tail(file: File, cut: int) -> _Tail | None:
    """What comes after the steps (which begin at byte `cut`): from as little of the end as they end in."""
    size = file.stat.size
    for length in (_NEAR, _FAR):
        start = max(cut, size - length)
        data = file.read(start, length)
        if (found := _last(data)) is not None or start == cut:
            return found
    return None


def _last(data: bytes) -> _Tail | None:
    """What follows the first end of an array from which on everything is one object: that of the record itself.

    A bracket inside a step leaves closing brackets over, and one inside a string leaves a quotation mark over.
    """
    pretty = data.find(b"\n  ],")
    ends = [pretty + 4] if pretty >= 0 else [end.end() for end in islice(_ARRAY_END.finditer(data), _TRIES)]
    for end in ends:
        rest = b"{" + data[end:].removeprefix(b",")
        try:
            return _TAIL.decode(rest)
        except msgspec.ValidationError:
            if _is_object(rest):
                return None
        except (ValueError, RecursionError):
            continue
    return None


def _is_object(data: bytes) -> bool:
    try:
        keys_of(data)
    except (ValueError, RecursionError):
        return False
    return True
