"""Verdicts, notes, tags and marks: what the commands do on every screen that shows runs or signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from tracetui.errors import TracetuiError
from tracetui.model import RunRef, RunSummary
from tracetui.ui.screens.framed import FramedScreen
from tracetui.views.masking import clean, one_line
from tracetui.views.rows import Line, Piece

if TYPE_CHECKING:  # loaded when the first thing is judged: the first screen does without
    from tracetui.store.judgement import Cause, Judgement, Verdict
    from tracetui.store.sidecar import Sidecar
    from tracetui.store.triage import Group
    from tracetui.ui.app import TraceApp
    from tracetui.ui.screens.triage import TriageScreen

Subject: TypeAlias = "Group | RunSummary"
"""What is judged: a signature with all its runs, or one run."""


UUID_LENGTH: Final = 36


class JudgingScreen(FramedScreen):
    """A screen on which things are judged."""

    @property
    def subject(self) -> Subject | None:
        """What is under the cursor."""
        raise NotImplementedError

    def judged(self, *, decided: bool) -> None:
        """Something was judged; `decided`: a verdict was given, so go on to the next."""
        raise NotImplementedError

    @property
    def place(self) -> tuple[RunRef, str | None] | None:
        """The run and the span under the cursor."""
        raise NotImplementedError

    @property
    def ended(self) -> str:
        """What is said besides where nothing is left to judge."""
        return ""

    def go_to(self, ref: RunRef, span: str | None) -> None:
        """Go to a run, and to a span in it."""
        raise NotImplementedError


class Judging:
    """Belongs to a screen, as its actions do."""

    def __init__(self, screen: JudgingScreen) -> None:
        self._screen = screen
        self.left: TriageScreen | None = None
        """The triage as it was left: it goes on there."""

    @property
    def _app(self) -> TraceApp:
        return self._screen.app

    def do_verdict(self, argument: str) -> None:
        from tracetui.store.judgement import Verdict

        self._judge(Verdict(argument))

    def do_verdict_again(self, argument: str) -> None:
        last = self._app.verdicts.last
        if last is None:
            self._screen.say("no verdict was given yet: v, then r f k or i", "status.warn")
        else:
            self._judge(last)

    def _judge(self, verdict: Verdict) -> None:
        subject = self._screen.subject
        if subject is None:
            self._screen.say("there is no run here to judge", "status.warn")
            return
        if self._write(lambda: self._app.verdicts.judge(subject, verdict), decided=True):
            self._screen.say(
                f"{verdict.value}: {named(subject)}  ·  u takes it back  ·  . gives it again{self._screen.ended}"
            )

    def do_note(self, argument: str) -> None:
        subject = self._screen.subject
        if subject is None:
            self._screen.say("there is no run here to write a note on", "status.warn")
            return
        before = self._app.verdicts.of(subject).note or ""
        self._screen.ask_for(f"a note on {named(subject)}", before, lambda text: self._note(subject, before, text))

    def _note(self, subject: Subject, before: str, text: str) -> None:
        words = text.strip()
        if words != before and self._write(lambda: self._app.verdicts.sidecar.note(_kept(subject), words)):
            self._screen.say(
                f"noted on {named(subject)}  ·  u takes it back" if words else f"no note on {named(subject)} any more"
            )

    def do_tag(self, argument: str) -> None:
        subject = self._screen.subject
        if subject is None:
            self._screen.say("there is no run here to tag", "status.warn")
            return
        known = " ".join(sorted(self._app.verdicts.of(subject).tags))
        self._screen.ask_for(f"tags of {named(subject)}", known, lambda text: self._tag(subject, text))

    def _tag(self, subject: Subject, text: str) -> None:
        before, wanted = self._app.verdicts.of(subject).tags, text.split()
        for tag in sorted({*wanted}.difference(before)):
            self._write(lambda tag=tag: self._app.verdicts.sidecar.tag(_kept(subject), tag))  # type: ignore[misc]
        for tag in sorted({*before}.difference(wanted)):
            self._write(lambda tag=tag: self._app.verdicts.sidecar.untag(_kept(subject), tag))  # type: ignore[misc]
        if (told := self._app.verdicts.of(subject).tags) != before:
            self._screen.say(f"tags of {named(subject)}: {' '.join(told) or 'none'}  ·  u takes the last one back")

    def do_undo(self, argument: str) -> None:
        said: list[str | None] = []
        if self._write(lambda: said.append(self._app.verdicts.sidecar.undo())):
            self._screen.say(said[0] or "there is nothing to take back")

    def do_set_mark(self, argument: str) -> None:
        place = self._screen.place
        run = self._app.store.runs.get(place[0]) if place is not None else None
        if place is None or run is None:
            self._screen.say("there is no run here to mark", "status.warn")
        elif self._write(lambda: self._app.verdicts.sidecar.mark(argument, run, place[1])):
            self._screen.say(f"marked with {argument}  ·  '{argument} comes back")

    def do_go_to_mark(self, argument: str) -> None:
        found = self._app.verdicts.marked(argument, self._app.store.runs.values())
        if found is None:
            self._screen.say(f"nothing here is marked with {argument}", "status.warn")
        else:
            self._screen.go_to(*found)

    def said_of(self, run: RunSummary) -> Line:
        """What the list says of what was judged of a run; nothing before all runs are known."""
        if self._app.stage or self._app.verdicts.is_empty:
            return ()
        told = self._app.verdicts.of(run)
        words = (
            [Piece(clean(f" {told.verdict}"), "accent bold" if told.source == "run" else "accent")]
            if told.verdict
            else []
        )
        words += [Piece(one_line(f" #{tag}", 40), "accent") for tag in told.tags]
        if told.note:
            words.append(Piece(one_line(f" {told.note}", 60), "sec"))
        return tuple(words)

    def _write(self, change: Callable[[], object], *, decided: bool = False) -> bool:
        """Do what writes to the file of verdicts; what goes wrong with it is said."""
        try:
            change()
        except TracetuiError as error:
            self._screen.say(str(error), "status.error")
            return False
        self._screen.judged(decided=decided)
        return True


def named(subject: Subject) -> str:
    """What is judged, in a few words; not cleaned."""
    if isinstance(subject, RunSummary):
        return f"run {subject.id[:8] if len(subject.id) == UUID_LENGTH else subject.id}"
    runs = len(subject.runs)
    return f"{subject.id}, {runs} run{'s' if runs != 1 else ''}"


class Verdicts:
    """The file of verdicts, as the app uses it: opened when it is first needed."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self.last: Verdict | None = None
        """The verdict that was given last."""

    @cached_property
    def sidecar(self) -> Sidecar:
        """The file, and what it says."""
        from tracetui.store.sidecar import Sidecar

        return Sidecar(roots=self._roots)

    def refresh(self) -> bool:
        """Take in what another instance judged meanwhile; True if it did. Nothing is read before it is needed."""
        return "sidecar" in vars(self) and self.sidecar.refresh()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever judged."""
        return not self.sidecar.revision

    def of(self, subject: Subject) -> Judgement:
        """What was judged of a signature, or of a run: by itself, else by its signature."""
        from tracetui.store.signature import signature_of

        if not isinstance(subject, RunSummary):
            return self.sidecar.of_signature(subject.signature.digest)
        signature = signature_of(subject)
        return self.sidecar.of(subject, signature.digest if signature is not None else None)

    def judge(self, subject: Subject, verdict: Verdict) -> None:
        """Give a verdict, and remember it for ``.``."""
        self.sidecar.judge(_kept(subject), verdict)
        self.last = verdict

    def marked(self, letter: str, runs: Iterable[RunSummary]) -> tuple[RunRef, str | None] | None:
        """The run and the span that are marked with a letter, where they are among `runs`."""
        mark = self.sidecar.marked(letter)
        run = mark.among(runs) if mark is not None else None
        return (run.ref, mark.span) if mark is not None and run is not None else None


def _kept(subject: Subject) -> Cause | RunSummary:
    """What is judged, as the file names it."""
    if isinstance(subject, RunSummary):
        return subject
    from tracetui.redact import Redactor
    from tracetui.store.judgement import Cause

    return Cause(subject.signature.digest, subject.id, Redactor().header(subject.signature.title))
