"""Values that LangGraph serialized, as plain data. Nothing is imported, called or unpickled.

Facts: langgraph-checkpoint 1.0.12 and 4.3.2 (``JsonPlusSerializer``). Objects are extensions 0 to 5 of MessagePack:
module, name and arguments; 6 is an array of numpy, 7 another value. In JSON: ``{"lc": 2, "id": […], "kwargs": {…}}``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from string import printable
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.msgpack import Decoder, Ext

from tracetui.errors import FormatError
from tracetui.formats import decode as documents
from tracetui.formats.bodies import add_field, rendered

TYPE: Final = "@type"
"""The field of an object that names its class."""
PICKLE: Final = "pickle"
MAX_BYTES: Final = 64 << 20
"""Bytes of a blob that is read."""
MAX_VALUES: Final = 4 << 20
"""Values in a blob that is read, by an upper bound: its bytes that are no ASCII."""
MAX_DEPTH: Final = 64
_ARRAY: Final = 6
_NESTED: Final = 7
_OBJECTS: Final = frozenset(range(_ARRAY))
_PRINTABLE: Final = printable.encode()
_any: Final = Decoder()
_fields: Final = Decoder(dict[str, Raw])
_items: Final = Decoder(list[Raw])
_ERRORS: Final = (msgspec.DecodeError, ValueError, RecursionError, TypeError)


def packed(kind: Any, data: Any) -> bytes:
    """A blob of type `kind` as MessagePack. Raises `FormatError` for pickles and other types that are not read."""
    blob = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if kind == "null" or blob is None:
        return b"\xc0"
    if not isinstance(blob, bytes):
        raise FormatError(f"no blob but {type(blob).__name__}")
    if len(blob) > MAX_BYTES:
        raise FormatError(f"{len(blob)} bytes are too many")
    if kind == "msgpack":
        return blob
    if kind == "json" or (kind is None and blob[:1] in (b"{", b"[")):
        try:
            return msgspec.msgpack.encode(documents.decode(blob)[0])
        except (ValueError, OverflowError, RecursionError, TypeError):
            raise FormatError("JSON with values that are not read") from None
    if kind in ("bytes", "bytearray"):
        return msgspec.msgpack.encode(blob)
    raise FormatError("pickle, not loaded" if kind == PICKLE else f"type {str(kind)[:40]!r} is not read")


def fields_of(blob: bytes) -> dict[str, bytes]:
    """The fields of an object, undecoded. Raises `FormatError` if it is none."""
    try:
        return {name: bytes(raw) for name, raw in _fields.decode(blob).items()}
    except _ERRORS as error:
        raise FormatError(f"no object: {str(error)[:80]}") from None


def items_of(blob: bytes) -> Iterator[bytes]:
    """The items of a list, undecoded; a value that is no list is its only item."""
    try:
        yield from map(bytes, _items.decode(blob))
    except _ERRORS:
        yield blob


def value_of(blob: bytes) -> Any:
    """A value as plain data; objects as dictionaries with a field `TYPE`. Raises `FormatError`."""
    if len(blob) > MAX_VALUES and len(blob.translate(None, _PRINTABLE)) > MAX_VALUES:
        raise FormatError(f"too many values in {len(blob)} bytes")
    try:
        return _plain(_any.decode(blob), 0)
    except _ERRORS as error:
        deep = isinstance(error, RecursionError)
        raise FormatError("nested too deeply" if deep else f"not MessagePack: {str(error)[:80]}") from None


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        for key, item in value.items():
            add_field(fields, key if isinstance(key, str) else _name(key, depth), _plain(item, depth + 1))
        return _constructed(fields) if "lc" in fields else fields
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, Ext):
        return _object(value.code, bytes(value.data), depth + 1)
    return value.isoformat() if isinstance(value, datetime) else f"{len(value)} bytes"


def _name(key: Any, depth: int) -> str:
    """A key that is no text, as text."""
    name = _plain(key, depth + 1)
    return name if isinstance(name, str) else rendered(name).decode("utf-8", "replace")


def _object(code: int, data: bytes, depth: int) -> Any:
    if code not in _OBJECTS and code not in (_ARRAY, _NESTED):
        return {"@ext": code, "value": f"{len(data)} bytes"}
    value = _plain(_any.decode(data), depth)
    if code == _ARRAY:
        return {TYPE: "numpy.ndarray", "value": value}
    if code == _NESTED:
        return value
    if not isinstance(value, list) or len(value) < 3 or not all(isinstance(name, str) for name in value[:2]):
        return {"@ext": code, "value": value}
    return _typed(".".join(value[:2]), value[2])


def _typed(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict) and TYPE not in value:
        return {TYPE: name, **value}
    return {TYPE: name, "value": value}


def _constructed(fields: dict[str, Any]) -> dict[str, Any]:
    """An object of LangChain's own JSON."""
    path = fields.get("id")
    if not isinstance(path, list) or not path or fields.get("type") not in ("constructor", "not_implemented"):
        return fields
    arguments = fields.get("kwargs", fields.get("args", fields.get("repr")))
    return _typed(".".join(map(str, path)), arguments)
