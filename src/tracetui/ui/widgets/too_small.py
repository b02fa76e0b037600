"""What is shown in place of everything where nothing useful fits."""

from __future__ import annotations

from textual.strip import Strip

from tracetui.text import Clean
from tracetui.ui.layout import SMALLEST
from tracetui.ui.widgets.drawing import to_strip
from tracetui.ui.widgets.lines import LineWidget
from tracetui.views.rows import Piece, fill


class TooSmall(LineWidget):
    """Covers the screen with one line: the size that is needed, and the size that is given."""

    DEFAULT_CSS = "TooSmall { layer: over; width: 100%; height: 100%; }"

    def strip_at(self, y: int) -> Strip:
        width, (columns, rows), times = self.outer_size.width, SMALLEST, self.look.glyphs.times
        given = self.app.size
        words = f"{columns}{times}{rows} needed, {given.width}{times}{given.height} here"
        words = f"too small: {words}" if len(words) + len(" too small: ") <= width else words
        line = [Piece(Clean(f" {words}"), "status.warn")] if y == 0 else []
        return to_strip(fill(line, width), width, self.look, "bg")
