"""What most formats have in common about messages: a text, or a list of parts."""

from __future__ import annotations

from typing import Any

from tracetui.formats.scalars import mapping, word
from tracetui.model import Blob, Part, Text


def text_in(content: Any) -> str:
    """The text of a message: text itself, or the texts of its parts."""
    if isinstance(content, str):
        return content
    texts = [mapping(part).get("text") for part in content] if isinstance(content, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))


def parts_in(content: Any) -> tuple[list[Part], Any]:
    """A message as parts, and the message itself where these do not show all of it."""
    if isinstance(content, str):
        return ([Text(content)] if content else []), None
    if not isinstance(content, list):
        return [], content
    complete = True
    found: list[Part] = []
    for item in content:
        text = mapping(item).get("text")
        if isinstance(text, str):
            found.append(Text(text))
            complete = complete and item.keys() <= {"type", "text"}
        else:
            found.append(Blob(word(mapping(item).get("type")) or "part", item))
    return found, None if complete else content
