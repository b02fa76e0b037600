"""Changed files and findings of the audit as rows: folders with files and their edits, severities with rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from itertools import groupby
from posixpath import basename, dirname
from typing import Final, NamedTuple

from msgspec.structs import replace

from tracetui import masking
from tracetui.analysis.arrangement import Arrangement
from tracetui.analysis.audit import RULES, Audit, Finding, Severity
from tracetui.analysis.effects import Edit, Kind, Outcome, is_bypass
from tracetui.analysis.effects.paths import is_temporary
from tracetui.analysis.files import Change, FileHistory, FilesReport, FileState, State
from tracetui.masking import one_line
from tracetui.model import RunRef, RunSummary
from tracetui.text import Clean, age, count, grouped, quantity, truncate_middle
from tracetui.views.bars import amount
from tracetui.views.detail.transcript import changed_lines
from tracetui.views.glyphs import UNICODE, Glyphs
from tracetui.views.rows import Line, Piece, column, fill, fit, width_of

Place = tuple[RunRef, "str | None"]
"""A run, and a span of it."""
OUTSIDE: Final = "outside the working directory"
WIDE: Final = 100
"""Cells from which rows have titles and permission modes."""
_MOST_DIFF: Final = 2_000
"""Rows of the changes of a file, after which no other change is shown."""
_MOST_OPEN: Final = 5
"""A severe rule with at most so many findings is unfolded at first."""
_STATES: Final = {
    State.AS_WRITTEN: ("same", "sec"),
    State.CHANGED: ("changed", "status.warn"),
    State.GONE: ("only_a", "status.warn"),
    State.NOT_LOOKED_AT: ("zero", "dim"),
    State.NOT_RECORDED: ("missing", "dim"),
}
_SEVERITIES: Final = {
    Severity.ERROR: "status.warn bold",
    Severity.WARNING: "text bold",
    Severity.NOTE: "sec",
}


class People(NamedTuple):
    """What rows say about runs."""

    summary_of: Callable[[RunRef], RunSummary | None]
    names: Mapping[RunRef, str]
    """Short names; not masked."""
    now: float

    def name(self, ref: RunRef) -> Clean:
        """The short name of a run."""
        return one_line(self.names.get(ref, ref.key or basename(ref.path)), 40)

    def title(self, ref: RunRef) -> Clean:
        """The first prompt of a run, else its name."""
        run = self.summary_of(ref)
        return Clean("") if run is None else one_line(run.prompt or run.name, 80)


class EffectRow(NamedTuple):
    """A row that leads to a step."""

    key: Hashable
    draw: Callable[[int], Line]
    plain: str
    place: Place | None = None
    parent: int | None = None
    """The row that folds this one."""
    fold: Hashable | None = None
    """Its key in the set of toggled rows."""
    mark: str | None = None


class EffectRows:
    """See `tracetui.views.rows.Rows`."""

    def __init__(self, rows: Sequence[EffectRow]) -> None:
        self._rows = rows
        self._index = {row.key: number for number, row in enumerate(rows)}

    def __len__(self) -> int:
        return len(self._rows)

    def key(self, index: int) -> Hashable:
        return self._rows[index].key

    def index(self, key: Hashable) -> int | None:
        return self._index.get(key)

    def line(self, index: int, width: int) -> Line:
        return tuple(fit(self._rows[index].draw(width), width))

    def selectable(self, index: int) -> bool:
        return self._rows[index].place is not None

    def mark(self, index: int) -> str | None:
        return self._rows[index].mark

    def plain(self, index: int) -> str:
        return self._rows[index].plain

    def place(self, index: int) -> Place | None:
        """Where a row leads."""
        return self._rows[index].place if 0 <= index < len(self._rows) else None

    def parent(self, index: int) -> int | None:
        """The row that folds this one."""
        return self._rows[index].parent if 0 <= index < len(self._rows) else None

    def fold(self, index: int) -> Hashable | None:
        """The key of a row that unfolds."""
        return self._rows[index].fold if 0 <= index < len(self._rows) else None


def _heading(label: Clean, right: str, style: str, glyphs: Glyphs) -> Callable[[int], Line]:
    def draw(width: int) -> Line:
        rule = max(0, width - len(label) - len(right) - 4)
        return (
            Piece(label, style),
            Piece(Clean(f" {glyphs.rule * rule} "), "line"),
            Piece(Clean(f"{right} "), "sec"),
        )

    return draw


# ---- files


_STATE_ORDER: Final = (State.CHANGED, State.GONE, State.AS_WRITTEN, State.NOT_RECORDED, State.NOT_LOOKED_AT)
FILE_SORTS: Final[Mapping[str, Callable[[FileHistory, FileState], float]]] = {
    "file": lambda history, state: 0.0,
    "edits": lambda history, state: -len(history.done),
    "+": lambda history, state: -(history.added or 0),
    "−": lambda history, state: -(history.removed or 0),
    "runs": lambda history, state: -history.runs,
    "when": lambda history, state: -(history.last.at or 0.0),
    "state": lambda history, state: _STATE_ORDER.index(state.state),
}
"""Sort orders of files, by the heading of their column. The first, by folder, is the usual one."""


def files_heading(width: int, sorted_by: str = "file") -> Line:
    """The column headings of `file_rows`; that of the order stands out unless it is the usual one."""
    name, title = _file_widths(width)

    def heading(word: str, size: int) -> Piece:
        return column(Clean(word), size, _heading_style(word, sorted_by, "file"), right=True)

    pieces = [
        column(Clean("  file"), name, "dim"),
        heading("runs", 6),
        heading("edits", 7),
        heading("+", 7),
        heading("−", 7),
        column(Clean("  last writer" if title else "  writer"), title + 11, "dim"),
        heading("when", 5),
        Piece(Clean("  state"), _heading_style("state", sorted_by, "file")),
    ]
    return tuple(fit(pieces, width))


def _heading_style(word: str, sorted_by: str, usual: str) -> str:
    return "accent" if word == sorted_by != usual else "dim"


def _file_widths(width: int) -> tuple[int, int]:
    """Cells of the name, and of the title of the last writer."""
    title = 24 if width >= WIDE else 0
    return max(16, width - 6 - 7 - 7 - 7 - 11 - 5 - 26 - title), title


def file_rows(
    report: FilesReport,
    unfolded: Set[Hashable],
    people: People,
    glyphs: Glyphs,
    arrangement: Arrangement,
) -> EffectRows:
    """A row per file; unfolded files have a row per change. Files in temporary folders are left out.

    The sort is one of `FILE_SORTS`; the usual one has a heading per folder.
    """
    rows: list[EffectRow] = []
    listed = [
        (report.name(history), history, state) for history, state in report.files if not is_temporary(history.path)
    ]
    listed.sort(key=lambda file: (file[1].is_outside, dirname(file[0]) != "", dirname(file[0]), file[0]))
    by_folder, folded = arrangement.sort == "file", len(report.files) - len(listed)
    listed.sort(
        key=lambda file: FILE_SORTS[arrangement.sort](file[1], file[2]), reverse=arrangement.reverse and not by_folder
    )
    if by_folder and arrangement.reverse:
        listed.reverse()

    def folder_of(file: tuple[str, FileHistory, FileState]) -> str | None:
        return None if not by_folder else OUTSIDE if file[1].is_outside else dirname(file[0])

    for folder, files in groupby(listed, key=folder_of):
        group = [*files]
        if folder is not None:
            heading = one_line(folder if folder == OUTSIDE else f"{folder}/" if folder else "./", 100)
            if folder == OUTSIDE and folded:
                heading = Clean(f"{heading} · {grouped(folded)} in temporary folders folded")
                folded = 0
            rows.append(EffectRow(("folder", folder), _heading(heading, grouped(len(group)), "sec", glyphs), heading))
        for name, history, state in group:
            label = name if folder in (OUTSIDE, None) else basename(name)
            rows.append(_file_row(label, history, state, people, glyphs, is_open=history.path in unfolded))
            if history.path in unfolded:
                parent = len(rows) - 1
                rows += [
                    _change_row(number, change, history, people, parent, glyphs)
                    for number, change in enumerate(history.changes)
                ]
    if folded:
        heading = Clean(f"{quantity(folded, 'file')} in temporary folders folded")
        rows.append(EffectRow("folded", _heading(heading, "", "sec", glyphs), heading))
    return EffectRows(rows)


def _file_row(
    label: str, history: FileHistory, state: FileState, people: People, glyphs: Glyphs, *, is_open: bool
) -> EffectRow:
    last = history.last
    is_shared = len({change.run for change in history.done if change.net}) > 1
    sign, style = _STATES[state.state]

    def draw(width: int) -> Line:
        room, title = _file_widths(width)
        mark = glyphs.unfolded if is_open else glyphs.folded
        pieces = [
            Piece(Clean(f"{mark} "), "dim"),
            *fill([Piece(truncate_middle(one_line(label, 200), room - 3), "text")], room - 2),
            column(grouped(history.runs), 6, "text" if history.runs > 1 else "sec", right=True),
            column(grouped(len(history.done)), 7, "text", right=True),
            *_lines(history.added, history.removed, glyphs),
            Piece(Clean("  ")),
        ]
        if title:
            pieces += fill(fit([Piece(people.title(last.run), "text" if is_shared else "sec")], title - 1), title)
        pieces += [
            *fill(fit([Piece(people.name(last.run), "accent")], 8), 9),
            column(Clean("—") if last.at is None else age(people.now - last.at), 5, "dim", right=True),
            Piece(Clean(f"  {getattr(glyphs, sign)} "), style),
            Piece(_state_text(state), style),
        ]
        if state.state is State.CHANGED and state.total and (bar := min(12, width - width_of(pieces) - 2)) > 3:
            pieces += [Piece(Clean("  ")), *amount(state.standing or 0, state.total, bar, "status.warn", glyphs=glyphs)]
        return tuple(pieces)

    mark = "status.warn" if state.state in (State.CHANGED, State.GONE) else None
    return EffectRow(history.path, draw, one_line(label, 400), (last.run, last.span), fold=history.path, mark=mark)


def _lines(added: int | None, removed: int | None, glyphs: Glyphs) -> list[Piece]:
    """Two columns: lines added and removed."""
    return [
        column(glyphs.zero if number == 0 else count(number), 7, style if number else "dim", right=True)
        for number, style in ((added, "diff.add"), (removed, "diff.rem"))
    ]


def _state_text(state: FileState) -> Clean:
    if state.state is State.CHANGED and state.total is not None:
        if state.standing == state.total:
            return Clean(f"added to; {grouped(state.total)} stand")
        return Clean(f"{state.standing} of {state.total} stand")
    return Clean(state.state)


def _change_row(
    number: int, change: Change, history: FileHistory, people: People, parent: int, glyphs: Glyphs
) -> EffectRow:
    effect = change.effect
    verb = {Kind.WRITE: "write", Kind.DELETE: "delete", Kind.MOVE: "move"}.get(effect.kind, "edit")

    def draw(width: int) -> Line:
        room, title = _file_widths(width)
        pieces = [
            Piece(Clean("    ")),
            *fill([Piece(Clean(verb), "kind.tool"), Piece(Clean(f"  {effect.certainty}"), "dim")], room - 4),
            column(Clean(""), 13, "dim"),
            *(_lines(effect.added, effect.removed, glyphs) if change.is_done else [column(Clean(""), 14, "dim")]),
            Piece(Clean("  ")),
        ]
        if title:
            pieces += fill(fit([Piece(people.title(change.run), "sec")], title - 1), title)
        pieces += [
            *fill(fit([Piece(people.name(change.run), "accent")], 8), 9),
            column(Clean("—") if change.at is None else age(people.now - change.at), 5, "dim", right=True),
        ]
        if not change.is_done:
            pieces.append(Piece(Clean(f"  tried: {effect.outcome}; counts nothing"), "status.warn"))
        return tuple(pieces)

    key = (history.path, change.run, change.span, number)
    return EffectRow(key, draw, f"{verb} {effect.outcome}", (change.run, change.span), parent=parent)


def file_diff(history: FileHistory, people: People, width: int, glyphs: Glyphs = UNICODE) -> list[Line]:
    """All changes of a file that count, oldest first: a line that names the session, and the changed lines."""
    lines: list[Line] = []
    for number, change in enumerate(history.done):
        if len(lines) > _MOST_DIFF:
            remaining = quantity(len(history.done) - number, "more change")
            return [*lines, (Piece(Clean(f"{glyphs.cut} {remaining}"), "dim"),)]
        when = Clean(glyphs.missing if change.at is None else age(people.now - change.at))
        edit = change.effect.edit
        lines.append(
            (
                Piece(people.name(change.run), "accent"),
                Piece(Clean(f"  {when:>4}"), "dim"),
                *_lines(change.effect.added, change.effect.removed, glyphs),
                *fit([Piece(Clean("  ")), Piece(people.title(change.run), "text bold")], max(8, width - 30)),
            )
        )
        if edit is None:
            lines.append((Piece(Clean(f"{change.effect.kind}: the lines aren't recorded"), "dim"),))
        else:
            lines += changed_lines(_masked(edit), width, glyphs)
    return lines


def _masked(edit: Edit) -> Edit:
    """An edit whose secrets are masked, also those of several lines."""
    redactor = masking.current()
    if redactor is None:
        return edit
    if edit.patch is not None:
        return replace(edit, patch=(*redactor.text("\n".join(edit.patch)).split("\n"),))
    old, new = (text and redactor.text(text) for text in (edit.old, edit.new))
    return replace(edit, old=old, new=new)


def files_sentence(report: FilesReport) -> Line:
    """How many files changed since the agents wrote them, and how many are gone."""
    states = Counter(state.state for _, state in report.files)
    total = len(report.files)
    if not total:
        tried = f"{quantity(report.tried, 'change')} denied, failed or without a recorded outcome"
        return (Piece(Clean(tried if report.tried else "no file changed"), "sec"),)
    changed, gone = states[State.CHANGED], states[State.GONE]
    checked = changed + gone + states[State.AS_WRITTEN]
    if changed:
        pieces = [Piece(Clean(f"{grouped(changed)} of {quantity(total, 'file')} changed since"), "status.warn bold")]
    elif checked:
        pieces = [Piece(Clean(f"{quantity(total, 'file')}, none changed since"), "text bold")]
    else:
        pieces = [
            Piece(Clean(quantity(total, "file")), "text bold"),
            Piece(Clean(" · not looked at: start tracetui in their repository"), "sec"),
        ]
    if gone:
        pieces.append(Piece(Clean(f", {grouped(gone)} gone"), "status.warn"))
    return tuple(pieces)


def files_totals(report: FilesReport, runs: int) -> Line:
    """Numbers of runs, edits and lines; the sentence has that of files."""
    histories = [history for history, _ in report.files]
    if not histories:
        return (Piece(Clean(quantity(runs, "run")), "sec"),)
    edits = sum(len(history.done) for history in histories)
    added = sum(history.added or 0 for history in histories)
    removed = sum(history.removed or 0 for history in histories)
    numbers = f"{quantity(runs, 'run')} · {quantity(edits, 'edit')} · "
    return (
        Piece(Clean(numbers), "sec"),
        Piece(Clean(f"+{grouped(added)} "), "diff.add"),
        Piece(Clean(f"−{grouped(removed)}"), "diff.rem"),
    )


# ---- findings

Allowed = Callable[[Finding], bool]
"""Whether the user allowed a finding."""


RULE_SORTS: Final[Mapping[str, Callable[[Sequence[Finding]], int]]] = {
    "rule": lambda listed: 0,
    "done": lambda listed: -sum(finding.is_done for finding in listed),
    "tried": lambda listed: -sum(not finding.is_done for finding in listed),
    "runs": lambda listed: -len({finding.run for finding in listed}),
}
"""Sort orders of rules of a severity, by the heading of their column. The first, worst first, is the usual one."""


def audit_heading(width: int, sorted_by: str = "rule") -> Line:
    """The column headings of `audit_rows`; that of the order stands out unless it is the usual one."""
    pieces = [
        column(Clean("  rule"), 22, "dim"),
        *(
            column(Clean(word), size, _heading_style(word, sorted_by, "rule"), right=True)
            for word, size in (("done", 5), ("tried", 7), ("runs", 6))
        ),
        column(Clean("  what"), _evidence_room(width) + 2, "dim"),
        column(Clean("run"), 10, "dim"),
    ]
    if width >= WIDE:
        pieces.append(Piece(Clean("mode"), "dim"))
    return tuple(fit(pieces, width))


_NUMBERS: Final = 22 + 5 + 7 + 6 + 2
"""Cells of a rule and its counts; a finding has none, so that its evidence begins below the rule."""


def _evidence_room(width: int) -> int:
    return max(10, width - _NUMBERS - 10 - (18 if width >= WIDE else 0))


def audit_rows(
    audit: Audit,
    unfolded: Set[Hashable],
    people: People,
    allowed: Allowed,
    glyphs: Glyphs,
    arrangement: Arrangement,
) -> EffectRows:
    """A row per rule, worst first, and one per finding of an unfolded rule. Folded and allowed ones are counted only.

    `unfolded` has the names of rules that differ from the default: severe rules with few findings are unfolded.
    The sort is one of `RULE_SORTS`, for the rules of each severity.
    """
    rows: list[EffectRow] = []
    by_rule = {name: [finding for finding in audit.findings if finding.rule.name == name] for name in RULES}
    for severity in Severity:
        group = [
            (name, findings) for name, findings in by_rule.items() if findings and RULES[name].severity is severity
        ]
        if not group:
            continue
        group.sort(
            key=lambda rule: RULE_SORTS[arrangement.sort](
                [finding for finding in rule[1] if not finding.is_folded and not allowed(finding)]
            )
        )
        group = group[::-1] if arrangement.reverse else group
        listed = [item for _, findings in group for item in findings if not item.is_folded and not allowed(item)]
        done = sum(finding.is_done for finding in listed)
        tried = f" + {grouped(len(listed) - done)} tried" if len(listed) > done else ""
        right = f"{grouped(done)}{tried}" if listed else ""
        rows.append(
            EffectRow(("severity", severity), _heading(Clean(severity), right, _SEVERITIES[severity], glyphs), severity)
        )
        for name, findings in group:
            listed = [finding for finding in findings if not finding.is_folded and not allowed(finding)]
            is_open = (severity is Severity.ERROR and len(listed) <= _MOST_OPEN) is not (("rule", name) in unfolded)
            rows.append(_rule_row(name, findings, listed, allowed, glyphs, is_open=is_open))
            if is_open:
                parent = len(rows) - 1
                ordered = sorted(findings, key=lambda item: (item.is_folded or allowed(item), not item.is_done))
                rows += [
                    _finding_row(number, finding, people, parent, is_allowed=allowed(finding))
                    for number, finding in enumerate(ordered)
                ]
    return EffectRows(rows)


def _rule_row(
    name: str,
    findings: Sequence[Finding],
    listed: Sequence[Finding],
    allowed: Allowed,
    glyphs: Glyphs,
    *,
    is_open: bool,
) -> EffectRow:
    done = sum(finding.is_done for finding in listed)
    runs, zero = len({finding.run for finding in listed}), glyphs.zero if listed else Clean("")
    severity = RULES[name].severity
    first = (listed or findings)[0]
    left_out = [
        f"{grouped(number)} {word}"
        for number, word in (
            (sum(finding.is_folded for finding in findings), "in temporary folders folded"),
            (sum(allowed(finding) and not finding.is_folded for finding in findings), "allowed"),
        )
        if number
    ]
    counts = Counter(one_line(finding.what, 80) for finding in listed)
    targets = [f"{target} {glyphs.times}{number}" if number > 1 else target for target, number in counts.most_common(4)]
    targets += [quantity(len(counts) - 4, "other")] if len(counts) > 4 else []
    label = Clean(RULES[name].title) if is_open else Clean(" · ".join(targets))
    more = Clean("".join(f" · {part}" for part in left_out) if label else " · ".join(left_out))

    def draw(width: int) -> Line:
        mark = glyphs.unfolded if is_open else glyphs.folded
        return (
            Piece(Clean(f"{mark} "), "dim"),
            column(Clean(name), 20, "text bold" if severity is not Severity.NOTE else "text"),
            column(grouped(done) if done else zero, 5, "text bold" if done else "dim", right=True),
            column(grouped(len(listed) - done) if len(listed) > done else zero, 7, "sec", right=True),
            column(grouped(runs) if runs else zero, 6, "sec", right=True),
            Piece(Clean("  ")),
            Piece(label, "dim" if is_open else "sec"),
            Piece(more, "dim"),
        )

    mark = "status.warn" if severity is Severity.ERROR and done else None
    return EffectRow(("rule", name), draw, f"{name} {label}", (first.run, first.span), fold=("rule", name), mark=mark)


def _finding_row(number: int, finding: Finding, people: People, parent: int, *, is_allowed: bool) -> EffectRow:
    is_quiet = is_allowed or finding.is_folded
    outcome = "" if finding.is_done else str(finding.outcome)
    state = "allowed" if is_allowed else "folded" if finding.is_folded else outcome

    def draw(width: int) -> Line:
        head = [Piece(Clean("    ")), *([Piece(Clean(f"{state}  "), "dim" if is_quiet else "sec")] if state else [])]
        room = _NUMBERS + _evidence_room(width) - width_of(head)
        evidence_pieces = evidence(finding, room - 1, "dim" if is_quiet else "text")
        pieces = [
            *head,
            *fill(fit(evidence_pieces, room - 1), room),
            *fill(fit([Piece(people.name(finding.run), "accent")], 8), 10),
        ]
        if width >= WIDE:
            pieces.append(Piece(one_line(finding.mode or "", 18), "status.warn" if is_bypassing(finding) else "sec"))
        return tuple(pieces)

    key = (finding.rule.name, finding.run, finding.span, finding.target, number)
    return EffectRow(key, draw, one_line(finding.what, 400), (finding.run, finding.span), parent=parent)


def is_bypassing(finding: Finding) -> bool:
    """Whether no person was asked for the call."""
    return finding.mode is not None and is_bypass(finding.mode)


def evidence(finding: Finding, room: int, style: str = "text") -> Line:
    """The command with the evidence underlined, else the target. What is before the evidence is cut if it ends beyond
    `room` cells.
    """
    command, span = finding.command, finding.range
    if command is None:
        return (Piece(one_line(finding.target, 300), style),)
    masked = one_line(command, 2_000)
    part = one_line(command[span[0] : span[1]], 400) if span is not None else Clean("")
    at = -1
    if span is not None and part:  # a mask may shift it: the same occurrence counts
        for _ in range(command[: span[0]].count(command[span[0] : span[1]]) + 1):
            at = masked.find(part, at + 1)
    if at < 0:
        return (Piece(masked, style),)
    begin = max(0, at - 30) if at + len(part) > room and at > 40 else 0
    return (
        Piece(Clean(("…" if begin else "") + masked[begin:at]), style),
        Piece(part, "status.warn underline"),
        Piece(Clean(masked[at + len(part) :]), style),
    )


def audit_sentence(audit: Audit, allowed: Allowed) -> Line:
    """How many serious findings there are, and the worst."""
    unfolded = (item for item in audit.findings if not item.is_folded and not allowed(item))
    serious = [item for item in unfolded if item.rule.severity is Severity.ERROR]
    done = [finding for finding in serious if finding.is_done]
    tried = Counter(finding.outcome for finding in serious if not finding.is_done)
    runs = len({finding.run for finding in done})
    if done:
        count = f"{quantity(len(done), 'serious finding')} in {quantity(runs, 'run')}"
        pieces = [Piece(Clean(count), "status.warn bold")]
    else:
        pieces = [Piece(Clean("no serious finding"), "text bold")]
    if tried:
        denied = tried[Outcome.DENIED]
        word = "denied" if denied == tried.total() else "tried"
        pieces.append(Piece(Clean(f", {grouped(tried.total())} more {word}"), "sec"))
    if done:
        worst = min(done, key=lambda finding: [*RULES].index(finding.rule.name))
        pieces.append(Piece(Clean(f" · worst: {worst.rule.title}"), "sec"))
    return tuple(pieces)


def audit_totals(audit: Audit, width: int) -> Line:
    """Numbers of runs and effects, and as many permission modes as fit whole."""
    pieces = [Piece(Clean(f"{quantity(len(audit.runs), 'run')} · {quantity(audit.outcomes.total(), 'effect')}"), "sec")]
    for mode, number in audit.modes.most_common():
        label = Piece(Clean(f" · {one_line(mode, 30) or 'mode not recorded'} {grouped(number)}"), "sec")
        if width_of((*pieces, label)) > width:
            break
        pieces.append(label)
    return tuple(pieces)
