"""Unified diffs of the texts of an edit."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from typing import Final

_MAX_LINES: Final = 600
"""More lines between the first and last change are removed and added as a whole."""
_CONTEXT: Final = 3
"""Equal lines that are shown around a change."""


def compare(old: str, new: str) -> tuple[str, ...]:
    """The lines of the unified diff of two texts, without its file headers."""
    before, after = (text.split("\n") if text else [] for text in (old, new))
    if after and after[-1] == "" and (not before or before[-1] == ""):  # both end with a newline
        before, after = before[:-1], after[:-1]
    head, tail = _common(before, after)
    removed, added = before[head : len(before) - tail], after[head : len(after) - tail]
    if not before or not removed or not added or len(removed) > _MAX_LINES or len(added) > _MAX_LINES:
        if not removed and not added:
            return ()
        context = before[max(0, head - _CONTEXT) : head], after[len(after) - tail :][:_CONTEXT]
        return (
            *(f" {line}" for line in context[0]),
            *(f"-{line}" for line in removed),
            *(f"+{line}" for line in added),
            *(f" {line}" for line in context[1]),
        )
    begin, end = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    changed = before[begin : len(before) - end], after[begin : len(after) - end]
    lines = list(unified_diff(*changed, lineterm="", n=_CONTEXT))[2:]
    if sum(line.startswith("@@") for line in lines) == 1:
        return tuple(lines[1:])
    return tuple(lines if not begin else list(unified_diff(before, after, lineterm="", n=_CONTEXT))[2:])


def _common(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Number of equal lines at the beginning and at the end."""
    most = min(len(before), len(after))
    head = next((i for i in range(most) if before[i] != after[i]), most)
    tail = next((i for i in range(most - head) if before[-1 - i] != after[-1 - i]), most - head)
    return head, tail
