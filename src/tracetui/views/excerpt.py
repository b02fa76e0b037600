"""A file that cannot be read, as rows: its own text up to the place, a mark there, and what follows."""

from __future__ import annotations

from tracetui.text import Clean, grouped, size, wrap
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.masking import clean_lines
from tracetui.views.rows import Line, ListRows, Piece


def excerpt_rows(
    data: bytes, offset: int, at: int | None, whole: int, *, width: int, glyphs: Glyphs = UNICODE
) -> tuple[ListRows, int]:
    """(Rows, the row with the mark) of `data`, which begins at byte `offset` of a file of `whole` bytes."""
    lines: list[Line] = []
    shown = f"bytes {grouped(offset)} to {grouped(offset + len(data))} of {size(whole)}"
    lines.append((Piece(Clean(shown if data else "the file is empty"), "dim"),))
    before, after = (data, b"") if at is None else (data[:at], data[at:])
    lines += _text(before, "text", width)
    marked = len(lines) - 1
    if at is not None:
        here = Piece(Clean(f"{glyphs.end} byte {grouped(offset + at)}: reading stopped here"), "status.error bold")
        lines.append((here,))
        marked = len(lines) - 1
        lines += _text(after, "dim", width)
    return ListRows(lines, marks={marked: "status.error"} if at is not None else None), marked if at is not None else 0


def _text(data: bytes, style: str, width: int) -> list[Line]:
    if not data:
        return []
    text = data.decode("utf-8", "backslashreplace")
    return [(Piece(part, style),) for line in clean_lines(text) for part in wrap(line, max(1, width))]
