"""Messages as rows: role, colored bar, text, reasoning, tool calls and results.

Markdown of messages, code and file edits are styled: edits are unified diffs, from the arguments of tool calls of the
common shapes, whatever the tool and format.

Text is untrusted: each piece passes `clean` after the Markdown parser has decoded it. HTML stays text.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tracetui.analysis.effects import Edit, edits_of
from tracetui.analysis.values import value_text
from tracetui.masking import clean, one_line
from tracetui.model import Message, Part, Reasoning, Text, ToolCall, ToolResult
from tracetui.text import Clean, cells, grouped, pad, quantity, truncate, wrap
from tracetui.views.document import document, json_compact
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Fold, Line, Piece, Rows, width_of
from tracetui.views.sheet import Cut
from tracetui.views.stack import Margin, Stack, StyledRows, TextRows

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


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
        parts.append(_Earlier(start, name, messages[:start], glyphs, explains_sign=bool(new)))
    for i in range(start, len(messages)):
        sign = glyphs.only_b if i in new else " " if new else ""
        parts.extend(_message(messages[i], width, (name, before + i), opened, glyphs, Clean(sign)))
    return Stack(parts)


class _Earlier(Cut):
    """The row of the folded earlier messages."""

    def __init__(
        self, count: int, name: str, messages: Sequence[Message], glyphs: Glyphs, *, explains_sign: bool
    ) -> None:
        roles = Clean(", ".join(dict.fromkeys(one_line(message.role, 20) for message in messages[:500])))
        label = Clean(f"{glyphs.folded} {quantity(count, 'earlier message')}: {roles}")
        new = (Piece(Clean(f" {glyphs.dot} "), "dim"), Piece(glyphs.only_b, "diff.add"), Piece(Clean(" new"), "dim"))
        line = (Piece(label, "dim"), *(new if explains_sign else ()))
        super().__init__([line], keys=[(name, "earlier", count)])
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
        Margin(row, (Piece(Clean(f"{sign} "), "diff.add") if not i else blank,), (blank,)) for i, row in enumerate(rows)
    ]


def _rows_of(message: Message, width: int, place: Hashable, opened: frozenset[Hashable], glyphs: Glyphs) -> list[Rows]:
    role = one_line(message.name or message.role, 40)
    style = _ROLES.get(message.role.lower(), "sec")
    rows: list[Rows] = []
    for i, part in enumerate(message.parts):
        rows.append(_part(part, role, style, width, (place, i), opened, glyphs))
        role = role if isinstance(part, Reasoning) else Clean("")
    if not rows:
        rows.append(_row(role, style, Piece(glyphs.missing, "dim"), (place, 0), width, glyphs))
    if message.finish_reason:
        reason = Piece(Clean(f"stop: {one_line(message.finish_reason, 80)}"), "dim")
        rows.append(_row(Clean(""), style, reason, (place, "stop"), width, glyphs))
    return rows


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
    while at and not _is_reply(messages[at - 1]):
        at -= 1
    while at and _is_reply(messages[at - 1]):
        at -= 1
    return at


def _is_reply(message: Message) -> bool:
    return _ROLES.get(message.role.lower()) == "role.assistant"


_LONGEST: Final = 1 << 15
"""Longer texts are shown as they are."""
_LONGEST_CODE: Final = 1 << 13
"""Longer code isn't highlighted."""
_MARKUP: Final = re.compile(r"`\S|(?<!\w)[*_]{1,3}\w|^\s{0,3}(#{1,6} |[-+*] |\d+[.)] |>|\||~~~)|\]\(", re.MULTILINE)


def prose(
    text: str,
    width: int,
    *,
    name: Hashable,
    style: str = "text",
    most: int | None = None,
    opened: frozenset[Hashable] = frozenset(),
    glyphs: Glyphs = UNICODE,
) -> StyledRows | TextRows:
    """The rows of a message: Markdown rendered; text without markup, and very long text, as it is."""
    if len(text) > _LONGEST or not _MARKUP.search(text):
        return TextRows(text, width, name=name, style=style, most=most, opened=opened, glyphs=glyphs)
    lines = markdown(text, width, style, glyphs)
    return StyledRows(lines, text, name=name, most=most, opened=opened, glyphs=glyphs)


# ---- Markdown


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def markdown(text: str, width: int, style: str = "text", glyphs: Glyphs = UNICODE) -> list[Line]:
    """Render Markdown in `width` cells. Line breaks stay."""
    return _Renderer(max(8, width), style, glyphs).render(_parser().parse(text))


