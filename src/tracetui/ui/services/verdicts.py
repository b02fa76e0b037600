"""The file of verdicts, as the app uses it: verdicts, notes, tags and marks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from tracetui.masking import clean, one_line
from tracetui.model import RunRef, RunSummary
from tracetui.store.settings import verdicts_file
from tracetui.text import quantity
from tracetui.views.rows import Line, Piece

if TYPE_CHECKING:  # loaded when the first run or cause is judged: the first screen does without
    from tracetui.analysis.audit import Finding
    from tracetui.analysis.triage import CauseVerdicts, Group, Task
    from tracetui.store.judgement import CauseRef, Judgement, Verdict
    from tracetui.store.sidecar import Sidecar

Subject: TypeAlias = "Group | Task | RunSummary"
"""The target of a verdict: a cause, the wrong answers to a task, or one run."""
UUID_LENGTH: Final = 36


def subject_label(subject: Subject) -> str:
    """A subject in a few words; not cleaned."""
    if isinstance(subject, RunSummary):
        return f"run {subject.id[:8] if len(subject.id) == UUID_LENGTH else subject.id}"
    runs = len(subject.runs)
    return f"{subject.id} ({quantity(runs, 'run')})"


class Verdicts:
    """The file of verdicts, as the app uses it: opened when it is first needed."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots, self._exists = roots, os.path.exists(verdicts_file())
        self.last: Verdict | None = None
        """The verdict that was given last."""

    @cached_property
    def sidecar(self) -> Sidecar:
        """The verdict file and its contents."""
        from tracetui.store.sidecar import Sidecar

        return Sidecar(roots=self._roots)

    def refresh(self) -> bool:
        """Take in what another instance judged meanwhile; True if it did. Nothing is read before there is a file."""
        if "sidecar" in vars(self):
            return self.sidecar.refresh()
        before, self._exists = self._exists, os.path.exists(verdicts_file())
        return self._exists != before

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever judged; asked for every row. Loads nothing if there was no file a second ago."""
        return not (self._exists or "sidecar" in vars(self)) or not self.sidecar.revision

    @property
    def can_undo(self) -> bool:
        """Whether this instance changed something that it can undo."""
        return "sidecar" in vars(self) and self.sidecar.can_undo

    @cached_property
    def causes(self) -> CauseVerdicts:
        """The decisions on causes."""
        from tracetui.analysis.triage import CauseVerdicts

        return CauseVerdicts(self.sidecar)

    def judgement(self, subject: Subject) -> Judgement:
        """The decisions on a cause, a task or a run."""
        from tracetui.analysis.triage import Task

        if isinstance(subject, RunSummary):
            return self.causes.of_run(subject)
        return self.causes.of_task(subject) if isinstance(subject, Task) else self.causes.of_group(subject)

    def unjudged_tasks(self, subjects: Sequence[Subject]) -> int:
        """How many tasks get a verdict on the heading of wrong answers, if that is the only subject; else 0."""
        tasks = getattr(subjects[0], "tasks", ()) if len(subjects) == 1 else ()
        return len(self.causes.unjudged(subjects[0]) or tasks) if tasks else 0  # type: ignore[arg-type]

    def judge(self, subjects: Sequence[Subject], verdict: Verdict) -> str:
        """Give a verdict to all of these, as one change for undo, and remember it for ``.``; returns their names.

        One on wrong answers applies to their tasks without a verdict, or to all if every task has one.
        """
        targets, tasks = self._targets(subjects), self.unjudged_tasks(subjects)
        self.sidecar.judge_all(targets, verdict)
        self.last = verdict
        if len(subjects) == 1 and not tasks:
            return subject_label(subjects[0])
        return quantity(len(targets), "task" if tasks else "row")

    def _targets(self, subjects: Sequence[Subject]) -> list[CauseRef | RunSummary]:
        targets: list[CauseRef | RunSummary] = []
        for subject in subjects:
            tasks = () if isinstance(subject, RunSummary) else getattr(subject, "tasks", ())
            if tasks:
                targets += [_ref(task) for task in self.causes.unjudged(subject) or tasks]  # type: ignore[arg-type]
            else:
                targets.append(_ref(subject))
        return targets

    def merge(self, causes: Iterable[Group], into: Group) -> None:
        """Treat these causes as the same as another."""
        for cause in causes:
            self.sidecar.merge(cause.ref, into.ref)

    def split(self, cause: Group, by: str) -> None:
        """Split a cause by what varies (`Failure.part`)."""
        self.sidecar.split(cause.ref, by)

    def take_apart(self, cause: Group) -> None:
        """Take the merges of a cause back, or the split that it is a part of."""
        from tracetui.store.judgement import CauseRef

        for digest in cause.merged:
            self.sidecar.merge(CauseRef(digest), None)
        if not cause.merged:
            self.sidecar.split(CauseRef(cause.split_of), "")

    def note(self, subject: Subject, text: str) -> None:
        """Write a note; none for empty words."""
        self.sidecar.note(_ref(subject), text)

    def tag(self, subject: Subject, tags: Iterable[str]) -> None:
        """Give exactly these tags."""
        before, tags = self.judgement(subject).tags, {*tags}
        for tag in sorted(tags.difference(before)):
            self.sidecar.tag(_ref(subject), tag)
        for tag in sorted({*before}.difference(tags)):
            self.sidecar.untag(_ref(subject), tag)

    def allows(self, finding: Finding) -> bool:
        """Whether findings with this rule and target are allowed."""
        return not self.is_empty and self.sidecar.is_allowed(finding.fingerprint)

    def allow(self, finding: Finding, *, is_allowed: bool) -> None:
        """Allow findings with this rule and target, or no longer. Raises as `Sidecar.judge`."""
        title = f"{finding.rule.name} on {one_line(finding.target, 100)}"
        self.sidecar.allow(finding.fingerprint, title, is_allowed=is_allowed)

    def label_of(self, run: RunSummary) -> Line:
        """Verdict, tags and note of a run, for its row in the list."""
        if self.is_empty:
            return ()
        judgement = self.judgement(run)
        pieces = (
            [Piece(clean(f" {judgement.verdict}"), "accent bold" if judgement.source == "run" else "accent")]
            if judgement.verdict
            else []
        )
        pieces += [Piece(one_line(f" #{tag}", 40), "accent") for tag in judgement.tags]
        if judgement.note:
            pieces.append(Piece(one_line(f" {judgement.note}", 60), "sec"))
        return tuple(pieces)

    def marked(self, letter: str, runs: Iterable[RunSummary]) -> tuple[RunRef, str | None] | None:
        """The run and the span that are marked with a letter, where they are among `runs`."""
        mark = self.sidecar.marked(letter)
        run = mark.among(runs) if mark is not None else None
        return (run.ref, mark.span) if mark is not None and run is not None else None


def _ref(subject: Subject) -> CauseRef | RunSummary:
    """A subject as the verdict file names it."""
    return subject if isinstance(subject, RunSummary) else subject.ref
