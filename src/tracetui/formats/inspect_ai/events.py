"""Events as spans need them: what only a body shows stays undecoded."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.formats.fields import closed, keys_of
from tracetui.formats.inspect_ai.fields import value_of
from tracetui.formats.inspect_ai.known import KNOWN
from tracetui.formats.inspect_ai.samples import Items
from tracetui.formats.scalars import mapping

_NONE: Final = msgspec.Raw(b"null")


class Change(msgspec.Struct, gc=False):
    """One change of the state, without its value."""

    op: Any = None
    path: Any = None


class Light(msgspec.Struct):
    """One event, of any kind. Nothing is said about the type of any field."""

    event: Any = None
    id: Any = None
    span_id: Any = None
    parent_id: Any = None
    type: Any = None
    name: Any = None
    action: Any = None
    timestamp: Any = None
    completed: Any = None
    working_time: Any = None
    pending: Any = None
    model: Any = None
    role: Any = None
    output: Any = None
    error: Any = None
    retries: Any = None
    cache: Any = None
    function: Any = None
    arguments: Any = None
    agent: Any = None
    failed: Any = None
    score: Any = None
    scorer: Any = None
    intermediate: Any = None
    cmd: Any = None
    file: Any = None
    decision: Any = None
    approver: Any = None
    explanation: Any = None
    message: Any = None
    limit: Any = None
    source: Any = None
    tokens_before: Any = None
    tokens_after: Any = None
    sample: Any = None
    input: msgspec.Raw = _NONE
    result: msgspec.Raw = _NONE
    data: msgspec.Raw = _NONE
    changes: msgspec.Raw = _NONE
    events: msgspec.Raw = _NONE
    size: int | None = None
    """Bytes of the event, where they were counted; no field of it."""
    names: tuple[str, ...] = ()
    """Of all its fields, where some are not known; no field of it."""

    def value(self, name: str) -> Any:
        """The value of a field that stays undecoded."""
        return value_of(getattr(self, name))


_decoder: Final = msgspec.json.Decoder(Light)
_closely: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(closed(Light, KNOWN))
_changes: Final = msgspec.json.Decoder(list[Change])
_RAW: Final = ("input", "result", "data", "changes", "events")
_FIELDS: Final = tuple(name for name in Light.__struct_fields__ if name not in ("size", "names"))


def light_of(item: Any) -> Light:
    """What spans need of an event; one without a kind if it is no event at all."""
    if isinstance(item, msgspec.Raw):
        view = memoryview(item)
        try:
            light = _decoded(view)
        except (ValueError, RecursionError):
            light = _from_value(value_of(item))
        light.size = len(view)
        return light
    return _from_value(item)


def _decoded(view: memoryview) -> Light:
    try:
        found: Light = _closely.decode(view)
        found.names = ()
    except msgspec.ValidationError:
        found = _decoder.decode(view)
        found.names = tuple(keys_of(view))
    return found


def _from_value(value: Any) -> Light:
    given = mapping(value)
    light = Light(**{name: given[name] for name in _FIELDS if name in given and name not in _RAW})
    light.names = () if given.keys() <= KNOWN else tuple(given)
    for name in _RAW:
        if name in given:
            setattr(light, name, given[name])
    return light


def lights(items: Items) -> list[Light]:
    """The same of all of them."""
    return [light_of(item) for item in items]


def changed(light: Light) -> list[str]:
    """What a change of the state is about: the paths in it."""
    try:
        found = [change.path for change in _changes.decode(light.changes)]
    except (ValueError, TypeError, RecursionError):
        value = light.value("changes")
        found = [mapping(change).get("path") for change in value] if isinstance(value, list) else []
    return [path for path in found if isinstance(path, str)]
