"""A run as text: every line passed the gate, whatever the trace holds, and nothing is cut without saying so."""

from __future__ import annotations

import unicodedata
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tracetui.export.table import listing, newest_first, triage
from tracetui.export.text import one_span_lines, run_lines
from tracetui.model import (
    Blob,
    Body,
    Criterion,
    Error,
    FirstError,
    Header,
    Limit,
    Message,
    Metric,
    Operation,
    Problem,
    Reasoning,
    Run,
    RunBody,
    RunRef,
    RunSummary,
    Span,
    Status,
    StatusSource,
    Text,
    ToolCall,
    ToolResult,
    Total,
)
from tracetui.model.build import RunBuilder

FOREIGN = st.sampled_from(
    ["plain", "\x1b[31mred", "a\nb\r\n\x07", "\u202eabc", "[b]x[/b]", "", "\ud800", "e" + "\u0301" * 9]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(-(2**70), 2**70) | FOREIGN,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(FOREIGN, below, max_size=3),
)
PARTS = st.one_of(
    FOREIGN.map(Text),
    FOREIGN.map(Reasoning),
    st.builds(ToolCall, FOREIGN, FOREIGN, VALUES),
    st.builds(ToolResult, FOREIGN, VALUES, st.none() | st.booleans(), FOREIGN),
    st.builds(Blob, FOREIGN, VALUES),
)
MESSAGES = st.lists(st.builds(Message, FOREIGN, st.lists(PARTS, max_size=2).map(tuple)), max_size=2).map(tuple)
BODIES = st.builds(
    Body,
    input=VALUES,
    output=VALUES,
    input_messages=MESSAGES,
    output_messages=MESSAGES,
    attributes=st.dictionaries(FOREIGN, VALUES, max_size=2),
    state=st.none() | st.dictionaries(FOREIGN, VALUES, max_size=2),
    traceback=st.none() | FOREIGN,
)
SPANS = st.builds(
    Span,
    id=FOREIGN,
    name=FOREIGN,
    operation=st.sampled_from(Operation),
    parent_id=st.none() | FOREIGN,
    step=st.none() | st.integers(-1, 3),
    is_step=st.booleans(),
    status=st.sampled_from(Status),
    status_word=st.none() | FOREIGN,
    error=st.none() | st.builds(Error, FOREIGN, st.none() | FOREIGN),
    note=FOREIGN,
    started_at=st.none() | st.floats(),
    duration_ms=st.none() | st.floats(),
    input_hash=st.none() | FOREIGN,
)
RUN_BODIES = st.builds(
    RunBody,
    input=VALUES,
    goal=st.none() | FOREIGN,
    criteria=st.lists(st.builds(Criterion, FOREIGN, st.none() | st.booleans(), FOREIGN), max_size=2).map(tuple),
    metrics=st.lists(st.builds(Metric, FOREIGN, st.none() | st.floats()), max_size=2).map(tuple),
    findings=st.lists(FOREIGN, max_size=2).map(tuple),
    limits=st.lists(st.builds(Limit, FOREIGN, st.none() | st.floats(), message=FOREIGN), max_size=2).map(tuple),
    attributes=st.dictionaries(FOREIGN, VALUES, max_size=2),
    layout=st.sampled_from(["", "RunLog", "Workflow"]),
)
HEADERS = st.builds(
    Header,
    id=FOREIGN,
    name=FOREIGN,
    agent=st.none() | FOREIGN,
    model=st.none() | FOREIGN,
    status=st.none() | st.sampled_from(Status),
    status_word=st.none() | FOREIGN,
    replay_of=st.none() | FOREIGN,
    relation=st.none() | FOREIGN,
    parent=st.none() | FOREIGN,
    error=st.none() | st.builds(FirstError, FOREIGN, st.none() | FOREIGN, st.none() | FOREIGN),
    prompt=FOREIGN,
    result=FOREIGN,
)


def build(header: Header, body: RunBody, spans: list[Span], bodies: list[Body]) -> Run:
    builder = RunBuilder(RunRef("any", "dir/\x1bfile", header.id), lambda span: bodies[len(span.id) % len(bodies)])
    builder.add(spans, header=header, body=body, problems=[Problem("p", header.id, header.name)])
    return builder.build()


@given(HEADERS, RUN_BODIES, st.lists(SPANS, max_size=4), st.lists(BODIES, min_size=1, max_size=2))
def test_every_line_passed_the_gate(header: Header, body: RunBody, spans: list[Span], bodies: list[Body]) -> None:
    run = build(header, body, spans, bodies)
    lines = [*run_lines(run), *listing([run.summary], run.problems, now=0)]
    for position in range(len(run.spans)):
        lines += one_span_lines(run, position)

    kept = {unicodedata.category(character) for line in lines for character in line}
    assert kept.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})


