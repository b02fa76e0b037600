"""A sub-agent's span opens as a trace of its own."""

from __future__ import annotations

import pytest

from tracetui.model import (
    Body,
    Error,
    Header,
    Message,
    Operation,
    Run,
    RunRef,
    Span,
    Status,
    StatusSource,
    Text,
    Usage,
)
from tracetui.model.build import RunBuilder, is_part, part_of
from tracetui.store.address import target

DERIVED = StatusSource.DERIVED


def message(ident: str, parent: str, role: str) -> Span:
    return Span(id=ident, name=role, operation=Operation.MESSAGE, parent_id=parent, step=1, status=Status.OK)


def agent(*below: Span, **fields: object) -> Run:
    """A run whose turn calls a tool that starts the agent ``a/1`` with the spans `below`."""
    spans = [
        Span(id="t", name="turn 1", operation=Operation.TURN, step=1, is_step=True, status=Status.OK),
        Span(id="c", name="ask", operation=Operation.EXECUTE_TOOL, parent_id="t", step=1, status=Status.OK),
        agent_span(**fields),
        *below,
        Span(id="after", name="assistant", operation=Operation.MESSAGE, step=1, parent_id="t"),
    ]
    builder = RunBuilder(RunRef("any", "dir/run.json", "k#1"), load)
    is_open = any(span.status is Status.RUNNING for span in spans)
    builder.add(spans, header=Header(id="run-1", name="planner", time_zone=None, ended=not is_open))
    return builder.build(modified_at=5.0, moving=is_open)


def agent_span(**fields: object) -> Span:
    known: dict[str, object] = {"status": Status.OK, "status_source": DERIVED, "duration_ms": 10.0, **fields}
    return Span(id="a/1", name="researcher", operation=Operation.INVOKE_AGENT, parent_id="c", step=1, **known)  # type: ignore[arg-type]


def load(span: Span) -> Body:
    if span.operation is Operation.MESSAGE:
        messages = (Message(span.name, (Text(f"{span.name} {span.id}"),)),)
        return Body(input_messages=messages) if span.name != "assistant" else Body(output_messages=messages)
    if span.operation is Operation.EXECUTE_TOOL:
        return Body(input={"topic": "x"}, output="facts")
    return Body(attributes={"span_type": "agent"})


TALK = (
    message("s", "a/1", "system"),
    message("q1", "a/1", "user"),
    Span(id="m", name="gpt", operation=Operation.CHAT, parent_id="a/1", step=1, usage=Usage(3, 2, 5)),
    message("r1", "a/1", "assistant"),
    message("q2", "a/1", "user"),
    Span(id="n", name="search", operation=Operation.EXECUTE_TOOL, parent_id="a/1", step=1),
    Span(id="n1", name="inner", parent_id="n", step=1),
    message("r2", "a/1", "assistant"),
)


def opened(run: Run) -> Run:
    position = run.index["a/1"]
    assert is_part(run.spans[position])
    return part_of(run, position)


def test_it_has_its_own_spans_steps_and_numbers() -> None:
    part = opened(agent(*TALK))

    assert [(span.id, depth) for span, depth in zip(part.spans, part.depths, strict=True)] == [
        *((ident, 0) for ident in ("s", "q1", "m", "r1", "q2", "n")),
        ("n1", 1),
        ("r2", 0),
    ]
    assert [span.parent_id for span in part.spans] == [None] * 6 + ["n", None]
    assert [(step.number, step.span) for step in part.steps] == [(1, "q1"), (2, "q2")]
    assert [span.step for span in part.spans] == [None, 1, 1, 1, 2, 2, 2, 2]
    assert part.children(part.index["n"]) == [part.index["n1"]]
    summary = part.summary
    assert (summary.steps, summary.spans, summary.llm_calls, summary.tool_calls) == (2, 8, 1, 1)
    assert (summary.usage, summary.model) == (Usage(3, 2, 5), "gpt")


def test_it_says_who_it_is_and_what_went_in_and_out() -> None:
    part = opened(agent(*TALK))

    assert part.summary.ref.address == "dir/run.json#k%231/a%2F1"
    assert (part.summary.id, part.summary.name, part.summary.parent) == ("a/1", "researcher", "run-1")
    assert (part.summary.time_zone, part.summary.modified_at) == (None, 5.0)
    body = part.body
    assert (body.system_prompt, body.input, body.output) == ("system s", "user q1", "assistant r2")
    assert (body.last_user, body.last_assistant) == ("user q2", "assistant r2")
    assert body.attributes == {"span_type": "agent"}


def test_without_messages_the_call_that_started_it_tells() -> None:
    part = opened(agent())

    assert (tuple(part.spans), tuple(part.steps), part.summary.steps) == ((), (), 0)
    assert (part.body.input, part.body.output) == ({"topic": "x"}, "facts")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": Status.UNKNOWN}, Status.ERROR),
        ({"status": Status.UNKNOWN, "duration_ms": None}, Status.UNKNOWN),  # it did not end
        ({"status": Status.RUNNING}, Status.RUNNING),
        ({"status": Status.OK}, Status.OK),
    ],
)
def test_part_that_ends_in_an_error_failed(fields: dict[str, object], expected: Status) -> None:
    failed = Span(id="n", name="search", parent_id="a/1", status=Status.ERROR, error=Error("HTTP 503"))

    part = opened(agent(message("q1", "a/1", "user"), failed, **fields))

    assert part.summary.status is expected
    assert part.summary.first_error is not None
    assert (part.summary.first_error.span, part.summary.errors) == ("n", 1)


def test_its_steps_have_addresses() -> None:
    run = agent(*TALK)

    assert target(run, ["a/1"]).span == run.span("a/1")
    assert target(run, ["a/1", "2"]).span == run.span("q2")
    assert target(run, ["a/1", "2", "output"]).keys == ("output",)
    assert target(run, ["a/1", "9"]).keys == ("9",)
    assert target(run, ["1", "ask", "a/1", "n"]).span == run.span("n")
