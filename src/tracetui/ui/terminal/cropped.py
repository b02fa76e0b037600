"""A partial repaint that sends its changed cells only: Textual's starts each at the left edge of its widget."""

from __future__ import annotations

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate


class CroppedUpdate(ChopsUpdate):
    """Repaints spans of cells, cropped on both sides."""

    @classmethod
    def of(cls, update: ChopsUpdate) -> CroppedUpdate:
        """The same repaint, cropped."""
        return cls(update.chops, update.spans, update.chop_ends)

    def render_segments(self, console: Console) -> str:
        """Render the spans as terminal output."""
        found: list[str] = []
        for y, first, last in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=True):
                start, stop = max(x, first), min(end, last)
                if strip is not None and start < stop:
                    shown = strip if (start, stop) == (x, end) else strip.crop(start - x, stop - x)
                    found += (Control.move_to(start, y).segment.text, shown.render(console))
        return "".join(found)
