"""Hand-built runs for the tests of views."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from tracetui.model import Body, Error, Header, Operation, Run, RunBody, RunRef, Span, Status, Usage
from tracetui.model.build import RunBuilder
from tracetui.views.rows import STYLES, Line, Rows, width_of

REF = RunRef("any", "/traces/a.json")
START = 1_763_730_562.0


def make_run(
    spans: list[Span], *, body: RunBody | None = None, bodies: dict[str, Body] | None = None, **header: Any
) -> Run:
    """A run of these spans."""
    builder = RunBuilder(REF, lambda span: (bodies or {}).get(span.id, Body()))
    builder.add(spans, header=Header(**{"id": "0690e0f0", "name": "researcher", **header}), body=body)
    return builder.build()


def make_span(
    span_id: str,
    name: str,
    operation: Operation,
    start: float | None = None,
    ms: float | None = None,
    *,
    step: int | None = None,
    status: Status = Status.OK,
    **rest: Any,
) -> Span:
    """A span that starts `start` seconds after `START`."""
    return Span(
        id=span_id,
        name=name,
        operation=operation,
        started_at=None if start is None else START + start,
        duration_ms=ms,
        step=step,
        is_step=step is not None,
        status=status,
        **rest,
    )


def researcher() -> Run:
    """A failed run with an agent, model calls, tools, a hook below a tool."""
    chat, tool = Operation.CHAT, Operation.EXECUTE_TOOL
    spans = [
        make_span("r", "researcher", Operation.INVOKE_AGENT, 0, 42_900),
        make_span(
            "1", "gpt-4o", chat, 0, 1900, step=1, parent_id="r", preview="plan the search",
            usage=Usage(input_tokens=2000, output_tokens=100),
        ),
        make_span("2", "search", tool, 1.9, 600, step=2, parent_id="r", preview="EV subsidies 2024"),
        make_span("9", "fetch", tool, 8.5, 1400, step=3, parent_id="r", preview="bmwk.de/foerderung/e-auto"),
        make_span("9a", "robots", Operation.HOOK, 8.5, 20, parent_id="9", preview="allow"),
        make_span("10", "gpt-4o", chat, 10, 2600, step=4, parent_id="r", note="+5 msgs"),
        make_span(
            "11", "search", tool, 12.9, 30_000, step=5, parent_id="r", preview="KfW 442 budget", status=Status.ERROR,
            error=Error("search timed out after 30s", "TimeoutError"),
        ),
    ]  # fmt: skip
    return make_run(
        spans, status=Status.ERROR, status_word="error", model="gpt-4o", started_at=START, duration_ms=42_900.0
    )


def text_of_line(line: Line) -> str:
    """The characters of a line."""
    return "".join(piece.text for piece in line)


def texts(rows: Rows, width: int = 100) -> list[str]:
    """The characters of every row."""
    return [text_of_line(rows.line(i, width)).rstrip() for i in range(len(rows))]


def check_line(line: Line, width: int) -> None:
    """A line fits, holds nothing that a terminal acts upon, and uses known styles."""
    assert width_of(line) <= width
    for piece in line:
        assert set(piece.style.split()) <= STYLES, piece.style
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or 0x202A <= ord(char) <= 0x202E for char in piece.text)


def check_rows(rows: Rows, width: int, most: int = 300) -> None:
    """Every row fits; keys are unique and lead back to their row."""
    keys = [rows.key(i) for i in range(min(len(rows), most))]
    assert len(set(keys)) == len(keys)
    for i, key in enumerate(keys):
        assert rows.index(key) == i
        check_line(rows.line(i, width), width)
        assert isinstance(rows.selectable(i), bool)
        assert rows.mark(i) is None or rows.mark(i) in STYLES
        assert isinstance(rows.plain(i), str)


HOSTILE = st.text(st.characters(codec=None), max_size=40) | st.sampled_from(
    ["\x1b]52;c;AA\x07", "\u202eabc", "日本語のテキスト" * 5, "a" * 300, "[/]", "\x9b31m", "e\u0301" * 9, "\ud800", ""]
)


TIMES = st.none() | st.floats(-1e3, 1e6) | st.sampled_from([float("nan"), float("inf"), 1e308, -1e308, 0.0])
SPAN = st.tuples(
    st.builds(
        Span,
        id=st.just(""),
        name=HOSTILE,
        operation=st.sampled_from(Operation),
        step=st.none() | st.integers(-5, 10**7),
        is_step=st.booleans(),
        status=st.sampled_from(Status),
        started_at=TIMES.map(lambda t: None if t is None else START + t),
        duration_ms=TIMES,
        usage=st.none() | st.builds(Usage, input_tokens=st.none() | st.integers(0, 10**12)),
        error=st.none() | st.builds(Error, HOSTILE, st.none() | HOSTILE),
        preview=HOSTILE,
        note=HOSTILE,
    ),
    st.none() | st.integers(0, 25),
)
"""A span and the number of its parent. Made once: what a strategy is made of costs more than what it makes."""


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any run: hostile names, wild times, any shape of tree."""
    number = draw(st.integers(0, 25))
    drawn = [draw(SPAN) for _ in range(number)]
    spans = [
        msgspec.structs.replace(span, id=str(i), parent_id=None if parent is None else str(min(parent, number)))
        for i, (span, parent) in enumerate(drawn)
    ]
    return make_run(spans, status=draw(st.none() | st.sampled_from(Status)), ended=draw(st.booleans()))
