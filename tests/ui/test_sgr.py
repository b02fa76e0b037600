"""Shortened output draws the same screen as what it was made of."""

from __future__ import annotations

import pyte
from hypothesis import given
from hypothesis import strategies as st

from tracetui.ui.terminal.driver import Shortener

CODES = st.sampled_from(
    [
        *("0", "", "1", "3", "4", "7", "9", "1;3", "31", "92", "41", "103", "39", "49", "38;5;12", "48;5;200"),
        *("38;2;1;2;3", "48;2;9;8;7", "1;38;2;1;2;3;48;2;0;0;0", "0;4", "38;2;1;2;3;48;2;9;8;7"),
    ]
)
PIECES = st.one_of(
    CODES.map(lambda codes: f"\x1b[{codes}m"),
    st.sampled_from(["text", "x", " ", "漢", "\x1b[2;3H", "\x1b[K", "\x1b[?25l", "\r\n", "\n"]),
)
WRITES = st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=6)


def drawn(writes: list[str]) -> tuple[list[list[pyte.screens.Char]], pyte.screens.Char]:
    """Every cell of the screen as it looks, and the style that the next one would have."""
    screen = pyte.Screen(12, 4)
    stream = pyte.Stream(screen)
    for data in writes:
        stream.feed(data)
    return [[seen(screen.buffer[y][x]) for x in range(12)] for y in range(4)], screen.cursor.attrs


def seen(cell: pyte.screens.Char) -> pyte.screens.Char:
    """A cell without what is not seen of it: a blank has no ink, unless it is reversed or has lines."""
    if cell.data != " " or cell.reverse or cell.underscore or cell.strikethrough:
        return cell
    return cell._replace(fg="default", bold=False, italics=False)


@given(WRITES)
def test_it_draws_the_same(writes: list[str]) -> None:
    shortener = Shortener()
    shortened = [shortener.shorten(data) for data in writes]
    assert drawn(shortened) == drawn(writes)


def test_unchanged_codes_are_not_repeated() -> None:
    styled = "\x1b[38;2;1;2;3;48;2;9;8;7ma\x1b[0m\x1b[38;2;5;5;5;48;2;9;8;7mb\x1b[0m\x1b[38;2;5;5;5;48;2;9;8;7mc\x1b[0m"
    assert Shortener().shorten(styled) == "\x1b[38;2;1;2;3;48;2;9;8;7ma\x1b[38;2;5;5;5mbc\x1b[0m"


def test_blanks_and_moves_need_no_ink() -> None:
    row = "\x1b[31;44ma\x1b[0m\x1b[32;44m  \x1b[0m\x1b[33;44mb\x1b[0m"
    assert Shortener().shorten(f"{row}\r\n\x1b[2;1H{row}") == (
        "\x1b[31;44ma  \x1b[33mb\r\n\x1b[2;1H\x1b[31ma  \x1b[33mb\x1b[0m"
    )
    assert Shortener().shorten("\x1b[4;31ma\x1b[0m \x1b[7m \x1b[0m") == "\x1b[4;31ma\x1b[0m \x1b[7m \x1b[0m"


def test_codes_that_it_does_not_know_pass() -> None:
    assert Shortener().shorten("\x1b[53mover\x1b[0m") == "\x1b[53mover\x1b[0m"
    assert Shortener().shorten("\x1b[>4;1mkeys") == "\x1b[>4;1mkeys"
