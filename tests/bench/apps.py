"""Small programs that are measured beside ours, or with it: ``apps.py empty``, ``rows N``, ``watch FILE PATH…``."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if sys.argv[1:2] != ["empty"]:
    import tracetui.ui  # noqa: F401 - before Textual, which reads once how often it may paint

from textual.app import App
from textual.screen import Screen

if TYPE_CHECKING:
    from tracetui.views.rows import Line


def empty() -> None:
    """The least that Textual can do: one screen, one word."""

    class Blank(Screen[None]):
        def render(self) -> str:
            return "ready"

    class Empty(App[None]):
        def get_default_screen(self) -> Screen[None]:
            return Blank()

    Empty().run()


class Numbers:
    """A million rows that nobody made before they are drawn."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def key(self, index: int) -> Hashable:
        return index

    def index(self, key: Hashable) -> int | None:
        return key if isinstance(key, int) and key < self._count else None

    def line(self, index: int, width: int) -> Line:
        from tracetui.text import Clean
        from tracetui.views.rows import Piece

        name = Piece(Clean(f"step {index:9,}  "), "text bold" if index % 7 else "status.error")
        text = Piece(Clean("retrieve the policy, then answer with what it says about the refund  "), "sec")
        return (name, text, Piece(Clean(f"{index * 7919 % 1000:4} ms "), "dim"))

    def selectable(self, index: int) -> bool:
        return True

    def mark(self, index: int) -> str | None:
        return None if index % 7 else "status.error"

    def plain(self, index: int) -> str:
        return f"step {index}"


def rows(count: int) -> None:
    """Nothing but a `LineView` of so many rows."""
    from tracetui.ui.widgets.line_view import LineView

    class Listing(App[None]):
        BINDINGS: ClassVar = [
            ("down", "view('move', 1)"),
            ("pagedown", "view('page', 1)"),
            ("end", "view('edge', True)"),
            ("q", "quit"),
        ]

        def compose(self):  # type: ignore[no-untyped-def]
            self.lines = LineView()
            yield self.lines

        def on_mount(self) -> None:
            self.animation_level = "none"
            self.lines.show(Numbers(count))
            self.lines.focus()

        def action_view(self, name: str, argument: float) -> None:
            getattr(self.lines, f"action_{name}")(argument)

    Listing().run()


def watch(result: Path, roots: list[str]) -> None:
    """tracetui itself, with a heart that beats every 2 ms; writes by how much beats came late, in ms."""
    from tracetui.live.engine import Engine
    from tracetui.sources.local import LocalSource
    from tracetui.ui.app import TraceApp

    late: list[float] = []

    class Watched(TraceApp):
        async def _beat(self) -> None:
            while self.stage:
                before = time.perf_counter()
                await asyncio.sleep(0.002)
                late.append((time.perf_counter() - before) * 1000 - 2)

        def on_mount(self) -> None:
            super().on_mount()
            self.call_after_refresh(self._start_beating)

        def _start_beating(self) -> None:
            self.beating = asyncio.create_task(self._beat())

    engine = Engine(LocalSource(), roots)
    engine.start()
    Watched(engine, roots).run()
    engine.stop()
    result.write_text("\n".join(f"{ms:.2f}" for ms in late))


if __name__ == "__main__":
    if sys.argv[1] == "empty":
        empty()
    elif sys.argv[1] == "rows":
        rows(int(sys.argv[2]))
    else:
        watch(Path(sys.argv[2]), sys.argv[3:])
