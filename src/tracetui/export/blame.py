"""Blame as text, as JSON (``tracetui/blame/1``) and as an Agent Trace record. Texts are masked."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from tracetui.analysis.blame import Answer, LineAnswer, Rung, Step
from tracetui.export.json import moment, problem_value
from tracetui.export.table import Column, TextTable
from tracetui.masking import clean, masked_line
from tracetui.model import Problem, RunRef, RunSummary, quote_key
from tracetui.redact import Redactor
from tracetui.sources.git import Commit
from tracetui.text import Clean, exact, grouped, quantity

BLAME: Final = "tracetui/blame/1"
_BECAUSE: Final = {
    Rung.COMMIT: "the log or a checkpoint of the session has the git commit",
    Rung.LINES: "the session wrote the lines",
    Rung.FILE: "only this session changed the files within three hours before the commit",
}
_COLUMNS: Final = (
    Column("LINE", right=True),
    Column("SESSION", 60, least=8),
    Column("TITLE", 40, least=10, leaves=2),
    Column("WHEN", leaves=1),
    Column("", leaves=3),
    Column("CODE", 200, least=20),
)


class Reason(NamedTuple):
    """What ``--why`` adds to a line."""

    prompt: str | None
    """The user's prompt before the step; None if not recorded."""
    step: str
    """The tool and what it worked on."""


class BlameReport(NamedTuple):
    """The answers for lines, and for a commit if the user named one."""

    lines: Sequence[LineAnswer]
    commit: Commit | None
    answer: Answer
    """Of the commit."""
    runs: Mapping[RunRef, RunSummary]
    names: Mapping[RunRef, str]
    """Short names of the runs; not masked."""
    reasons: Mapping[Step, Reason] = {}
    is_why: bool = False
    problems: Sequence[Problem] = ()


# ---- JSON


def blame_value(report: BlameReport, redactor: Redactor) -> dict[str, Any]:
    """``tracetui/blame/1``: `run` and `rung` are null without an answer; `candidates` if there are several."""
    value: dict[str, Any] = {
        "schema": BLAME,
        "lines": [_line_value(report, line, redactor) for line in report.lines],
        "commit": None,
    }
    if (commit := report.commit) is not None:
        about = {"hash": commit.hash, "subject": redactor.text(commit.subject), "at": moment(commit.authored_at)}
        value["commit"] = about | _answer_value(report.answer)
    if report.problems:
        value["problems"] = [problem_value(problem) for problem in report.problems]
    return value


def _line_value(report: BlameReport, line: LineAnswer, redactor: Redactor) -> dict[str, Any]:
    value = {"path": line.path, "line": line.number} | _answer_value(line.answer) | {"moved": line.is_moved}
    if report.is_why:
        step = line.answer.step
        reason = None if step is None else report.reasons.get(step)
        prompt = None if reason is None or reason.prompt is None else redactor.text(reason.prompt)
        value["why"] = {"prompt": prompt, "because": because(line), "commit": line.commit and line.commit.hash}
    return value


def _answer_value(answer: Answer) -> dict[str, Any]:
    return {
        "run": answer.step and answer.step.run.address,
        "span": answer.step and answer.step.span,
        "candidates": [{"run": step.run.address, "span": step.span} for step in answer.candidates],
        "rung": answer.rung and answer.rung.value,
    }


# ---- text


def because(line: LineAnswer) -> Clean:
    """The evidence for the answer of a line, in a sentence."""
    answer = line.answer
    if answer.rung is not None:
        return Clean(f"{answer.rung}: {_because(answer)}")
    if answer.candidates:
        weights = " and ".join(f"{weight:.2f}" for weight in answer.weights)
        return Clean(f"several sessions wrote this line; weights {weights or 'equal'}: no choice is made")
    return Clean("none: no session wrote this line")


def _because(answer: Answer) -> str:
    return _BECAUSE[answer.rung] if answer.rung is not None else ""


def blame_rows(report: BlameReport, width: int | None, redactor: Redactor) -> Iterator[Clean]:
    """A line per line of the file, without headings."""
    rows = [_row(report, line, redactor) for line in report.lines]
    lines = TextTable(_COLUMNS, rows).lines(width) if rows else iter(())
    next(lines, None)
    return (Clean(line.rstrip()) for line in lines)


def _row(report: BlameReport, line: LineAnswer, redactor: Redactor) -> tuple[Clean, ...]:
    step = line.answer.step
    who = _name(report, step, redactor) if step is not None else _candidates(report, line.answer, redactor)
    return (
        Clean(str(line.number)),
        who if who or not line.text.strip() else Clean("—"),
        Clean("") if step is None else _title(report, step, redactor),
        Clean("") if step is None else _when(step),
        Clean("moved" if line.is_moved and step is not None else ""),
        clean(redactor.header(line.text.replace("\t", "    ")), 200),
    )


def _candidates(report: BlameReport, answer: Answer, redactor: Redactor) -> Clean:
    if not answer.candidates:
        return Clean("")
    return Clean("? " + " or ".join(_name(report, step, redactor) for step in answer.candidates))


def _name(report: BlameReport, step: Step, redactor: Redactor) -> Clean:
    return masked_line(report.names.get(step.run, step.run.key or step.run.path), redactor, 40)


def _title(report: BlameReport, step: Step, redactor: Redactor) -> Clean:
    run = report.runs.get(step.run)
    return Clean("") if run is None else masked_line(run.prompt or run.name, redactor, 40)


