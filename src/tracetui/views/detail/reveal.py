"""Reveals one masked value of a body."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tracetui.analysis.values import is_container
from tracetui.model import Body, Message
from tracetui.views.document import ValueKey
from tracetui.views.stack import TextKey

_FIELDS: Final = frozenset({"input", "output", "state", "attributes"})


def reveal_value(body: Body, exact: Body, key: Hashable) -> Body | None:
    """The masked `body` with the value of row `key` of the detail pane taken from `exact`.

    That is the value of a JSON row, or a text or result of a message. None for other rows, and for unmasked values.
    """
    name, path = _place(key)
    if isinstance(name, str) and name in _FIELDS:
        made = _with(getattr(body, name), getattr(exact, name), path)
        found = None if made is None else replace(body, **{name: made})
    else:
        found = _part(body, exact, name, path)
    return None if found is None or found == body else found


def _place(key: Hashable) -> tuple[Hashable, Sequence[Hashable]]:
    if isinstance(key, ValueKey):
        return key.name, key.path
    return (key.name, ()) if isinstance(key, TextKey) else (None, ())


def _part(body: Body, exact: Body, name: Hashable, path: Sequence[Hashable]) -> Body | None:
    """A part of a message. Its rows are named ((``messages``, message number), part number)."""
    if not (isinstance(name, tuple) and len(name) == 2 and isinstance(name[0], tuple) and len(name[0]) == 2):
        return None
    (_, at), number = name
    before = len(body.input_messages)
    field, place = ("input_messages", at) if at < before else ("output_messages", at - before)
    messages: list[Message] = list(getattr(body, field))
    originals: Sequence[Message] = getattr(exact, field)
    if not (place < min(len(messages), len(originals)) and number < len(messages[place].parts)):
        return None
    message, original = messages[place], originals[place].parts[number]
    parts = list(message.parts)
    parts[number] = _revealed_part(parts[number], original, path)
    messages[place] = replace(message, parts=tuple(parts))
    return replace(body, **{field: tuple(messages)})


def _revealed_part(part: Any, original: Any, path: Sequence[Hashable]) -> Any:
    """Replace the visible field of a part: text, arguments, content or data."""
    field = next(name for name in ("text", "arguments", "content", "data") if name in part.__struct_fields__)
    if isinstance(part, msgspec.Struct) and field == "data":
        path = path[1:]  # the first path element is the kind
    made = _with(getattr(part, field), getattr(original, field), path)
    return part if made is None else replace(part, **{field: made})


def _with(value: Any, exact: Any, path: Sequence[Hashable]) -> Any:
    """Replace the value at `path` by the one in `exact`, which has the same structure; names may be masked."""
    above: list[tuple[Any, Hashable]] = []
    for name in path:
        if not is_container(value) or not is_container(exact) or len(value) != len(exact):
            return None
        above.append((value, name))
        if isinstance(value, Mapping):
            names = list(value)
            if name not in names:
                return None
            exact = list(exact.values())[names.index(name)]
        elif isinstance(name, int) and name < len(value):
            exact = exact[name]
        else:
            return None
        value = value[name]
    made = exact
    for container, name in reversed(above):
        if isinstance(container, Mapping):
            made = {**container, name: made}
        else:
            assert isinstance(name, int)
            made = [*container[:name], made, *container[name + 1 :]]
    return made
