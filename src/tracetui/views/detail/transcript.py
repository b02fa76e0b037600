"""Messages as rows: role, colored bar, text, reasoning, tool calls and results."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from tracetui.analysis.edits import edits_of
from tracetui.analysis.values import value_text
from tracetui.model import Message, Part, Reasoning, Text, ToolCall, ToolResult
from tracetui.text import Clean, grouped, one_line, pad
from tracetui.views.detail.styled import edit_lines, edit_source, prose
from tracetui.views.document import document, json_compact
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Fold, Line, Piece, Rows, width_of
from tracetui.views.sheet import Cut
from tracetui.views.stack import Margin, Stack, StyledRows, TextRows

_ROLES: Final = {
    "user": "role.user",
    "human": "role.user",
    "assistant": "role.assistant",
    "model": "role.assistant",
    "ai": "role.assistant",
    "system": "role.system",
    "developer": "role.system",
    "tool": "role.tool",
    "function": "role.tool",
}
_MAX_ROWS: Final = 12
"""Rows per part before it folds."""
_LATEST: Final = 20
_PAGE: Final = 500
_ROLE_WIDTH: Final = 9


def transcript(
    messages: Sequence[Message],
    *,
    width: int,
    name: str = "messages",
    opened: frozenset[Hashable] = frozenset(),
    glyphs: Glyphs = UNICODE,
    before: int = 0,
    new: range = range(0),
) -> Stack:
    """The rows of a conversation: the latest messages, and a row that unfolds earlier ones.

    `before` is the number of earlier messages of the conversation, for unique keys. `new` are the new messages, which
    are highlighted; all others are folded.
    """
    start = max(0, len(messages) - _LATEST)
    if start < 3:
        start = 0
    start = max(start, new.start)
    while start and (name, "earlier", start) in opened:
        start = max(0, start - _PAGE)
    parts: list[Rows] = []
    if start:
        parts.append(_Earlier(start, name, messages[:start], glyphs))
    for i in range(start, len(messages)):
        sign = glyphs.only_b if i in new else " " if new else ""
        parts.extend(_message(messages[i], width, (name, before + i), opened, glyphs, Clean(sign)))
    return Stack(parts)


class _Earlier(Cut):
    """The row of the folded earlier messages."""

    def __init__(self, count: int, name: str, messages: Sequence[Message], glyphs: Glyphs) -> None:
        roles = Clean(", ".join(dict.fromkeys(one_line(message.role, 20) for message in messages[:500])))
        words = Clean(f"{glyphs.folded} {grouped(count)} earlier message{'' if count == 1 else 's'}: {roles}")
        super().__init__([(Piece(words, "dim"),)], keys=[(name, "earlier", count)])
        self._messages = messages

    def plain(self, index: int) -> str:
        return "\n".join(value_text(_content(part)) for message in self._messages for part in message.parts)

    def fold(self, index: int) -> Fold | None:
        return Fold(self.key(index), False)

    def parent(self, index: int) -> int | None:
        return None


def earlier_messages(rows: Rows) -> Hashable | None:
    """The fold of the earlier messages, if there is one."""
    keys = map(rows.key, range(len(rows)))
    return next((key for key in keys if isinstance(key, tuple) and key[1:2] == ("earlier",)), None)


def _message(
    message: Message, width: int, place: Hashable, opened: frozenset[Hashable], glyphs: Glyphs, sign: Clean
) -> list[Rows]:
    """Put `sign` left of the first row, and align the others."""
    rows = _rows_of(message, width - 2 * len(sign), place, opened, glyphs)
    if not sign:
        return rows
    blank = Piece(Clean("  "))
    return [
        Margin(one, (Piece(Clean(f"{sign} "), "diff.add") if not i else blank,), (blank,)) for i, one in enumerate(rows)
    ]


def _rows_of(message: Message, width: int, place: Hashable, opened: frozenset[Hashable], glyphs: Glyphs) -> list[Rows]:
    role = one_line(message.name or message.role, 40)
    style = _ROLES.get(message.role.lower(), "sec")
    found: list[Rows] = []
    for i, part in enumerate(message.parts):
        found.append(_part(part, role, style, width, (place, i), opened, glyphs))
        role = role if isinstance(part, Reasoning) else Clean("")
    if not found:
        found.append(_row(role, style, Piece(glyphs.missing, "dim"), (place, 0), width, glyphs))
    if message.finish_reason:
        words = Piece(Clean(f"stop: {one_line(message.finish_reason, 80)}"), "dim")
        found.append(_row(Clean(""), style, words, (place, "stop"), width, glyphs))
    return found


def _row(role: Clean, style: str, piece: Piece, key: Hashable, width: int, glyphs: Glyphs) -> Rows:
    first, _ = margin(role, style, width, glyphs)
    return Cut([(*first, piece)], keys=[key])


def margin(role: Clean, style: str, width: int, glyphs: Glyphs, bar: str = "") -> tuple[Line, Line]:
    """The left margin of a message: role on the first row, colored bar on all rows."""
    size = _ROLE_WIDTH if width >= 40 else min(_ROLE_WIDTH, width // 4)
    upright = (Piece(glyphs.role, bar or style), Piece(Clean(" ")))
    return (
        (Piece(Clean(pad(role, size) + " "), f"{style} bold"), *upright),
        (Piece(Clean(" " * (size + 1))), *upright),
    )


def _part(
    part: Part, role: Clean, style: str, width: int, place: Hashable, opened: frozenset[Hashable], glyphs: Glyphs
) -> Rows:
    if isinstance(part, Reasoning):
        role, style = Clean(f"{glyphs.reasoning} thought"), "role.reasoning"
    bar = "role.tool" if isinstance(part, (ToolCall, ToolResult)) else style
    first, rest = margin(role, style, width, glyphs, bar)
    lead, text_style = _lead(part, glyphs)
    indent = Piece(Clean(" " * width_of(lead)))
    room = max(8, width - width_of(first) - width_of(lead))
    content = _content(part)
    if isinstance(part, ToolCall):
        compact = json_compact(content, room * 2, glyphs)
        if compact is not None and not isinstance(content, str):
            content = "".join(piece.text for piece in compact)
    edits = edits_of(part.arguments) if isinstance(part, ToolCall) else []
    rows: Rows
    if edits:
        lines, source = edit_lines(edits, room, glyphs), edit_source(edits)
        rows = StyledRows(lines, source, name=place, most=_MAX_ROWS, opened=opened, glyphs=glyphs)
    elif isinstance(part, Text | Reasoning):
        rows = prose(part.text, room, name=place, style=text_style, most=_MAX_ROWS, opened=opened, glyphs=glyphs)
    elif isinstance(content, str):
        rows = TextRows(content, room, name=place, style=text_style, most=_MAX_ROWS, opened=opened, glyphs=glyphs)
    else:
        rows = document(content, width=room, name=place, opened=opened, glyphs=glyphs)
    return Margin(rows, (*first, *lead), (*rest, indent) if lead else rest)


def _content(part: Part) -> object:
    if isinstance(part, (Text, Reasoning)):
        return part.text
    if isinstance(part, ToolCall):
        return part.arguments
    if isinstance(part, ToolResult):
        return part.content
    return {part.kind: part.data}


def _lead(part: Part, glyphs: Glyphs) -> tuple[Line, str]:
    """The lead of a part, and the style of its text."""
    if isinstance(part, ToolCall):
        name = one_line(part.name, 40) or glyphs.missing
        return (Piece(Clean(f"{glyphs.arrow} {name} "), "role.tool"),), "sec"
    if isinstance(part, ToolResult):
        lead = [Piece(Clean(f"{one_line(part.name, 40)} {glyphs.arrow} "), "dim")] if part.name else []
        if part.is_error:
            lead.append(Piece(Clean(f"{glyphs.error} "), "status.error"))
        return tuple(lead), "status.error" if part.is_error else "sec"
    return (), "role.reasoning" if isinstance(part, Reasoning) else "text"


def last_reply(messages: Sequence[Message]) -> int:
    """Index of the model's last reply, which may span several messages; 0 without one."""
    at = len(messages)
    while at and not _replied(messages[at - 1]):
        at -= 1
    while at and _replied(messages[at - 1]):
        at -= 1
    return at


def _replied(message: Message) -> bool:
    return _ROLES.get(message.role.lower()) == "role.assistant"