def _when(step: Step) -> Clean:
    return Clean((moment(step.at) or "")[:16].replace("T", " "))


def why_lines(report: BlameReport, line: LineAnswer, redactor: Redactor) -> Iterator[Clean]:
    """Why a line has its answer: prompt, step, evidence, and how to open the step."""

    def row(name: str, text: Clean) -> Clean:
        return Clean(f"{name:<9}{text}")

    answer, step = line.answer, line.answer.step
    yield row("line", masked_line(line.text, redactor, 200) or Clean("(blank)"))
    if step is not None:
        reason = report.reasons.get(step)
        if reason is not None and reason.prompt is not None:
            yield row("prompt", Clean(f"“{masked_line(reason.prompt, redactor, 200)}”"))
        label = masked_line(reason.step, redactor, 120) if reason is not None else exact(step.span, 80)
        yield row("step", Clean(f"{_name(report, step, redactor)}  {label}  {_when(step)}"))
    elif answer.candidates:
        names = (f"{_name(report, step, redactor)} at {_when(step)}" for step in answer.candidates)
        yield row("who", Clean(f"{grouped(len(answer.candidates))} candidates: {' · '.join(names)}"))
    if line.commit is not None:
        subject = masked_line(line.commit.subject, redactor, 80)
        yield row(
            "commit", Clean(f"{line.commit.hash[:8]} “{subject}”{' (line moved since)' if line.is_moved else ''}")
        )
    yield row("because", because(line))
    for opened in (step, *answer.candidates):
        if opened is not None:
            yield row("open", exact(f"tracetui {shlex.quote(address_of(opened))}", 400))


def address_of(step: Step) -> str:
    """The address of a step."""
    return f"{step.run.address}/{quote_key(step.span)}"


def commit_lines(report: BlameReport, redactor: Redactor) -> Iterator[Clean]:
    """A commit, who made it, and its lines by session."""
    commit = report.commit
    if commit is None:
        return
    at = (moment(commit.authored_at) or "")[:16].replace("T", " ")
    yield Clean(f"{commit.hash[:8]} {masked_line(commit.subject, redactor, 120)}  {at}")
    answer = report.answer
    if answer.step is not None:
        title = _title(report, answer.step, redactor)
        yield Clean(f"  {_name(report, answer.step, redactor)}  {title}  {answer.rung}: {_because(answer)}")
    elif answer.candidates:
        yield Clean(f"  {_candidates(report, answer, redactor)}: no choice is made")
    else:
        yield Clean("  none: no session made it or wrote enough of its lines")
    numbers = Counter(_candidates_or_name(report, line.answer, redactor) for line in report.lines)
    for name, number in numbers.most_common():
        yield Clean(f"  {grouped(number):>5} line{' ' if number == 1 else 's'}  {name or '— no session'}")


def _candidates_or_name(report: BlameReport, answer: Answer, redactor: Redactor) -> Clean:
    return _candidates(report, answer, redactor) if answer.step is None else _name(report, answer.step, redactor)


def summary(report: BlameReport, sessions: int, oldest: float | None) -> Clean:
    """A sentence: how many lines have one session, several candidates, or none."""
    lines = [line for line in report.lines if line.text.strip()]
    single = sum(line.answer.step is not None for line in lines)
    ambiguous = sum(bool(line.answer.candidates) for line in lines)
    read = f"{quantity(sessions, 'session')} read"
    since = f", oldest {(moment(oldest) or '')[:10]}" if oldest is not None else ""
    if not single and not ambiguous:
        return Clean(f"none: no session wrote any of its {quantity(len(lines), 'line')} ({read}{since})")
    parts = [f"{grouped(single)} of {quantity(len(lines), 'line')} by one session"]
    parts += [f"{grouped(ambiguous)} of several"] if ambiguous else []
    parts += [f"{grouped(len(lines) - single - ambiguous)} of none"] if len(lines) > single + ambiguous else []
    return Clean(f"{', '.join(parts)} · {read}{since}")


# ---- Agent Trace


def agent_trace(report: BlameReport, version: str, revision: str | None) -> dict[str, Any]:
    """An Agent Trace record (RFC 0.1.0): ranges of lines by file and conversation.

    Lines without one session are left out. The fields are those of https://agent-trace.dev.
    """
    files: dict[str, dict[RunRef, list[int]]] = {}
    for line in report.lines:
        if line.answer.step is not None:
            files.setdefault(line.path, {}).setdefault(line.answer.step.run, []).append(line.number)
    value: dict[str, Any] = {
        "version": "0.1.0",
        "id": "",
        "timestamp": moment(time.time()),
        "tool": {"name": "tracetui", "version": version},
        "files": [
            {"path": path, "conversations": [_conversation(report, ref, numbers) for ref, numbers in by_run.items()]}
            for path, by_run in files.items()
        ],
    }
    if revision is not None:
        value["vcs"] = {"type": "git", "revision": revision}
    value["id"] = str(uuid5(NAMESPACE_URL, repr((revision, value["files"]))))
    return value


def _conversation(report: BlameReport, ref: RunRef, numbers: Sequence[int]) -> dict[str, Any]:
    run = report.runs.get(ref)
    contributor = {"type": "ai"} | ({"model_id": run.model} if run is not None and run.model else {})
    return {
        "url": f"file:{quote(ref.address.encode('utf-8', 'surrogateescape'), safe='/#')}",
        "contributor": contributor,
        "ranges": [{"start_line": first, "end_line": last} for first, last in _ranges(sorted(set(numbers)))],
    }


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield run[0], run[-1]
