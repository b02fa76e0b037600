"""What failed (or marked) runs share that the others lack, the most telling first; each leads to an example."""

from __future__ import annotations

from collections.abc import Sequence

from tracetui.live.mail import Mail
from tracetui.live.surveying.surveyed import Survey
from tracetui.model import RunRef
from tracetui.store.contrast import Contrast
from tracetui.text import Clean, grouped
from tracetui.ui.commands import FINDINGS, Command
from tracetui.ui.screens.single import SingleScreen
from tracetui.ui.widgets.line_view import LineView
from tracetui.views.cause import contrast_rows, example_of
from tracetui.views.masking import one_line
from tracetui.views.rows import Line, Piece


class Findings(LineView):
    """One row something that runs share."""

    number = 1
    pane_name = "Shared"


class ContrastScreen(SingleScreen):
    """Enter opens an example, at the step that has it."""

    def __init__(self, refs: Sequence[RunRef], of: str, commands: Sequence[Command], position: int = 0) -> None:
        super().__init__(FINDINGS, Findings(id="findings"), commands)
        self.list.position = position
        self._refs, self._of = refs, of
        self._survey: Survey | None = None

    def receive(self, mail: Mail) -> None:
        if mail.survey is not None:
            self._survey = mail.survey
            self.show_rows()

    @property
    def _known(self) -> Contrast | None:
        return self.app.main.surveying.contrasts.get(self._refs)

    def show_rows(self) -> None:
        self.list.show(contrast_rows(self._known, width=self.list.outer_size.width - 2, glyphs=self.app.look.glyphs))
        self.refresh_frame()

    @property
    def ref(self) -> RunRef | None:
        example = example_of(self.list.cursor)
        return example[0] if example is not None else None

    def opened(self) -> None:
        example = example_of(self.list.cursor)
        if example is not None:
            self.app.main.visit(*example)

    def again(self) -> ContrastScreen:
        return ContrastScreen(self._refs, self._of, self.commands, self.list.position)

    def left(self) -> None:
        self.app.main.surveying.stop()

    def path(self) -> tuple[Line, Line]:
        return (Piece(Clean("contrast  "), "text bold"), Piece(one_line(f"of {self._of}", 100), "sec")), ()

    def summary(self) -> Line:
        known, survey = self._known, self._survey
        found = len(known.findings) if known is not None else 0
        things = f"{grouped(found)} thing{'s' if found != 1 else ''}" if found else "nothing"
        words = f"{things} seen more often in these runs than in the others"
        pieces = [Piece(Clean(words), "text bold")]
        if known is None or (survey is not None and not survey.finished):
            done = f"  ·  reading, {grouped(survey.done)} of {grouped(survey.total)}" if survey is not None else ""
            pieces.append(Piece(Clean(done or "  ·  reading"), "status.running"))
        return tuple(pieces)
