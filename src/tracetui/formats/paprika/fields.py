"""JSON values of a Paprika file: undecoded as long as possible, and of the type that was expected, or absent."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tracetui.errors import FormatError
from tracetui.formats.decode import decode

Raw = msgspec.Raw
_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])
_ANY: Final = msgspec.json.Decoder()


def fields_of(raw: Any) -> dict[str, Any]:
    """The fields of an object, undecoded where that is possible."""
    if isinstance(raw, dict):
        return raw
    try:
        return _OBJECT.decode(raw)
    except (ValueError, RecursionError):
        value = value_of(raw)
        return value if isinstance(value, dict) else {}


def values_of(root: dict[str, Any], *without: str) -> dict[str, Any]:
    """The decoded fields of an object."""
    return {name: value_of(raw) for name, raw in root.items() if name not in without}


def value_of(raw: Any) -> Any:
    """What undecoded JSON means; its text where it cannot be decoded. Anything else is returned as it is."""
    if not isinstance(raw, Raw):
        return raw
    try:
        return _ANY.decode(raw)
    except (ValueError, RecursionError):
        data = bytes(raw)
    try:
        return decode(data)[0]
    except FormatError:
        return data.decode("utf-8", "replace")


def is_null(raw: Any) -> bool:
    """True for JSON null, decoded or not."""
    if not isinstance(raw, Raw):
        return raw is None
    view = memoryview(raw)
    return view.nbytes == 4 and bytes(view) == b"null"


def whole(value: Any) -> int | None:
    """The value if it is a whole number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
