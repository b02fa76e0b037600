"""What is taken along: exports to files, code for the clipboard, and the one masked value that is shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from tracetui.errors import TracetuiError
from tracetui.model import Run, RunRef, RunSummary, Span
from tracetui.redact import masks
from tracetui.text import size
from tracetui.ui.commands import DETAIL

if TYPE_CHECKING:
    from tracetui.live.comparing.compared import Compare
    from tracetui.live.mail import Mail
    from tracetui.store.judgement import Judgement
    from tracetui.store.triage import Group
    from tracetui.ui.screens.framed import FramedScreen
    from tracetui.ui.screens.main import MainScreen

T = TypeVar("T")


class Taking:
    """Belongs to the main screen, as its actions do; other screens ask it for their exports."""

    def __init__(self, screen: MainScreen) -> None:
        self._screen = screen
        self._unwritten: dict[str, str] = {}
        """Where somebody wanted something written that was not: it is offered again."""

    # ---- exports

    def do_export(self, argument: str) -> None:
        screen = self._screen
        run = screen.store.runs.get(screen.ref) if screen.ref is not None else None
        if run is None:
            screen.say("there is no run here to export", "status.warn")
        else:
            self.export_run(run)

    def export_run(self, run: RunSummary) -> None:
        """Write a run to a file that is asked for."""
        from tracetui.export.document import export_run, file_name, form_of, redactor_for

        def pieces(path: str) -> Iterable[bytes]:
            return export_run(self._exact(run.ref), form_of(path), redactor_for())

        self._export(self._screen, "this run", file_name(run, "md"), pieces)

    def export_diff(self, screen: FramedScreen, ask: Compare) -> None:
        """Write a comparison to a file that is asked for."""
        from tracetui.export.document import export_diff, form_of, redactor_for

        def pieces(path: str) -> Iterable[bytes]:
            a, b = self._exact(ask.a), self._exact(ask.b)
            redactor = redactor_for(compared=True)
            return export_diff(a, b, form_of(path), redactor, relation=ask.relation, strict=ask.strict)

        self._export(screen, "this comparison", "comparison.md", pieces)

    def export_triage(self, screen: FramedScreen) -> None:
        """Write the whole triage to a file that is asked for."""
        from tracetui.export.document import export_triage, file_name, form_of, redactor_for
        from tracetui.export.triage import next_command, triage_of

        app = self._screen.app
        runs, place = app.main.filtering.found(), ", ".join(app.roots)

        def of_run(run: RunSummary, group: Group) -> Judgement:
            return app.verdicts.of(run)

        def pieces(path: str) -> Iterable[bytes]:
            redactor = redactor_for()
            triage = triage_of(runs, app.verdicts.of, of_run, redactor)
            shared = app.engine.shared_by(runs, triage.groups)
            following = next_command(triage, app.roots)
            return export_triage(triage, shared, place, form_of(path), redactor, next_command=following)

        self._export(screen, "the triage", file_name(None, "md"), pieces)

    def _export(self, screen: FramedScreen, what: str, name: str, pieces: Callable[[str], Iterable[bytes]]) -> None:
        """Ask where to, and write it there; what is in it is made and written apart from the loop."""
        from tracetui.export.write import write

        def done(path: str, written: int) -> None:
            self._unwritten.pop(what, None)
            screen.say(f"wrote {path}, {size(written)}, for you alone; secrets are masked")

        def answer(path: str) -> None:
            path = os.path.expanduser(path.strip())
            if path:
                self._unwritten[what] = path
                screen.say(f"writing {path}")
                self._apart(
                    lambda: write(path, pieces(path), roots=self._screen.app.roots),
                    lambda written: done(path, written),
                    screen,
                )

        name = self._unwritten.get(what, name)
        screen.ask_for(f"write {what} to: .md, .html or .json; secrets are masked", name, answer)

    def _exact(self, ref: RunRef) -> Run:
        """A run as the trace has it: what is written is masked on its way."""
        return self._screen.app.engine.read(ref)

    # ---- for the clipboard

    def do_take(self, argument: str) -> None:
        screen = self._screen
        run, span = screen.steps.run, screen.steps.span
        if run is None or span is None:
            screen.say("there is no step here to copy", "status.warn")
            return
        form, ref, ident = _FORMS[argument], run.summary.ref, span.id

        def make() -> str | None:
            exact = self._exact(ref)
            found = exact.span(ident)
            return form.make(exact, found) if found is not None else None

        self._apart(make, lambda text: self._copy(text, form), screen)

    def _copy(self, text: str | None, form: _Form) -> None:
        if text is None:
            self._screen.say(form.lacking or "this step is not there any more", "status.warn")
        else:
            self._screen.actions.copy(text, form.what)

    def _apart(self, make: Callable[[], T], then: Callable[[T], None], screen: FramedScreen) -> None:
        """Make something apart from the loop, then go on with it; what goes wrong on purpose is said."""

        def work() -> Callable[[], None]:
            try:
                made = make()
            except (TracetuiError, OSError) as error:
                words = str(error)
                return lambda: screen.say(words, "status.error")
            return lambda: then(made)

        self._screen.app.engine.apart(work)

    # ---- one masked value

    def do_reveal(self, argument: str) -> None:
        screen, detail = self._screen, self._screen.detail
        if detail.revealed is not None:
            detail.hide()
            screen.say("masked again")
        elif screen.pane != DETAIL:
            screen.say("R shows a masked value of the detail: go to its row there (3)", "status.warn")
        elif detail.run is not None and detail.span is not None and detail.body is not None:
            screen.app.engine.load_body(detail.run, detail.span, unmasked=True)

    def take(self, mail: Mail) -> None:
        """Go on with what was done apart; show the value that was asked for."""
        for then in mail.then:
            then()
        if mail.unmasked is not None:
            told = self._screen.detail.reveal_value(*mail.unmasked)
            if told is False:
                self._screen.say(self._not_revealed(), "status.warn")

    def _not_revealed(self) -> str:
        detail = self._screen.detail
        row = detail.rows.index(detail.cursor) if detail.cursor is not None else None
        if row is not None and next(masks(detail.rows.plain(row)), None) is not None:
            return "R shows one value: go to its own row, mostly in the tab input or output"
        return "nothing is masked in this row"


class _Form(NamedTuple):
    """A form in which a step is copied."""

    make: Callable[[Run, Span], str | None]
    what: str
    lacking: str = ""
    """What is said where there is no such form of a step."""


def _curl(run: Run, span: Span) -> str | None:
    from tracetui.export.document import redactor_for
    from tracetui.export.take import curl

    return curl(span, run.load(span), redactor_for())


def _fixture(run: Run, span: Span) -> str | None:
    from tracetui.export.document import redactor_for
    from tracetui.export.take import fixture

    return fixture(run, run.index[span.id], redactor_for())


def _test(run: Run, span: Span) -> str | None:
    from tracetui.export.document import redactor_for
    from tracetui.export.take import pytest_stub

    return pytest_stub(run, run.index[span.id], redactor_for())


def _fork(run: Run, span: Span) -> str | None:
    from tracetui.export.take import fork

    return fork(run, run.index[span.id])


_FORMS: Final = {
    "curl": _Form(_curl, "the curl command", "only a model call can be sent again: go to one (]m or [m)"),
    "fixture": _Form(_fixture, "the fixture"),
    "test": _Form(_test, "the test stub"),
    "fork": _Form(_fork, "the code", "this format has no code that goes on from a step"),
}
