"""The list stage: what a v1 record says of its run, from its head and tail.

Upstream writes the header, then ``steps``, then input, output, error and extensions; its document shows those before
the steps. Only where exactly that is found is it used; everything else (other orders, names that are not known, keys
twice) is left to the typed decode of the whole file.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from tracetui.sources.base import HEAD_SIZE, File

_STEPS: Final = b'"steps":'
_ARRAY_END: Final = re.compile(rb"\][ \r\n\t]*(?=[,}])")
_NEAR: Final = 2_048
_FAR: Final = 65_536
_TRIES: Final = 8
_UNSET: Final = msgspec.UNSET


class _Head(msgspec.Struct):
    """The object up to its steps. All of these must be in it: a name that is not might come later."""

    schema_version: Any
    record_id: Any
    parent_record_id: Any
    replay_of: Any
    agent: Any
    execution: Any
    policy: Any
    totals: Any
    input: Any = _UNSET
    error: Any = _UNSET


class _Tail(msgspec.Struct, forbid_unknown_fields=True):
    """The object from the end of its steps on. Nothing else may be in it: it might repeat what the head said."""

    input: Any = _UNSET
    output: msgspec.Raw = msgspec.Raw(b"")
    error: Any = _UNSET
    environment: msgspec.Raw = msgspec.Raw(b"")
    extensions: msgspec.Raw = msgspec.Raw(b"")


_HEAD: Final = msgspec.json.Decoder(_Head)
_TAIL: Final = msgspec.json.Decoder(_Tail)


def quick_fields(file: File) -> dict[str, Any] | None:
    """The fields of a v1 record from both ends of the file; None where they do not tell."""
    data = file.head
    cut = data.find(_STEPS)
    if cut < 0:
        return None
    try:
        head = _HEAD.decode(data[:cut].rstrip(b", \r\n\t") + b"}")
    except (ValueError, RecursionError):
        return None
    tail = _tail(file, data, cut)
    if tail is None:
        return None
    error = head.error if tail.error is _UNSET else tail.error
    if error is _UNSET:
        return None
    given = head.input if tail.input is _UNSET else tail.input
    return {
        "schema_version": head.schema_version,
        "record_id": head.record_id,
        "parent_record_id": head.parent_record_id,
        "replay_of": head.replay_of,
        "agent": head.agent,
        "execution": head.execution,
        "policy": head.policy,
        "totals": head.totals,
        "input": None if given is _UNSET else given,
        "error": error,
    }


def _tail(file: File, data: bytes, cut: int) -> _Tail | None:
    """What stands behind the steps, from the smallest piece of the end in which they end."""
    if len(data) < HEAD_SIZE:
        return _last(data[max(cut, len(data) - _NEAR) :]) or _last(data[cut:])
    size = file.stat.size
    return _last(file.read(size - _NEAR, _NEAR)) or _last(file.read(max(0, size - _FAR), _FAR))


def _last(data: bytes) -> _Tail | None:
    """The first of the ends of arrays from which on everything is one object, that of the record itself.

    A bracket inside a step leaves closing brackets over, and one inside a string leaves a quotation mark over.
    """
    for number, end in enumerate(_ARRAY_END.finditer(data, max(0, data.find(b"\n  ]")))):
        if number == _TRIES:
            return None
        rest = data[end.end() :]
        try:
            return _TAIL.decode(b"{" + (rest[1:] if rest[:1] == b"," else rest))
        except (ValueError, RecursionError):
            continue
    return None
