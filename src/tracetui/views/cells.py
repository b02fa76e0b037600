"""What the rows of spans are made of: columns and cells."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tracetui.model import Operation, Span
from tracetui.text import Clean, cells, duration, pad, tokens, truncate_middle
from tracetui.views.glyphs import Glyphs
from tracetui.views.masking import one_line
from tracetui.views.rows import Piece

BLANK: Final = Piece(Clean(" "))
_CELLS: Final = 5
_TAKES_TEXT: Final = frozenset({Operation.EXECUTE_TOOL, Operation.RETRIEVAL, Operation.EMBEDDINGS})
_PROSE: Final = re.compile(r"[\w][^\"'{}\[\]=:/\\|;$<>`]*")
"""An argument that reads as words, not as code, path or JSON: shown in quotes."""


_DATED: Final = re.compile(r"[-@]20\d\d-?\d\d-?\d\d(?!\d)")
"""The date in the name of a model's version."""
_NAME_SHARE, _NAME_LEAST = 0.45, 15
"""What a name takes of its cell where what was said would be cut, and the least."""


class Columns(NamedTuple):
    """Cells of each column of a row; 0 where it is left out. One blank stands before each but the first."""

    number: int
    what: int
    tokens: int
    time: int
    bar: int


def token_cell(number: int | None, glyphs: Glyphs) -> Piece:
    """A number of tokens, ``—`` for None."""
    return Piece(pad(glyphs.unsaid if number is None else tokens(number), _CELLS, right=True), "sec")


def time_cell(elapsed: float | None, style: str, glyphs: Glyphs) -> Piece:
    """How long something took, in ms; ``—`` for None."""
    if elapsed is None:
        return Piece(pad(glyphs.unsaid, _CELLS, right=True), "dim")
    return Piece(pad(duration(elapsed), _CELLS, right=True), style)


def argument(span: Span) -> Clean:
    """What a span was given, in one line; empty where its header does not say."""
    text = one_line(span.preview, 200)
    if span.operation is Operation.HOOK and text.startswith(span.name):  # ``PostToolUse`` of ``PostToolUse:Bash``
        text = Clean(text[len(span.name) :].lstrip(":"))
    if text and span.operation in _TAKES_TEXT and _PROSE.fullmatch(text):
        return Clean(f'"{text}"')
    return text


def short_name(span: Span) -> Clean:
    """The name of a span; of a model without the date of its version, which the detail has."""
    name = one_line(span.name, 120)
    return Clean(_DATED.sub("", name) or name) if span.operation is Operation.CHAT else name


def name_beside(span: Span, given: Clean, room: int) -> Clean:
    """The name of a span in a cell of `room`: cut in its middle where what stands beside it, which tells calls apart,
    would be cut instead.
    """
    name = short_name(span)
    if not given or cells(name) + 1 + cells(given) <= room:
        return name
    return truncate_middle(name, max(_NAME_LEAST, int(room * _NAME_SHARE)))
