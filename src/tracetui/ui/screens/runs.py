"""What the screens have in common on which runs are judged, compared and counted: the main screen and the triage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tracetui.errors import TracetuiError, UsageError
from tracetui.model import RunRef, RunSummary
from tracetui.ui.base_app import HostApp
from tracetui.ui.screens.base import BaseScreen
from tracetui.ui.services.verdicts import Subject, named

if TYPE_CHECKING:
    from tracetui.store.judgement import Verdict

GREP_ASK = "search all listed runs{}: text or /regex/, case-insensitive unless you type a capital"


class Scope(NamedTuple):
    """The runs that a question about many runs is about."""

    refs: Sequence[RunRef]
    of: str
    """Which runs they are, in words."""


class RunsScreen(BaseScreen):
    """A screen with runs under its cursor, as subclasses define."""

    app: HostApp

    @property
    def subject(self) -> Subject | None:
        """What a verdict is given to: the run under the cursor."""
        return self.app.store.runs.get(self.place[0]) if self.place is not None else None

    @property
    def subjects(self) -> Sequence[Subject]:
        """The targets of a verdict."""
        return [self.subject] if self.subject is not None else []

    @property
    def place(self) -> tuple[RunRef, str | None] | None:
        """The run and the span under the cursor."""
        raise NotImplementedError

    @property
    def ended(self) -> str:
        """Addition to the message that all is reviewed."""
        return ""

    def scope(self, *, contrast: bool) -> Scope | None:
        """The runs of the statistics or, with `contrast`, those to compare with all others; None if there are none."""
        raise NotImplementedError

    def judged(self, *, decided: bool) -> None:
        """Refresh after a decision; `decided`: it was a verdict, so move to the next row."""
        raise NotImplementedError

    def causes_changed(self) -> None:
        """Show the new causes of the failed runs."""
        raise NotImplementedError

    def go_to(self, ref: RunRef, span: str | None) -> None:
        """Go to a run, and to a span in it."""
        raise NotImplementedError

    # ---- verdicts, notes, tags and marks

    def action_verdict(self, name: str) -> None:
        """Give a verdict to the marked rows, else to the one under the cursor."""
        from tracetui.store.judgement import Verdict

        subjects, verdict = self.subjects, Verdict(name)
        tasks = self.app.verdicts.unjudged_tasks(subjects)
        if not subjects:
            self.say("no run under the cursor", "status.warn")
        elif tasks > 1:
            self.ask_for(f"Mark {tasks} tasks {verdict.value}?", "", lambda _: self._judge(subjects, verdict))
        else:
            self._judge(subjects, verdict)

    def _judge(self, subjects: Sequence[Subject], verdict: Verdict) -> None:
        names: list[str] = []
        if self._write(lambda: names.append(self.app.verdicts.judge(subjects, verdict)), decided=True):
            self.say(f"{names[0]} marked {verdict.value}  ·  u undo  ·  . repeat{self.ended}")

    def action_verdict_again(self) -> None:
        """Give the last verdict again."""
        last = self.app.verdicts.last
        if last is None:
            self.say("no verdict to repeat  ·  v sets one", "status.warn")
        else:
            self.action_verdict(last.value)

    def action_note(self) -> None:
        """Prompt for a note on the run or cause under the cursor."""
        subject = self.subject
        if subject is None:
            self.say("no run under the cursor", "status.warn")
            return
        before = self.app.verdicts.of(subject).note or ""

        def answer(text: str) -> None:
            words = text.strip()
            if words != before and self._write(lambda: self.app.verdicts.note(subject, words)):
                name = named(subject)
                self.say(f"note saved for {name}  ·  u undo" if words else f"note removed from {name}")

        self.ask_for(f"note for {named(subject)}", before, answer)

    def action_tag(self) -> None:
        """Prompt for the tags of the run or cause under the cursor."""
        subject = self.subject
        if subject is None:
            self.say("no run under the cursor", "status.warn")
            return
        before = self.app.verdicts.of(subject).tags

        def answer(text: str) -> None:
            self._write(lambda: self.app.verdicts.tag(subject, text.split()))
            if (tags := self.app.verdicts.of(subject).tags) != before:
                self.say(f"tags of {named(subject)}: {' '.join(tags) or 'none'}  ·  u undo last")

        self.ask_for(f"tags of {named(subject)}", " ".join(sorted(before)), answer)

    def action_undo(self) -> None:
        """Undo the last verdict, note, tag or mark."""
        undone: list[str | None] = []
        if self._write(lambda: undone.append(self.app.verdicts.sidecar.undo())):
            self.say(undone[0] or "nothing to undo")

    def action_set_mark(self, letter: str) -> None:
        """Mark the place under the cursor with a letter."""
        place = self.place
        run = self.app.store.runs.get(place[0]) if place is not None else None
        if place is None or run is None:
            self.say("no run under the cursor", "status.warn")
        elif self._write(lambda: self.app.verdicts.sidecar.mark(letter, run, place[1])):
            self.say(f"marked with {letter}  ·  '{letter} returns here")

    def action_go_to_mark(self, letter: str) -> None:
        """Go to the place that is marked with a letter."""
        found = self.app.verdicts.marked(letter, self.app.store.runs.values())
        if found is None:
            self.say(f"no mark {letter}", "status.warn")
        else:
            self.go_to(*found)

    def _write(self, change: Callable[[], object], *, decided: bool = False) -> bool:
        """Run a change of the verdict file; show an error if it fails."""
        try:
            change()
        except TracetuiError as error:
            self.say(str(error), "status.error")
            return False
        self.judged(decided=decided)
        return True

    # ---- questions about runs

    def action_diff_original(self) -> None:
        """Compare a replay with its original, or an original with its replays."""
        ref = self.ref
        if ref in self.app.store.runs and ref is not None and (problem := self.app.compare_with_original(ref)):
            self.say(problem, "status.warn")

    def action_statistics(self) -> None:
        """How often, how long, how many tokens."""
        scope = self.scope(contrast=False)
        if scope is not None:
            self.app.show_statistics(scope.refs, scope.of)

    def action_contrast(self) -> None:
        """What runs share that others lack."""
        scope = self.scope(contrast=True)
        if scope is not None:
            self.app.show_contrast(scope.refs, scope.of)

    def action_export(self) -> None:
        """Write the run under the cursor to a file."""
        subject = self.subject
        if isinstance(subject, RunSummary):
            self.app.exporter.export_run(subject, self)
        else:
            self.say("no run under the cursor", "status.warn")

    def action_grep(self) -> None:
        """Ask what to search for in all runs."""
        search = self.app.surveys.search
        last = f"; empty repeats {search.text}" if search is not None else ""
        self.ask_for(GREP_ASK.format(self.app.search_cost()) + last, "", self.search_runs)

    def search_runs(self, words: str) -> None:
        """Search all runs and show the hits, or the error of a regular expression."""
        try:
            self.app.search_runs(words)
        except UsageError as error:
            self.say(str(error), "status.warn")
