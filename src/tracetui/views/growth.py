"""What came to a run since an earlier state of it, found by comparing pointers: no Python work for what is the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tracetui.model import Run

_BLOCK: Final = 512


class Growth(NamedTuple):
    """The spans at positions from `kept` on are new; of those before, the ones at `changed` are not what they were.

    Changed means: another version of the span, or another number of spans below it. In order.
    """

    kept: int
    changed: list[int]


def growth(before: Run, run: Run) -> Growth | None:
    """How `run` came from `before`; None where spans went or moved, or came elsewhere than at the end."""
    kept = len(before.spans)
    if kept > len(run.spans) or run.depths[:kept] != before.depths:
        return None
    other = list(_differing(before.spans, run.spans))
    if any(before.spans[i].id != run.spans[i].id for i in other):
        return None
    return Growth(kept, sorted({*other, *_differing(before.sizes, run.sizes)}))


def _differing(before: Sequence[object], after: Sequence[object]) -> Iterator[int]:
    """Positions at which `after` does not begin as `before` does."""
    if before is after:
        return
    for start in range(0, len(before), _BLOCK):
        block = before[start : start + _BLOCK]
        now = after[start : start + len(block)]
        if block != now:
            yield from (start + i for i, (a, b) in enumerate(zip(block, now, strict=True)) if a is not b and a != b)
