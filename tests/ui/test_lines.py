"""A line is repainted where it looks different, and only there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate
from textual.strip import Strip

from tests.terminal import plain
from tracetui.ui.terminal.driver import CroppedUpdate
from tracetui.ui.widgets.lines import differing_cells

WIDTH = 40
segments = st.builds(
    lambda text, style: Segment(text, style),
    st.text("ab ─東é\u0301", max_size=8),
    st.sampled_from([Style(color="red"), Style(color="blue"), Style(bgcolor="red"), Style(underline=True)]),
)


@st.composite
def strips(draw: st.DrawFn) -> Strip:
    drawn = draw(st.lists(segments, max_size=6))
    strip = Strip(drawn)
    return strip.adjust_cell_length(WIDTH, Style(color="red")).crop(0, WIDTH)


def look(strip: Strip) -> list[tuple[str, object]]:
    """Each character; of a blank without its foreground."""
    return [
        (sign, (style.bgcolor, style.underline) if sign == " " and style else style)
        for text, style, _ in strip
        for sign in text
    ]


@given(strips(), strips())
def test_the_changed_cells_make_the_new_line(before: Strip, after: Strip) -> None:
    ranges = differing_cells(before, after)
    pieces, at = [], 0
    for start, end in [*ranges, (WIDTH, WIDTH)]:
        pieces += [before.crop(at, start), after.crop(start, end)]
        at = end

    assert all(start < end for start, end in ranges)
    assert look(Strip.join(pieces)) == look(after)


def test_a_repaint_sends_only_its_cells() -> None:
    line = {0: Strip([Segment("left ")], 5), 5: Strip([Segment("middle right")], 12)}
    update = ChopsUpdate([line], [(0, 2, 4), (0, 12, 17)], [[5, 17]])

    sent = CroppedUpdate.from_update(update).render_segments(Console())

    assert plain(sent.encode()) == "ftright"
    assert sent.count("\x1b[1;3H") == sent.count("\x1b[1;13H") == 1


def test_a_changed_digit_is_one_cell() -> None:
    assert differing_cells(Strip([Segment("step 12 ok")]), Strip([Segment("step 13 ok")])) == [(6, 7)]


def test_a_moved_text_with_wide_characters_is_painted_as_a_whole() -> None:
    text, gap = Segment('["Grüezi","こんにちは"]'), Segment(" " * 9)

    assert differing_cells(Strip([gap, text]), Strip([text, gap])) == [(0, 32)]
