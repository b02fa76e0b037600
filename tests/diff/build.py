"""Runs to compare: a list of steps, each with what it is, what went in and what came out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tracetui.diff.comparison import Diff
from tracetui.model import Body, Error, Header, Message, Operation, Run, RunBody, RunRef, Span, Status
from tracetui.model.build import RunBuilder


class Step(NamedTuple):
    """One step."""

    operation: Operation = Operation.EXECUTE_TOOL
    name: str = "search"
    input: Any = None
    output: Any = None
    failed: bool = False
    depth: int = 0


def run_of(
    steps: Sequence[Step],
    *,
    hashed: bool = False,
    ident: str = "a",
    bodies: dict[str, Body] | None = None,
    **header: Any,
) -> Run:
    """A run of these steps; with `hashed` they carry a hash of what went in."""
    path = f"/traces/{ident}.json"
    known: dict[str, Body] = {}
    spans: list[Span] = []
    above: list[str] = []
    for number, step in enumerate(steps):
        del above[step.depth :]
        own = f"s{number}"
        known[own] = (bodies or {}).get(own, Body(input=step.input, output=step.output))
        spans.append(
            Span(
                id=own,
                name=step.name,
                operation=step.operation,
                parent_id=above[-1] if above else None,
                step=number + 1,
                is_step=True,
                status=Status.ERROR if step.failed else Status.OK,
                error=Error("failed") if step.failed else None,
                input_hash=repr((step.operation.value, step.name, step.input)) if hashed else None,
                preview=str(step.input)[:120],
                started_at=1000.0 + number,
                at=(ident, number),
            )
        )
        above.append(own)
    builder = RunBuilder(RunRef("any", path), lambda span: known[span.id])
    builder.add(spans, header=Header(**{"id": ident, "name": "agent", **header}), body=RunBody())
    return builder.build()


def node(name: str, state: Any = None, update: Any = None, depth: int = 0) -> Step:
    """A node of a graph."""
    return Step(Operation.NODE, name, state, update, depth=depth)


def chat(*texts: str, answer: str = "") -> Body:
    """A model call with this conversation."""
    roles = ("user", "assistant")
    from tracetui.model import Text

    messages = tuple(Message(roles[i % 2], (Text(text),)) for i, text in enumerate(texts))
    return Body(input_messages=messages, output_messages=(Message("assistant", (Text(answer),)),))


def kinds(diff: Diff) -> list[str]:
    """The kinds of all rows."""
    return [row.kind.value for row in diff.rows]


WORDS = st.sampled_from(["Paris", "London", "weather", "KfW 442", "subsidies", "2024", "", "naïve 東京"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["q", "text", "a.b", "items"]), inner, max_size=3)
    ),
    max_leaves=6,
)
STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([Operation.EXECUTE_TOOL, Operation.CHAT, Operation.HOOK]),
        st.sampled_from(["search", "fetch", "gpt"]),
        VALUES,
        VALUES,
        st.booleans(),
    ),
    max_size=12,
)
