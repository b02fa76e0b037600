"""The lines of a file as rows: the session that wrote each, and the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tracetui.analysis.blame import NOBODY, LineAnswer
from tracetui.masking import clean
from tracetui.text import Clean, age, grouped, quantity
from tracetui.views.effects import WIDE, EffectRow, EffectRows, People
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Line, Piece, column, fill, fit

_TEXT = 400
"""Characters of a line that are shown."""


class BlameRows(EffectRows):
    """Every line can be under the cursor, also those without a session."""

    def selectable(self, index: int) -> bool:
        return True


def blame_heading(width: int) -> Line:
    """The column headings of `blame_rows`."""
    return tuple(
        fit(
            [
                column(Clean("line"), 6, "dim", right=True),
                column(Clean("  session"), 12 + _title_width(width), "dim"),
                column(Clean("when"), 5, "dim", right=True),
                Piece(Clean("  code"), "dim"),
            ],
            width,
        )
    )


def _title_width(width: int) -> int:
    return 28 if width >= WIDE else 0


def blame_rows(lines: Sequence[LineAnswer], people: People, glyphs: Glyphs = UNICODE) -> BlameRows:
    """A row per line. Only the first of several lines of a step has the session; candidates have a question mark."""
    rows = []
    for number, line in enumerate(lines):
        answer = line.answer
        who = answer.step or answer.candidates
        before = lines[number - 1].answer if number else NOBODY
        repeats = bool(who) and who == (before.step or before.candidates)
        rows.append(_row(line, people, glyphs, repeats=repeats))
    return BlameRows(rows)


def _row(line: LineAnswer, people: People, glyphs: Glyphs, *, repeats: bool) -> EffectRow:
    step = line.answer.step
    first = step or next(iter(line.answer.candidates), None)
    text = clean(line.text.replace("\t", "    "), _TEXT)

    def who(width: int) -> list[Piece]:
        room = _title_width(width)
        if repeats or first is None:
            blank = Clean("  ") if repeats or not line.text.strip() else Clean("  ") + glyphs.missing
            return [column(Clean(blank), 12 + room + 5, "dim")]
        if step is None:
            names = " or ".join(people.name(candidate.run) for candidate in line.answer.candidates)
            return fill(fit([Piece(Clean(f"  ? {names}"), "status.warn")], 16 + room), 17 + room)
        pieces = [Piece(Clean("  ")), *fill(fit([Piece(people.name(step.run), "accent")], 9), 10)]
        if room:
            pieces += fill(fit([Piece(people.title(step.run), "text")], room - 1), room)
        return [*pieces, column(age(people.now - step.at), 5, "dim", right=True)]

    def draw(width: int) -> Line:
        moved = [Piece(Clean(f"{glyphs.path} "), "status.warn")] if line.is_moved and step is not None else []
        return (
            column(Clean(str(line.number)), 6, "dim", right=True),
            *who(width),
            Piece(Clean("  ")),
            *moved,
            Piece(text, "text" if first is not None else "sec"),
        )

    place = None if first is None else (first.run, first.span)
    return EffectRow(line.number, draw, text, place)


def blame_sentence(lines: Sequence[LineAnswer]) -> Line:
    """How many lines have a session, several candidates, or none."""
    counted = [line.answer for line in lines if line.text.strip()]
    single = sum(answer.step is not None for answer in counted)
    ambiguous = sum(bool(answer.candidates) for answer in counted)
    if not single and not ambiguous:
        return (Piece(Clean(f"none: no session wrote any of its {quantity(len(counted), 'line')}"), "text bold"),)
    pieces = [Piece(Clean(f"{grouped(single)} of {quantity(len(counted), 'line')} by a session"), "text bold")]
    if ambiguous:
        pieces.append(Piece(Clean(f", {grouped(ambiguous)} with several candidates"), "status.warn"))
    return tuple(pieces)


def blame_totals(lines: Sequence[LineAnswer], sessions: int) -> Line:
    """Numbers of sessions: read, and those that wrote lines."""
    writers = Counter(line.answer.step.run for line in lines if line.answer.step is not None)
    return (Piece(Clean(f"{grouped(len(writers))} of {grouped(sessions)} sessions wrote lines"), "sec"),)
