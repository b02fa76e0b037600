"""The file of verdicts, as the app uses it: verdicts, notes, tags and marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from tracetui.model import RunRef, RunSummary
from tracetui.views.masking import clean, one_line
from tracetui.views.rows import Line, Piece

if TYPE_CHECKING:  # loaded when the first thing is judged: the first screen does without
    from tracetui.analysis.triage import CauseVerdicts, Group
    from tracetui.store.judgement import CauseRef, Judgement, Verdict
    from tracetui.store.sidecar import Sidecar

Subject: TypeAlias = "Group | RunSummary"
"""What is judged: a signature with all its runs, or one run."""
UUID_LENGTH: Final = 36


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

    @cached_property
    def causes(self) -> CauseVerdicts:
        """The decisions on causes."""
        from tracetui.analysis.triage import CauseVerdicts

        return CauseVerdicts(self.sidecar)

    def of(self, subject: Subject) -> Judgement:
        """The decisions on a cause or a run."""
        return self.causes.of_run(subject) if isinstance(subject, RunSummary) else self.causes.of_group(subject)

    def judge(self, subject: Subject, verdict: Verdict) -> None:
        """Give a verdict, and remember it for ``.``."""
        self.sidecar.judge(_kept(subject), verdict)
        self.last = verdict

    def note(self, subject: Subject, words: str) -> None:
        """Write a note; none for empty words."""
        self.sidecar.note(_kept(subject), words)

    def tag(self, subject: Subject, tags: Iterable[str]) -> None:
        """Give exactly these tags."""
        before, tags = self.of(subject).tags, {*tags}
        for tag in sorted(tags.difference(before)):
            self.sidecar.tag(_kept(subject), tag)
        for tag in sorted({*before}.difference(tags)):
            self.sidecar.untag(_kept(subject), tag)

    def words_of(self, run: RunSummary) -> Line:
        """What the list says of what was judged of a run."""
        if self.is_empty:
            return ()
        judged = self.of(run)
        words = (
            [Piece(clean(f" {judged.verdict}"), "accent bold" if judged.source == "run" else "accent")]
            if judged.verdict
            else []
        )
        words += [Piece(one_line(f" #{tag}", 40), "accent") for tag in judged.tags]
        if judged.note:
            words.append(Piece(one_line(f" {judged.note}", 60), "sec"))
        return tuple(words)

    def marked(self, letter: str, runs: Iterable[RunSummary]) -> tuple[RunRef, str | None] | None:
        """The run and the span that are marked with a letter, where they are among `runs`."""
        mark = self.sidecar.marked(letter)
        run = mark.among(runs) if mark is not None else None
        return (run.ref, mark.span) if mark is not None and run is not None else None


def _kept(subject: Subject) -> CauseRef | RunSummary:
    """What is judged, as the file names it."""
    if isinstance(subject, RunSummary):
        return subject
    from tracetui.redact import Redactor
    from tracetui.store.judgement import CauseRef

    return CauseRef(subject.digest, subject.id, Redactor().header(subject.title))
