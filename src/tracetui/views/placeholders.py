"""Rows for panes without content: empty lists, no matches, files that can't be read."""

from __future__ import annotations

from collections.abc import Sequence

from tracetui.formats import registry
from tracetui.masking import clean, clean_lines, one_line
from tracetui.model import Problem
from tracetui.text import Clean, grouped, size, wrap
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Line, ListRows, Piece


def empty(roots: Sequence[str], stage: str, words: str, have_runs: bool) -> list[Line]:
    """An empty run list: scanning, filtered, or no traces."""
    if have_runs:
        shown = [Piece(Clean("No runs match "), "text bold"), Piece(one_line(words or "the filter", 60), "hit")]
        return [(), tuple(shown), (), (*_key("Esc", " clear the filter"),)]
    if stage:
        return [(), (Piece(Clean("scanning …"), "dim"),)]
    count = len(registry.names())
    return [
        (),
        (Piece(Clean("No traces in "), "text bold"), Piece(clean(", ".join(roots), 200), "sec")),
        (),
        (Piece(Clean(f"Searched for {count} formats by content."), "sec"),),
        (Piece(Clean("Hidden directories and symlinks are skipped."), "sec"),),
        (),
        (*_key("tracetui demo", "    open the built-in samples"),),
        (*_key("tracetui doctor", "  show how each file was classified"),),
        (*_key("q", "                quit"),),
    ]


def no_hits(words: str, files: int) -> list[Line]:
    """A finished search without hits."""
    return [
        (),
        (Piece(Clean("No matches for "), "text bold"), Piece(one_line(words, 60), "hit")),
        (),
        (Piece(Clean(f"Searched inputs, outputs, messages and errors in {grouped(files)} files."), "sec"),),
        (Piece(Clean("Case-insensitive unless you type a capital."), "sec"),),
        (),
        (*_key("&", "    search again"),),
        (*_key("Esc", "  back"),),
    ]


def broken(problem: Problem, width: int, note: Clean) -> list[Line]:
    """An unreadable run."""
    where = f"{problem.reason}, {problem.where}" if problem.where else problem.reason
    lines: list[Line] = [
        (),
        (Piece(note, "status.warn bold"), Piece(Clean(" ")), Piece(one_line(where, 300), "status.warn")),
    ]
    lines += [(Piece(part, "sec"),) for part in wrap(clean(problem.path), max(10, width - 2))]
    return [*lines, (), _key("tracetui doctor", " show how each file was classified")]


def _key(key: str, words: str) -> tuple[Piece, Piece]:
    return Piece(Clean(key), "key bold"), Piece(Clean(words), "sec")


def excerpt_rows(
    data: bytes, offset: int, at: int | None, whole: int, *, width: int, glyphs: Glyphs = UNICODE
) -> tuple[ListRows, int]:
    """(Rows, row of the mark) of `data`, which begins at byte `offset` of a file of `whole` bytes."""
    lines: list[Line] = []
    shown = f"bytes {grouped(offset)} to {grouped(offset + len(data))} of {size(whole)}"
    lines.append((Piece(Clean(shown if data else "empty file"), "dim"),))
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
