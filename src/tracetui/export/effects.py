"""The files that a run changed and the findings of the audit, for the document of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tracetui.analysis.audit import Audit, Finding, findings_of
from tracetui.analysis.effects import run_effects
from tracetui.analysis.effects.paths import is_temporary
from tracetui.analysis.files import FileChanges, FileHistory
from tracetui.export.page import Block, Heading, Prose, Table
from tracetui.masking import one_line
from tracetui.model import Run
from tracetui.text import Clean, count, exact, grouped

_MOST: Final = 200
"""Files and findings that a document lists."""


def effects_blocks(run: Run, *, anchors: bool = False) -> Iterator[Block]:
    """Tables of the files and findings, with `anchors` for a page; nothing for a run without effects.

    Texts are as in `run`: mask it before.
    """
    effects = run_effects(run)
    changes = FileChanges()
    changes.add(run.summary, effects)
    files = [history for history in changes.histories() if not is_temporary(history.path)]
    if files:
        yield Heading(2, Clean("Files"), "files" if anchors else "")
        yield Table(("file", "edits", "+", "−", "step"), [*map(_file, files[:_MOST])], frozenset({1, 2, 3}))
        yield from _more_note(len(files))
    audit = Audit([*findings_of(run.summary.ref, effects)])
    findings = [finding for finding in audit.sorted() if not finding.is_folded]
    if findings:
        yield Heading(2, Clean("Findings"), "findings" if anchors else "")
        yield Prose(Clean("Effects are recorded in traces, not observed: a trace can claim what never happened."))
        rows = [*map(_finding, findings[:_MOST])]
        yield Table(("rule", "severity", "outcome", "target", "command", "step"), rows)
        yield from _more_note(len(findings))


def _file(history: FileHistory) -> tuple[Clean, ...]:
    name = history.path if history.relative is None else history.relative
    edits = Clean(grouped(len(history.done)))
    return one_line(name, 300), edits, count(history.added), count(history.removed), exact(history.last.span, 80)


def _finding(finding: Finding) -> tuple[Clean, ...]:
    return (
        Clean(finding.rule.name),
        Clean(finding.rule.severity),
        Clean(finding.outcome),
        one_line(finding.target, 200),
        one_line(finding.command or "", 200),
        exact(finding.span or "", 80),
    )


def _more_note(number: int) -> Iterator[Block]:
    if number > _MOST:
        yield Prose(Clean(f"… and {grouped(number - _MOST)} more"))
