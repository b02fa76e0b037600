"""Two runs compared: did it go the same way; if not, where first, and what exactly was different there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult

from tracetui.diff.result import Diff
from tracetui.live.comparing.compared import Compare, Failed, LookAt
from tracetui.live.mail import Mail
from tracetui.model import Run, RunRef, quote_key
from tracetui.text import Clean
from tracetui.ui import layout
from tracetui.ui.commands import CHANGE, PAIRS, SIDES, Command
from tracetui.ui.panes.diff_change import Change
from tracetui.ui.panes.diff_pairs import Pairs
from tracetui.ui.panes.diff_sides import Sides
from tracetui.ui.screens.compared import ComparedScreen
from tracetui.ui.widgets.frame import short_path
from tracetui.ui.widgets.line_view import LineView
from tracetui.ui.widgets.lines import Box
from tracetui.views.diff import name_of, place_of, sentence
from tracetui.views.diff_look import Look
from tracetui.views.glyphs import status_glyph
from tracetui.views.masking import clean
from tracetui.views.rows import Line, Piece

LOW: Final = 30
"""Rows of a screen below which what is said of both runs is shown only when it is asked for."""
BOTH_RUNS: Final = 9


class DiffScreen(ComparedScreen):
    """The steps of both runs, what changed in the one under the cursor, and both runs as wholes."""

    def __init__(self, ask: Compare, known: Iterable[Run], commands: Sequence[Command]) -> None:
        self.ask_of = ask
        self.pairs, self.sides = Pairs(), Sides()
        change = Change()
        super().__init__(commands, {PAIRS: self.pairs, CHANGE: change, SIDES: self.sides}, change)
        self.known = list(known)
        self._asked: LookAt | None = None
        self._last = False
        """Whether the next change is entered at its end: somebody walks backwards."""
        self._failure = ""
        self._body = Box(self.pairs, change, self.sides, id="diff")

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._sentence
        yield self._body
        yield self._footer

    def on_mount(self) -> None:
        self.focus_pane(CHANGE if self.narrow else PAIRS)
        self.app.engine.differ.compare(self.ask_of, self.known)
        self.known = []

    def left(self) -> None:
        self.app.engine.differ.compare(None)

    # ---- data arrives

    @property
    def diff(self) -> Diff | None:
        """The comparison as far as it is known."""
        return self.pairs.diff

    @property
    def settled(self) -> bool:
        """True if nothing that is shown is still on its way."""
        diff = self.diff
        done = diff is not None and diff.complete and diff.strict == self.ask_of.strict
        return bool(self._failure) or (done and (self.change.compared is not None or not diff.rows))  # type: ignore[union-attr]

    def receive(self, mail: Mail) -> None:
        answer = mail.diffs.get(self.ask_of)
        if isinstance(answer, Diff):
            self._take(answer, mail)
        elif isinstance(answer, Failed):
            self._failure = answer.why
            self.refresh_frame()
        if self._asked is not None and isinstance(look := mail.diffs.get(self._asked), Look):
            self._show_look(look)

    def _take(self, diff: Diff, mail: Mail) -> None:
        if self.diff is None or self.diff.strict != diff.strict:
            self._asked = None
        self.pairs.show_diff(diff)
        self.sides.show_diff(diff)
        if diff.complete:
            self.said = ()
            if not diff.strict:
                self.app.main.comparing.learn(diff)
        self.share_height()
        self._look(mail)
        self.refresh_frame()

    def _look(self, mail: Mail | None = None) -> None:
        """Ask for what differs in the row under the cursor, unless that came in the `mail`."""
        row = self.pairs.row
        if row is None:
            return
        asked = LookAt(self.ask_of, row.a, row.b, self.change.tab)
        if asked != self._asked:
            self._asked = asked
            if mail is None or asked not in mail.diffs:
                self.app.engine.differ.look(asked)

    def _show_look(self, look: Look) -> None:
        diff, row = self.diff, self.pairs.row
        if diff is None or row is None:
            return
        first = diff.first
        path = first.path if first is not None and first.row == self.pairs.place else row.path
        subject = (Piece(Clean(place_of(diff, row)), "sec"),)
        self.change.show_look(look, subject, path=path, last=self._last)
        self._last = False
        self.refresh_frame()
        self.app.opened()

    # ---- what the commands ask for

    def walk(self, step: int) -> bool:
        self._last = step < 0
        return self.pairs.step_to(step)

    def choose(self, tab: str) -> None:
        self.change.tab = tab
        self._look()

    def toggle_ignored(self) -> None:
        self.ask_of = replace(self.ask_of, strict=not self.ask_of.strict)
        self.pairs.chosen = True  # the reader looks at this row
        self.app.engine.differ.compare(self.ask_of)
        self.say("comparing with nothing ignored" if self.ask_of.strict else "comparing, ids, times and the like aside")

    def export(self) -> None:
        self.app.main.taking.export_diff(self, self.ask_of)

    def reread(self) -> None:
        self._asked = None
        self.app.engine.differ.compare(self.ask_of, anew=True)
        self.say("reading both runs again")

    def opened(self, view: LineView) -> bool:
        target = self.sides.target if view is self.sides else None
        diff = self.diff
        if target is None or diff is None:
            return False
        there = (i for i, row in enumerate(diff.rows) if target in _ids(diff, i))
        found = next(there, None)
        if found is not None:
            self.pairs.go_to(found)
        return found is not None

    def step_out(self) -> bool:
        if not self.narrow or self.pane == PAIRS:
            return False
        self.focus_pane(PAIRS)
        return True

    @property
    def address(self) -> str:
        diff, row = self.diff, self.pairs.row
        if diff is None or row is None:
            return self.ask_of.b.address
        span, run = diff.span_b(row), diff.b
        if span is None:
            span, run = diff.span_a(row), diff.a
        return f"{run.summary.ref.address}/{quote_key(span.id)}" if span is not None else run.summary.ref.address

    @on(LineView.Moved, "#pairs")
    def _pair_moved(self) -> None:
        self.pairs.chosen |= self.pairs.cursor != self.pairs.led
        self._look()
        self.refresh_frame()

    # ---- the frame

    def share_height(self) -> None:
        size = self.app.size
        if self.zoomed is not None or self.narrow:
            return
        room = size.height - 3
        self.sides.display = size.height >= LOW or self.front == SIDES
        below = min(len(self.sides.rows) + 1, BOTH_RUNS, room // 4) if self.sides.display else 0
        if size.width >= layout.WIDE:
            below = min(max(len(self.sides.rows) + 1, BOTH_RUNS), room // 2)
            self._body.styles.grid_rows = f"1fr {below}"
        else:
            above = max(5, min(self.pairs.wanted_height + 1, int(room * 0.35)))  # and a blank row
            self._body.styles.grid_rows = f"{above} 1fr {below}" if below else f"{above} 1fr"

    def refresh_frame(self) -> None:
        width, look, diff = self.app.size.width, self.app.look, self.diff
        place = clean(short_path(self.app.roots[0]) if self.app.roots else "", 200)
        left: Line = (
            Piece(Clean("tracetui"), "accent bold"),
            Piece(Clean(f"  {place}" if width >= layout.NARROW else ""), "sec"),
            Piece(Clean(f" {look.glyphs.path} "), "dim"),
            Piece(Clean("diff"), "text bold"),
        )
        right = (*self._named("A", self.ask_of.a), Piece(Clean(f" {look.glyphs.arrow} "), "dim"))
        self._header.show(left, (*right, *self._named("B", self.ask_of.b)))
        words: Line = (Piece(Clean("reading both runs"), "status.running"),)
        if self._failure:
            words = (Piece(clean(f"cannot be read: {self._failure}", 400), "status.error"),)
        elif diff is not None:
            words = sentence(diff, look.glyphs, width)
        self._sentence.show(self.said or words)
        self.refresh_footer()

    def _named(self, letter: str, ref: RunRef) -> Line:
        """A run in the header: its letter, id, relation and status."""
        run = self.app.store.runs.get(ref)
        style = "diff.rem bold" if letter == "A" else "diff.add bold"
        if run is None:
            return (Piece(Clean(letter), style),)
        sign, status = status_glyph(run.status, self.app.look.glyphs)
        relation = self.ask_of.relation or "" if letter == "B" else "original" if self.ask_of.relation else ""
        return (
            Piece(Clean(f"{letter} "), style),
            Piece(name_of(run), "text"),
            Piece(clean(f" {relation}" if relation else "", 20), "sec"),
            Piece(Clean(f" {sign}"), status),
        )


def _ids(diff: Diff, index: int) -> tuple[str, ...]:
    row = diff.rows[index]
    return tuple(span.id for span in (diff.span_a(row), diff.span_b(row)) if span is not None)
