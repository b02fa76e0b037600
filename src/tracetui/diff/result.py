"""What comes of a comparison: rows, the first divergence, counts, and what was ignored."""

from __future__ import annotations

from typing import Any

import msgspec

from tracetui.diff.compare import Kind
from tracetui.diff.facts import Deltas, Fact, Judged
from tracetui.model import Run, Span


class Row(msgspec.Struct, frozen=True, gc=False):
    """A step of A beside the same of B, or alone. `a` and `b` are positions in the spans of the runs."""

    kind: Kind
    a: int | None
    b: int | None
    downstream: bool = False
    """Follows from the first divergence: its input holds a value that diverged, or the other run was over by then."""
    changes: int = 0
    """How many values differ; `Diff.changes` gives them."""
    path: str = ""
    """Where the first of them is."""
    flags: tuple[str, ...] = ()
    """Stored values that are not what they should be, with their side: ``B: input_hash``."""
    noise: str = ""
    """What kind of difference it is, where nothing differs but what is usually ignored."""


class Divergence(msgspec.Struct, frozen=True):
    """A row that differs, with its first value that does: of a step that only one run has, its name."""

    row: int
    kind: Kind
    path: str
    a: Any = None
    b: Any = None
    noise: str = ""
    """As of a row: it is of a row where nothing else differs, and nothing else differs anywhere."""


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs compared. As long as `compared` is less than the number of rows, later rows are known by header only."""

    a: Run
    b: Run
    relation: str | None
    """What B is to A: replay, fork, retry, student, repeat; None if nothing says so."""
    by: str
    """What told which step is which, in words."""
    rows: tuple[Row, ...]
    first: Divergence | None = None
    decision: Divergence | None = None
    """The first routing decision that differs."""
    ignored: dict[str, int] = {}
    """What was let pass as noise, by kind."""
    compared: int = 0
    """Rows whose contents were compared."""
    counts: dict[Kind, int] = {}
    """Rows by kind, every kind in its order."""
    downstream: int = 0
    """How many rows follow from the first divergence."""
    independent: tuple[int, ...] = ()
    """Rows that differ after the first divergence and do not follow from it."""
    flagged: tuple[int, ...] = ()
    """Rows with flags."""
    notes: tuple[str, ...] = ()
    """What limits the answer, as sentences."""
    deltas: Deltas = Deltas()
    facts: tuple[Fact, ...] = ()
    judged: tuple[Judged, ...] = ()
    strict: bool = False
    """Nothing was ignored."""

    @property
    def complete(self) -> bool:
        """Whether every row was compared."""
        return self.compared == len(self.rows)

    @property
    def same(self) -> bool:
        """Whether no step differs, or, unless nothing is ignored, none in what means something."""
        return self.first is None or (bool(self.first.noise) and not self.strict)

    @property
    def apart(self) -> bool:
        """Whether there are steps, and none that both runs have."""
        alone = self.counts.get(Kind.ONLY_A, 0) + self.counts.get(Kind.ONLY_B, 0)
        return bool(self.rows) and alone == len(self.rows)

    def span_a(self, row: Row) -> Span | None:
        """The step of A in that row."""
        return None if row.a is None else self.a.spans[row.a]

    def span_b(self, row: Row) -> Span | None:
        """The step of B in that row."""
        return None if row.b is None else self.b.spans[row.b]
