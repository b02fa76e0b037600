"""Calls and turns in words: ``edited parser.py +14 −5``, ``read ×4 → ran pytest ✗ → failed: exit 1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tracetui.analysis.effects.actions import Action, action_of, last_part, plain_error, verb
from tracetui.analysis.navigation import BOOKKEEPING, Digest, Group, is_interruption
from tracetui.masking import one_line
from tracetui.model import Operation, Run, Span, Status
from tracetui.text import Clean, grouped, truncate
from tracetui.views.glyphs import Glyphs, kind
from tracetui.views.labels import BLANK, argument, deciding_excerpt, name_beside, preview_text
from tracetui.views.rows import Piece, fit, width_of

_LEAST_OBJECT: Final = 12
"""Cells that the object of a call keeps beside its result."""
_LEAST_RESULT: Final = 6
"""Fewer cells of a longer result say nothing."""


def action_pieces(action: Action, span: Span, room: int, glyphs: Glyphs) -> list[Piece]:
    """Verb, object and result of a call in `room` cells; a long object is truncated before the result."""
    sign, style = kind(span, glyphs)
    loud = span.status in (Status.ERROR, Status.RUNNING)
    name, quiet = (f"{style} bold", style) if loud else ("text", "text" if action.verb == "ran" else "text bold")
    head = [Piece(sign, style), BLANK, Piece(one_line(action.verb, 60) or Clean(span.operation.value), name)]
    target = one_line(action.object, 400)
    result = _result(action, span, glyphs)
    room = max(0, room - width_of(head))
    if target:
        object_room = max(min(_LEAST_OBJECT, room), room - width_of(result))
        head.append(Piece(truncate(Clean(f" {target}"), object_room), quiet))
        room -= width_of(head[-1:])
    return [*head, *fit(result, room)] if room >= min(_LEAST_RESULT, width_of(result)) else head


def _result(action: Action, span: Span, glyphs: Glyphs) -> list[Piece]:
    """Counts of lines, exit code, outcome, checklist, error; each with a blank before it."""
    pieces: list[Piece] = []
    if action.added:
        pieces.append(Piece(Clean(f" +{grouped(action.added)}"), "diff.add"))
    if action.removed:
        pieces.append(Piece(Clean(f" {glyphs.only_a}{grouped(action.removed)}"), "diff.rem"))
    if action.exit_code is not None:
        style = "status.error bold" if span.status is Status.ERROR else "status.ok" if not action.exit_code else "sec"
        pieces.append(Piece(Clean(f" {glyphs.dot} exit {action.exit_code}"), style))
    if action.result:
        pieces.append(Piece(Clean(f" {one_line(action.result, 200)}"), "dim"))
    elif span.error is not None and (message := deciding_excerpt(plain_error(span.error.text))):
        pieces.append(Piece(Clean(f"  {message}"), "status.error"))
    if action.todos:
        pieces.append(Piece(Clean(f" {action.done} of {len(action.todos)} done "), "text"))
        for todo in action.todos:
            sign, style = _todo_sign(todo.state, glyphs)
            pieces += (Piece(Clean(f" {sign} "), style), Piece(Clean(f"{one_line(todo.text, 100)} "), "dim"))
    if span.status is Status.RUNNING and not action.exit_code:
        pieces.append(Piece(Clean(f" {glyphs.cut}"), "status.running"))
    return pieces


def _todo_sign(state: str, glyphs: Glyphs) -> tuple[Clean, str]:
    if state == "done":
        return glyphs.ok, "status.ok"
    return (glyphs.running, "status.running") if state == "now" else (glyphs.pending, "dim")


def reads_pieces(span: Span, paths: Sequence[str], room: int, glyphs: Glyphs) -> list[Piece]:
    """``read 3 files parser.py, lexer.py, rows.py``, ``read parser.py ×3``: consecutive calls that read."""
    sign, style = kind(span, glyphs)
    names = {path: one_line(last_part(path), 60) or glyphs.missing for path in paths}
    pieces = [Piece(sign, style), BLANK, Piece(Clean("read "), "text")]
    if len(names) == 1:
        pieces += (Piece(names[paths[0]], "text bold"), Piece(Clean(f" {glyphs.times}{len(paths)}"), "sec"))
    else:
        pieces.append(Piece(Clean(f"{len(names)} files"), "text bold"))
        pieces.append(Piece(Clean(f" {', '.join(names.values())}"), "dim"))
    return fit(pieces, room)


def step_pieces(span: Span, action: Action, room: int, glyphs: Glyphs) -> list[Piece]:
    """Any span as a row of a story: a call as `action`, a reply as its text, others by name."""
    sign, style = kind(span, glyphs)
    loud = span.status in (Status.ERROR, Status.RUNNING)
    if span.operation is Operation.EXECUTE_TOOL:
        return action_pieces(action, span, room, glyphs)
    pieces = [Piece(sign, style), BLANK]
    room -= 2
    if span.operation is Operation.CHAT and not loud and span.preview.strip():
        return pieces + fit([Piece(preview_text(span), "text")], room)
    argument_text = argument(span)
    quiet = span.operation in BOOKKEEPING or span.operation is Operation.MESSAGE
    name_style = f"{style} bold" if loud else "sec" if quiet else "text bold"
    pieces.append(Piece(name_beside(span, argument_text, room) or Clean(span.operation.value), name_style))
    if argument_text:
        pieces.append(Piece(Clean(f" {argument_text}"), "dim"))
    if span.error is not None:
        pieces.append(Piece(Clean(f"  {deciding_excerpt(span.error.text)}"), "status.error"))
    return pieces


# ---- the work of a turn: read ×4 → edited ripe.py → ran pytest -q ✗ → failed: exit 1


_MAX_GROUPS: Final = 5
"""More groups are merged by verb."""
_ARGUMENT: Final = 28
_ERROR: Final = 60


def work_pieces(run: Run, digest: Digest, glyphs: Glyphs) -> list[Piece]:
    """The tool calls and sub-agents of a turn, in order; of many, the sums by verb."""
    named = _merge([(_verb_of(group), group) for group in digest.groups], adjacent=True)
    if len(named) > _MAX_GROUPS:
        named = _merge(named, adjacent=False)
    pieces: list[Piece] = []
    for word, group in named:
        if pieces:
            pieces.append(Piece(Clean(f" {glyphs.arrow} "), "dim"))
        pieces.append(Piece(one_line(word, 40) or glyphs.missing, "kind.agent" if group.lane else "text"))
        pieces += _extent(run, group, glyphs)
    return pieces


def _verb_of(group: Group) -> str:
    if not group.lane:
        return verb(group.name)
    return group.name if group.name == _BRANCH else f"delegated to {group.name}"


_BRANCH: Final = "abandoned branch"


def _merge(named: Sequence[tuple[str, Group]], *, adjacent: bool) -> list[tuple[str, Group]]:
    """Join the groups with the same verb."""
    merged: list[tuple[str, Group]] = []
    at: dict[str, int] = {}
    for word, group in named:
        same = at.get(word)
        if same is None or (adjacent and same != len(merged) - 1):
            at[word] = len(merged)
            merged.append((word, replace(group)))
        else:
            merged[same][1].count += group.count
            merged[same][1].failed += group.failed
    return merged


def _extent(run: Run, group: Group, glyphs: Glyphs) -> list[Piece]:
    """The argument of a single call, the number of several; failures."""
    pieces = []
    if group.count > 1:
        pieces.append(Piece(Clean(f" {glyphs.times}{group.count}"), "sec"))
    elif not group.lane and (argument_text := short_argument(run.spans[group.first])):
        pieces.append(Piece(Clean(f" {argument_text}"), "sec"))
    if group.failed:
        number = str(group.failed) if group.count > 1 else ""
        pieces.append(Piece(Clean(f" {number}{glyphs.error}"), "status.error"))
    return pieces


def short_argument(span: Span) -> Clean:
    """The object of a call in a few cells: of a path its last part."""
    return truncate(one_line(action_of(span).object, 200), _ARGUMENT)


def outcome_pieces(run: Run, digest: Digest, glyphs: Glyphs) -> list[Piece]:
    """How a turn ended: ``failed: 503``, ``interrupted``, ``running: Bash``, else the answer; empty without one."""
    span = run.spans[digest.last] if digest.last is not None else None
    if span is None:
        return []
    if is_interruption(span):
        return [Piece(Clean("interrupted"), "status.warn")]
    if span.status is Status.ERROR:
        message = one_line(span.error.text, _ERROR) if span.error is not None else Clean("")
        return [
            Piece(Clean("failed"), "status.error bold"),
            Piece(Clean(f": {message}" if message else ""), "status.error"),
        ]
    if span.status is Status.RUNNING:
        return [Piece(Clean(f"{glyphs.running} running: {one_line(span.name, 40)}"), "status.running bold")]
    if span.status is Status.CANCELLED:
        return [Piece(Clean("interrupted"), "status.warn")]
    answer = run.spans[digest.answer] if digest.answer is not None else None
    if answer is None or span.operation is not Operation.CHAT or not (text := preview_text(answer, 200)):
        return []
    return [Piece(Clean(f"“{text}”"), "dim")]
