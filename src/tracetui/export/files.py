"""Changed files as a table and as JSON (``tracetui/files/1``). Paths are masked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from tracetui.analysis.effects.paths import is_temporary
from tracetui.analysis.files import FileHistory, FilesReport, FileState, State
from tracetui.export.json import moment, problem_value
from tracetui.export.schemas import reports as schemas
from tracetui.export.table import Column, TextTable
from tracetui.masking import masked_line
from tracetui.model import RunRef
from tracetui.redact import Redactor
from tracetui.text import Clean, count, grouped, quantity

FILES: Final = "tracetui/files/1"
_COLUMNS: Final = (
    Column("FILE", 200, least=20, middle=True),
    Column("RUNS", right=True, leaves=2),
    Column("EDITS", right=True),
    Column("+", right=True),
    Column("-", right=True),
    Column("LAST WRITER", 40, least=8, leaves=3),
    Column("WHEN", leaves=1),
    Column("STATE"),
)


def files_value(report: FilesReport, redactor: Redactor) -> schemas.Files:
    """``tracetui/files/1``: `added` and `removed` are lines, null if not recorded; `lines` are those of the agents that
    stand, and all of them.
    """
    return {
        "schema": FILES,
        "files": [_file_value(report, history, state, redactor) for history, state in report.files],
        "tried": report.tried,
        "problems": [problem_value(problem) for problem in report.problems],
    }


def _file_value(report: FilesReport, history: FileHistory, state: FileState, redactor: Redactor) -> schemas.ChangedFile:
    return {
        "path": redactor.text(report.name(history)),
        "runs": history.runs,
        "edits": len(history.done),
        "added": history.added,
        "removed": history.removed,
        "last_writer": {"run": history.last.run.address, "span": history.last.span},
        "state": state.state.value,
        "lines": None if state.total is None else [state.standing, state.total],
        "kind": history.last.effect.kind.value,
        "certainty": history.certainty.value,
        "outside": history.is_outside,
        "tried": len(history.changes),
        "at": moment(history.last.at),
    }


def files_lines(
    report: FilesReport, width: int | None, redactor: Redactor, writers: Mapping[RunRef, Clean]
) -> Iterator[Clean]:
    """A line per file; those in temporary folders are left out."""
    permanent = [pair for pair in report.files if not is_temporary(pair[0].path)]
    rows = [_row(report.name(history), history, state, redactor, writers) for history, state in permanent]
    return TextTable(_COLUMNS, rows).lines(width) if rows else iter(())


def _row(
    name: str, history: FileHistory, state: FileState, redactor: Redactor, writers: Mapping[RunRef, Clean]
) -> tuple[Clean, ...]:
    at = moment(history.last.at)
    return (
        masked_line(name, redactor, 300),
        Clean(grouped(history.runs)),
        Clean(grouped(len(history.done))),
        count(history.added),
        count(history.removed),
        writers.get(history.last.run, Clean("—")),
        Clean("—" if at is None else at[:16].replace("T", " ")),
        state_label(state),
    )


def state_label(state: FileState) -> Clean:
    """``as written``, ``changed (9 of 41 lines stand)``."""
    if state.state is State.CHANGED and state.total is not None:
        return Clean(f"changed ({state.standing} of {state.total} lines stand)")
    return Clean(state.state)


def summary(report: FilesReport) -> list[Clean]:
    """Sentences: how many files are in which state, and what is left out."""
    states = Counter(state.state for _, state in report.files)
    edits = sum(len(history.done) for history, _ in report.files)
    counts = [f"{states[state]} {state}" for state in State if states[state]]
    number = len(report.files)
    total = f"{quantity(number, 'file')}, {quantity(edits, 'edit')}"
    sentences = [" · ".join((total, *counts))]
    if report.tried:
        sentences.append(f"{quantity(report.tried, 'change')} denied, failed or without a recorded outcome")
    if folded := sum(is_temporary(history.path) for history, _ in report.files):
        sentences.append(f"{quantity(folded, 'file')} in temporary folders not listed")
    return [Clean(sentence) for sentence in sentences]