class _Renderer:
    """Renders the tokens of a text."""

    def __init__(self, width: int, style: str, glyphs: Glyphs) -> None:
        self._width, self._style, self._glyphs = width, style, glyphs
        self._lines: list[Line] = []
        self._margins: list[Piece] = []
        """Margins of the open lists and quotes."""
        self._bullet: Clean | None = None
        """The mark of a list item whose first line is not yet written."""
        self._numbers: list[int | None] = []
        self._bold = False
        self._table: list[list[list[Piece]]] | None = None

    def render(self, tokens: Sequence[Token]) -> list[Line]:
        for token in tokens:
            self._block(token)
        while self._lines and not width_of(self._lines[-1]):
            self._lines.pop()
        return self._lines

    def _block(self, token: Token) -> None:
        if token.type in ("bullet_list_open", "ordered_list_open"):
            start = token.attrGet("start")
            self._numbers.append(None if token.type.startswith("bullet") else int(start) if start is not None else 1)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            self._numbers.pop()
            self._space(token)
        elif token.type == "list_item_open":
            number = self._numbers[-1]
            self._bullet = Clean(f"{self._glyphs.dot} " if number is None else f"{number}. ")
            self._numbers[-1] = None if number is None else number + 1
            self._margins.append(Piece(Clean(" " * cells(self._bullet))))
        elif token.type == "blockquote_open":
            self._margins.append(Piece(Clean(f"{self._glyphs.guide} "), "line"))
        elif token.type in ("list_item_close", "blockquote_close"):
            self._margins.pop()
            self._bullet = None
            if token.type == "blockquote_close" and self._lines and all(p.style == "line" for p in self._lines[-1]):
                self._lines[-1] = tuple(piece for piece in self._margins if piece.style == "line")
        elif token.type in ("heading_open", "heading_close"):
            self._bold = token.type == "heading_open"
            self._space(token)
        elif token.type == "inline":
            self._inline(token)
        elif token.type == "paragraph_close":
            self._space(token)
        elif token.type in ("fence", "code_block"):
            self._code(token.content.removesuffix("\n"), token.info.split(" ")[0])
        elif token.type == "hr":
            self._write([Piece(Clean(self._glyphs.rule * min(20, self._room)), "line")])
        else:
            self._table_token(token)

    def _table_token(self, token: Token) -> None:
        if token.type == "table_open":
            self._table = []
        elif token.type == "tr_open" and self._table is not None:
            self._table.append([])
        elif token.type == "table_close" and self._table is not None:
            rows, self._table = self._table, None
            self._write_table(rows)
            self._space(token)

    @property
    def _room(self) -> int:
        return max(8, self._width - width_of(self._margins))

    def _space(self, token: Token) -> None:
        """An empty line after a block; not in a tight list."""
        if not token.hidden and self._lines and width_of(self._lines[-1]) and not self._numbers:
            self._lines.append(tuple(piece for piece in self._margins if piece.style == "line"))

    def _write(self, pieces: Sequence[Piece]) -> None:
        """Write a line behind the margins."""
        margins = list(self._margins)
        if self._bullet is not None:
            margins[-1] = Piece(self._bullet, "dim")
            self._bullet = None
        self._lines.append((*margins, *pieces))

    def _inline(self, token: Token) -> None:
        lines = list(_inline_lines(token.children or (), "bold" if self._bold else "", self._style))
        if self._table is not None and self._table:
            self._table[-1].append([piece for line in lines for piece in line])
            return
        for line in lines:
            for row in wrap_pieces(line, self._room):
                self._write(row)

    def _code(self, text: str, language: str) -> None:
        guide = Piece(Clean(f"{self._glyphs.guide} "), "line")
        for line in highlight(text, language):
            for row in wrap_pieces(line, max(8, self._room - 2)):
                self._write((guide, *row))
        self._lines.append(())

    def _write_table(self, rows: list[list[list[Piece]]]) -> None:
        """Aligned columns if they fit, else the cells of a row in one text."""
        count = max(map(len, rows), default=0)
        sizes = [max((width_of(row[i]) for row in rows if i < len(row)), default=0) for i in range(count)]
        fits = sum(sizes) + 3 * (count - 1) <= self._room
        bar = Piece(Clean(f" {self._glyphs.guide} "), "line")
        for number, row in enumerate(rows):
            line: list[Piece] = []
            for i, cell in enumerate(row):
                style = [piece._replace(style=f"{piece.style} bold") for piece in cell] if not number else cell
                blank = Piece(Clean(" " * (sizes[i] - width_of(cell)))) if fits else Piece(Clean(""))
                line += (*([bar] if i else []), *style, blank)
            for part in wrap_pieces(line, self._room):
                self._write(part)


