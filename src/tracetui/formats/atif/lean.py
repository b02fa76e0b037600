"""The steps of a trajectory decoded for counting: typed decoding passes over what tools answered."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.atif.spans import REF
from tracetui.formats.decode import skippable

_NULL: Final = msgspec.Raw(b"null")


class _Call(msgspec.Struct, gc=False):
    tool_call_id: Any = None
    function_name: Any = None
    extra: Any = None


class _Result(msgspec.Struct, rename={"ref": REF}):
    source_call_id: Any = None
    content: msgspec.Raw = _NULL
    extra: Any = None
    ref: Any = msgspec.UNSET


class _Observation(msgspec.Struct):
    results: list[_Result] | None = None


class _Step(msgspec.Struct):
    source: Any = None
    step_id: Any = None
    timestamp: Any = None
    message: Any = None
    model_name: Any = None
    llm_call_count: Any = None
    metrics: Any = None
    is_copied_context: Any = None
    extra: Any = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None


_decode: Final = msgspec.json.Decoder(list[_Step]).decode


def lean_steps(data: bytes, steps: msgspec.Raw) -> list[dict[str, Any]]:
    """The `steps` of the trajectory that `data` is, with the fields that count; contents as they are written.

    Raises `ValueError` where they are not as the specification has them.
    """
    skippable(data)
    return [_plain(step) for step in _decode(steps)]


def _plain(step: _Step) -> dict[str, Any]:
    found = msgspec.structs.asdict(step)
    if step.tool_calls is not None:
        found["tool_calls"] = list(map(msgspec.structs.asdict, step.tool_calls))
    if step.observation is not None:
        found["observation"] = {"results": [_result(one) for one in step.observation.results or ()]}
    return found


def _result(result: _Result) -> dict[str, Any]:
    found = {"source_call_id": result.source_call_id, "content": result.content, "extra": result.extra}
    if result.ref is not msgspec.UNSET:
        found[REF] = result.ref
    return found
