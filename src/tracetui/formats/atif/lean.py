"""The steps of a trajectory decoded for counting: typed decoding passes over what tools answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict

import msgspec

from tracetui.formats.decode import skippable


class _Call(TypedDict, total=False):
    tool_call_id: Any
    function_name: Any
    extra: Any


class _Result(TypedDict, total=False):
    source_call_id: Any
    content: msgspec.Raw
    extra: Any
    subagent_trajectory_ref: Any


class _Observation(TypedDict, total=False):
    results: list[_Result] | None


class _Step(TypedDict, total=False):
    source: Any
    step_id: Any
    timestamp: Any
    message: Any
    model_name: Any
    llm_call_count: Any
    metrics: Any
    is_copied_context: Any
    extra: Any
    tool_calls: list[_Call] | None
    observation: _Observation | None


_decode: Final = msgspec.json.Decoder(list[_Step]).decode


def lean_steps(data: bytes, steps: msgspec.Raw) -> Sequence[Mapping[str, Any]]:
    """The `steps` of the trajectory that `data` is, with the fields that count; contents as they are written.

    Raises `ValueError` where they are not as the specification has them.
    """
    skippable(data)
    return _decode(steps)