def _inline_lines(tokens: Sequence[Token], extra: str, base: str) -> Iterator[list[Piece]]:
    """The lines of inline content. Links keep their address."""
    styles, line = [extra] if extra else [], list[Piece]()
    link = ""
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield line
            line = []
        elif token.type in _INLINE:
            styles.append(_INLINE[token.type])
        elif token.type in ("strong_close", "em_close", "s_close"):
            styles.pop()
        elif token.type == "link_open":
            link, label_start = str(token.attrGet("href") or ""), len(line)
        elif token.type == "link_close":
            label = "".join(piece.text for piece in line[label_start:])
            line[label_start:] = [piece._replace(style="accent") for piece in line[label_start:]]
            if link and clean(link) != label:
                line.append(Piece(Clean(f" ({clean(link)})"), "dim"))
        elif token.type == "code_inline":
            line.append(Piece(clean(token.content), "role.tool"))
        else:  # text, and the alternative text of an image
            line.append(Piece(clean(token.content), " ".join(dict.fromkeys([base, *filter(None, styles)]))))
    yield line


_INLINE: Final = {"strong_open": "bold", "em_open": "underline", "s_open": "strike"}


def wrap_pieces(line: Sequence[Piece], width: int) -> list[Line]:
    """Wrap styled text at blanks, as `wrap` does."""
    text = Clean("".join(piece.text for piece in line))
    rows: list[Line] = []
    at = 0
    for row in wrap(text, width):
        while not text.startswith(row, at):
            at += 1
        rows.append(tuple(_slice(line, at, at + len(row))))
        at += len(row)
    return rows


def _slice(line: Sequence[Piece], start: int, stop: int) -> Iterator[Piece]:
    at = 0
    for piece in line:
        part = piece.text[max(0, start - at) : max(0, stop - at)]
        if part:
            yield Piece(Clean(part), piece.style)
        at += len(piece.text)


# ---- code


def highlight(text: str, language: str) -> list[list[Piece]]:
    """The lines of code in the styles of their tokens; of an unknown language and of long code, plain."""
    lexer = _lexer(language[:40]) if language and len(text) <= _LONGEST_CODE else None
    if lexer is None:
        return [[Piece(clean(line), "sec")] for line in text.split("\n")]
    lines: list[list[Piece]] = [[]]
    for kind, value in lexer.get_tokens(text):
        style = next((style for name, style in _token_styles() if kind in name), "text")
        first, *rest = value.split("\n")
        lines[-1] += [Piece(clean(first), style)] if first else []
        lines += ([Piece(clean(line), style)] if line else [] for line in rest)
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines


@cache
def _token_styles() -> tuple[tuple[Any, str], ...]:
    from pygments.token import Comment, Keyword, Name, Number, String

    return (
        (Comment, "dim"),
        (Keyword, "json.word"),
        (String, "role.tool"),
        (Number, "json.number"),
        (Name.Function, "json.key"),
        (Name.Class, "json.key"),
    )


def _lexer(language: str) -> Any:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None


# ---- file edits


def edit_lines(edits: Sequence[Edit], width: int, glyphs: Glyphs = UNICODE) -> list[Line]:
    """File edits as unified diffs: a line with path and counts, then the changed lines."""
    lines: list[Line] = []
    for edit in edits:
        counts = f"  +{grouped(edit.added)} {glyphs.only_a}{grouped(edit.removed)}"
        path = truncate(one_line(edit.path, 300) or glyphs.missing, max(8, width - len(counts)))
        lines.append((Piece(path, "text bold"), Piece(Clean(counts), "dim")))
        lines += changed_lines(edit, width, glyphs)
    return lines


def changed_lines(edit: Edit, width: int, glyphs: Glyphs = UNICODE) -> list[Line]:
    """The changed lines of a file, with some around them."""
    return [row for line in edit.lines for row in _edit_line(line, width, glyphs)]


def _edit_line(line: str, width: int, glyphs: Glyphs) -> Iterator[Line]:
    sign = line[:1]
    if sign == "@":
        yield (Piece(Clean(glyphs.cut), "dim"),)
        return
    mark, sign_style, style = _SIGNS.get(sign, (" ", "dim", "sec"))
    sign_text = glyphs.only_a if mark == "-" else glyphs.only_b if mark == "+" else Clean(" ")
    for i, row in enumerate(wrap(clean(line[1:] if sign in "+- " else line), max(8, width - 2))):
        text = pad(row, max(8, width - 2)) if mark != " " else row
        yield (Piece(Clean(f"{sign_text if not i else ' '} "), sign_style), Piece(text, style))


_SIGNS: Final = {"+": ("+", "diff.add", "diff.add.line"), "-": ("-", "diff.rem", "diff.rem.line")}


def edit_source(edits: Sequence[Edit]) -> str:
    """The text of edits, for search and copy."""
    return "\n".join("\n".join((edit.path, *edit.lines)) for edit in edits)
