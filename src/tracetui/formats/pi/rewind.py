"""Going back in a session: what had followed becomes a branch of its own, or such a branch is taken up again."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tracetui.formats.pi.records import At
from tracetui.formats.pi.spans import ABANDONED
from tracetui.formats.pi.state import BRANCH, Branch, State
from tracetui.model import Operation, Span

_ROOT: Final = ""
"""Stands for what is before the first entry."""


def moved(state: State, parent: Any, ident: str, line: int) -> None:
    """Entry `ident` follows `parent`, which need not be the latest one. What is no entry is passed over."""
    move = state.tree.go(parent) if parent is None or isinstance(parent, str) else None
    if move is None:
        return
    if state.tree.is_worn:
        state.problem(line, "somebody went back too often: what is abandoned after this line is not told apart")
    state.settle()
    state.group = None
    if move.left:
        branch = BRANCH + move.left[0]
        spans = [span for entry in move.left for span in _of(state, entry)]
        if spans and state.branches.get(branch) is None:
            _open(state, branch, move.fork, ident, spans)
        for span in spans:
            _carry(state, span, branch)
    for entry in move.back:
        for span in _of(state, entry):
            _carry(state, span, None)
    node = None if parent is None else state.tree.get(parent)
    state.top = None if node is None else node.top


def _of(state: State, entry: str) -> list[Span]:
    """The spans that stand where an entry does: its own, and the branches that left after it."""
    node = state.tree.get(entry)
    own = None if node is None or node.own is None else state.tops.get(node.own)
    left = [state.branches.get(branch) for branch in state.forks.get(entry) or ()]
    return [*([] if own is None else [own]), *(one.span for one in left if one is not None)]


def _open(state: State, ident: str, fork: str | None, follower: str, spans: list[Span]) -> None:
    """A branch that is abandoned for the first time."""
    facts = (("went_back_to", fork), ("went_on_with", follower))
    asked = next((span.preview for span in spans if span.name == "user"), "")
    state.branches[ident] = Branch(Span(id=ident, name="abandoned branch", preview=asked, at=At(facts=facts)))
    after = fork or _ROOT
    state.forks[after] = (*(state.forks.get(after) or ()), ident)


def _carry(state: State, span: Span, to: str | None) -> None:
    """Put a span into a branch, or back into the conversation, with the numbers of steps that follow from it."""
    is_response = span.operation is Operation.CHAT
    _count(state, span.parent_id, -1, is_response=is_response)
    _count(state, to, 1, is_response=is_response)
    if (branch := state.branches.get(span.id)) is not None:
        branch = branch._replace(span=replace(branch.span, parent_id=to))
        state.branches[span.id], state.spans[span.id] = branch, branch.span
        return
    note = span.note or ABANDONED if to is not None else "" if span.note == ABANDONED else span.note
    if is_response:
        state.steps += 1 if to is None else -1
    step = state.steps if is_response and to is None else None
    span = replace(span, parent_id=to, note=note, step=step, is_step=step is not None)
    state.tops[span.id] = state.spans[span.id] = span
    for called in state.below.get(span.id) or ():
        if (call := state.calls.get(called)) is not None and call.parent_id == span.id:
            state.calls[called] = state.spans[call.id] = replace(call, step=step)


def _count(state: State, ident: str | None, more: int, *, is_response: bool) -> None:
    """So many spans came into a branch, or went."""
    branch = None if ident is None else state.branches.get(ident)
    if branch is None or ident is None:
        return
    spans, responses = branch.spans + more, branch.responses + more * is_response
    note = "taken up again" if not spans else "1 response" if responses == 1 else f"{responses} responses"
    span = replace(branch.span, note=note)
    state.branches[ident], state.spans[ident] = Branch(span, spans, responses), span
