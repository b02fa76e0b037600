"""What the screen asks about two runs, and the answers that are no values of `tracetui.diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tracetui.model import RunRef
from tracetui.text import Clean

if TYPE_CHECKING:  # what compares is loaded when somebody compares
    from tracetui.analysis.step_diff import Look
    from tracetui.diff.result import Diff


class Compare(msgspec.Struct, frozen=True):
    """Compare B with A. `relation` is what B is to A; with `strict` nothing is ignored. Answered again and again by a
    `Diff` that knows more, until that is complete.
    """

    a: RunRef
    b: RunRef
    relation: str | None = None
    strict: bool = False


class LookAt(msgspec.Struct, frozen=True):
    """Compare two steps of runs that are being compared: their positions, None on the side that has none."""

    of: Compare
    a: int | None
    b: int | None
    tab: str


class Calls(msgspec.Struct, frozen=True):
    """Compare what two model calls of one run were given: ids of spans, the earlier first."""

    run: RunRef
    a: str
    b: str


class Survey(msgspec.Struct, frozen=True):
    """Whether two runs went the same way, and where first they did not: answered once, by a `Verdict`."""

    a: RunRef
    b: RunRef
    relation: str | None = None


class Verdict(msgspec.Struct, frozen=True):
    """Whether two runs went the same way; if not, where first, in a few words."""

    same: bool
    words: Clean = Clean("")
    step: str = ""
    """Which step that is, as `store.span_names` names it."""


class Failed(msgspec.Struct, frozen=True):
    """A run could not be read; why, not cleaned."""

    why: str


Ask: TypeAlias = Compare | LookAt | Calls | Survey
Answer: TypeAlias = "Diff | Look | Verdict | Failed"