def test_a_cut_value_shows_its_length_and_the_command_for_the_rest() -> None:
    header = Header(id="r", name="run", status=Status.OK)
    span = Span(id="s", name="tool", step=1, is_step=True)
    run = build(header, RunBody(), [span], [Body(output="x" * 5000)])

    text = "\n".join(run_lines(run))

    assert "[5 000 characters]" in text
    assert "tracetui show 'dir/␛file#r/STEP' " in text
    assert "x" * 5000 in "\n".join(one_span_lines(run, 0))


def test_a_missed_goal_lists_unmet_criteria_first() -> None:
    criteria = (Criterion("Is kind", True, "Says thanks."), Criterion("Is right", False, "Says 2 + 2 = 5.", (3,)))
    body = RunBody(goal="Pass", findings=("too short",), criteria=criteria, limits=(Limit("turns", 10, 4),))
    run = build(Header(id="r", name="exam", status=Status.ERROR), body, [], [Body()])

    lines = list(run_lines(run))

    assert lines[0] == "exam"
    labels = [line.split()[0] for line in lines[1:6]]
    assert labels == ["status", "goal", "limit", "finding", "criterion"]
    assert lines[3] == "limit      turns 4 of 10"
    assert lines[5:7] == ["criterion  UNMET: Is right (turns 3)", "           Says 2 + 2 = 5."]


def test_lists_are_newest_first_and_sentences_count_top_level_runs() -> None:
    def run(name: str, start: float | None, status: Status = Status.OK, parent: str | None = None) -> RunSummary:
        return RunSummary.of(
            ref=RunRef("any", name), id=name, name=name, started_at=start, status=status, parent=parent
        )

    runs = [
        run("b", None),
        run("c", 1.0),
        run("a", None),
        run("d", 2.0, Status.ERROR),
        run("e", 2.0, Status.ERROR, "d"),
    ]

    assert [run.id for run in newest_first(runs)] == ["d", "e", "c", "a", "b"]
    assert triage(runs, 0) == "1 of 4 runs failed"
    assert triage(runs, 2) == "1 of 4 runs failed, 2 unreadable"


def test_differing_totals_are_shown_in_full() -> None:
    builder = RunBuilder(RunRef("any", "run.json"), lambda span: Body())
    totals = (Total("tokens", 1234567, 1234568), Total("messages", 10**400, 2), Total("seconds", 1.5, 2.25))
    builder.add((), header=Header(id="r", name="r"), body=RunBody(totals=totals))

    lines = list(run_lines(builder.build()))

    assert any("tokens: declared 1 234 567, counted 1 234 568" in line for line in lines)
    assert any("seconds: declared 1.5, counted 2.25" in line for line in lines)
    assert any(line.endswith("000, counted 2") for line in lines)


def test_an_unknown_status_word_is_shown_and_is_no_missing_end() -> None:
    run = RunSummary.of(ref=RunRef("any", "a"), id="a", name="a", deep=True, status=Status.UNKNOWN)
    worded = run.replace(status_word="banana", status_source=StatusSource.EXPLICIT)
    unended = run.replace(status_word="in_progress", status_source=StatusSource.DERIVED)

    _, *lines = listing([worded, unended], [], now=0)

    assert [line.rpartition("  ")[2] for line in lines] == ["banana", "no end record"]


def test_a_map_item_is_named_by_its_number() -> None:
    summary = RunSummary.of(ref=RunRef("any", "a"), id="b/12", name="rag", label="[item 12]")

    assert "rag [item 12]" in list(listing([summary], (), now=0))[1]
    assert next(run_lines(build(Header(id="b/12", name="rag", label="[item 12]"), RunBody(), [], []))) == (
        "rag [item 12]"
    )


def test_a_cause_named_like_its_step_is_named_once() -> None:
    error = FirstError("Step limit exceeded: 11 > 10", "max_steps", "s", "max_steps")
    header, spans = (
        Header(id="r", name="r", status=Status.ERROR, error=error),
        [Span(id="s", name="max_steps", step=11)],
    )
    assert list(run_lines(build(header, RunBody(), spans, [Body()])))[2] == (
        "cause      max_steps: Step limit exceeded: 11 > 10"
    )
    assert list(run_lines(build(header, RunBody(), [], [])))[2] == "cause      max_steps: Step limit exceeded: 11 > 10"
