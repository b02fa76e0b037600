"""Draws the cells of a terminal as a picture, with Pillow and the font DejaVu Sans Mono."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len

if TYPE_CHECKING:
    from PIL.Image import Image

FONTS: Final = ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf")
CELL: Final = (9, 19)
"""Width and height of a cell in pixels."""
FONT_SIZE: Final = 15
COLORS: Final = 192

Color = tuple[int, int, int]


class Piece(NamedTuple):
    """Text of one style."""

    text: str
    ink: Color
    ground: Color
    is_bold: bool


Painter = Callable[[Iterable[Iterable[Piece]], tuple[int, int]], "Image"]


def painter() -> Painter | None:
    """Return a function that draws rows of pieces on a screen of (columns, rows); None without Pillow or the font."""
    try:
        from PIL import Image, ImageDraw, ImageFont

        plain, bold = (ImageFont.truetype(name, FONT_SIZE) for name in FONTS)
    except (ImportError, OSError):
        return None
    width, height = CELL

    def paint(rows: Iterable[Iterable[Piece]], size: tuple[int, int]) -> Image.Image:
        image = Image.new("RGB", (size[0] * width, size[1] * height))
        pen = ImageDraw.Draw(image)
        for y, row in enumerate(rows):
            x = 0
            for piece in row:
                for character in piece.text:
                    cells = cell_len(character)
                    left, top = x * width, y * height
                    pen.rectangle((left, top, left + cells * width - 1, top + height - 1), fill=piece.ground)
                    pen.text((left, top), character, font=bold if piece.is_bold else plain, fill=piece.ink)
                    x += cells
        return image

    return paint
