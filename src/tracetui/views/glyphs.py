"""The two glyph sets: Unicode and ASCII, each glyph one cell wide.

The glyph set is an argument, never a global: color and glyphs are independent settings.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tracetui.model import Operation, Span, Status
from tracetui.text import Clean


class Glyphs(msgspec.Struct, frozen=True, kw_only=True, dict=False):
    """The glyphs by name. `UNICODE` suits most fonts; `ASCII` is for terminals and locales without them."""

    ok: Clean
    error: Clean
    wrong: Clean
    """A wrong answer: failed without an error."""
    ungraded: Clean
    """The grader did not grade."""
    running: Clean
    paused: Clean
    pending: Clean
    cancelled: Clean
    unknown: Clean
    note: Clean
    """Unreadable, or noteworthy."""
    zero: Clean
    missing: Clean
    """Not recorded."""
    cut: Clean

    model: Clean
    tool: Clean
    agent: Clean
    workflow: Clean
    node: Clean
    route: Clean
    retrieval: Clean
    embeddings: Clean
    policy: Clean
    hook: Clean
    reasoning: Clean
    other: Clean

    unfolded: Clean
    folded: Clean
    above: Clean
    cursor: Clean
    typing: Clean
    """The cursor in typed text."""
    role: Clean
    track: Clean
    thumb: Clean
    tick: Clean
    guide: Clean
    grid: Clean
    mask: Clean
    replay: Clean
    same: Clean
    changed: Clean
    only_a: Clean
    only_b: Clean
    edited: Clean
    downstream: Clean
    loop: Clean
    times: Clean
    end: Clean
    arrow: Clean
    dot: Clean
    """Separates facts."""
    path: Clean
    live: Clean
    """The pane updates live."""
    at_least: Clean

    rule: Clean
    rule_focused: Clean
    ends: Clean
    """A bar's last cell, by eighths: ``ends[n - 1]`` is filled from the left by n eighths."""
    half: Clean
    """A bar's first cell, its right half filled."""
    sliver: Clean
    """A bar's first cell, its last eighth filled."""
    container: Clean
    container_start: Clean
    container_end: Clean
    amount: Clean
    rest: Clean
    threshold: Clean
    fork: Clean
    """Lanes that separate here."""
    spark: Clean
    """Heights of a sparkline, lowest first."""


def _set(**signs: str) -> Glyphs:
    return Glyphs(**{name: Clean(sign) for name, sign in signs.items()})


UNICODE: Final = _set(
    ok="✓",
    error="✗",
    wrong="⊗",
    ungraded="⊖",
    running="◐",
    paused="‖",
    pending="□",
    cancelled="⊘",
    unknown="?",
    note="!",
    zero="·",
    missing="—",
    cut="…",
    model="◆",
    tool="■",
    agent="◉",
    workflow="▣",
    node="□",
    route="◇",
    retrieval="≡",
    embeddings="∷",
    policy="§",
    hook="⊢",
    reasoning="∴",
    other="·",
    unfolded="▾",
    folded="▸",
    above="▴",
    cursor="▌",
    typing="▏",
    role="▎",
    track="│",
    thumb="┃",
    tick="◂",
    guide="│",
    grid="┊",
    mask="••••••••",
    replay="↺",
    same="=",
    changed="≠",
    only_a="−",
    only_b="+",
    edited="~",
    downstream="↓",
    loop="↻",
    times="×",
    end="╰",
    arrow="→",
    dot="·",
    live="●",
    path="›",
    at_least="≥",
    rule="─",
    rule_focused="━",
    ends="▏▎▍▌▋▊▉█",
    half="▐",
    sliver="▕",
    container="━",
    container_start="╺",
    container_end="╸",
    amount="━",
    rest="─",
    threshold="┃",
    fork="┻",
    spark="▁▂▃▄▅▆▇█",
)

ASCII: Final = _set(
    ok="+",
    error="E",
    wrong="W",
    ungraded="U",
    running="R",
    paused="P",
    pending="o",
    cancelled="C",
    unknown="?",
    note="!",
    zero=".",
    missing="-",
    cut="~",
    model="*",
    tool="#",
    agent="@",
    workflow="%",
    node="#",
    route="o",
    retrieval="=",
    embeddings=":",
    policy="$",
    hook="^",
    reasoning="~",
    other=".",
    unfolded="v",
    folded=">",
    above="^",
    cursor=">",
    typing="_",
    role="|",
    track=":",
    thumb="|",
    tick="<",
    guide="|",
    grid=":",
    mask="********",
    replay="<",
    same="=",
    changed="!",
    only_a="-",
    only_b="+",
    edited="~",
    downstream="v",
    loop="@",
    times="x",
    end="`",
    arrow=">",
    dot="-",
    live="*",
    path=">",
    at_least=">=",
    rule="-",
    rule_focused="=",
    ends="########",
    half="#",
    sliver="#",
    container="=",
    container_start="=",
    container_end="=",
    amount="=",
    rest="-",
    threshold="|",
    fork="+",
    spark="_.-=#",
)

_STATUS: Final = {status: f"status.{status.value}" for status in Status}

_KINDS: Final[dict[Operation, tuple[str, str, str]]] = {
    Operation.CHAT: ("model", "kind.model", "bar.model"),
    Operation.EXECUTE_TOOL: ("tool", "kind.tool", "bar.tool"),
    Operation.INVOKE_AGENT: ("agent", "kind.agent", "bar.agent"),
    Operation.INVOKE_WORKFLOW: ("workflow", "kind.agent", "bar.agent"),
    Operation.RETRIEVAL: ("retrieval", "kind.tool", "bar.tool"),
    Operation.EMBEDDINGS: ("embeddings", "kind.tool", "bar.tool"),
    Operation.POLICY: ("policy", "kind.policy", "bar.policy"),
    Operation.HOOK: ("hook", "kind.hook", "bar.agent"),
    Operation.NODE: ("node", "kind.tool", "bar.tool"),
    Operation.ROUTE: ("route", "kind.tool", "bar.tool"),
    Operation.TURN: ("other", "kind.agent", "bar.agent"),
    Operation.MESSAGE: ("role", "role.user", "bar.agent"),
    Operation.META: ("other", "dim", "bar.agent"),
    Operation.UNKNOWN: ("other", "dim", "bar.agent"),
    Operation.OTHER: ("other", "dim", "bar.agent"),
}
_SWAPPED: Final = frozenset({Status.ERROR, Status.RUNNING, Status.PAUSED, Status.CANCELLED})


def status_glyph(status: Status, glyphs: Glyphs = UNICODE) -> tuple[Clean, str]:
    """Glyph and style of a status."""
    return Clean(getattr(glyphs, status.value)), _STATUS[status]


def kind(span: Span, glyphs: Glyphs = UNICODE) -> tuple[Clean, str]:
    """Glyph and style of a span: by status if it failed, is open, paused or cancelled, else by operation."""
    if span.status in _SWAPPED:
        return status_glyph(span.status, glyphs)
    return kind_of(span.operation, glyphs)


def kind_of(operation: Operation, glyphs: Glyphs = UNICODE) -> tuple[Clean, str]:
    """Glyph and style of an operation."""
    name, style, _ = _KINDS[operation]
    return Clean(getattr(glyphs, name)), style


def bar_style(span: Span) -> str:
    """Style of a span's bar: red if it failed, yellow while it is open, else by operation."""
    if span.status is Status.ERROR:
        return "bar.error"
    if span.status is Status.RUNNING:
        return "bar.running"
    return _KINDS[span.operation][2]
