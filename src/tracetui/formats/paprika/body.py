"""Everything that a Paprika record says about one step."""

from __future__ import annotations

import json
from typing import Any, Final

from tracetui.errors import FormatError
from tracetui.formats.paprika.fields import Raw, value_of
from tracetui.formats.paprika.hash import check
from tracetui.formats.paprika.messages import messages_in, messages_out
from tracetui.formats.scalars import mapping
from tracetui.model import Body

_INPUTS: Final = ("input_data", "args")
_OUTPUT: Final = "output_data"


def body_of(records: list[Raw | dict[str, Any]]) -> Body:
    """The body of a step from its record, or from its start and end event."""
    values = [mapping(_value(record)) for record in records]
    merged = {name: item for value in reversed(values) for name, item in value.items()}  # the start event wins
    sent = next((name for name in _INPUTS if name in merged), None)
    got = next((value[_OUTPUT] for value in reversed(values) if _OUTPUT in value), None)
    chat = "model" in merged or sent == "input_data"
    verdict = check(merged)
    return Body(
        input=None if sent is None else merged[sent],
        output=got,
        input_messages=messages_in(merged.get(sent)) if chat and sent else (),
        output_messages=messages_out(got) if chat else (),
        attributes=_rest(values, sent),
        checks=() if verdict is None else (verdict,),
        raw=b"\n".join(_bytes(record) for record in records),
    )


def _rest(values: list[dict[str, Any]], sent: str | None) -> dict[str, Any]:
    """All that is neither the input nor the output; what the end event says differently stands beside the start's."""
    rest: dict[str, Any] = {}
    for number, value in enumerate(values):
        for name, item in value.items():
            if (name == sent and number == 0) or (name == _OUTPUT and number == len(values) - 1):
                continue
            if name not in rest:
                rest[name] = item
            elif rest[name] != item:
                rest[f"{name} (end)"] = item
    return rest


def _value(record: Raw | dict[str, Any]) -> Any:
    if not isinstance(record, Raw):
        return record
    value = value_of(record)
    if isinstance(value, str):  # even leniently it cannot be decoded
        raise FormatError("this step cannot be decoded", "")
    return value


def _bytes(record: Raw | dict[str, Any]) -> bytes:
    """The exact bytes; a rendering where the file is not strict JSON."""
    if isinstance(record, Raw):
        return bytes(record)
    return json.dumps(record, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass")
