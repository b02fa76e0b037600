"""What the screens share that show how two things differ: a `Change` pane, and what its commands ask for."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from tracetui.ui import layout
from tracetui.ui.actions.diff import DiffActions
from tracetui.ui.commands import Command
from tracetui.ui.panes.diff_change import Change
from tracetui.ui.screens.framed import FramedScreen
from tracetui.ui.widgets.frame import footer
from tracetui.ui.widgets.line_view import LineView


class ComparedScreen(FramedScreen):
    """Whoever inherits knows what is compared."""

    AUTO_FOCUS = ""  # it would focus the first pane before the right one can be
    walked_out: tuple[str, str] = "no more steps that differ", "no earlier step that differs"
    """What is said where there is nothing more to walk to, forwards and backwards."""

    def __init__(self, commands: Sequence[Command], views: dict[str, LineView], change: Change) -> None:
        super().__init__(commands, views)
        self.commands = commands
        self.change = change
        self.actions = DiffActions(self)
        self.front = next(iter(views))
        """The pane that is shown where there is room for one only."""

    @property
    def doers(self) -> tuple[object, ...]:
        return (self.actions,)

    @property
    def address(self) -> str:
        """The address of what is under the cursor."""
        raise NotImplementedError

    # ---- what the commands ask for

    def walk(self, step: int) -> bool:
        """Go to the next thing that differs; False if there is none."""
        raise NotImplementedError

    def choose(self, tab: str) -> None:
        """Show another tab of the change."""

    def toggle_ignored(self) -> None:
        """Count as differences what is ignored, or ignore it again."""

    def reread(self) -> None:
        """Read again what is compared."""

    def export(self) -> None:
        """Write what is compared to a file."""
        self.say("of two contexts there is no export: Esc, and x writes the run", "status.warn")

    def opened(self, view: LineView) -> bool:
        """A row was opened that does not fold; True if that led somewhere."""
        return False

    def step_out(self) -> bool:
        """Go back within the screen; False if there is nothing to go back to."""
        return False

    def found(self, view: LineView) -> None:
        self.actions.go_to_hit(view, 1, include_here=True)

    # ---- panes

    @property
    def narrow(self) -> bool:
        """Whether there is room for one pane only."""
        return self.app.size.width < layout.NARROW

    def focus_pane(self, name: str) -> None:
        """Focus a pane, and bring it on the screen if it is not."""
        self.front = name
        if self.zoomed is not None:
            self.zoomed = name
        self.arrange_panes()
        self.views[name].focus()

    def arrange_panes(self) -> None:
        """Lay the panes out for the zoom and the size; of a narrow screen one has all."""
        size = self.app.size
        alone = self.zoomed or (self.front if self.narrow else None)
        for name, view in self.views.items():
            view.display = alone is None or name == alone
        wide = size.width >= layout.WIDE
        for name, holds in {"wide": wide and alone is None, "alone": alone is not None}.items():
            self.set_class(holds, name)
        self.share_height()
        self.call_after_refresh(self.refresh_frame)

    def share_height(self) -> None:
        """Give each pane the height that it needs."""

    def refresh_footer(self) -> None:
        """The keys of the focused pane."""
        self.show_footer(*footer(self.commands, self.pane, self.app.size.width, 1, False))

    def on_resize(self, event: events.Resize) -> None:
        self.arrange_panes()

    def on_descendant_focus(self) -> None:
        if self.focused in self.views.values():
            self.front = self.pane
        self.refresh_frame()
