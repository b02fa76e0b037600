"""The *today* page: running, waiting, failed and recent sessions, and spending."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events, on

from tracetui.live.mailbox import Mail
from tracetui.model import RunRef
from tracetui.text import Clean, grouped
from tracetui.ui.commands import TODAY, Command
from tracetui.ui.layout import FRAME
from tracetui.ui.screens.lists import RunsListScreen
from tracetui.ui.widgets.frame import short_path, with_hints
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.rows import Line, ListRows, Piece
from tracetui.views.today import Sections, TodayRows, by_project, sections

TICK_SECONDS = 1.0


class TodayScreen(RunsListScreen):
    """Enter reads a run, or filters the list by a project; ``yr`` copies the command that resumes a session."""

    def __init__(self, commands: Sequence[Command]) -> None:
        super().__init__(TODAY, "Today", commands)
        self._found = Sections([], [], [], [])
        self._shown: tuple[int, int, int] | None = None
        """Revision of the store, second and rows of the page that are shown."""
        self._moved = False
        """Whether the user moved the cursor; until then it stays on the first row."""

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(TICK_SECONDS, self.show_rows)

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.show_rows()

    def receive(self, mail: Mail) -> None:
        if self._shown is None or not self.app.stage:
            self.show_rows()

    def show_rows(self) -> None:
        """Show the runs as they are now, at most once a second."""
        app = self.app
        room = app.size.height - FRAME - 1
        shown = app.store.revision, int(app.clock()), room
        if shown == self._shown or not self.is_active:
            return
        self._shown, now, runs = shown, app.clock(), list(app.store.runs.values())
        state_of, glyphs = app.liveness.state_in_list, app.look.glyphs
        self._found = sections(runs, now=now, state_of=state_of)
        spent = by_project(runs, now=now)
        rows = TodayRows(self._found, spent, now=now, glyphs=glyphs, state_of=state_of, room=room)
        if len(rows):
            first = next((rows.key(i) for i in range(len(rows)) if rows.selectable(i)), None)
            self.list.show(rows, key=None if self._moved else first)
        else:
            words = "reading …" if app.stage else "nothing in the last week; q shows all runs"
            self.list.show(ListRows([(Piece(Clean(words), "dim"),)], headings=[0]))
        self.refresh_frame()

    @on(LineView.Moved)
    def _row_moved(self) -> None:
        self._moved = True

    @property
    def ref(self) -> RunRef | None:
        """The run under the cursor."""
        rows = self.list.rows
        run = rows.run(self.list.position) if isinstance(rows, TodayRows) and len(rows) else None
        return None if run is None else run.ref

    def action_open(self) -> None:
        """Read the run under the cursor, or list the runs of its project."""
        rows = self.list.rows
        if self.ref is not None:
            self.app.visit(self.ref, None)
        elif isinstance(rows, TodayRows) and (project := rows.project(self.list.position)):
            self.app.filter_runs("source", project)

    def action_copy_resume(self) -> None:
        """Copy the command that resumes the session; it isn't run."""
        self.copy_resume(self.app.store.summary(self.ref))

    def again(self) -> TodayScreen:
        return TodayScreen(self.commands)

    def path(self) -> tuple[Line, Line]:
        roots = self.app.roots
        more = f" +{len(roots) - 1}" if len(roots) > 1 else ""
        place = Clean(short_path(roots[0]) + more) if roots else Clean("")
        return (Piece(Clean("today  "), "text bold"), Piece(place, "sec")), ()

    def summary(self) -> Line:
        found = self._found
        numbers = (
            (len(found.running), "running", "status.running bold"),
            (len(found.waiting), "waiting for you", "status.paused bold"),
            (len(found.failed), "failed today", "status.error bold"),
        )
        pieces: list[Piece] = []
        for number, words, style in numbers:
            if number:
                pieces += [Piece(Clean(f"{grouped(number)} {words}"), style), Piece(Clean("  ·  "), "dim")]
        if not pieces:
            pieces = [Piece(Clean("nothing runs or waits"), "text"), Piece(Clean("  ·  "), "dim")]
        live = (("L", "live"),) if found.running else ()
        hints = (("↵", "read"), *live, ("yr", "copy resume command"), ("q", "all runs"))
        return with_hints(pieces, hints, self.app.size.width)
