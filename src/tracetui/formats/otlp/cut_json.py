"""JSON in an attribute that a limit cut (``OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT``), up to where it was cut."""

from __future__ import annotations

import re
from typing import Any, Final

from tracetui.formats.decode import strict

_SPACE: Final = re.compile(r"\s*")
_TOKEN: Final = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|-?\d[\d.eE+-]*|true|false|null|NaN|-?Infinity', re.DOTALL
)
_CLOSING: Final = {"{": "}", "[": "]"}
_HALF_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_NAMES: Final = frozenset({'"type"', '"kind"', '"role"', '"id"', '"name"'})
"""Keys of values that mean something else, or nothing, if they are cut."""


def decode_cut(text: str) -> Any:
    """The value of JSON that is cut off: a text that was cut ends in ``…``, other values that were cut are left out.

    None for any other text, and for whole JSON.
    """
    closing: list[str] = []
    """What closes the open arrays and objects, the innermost last."""
    key = before = ""
    position, end, closed = 0, 0, ""
    while token := _TOKEN.match(text, position := _SPACE.match(text, position).end()):  # type: ignore[union-attr]
        word, position = token[0], token.end()
        is_in_object = closing[-1:] == ["}"]
        if word in _CLOSING:
            closing.append(_CLOSING[word])
        elif closing[-1:] == [word]:
            closing.pop()
        elif word[0] == '"' and is_in_object and before in ("{", ","):
            key = word
        if not closing:
            return None
        is_value = word not in ":,{" and word is not key and (word[0] in '"[]}' or position < len(text))
        if is_value:
            end, closed = position, "".join(reversed(closing))
        before = word
    is_value = before == "[" or (before == "," and closing[-1] == "]") or (before == ":" and key not in _NAMES)
    if is_value and text[position : position + 1] == '"':
        text = _HALF_ESCAPE.sub("", text) if _ends_in_escape(text) else text
        end, closed = len(text), '…"' + "".join(reversed(closing))
    try:
        return strict((text[:end] + closed).encode())
    except ValueError:
        return None


def _ends_in_escape(text: str) -> bool:
    """Whether the last escape of a text is cut."""
    match = _HALF_ESCAPE.search(text)
    if match is None:
        return False
    before = text[: match.start()]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 0
