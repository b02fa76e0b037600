"""OTLP JSON: every convention, spans in any order, tokens counted once, errors where they came up, damage, drift."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import SHARED, examples, needs_shared, sample
from tracetui.diff.comparison import compare
from tracetui.errors import FormatError
from tracetui.formats.otlp.format import Otlp
from tracetui.formats.otlp.records import normal_id, value_of
from tracetui.model import (
    Blob,
    Error,
    Link,
    Message,
    Operation,
    Problem,
    Reasoning,
    Run,
    RunRef,
    RunSummary,
    Span,
    Status,
    StatusSource,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from tracetui.sources.local import LocalSource
from tracetui.testing import Growing, read_run
from tracetui.testing.reading import MTIME, plain_run

CASES = Path(__file__).parent / "otlp"
FORMAT = Otlp()
TRACE = "0af7651916cd43dd8448eb211c80319c"
Record = dict[str, Any]


def listed(path: Path) -> tuple[list[RunSummary], list[Problem]]:
    with LocalSource().open(str(path)) as file:
        items = list(FORMAT.summarize(file, deep=True))
    return [item for item in items if isinstance(item, RunSummary)], [
        item for item in items if isinstance(item, Problem)
    ]


def runs(path: Path) -> dict[str, Run]:
    return {run.name: read_run(FORMAT, run.ref) for run in listed(path)[0]}


def case(name: str) -> list[Run]:
    (path,) = (CASES / name / "input").iterdir()
    return [read_run(FORMAT, run.ref) for run in listed(path)[0]]


def span(ident: int, above: int | None, begin: int, end: int | None, /, **fields: Any) -> Record:
    """A span of `TRACE`, its times in milliseconds after some moment; attributes are texts and whole numbers."""
    record: Record = {"traceId": TRACE, "spanId": f"{ident:016x}", "name": f"span {ident}"}
    if above is not None:
        record["parentSpanId"] = f"{above:016x}"
    for name, time in (("startTimeUnixNano", begin), ("endTimeUnixNano", end)):
        if time is not None:
            record[name] = str((1_772_442_900_000 + time) * 1_000_000)
    kept = fields.pop("attributes", {})
    record["attributes"] = [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in kept.items()
    ]
    return record | fields


def request(*spans: Record, scope: str = "loam") -> Record:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shed"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}]}]}


def run_of(folder: Path, *requests: Record) -> Run:
    path = folder / "x.jsonl"
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))
    return read_run(FORMAT, RunRef("otlp", str(path), TRACE))


def spans_of(run: Run, operation: Operation) -> list[Span]:
    return [span for span in run.spans if span.operation is operation]


CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "leaf"}


def used(read: int, output: int) -> dict[str, Any]:
    return CHAT | {"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": output}


# ------------------------------------------------------------------------------------------------- what spans are


def test_spans_stand_below_their_parents_in_the_order_in_which_they_began() -> None:
    watered, opened = case("genai")
    assert [(span.operation, span.name, depth) for span, depth in zip(watered.spans, watered.depths, strict=True)] == [
        (Operation.INVOKE_AGENT, "gardener", 0),
        (Operation.CHAT, "leaf-1-mini", 1),
        (Operation.EXECUTE_TOOL, "moisture", 1),
        (Operation.EXECUTE_TOOL, "light", 1),
        (Operation.CHAT, "leaf-1-mini", 1),
    ]
    assert [span.name for span in opened.spans] == ["gardener", "leaf-1", "leaf-1", "POST /roof"]
    assert [problem.reason for problem in opened.problems] == ["1 spans name a parent that is not in the trace"]


@settings(max_examples=examples(25))
@given(order=st.permutations(range(5)), joined=st.lists(st.booleans(), min_size=5, max_size=5))
def test_order_and_number_of_lines_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], joined: list[bool]
) -> None:
    spans = [
        span(1, None, 0, 100, attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ada"}),
        span(2, 1, 10, 20, attributes=used(100, 10)),
        span(3, 1, 21, 60, attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "dig"}),
        span(4, 3, 22, 50, attributes=used(7, 1)),
        span(5, 1, 25, 30, attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "rake"}),
    ]
    lines: list[list[Record]] = [[]]
    for place, together in zip(order, joined, strict=True):
        lines = lines if together else [*lines, []]
        lines[-1].append(spans[place])
    run = run_of(tmp_path_factory.mktemp("any"), *(request(*line) for line in lines if line))
    assert [(span.name, depth) for span, depth in zip(run.spans, run.depths, strict=True)] == [
        ("ada", 0),
        ("leaf", 1),
        ("dig", 1),
        ("leaf", 2),
        ("rake", 1),
    ]
    assert run.summary.usage == Usage(107, 11)
    assert (run.summary.name, run.summary.status, run.summary.problems) == ("ada", Status.OK, 0)


def test_open_inference_in_one_document_with_ids_in_base64() -> None:
    (run,) = case("openinference")
    assert run.summary.id == "c3" * 15 + "ff"
    assert [(span.operation, span.name) for span in run.spans] == [
        (Operation.INVOKE_AGENT, "Orchard crew"),
        (Operation.TURN, "turn"),
        (Operation.INVOKE_WORKFLOW, "ChatLeaf"),
        (Operation.CHAT, "leaf-2"),
        (Operation.EXECUTE_TOOL, "count"),
        (Operation.RETRIEVAL, "almanac"),
        (Operation.EMBEDDINGS, "embed"),
        (Operation.POLICY, "guard"),
    ]
    assert (run.summary.prompt, run.body.output, run.summary.tags) == (
        "How many apples are ripe?",
        "Seven.",
        ("apples", "s-12"),
    )


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("0AF7651916CD43DD8448EB211C80319C", TRACE),
        (base64.b64encode(bytes.fromhex(TRACE)).decode(), TRACE),
        ("0x" + TRACE, TRACE),
        ("wAAAAAAAAAI=", "c000000000000002"),
        ("trace-7", "trace-7"),
        ("not base64 !=", "not base64 !="),
    ],
)
def test_ids_are_the_same_however_they_are_written(text: str, normal: str) -> None:
    assert normal_id(text) == normal


def test_values_of_every_kind() -> None:
    kinds: list[tuple[Any, Any]] = [
        ({"stringValue": "loam"}, "loam"),
        ({"boolValue": False}, False),
        ({"intValue": "-42"}, -42),
        ({"intValue": 42}, 42),
        ({"doubleValue": 1.5}, 1.5),
        ({"doubleValue": "NaN"}, "NaN"),
        ({"bytesValue": "AP8="}, "AP8="),
        ({"arrayValue": {"values": [{"intValue": "1"}, {"arrayValue": {}}]}}, [1, []]),
        ({"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": True}}]}}, {"a": True}),
        ({"intValue": "many"}, "many"),
        ({"newValue": 3}, {"newValue": 3}),
        ({"arrayValue": {"values": 3}}, {"arrayValue": {"values": 3}}),
        ({}, {}),
        (None, None),
    ]
    for value, expected in kinds:
        assert value_of(value) == expected


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,", " : ")])
@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        (["system", "user"], "system 0"),
        (["developer", "user"], "developer 0"),
        (["user", "system", "user"], None),
        (["user", "assistant"], None),
    ],
)
def test_instructions_are_the_system_messages_at_the_beginning(
    roles: list[str], expected: str | None, separators: tuple[str, str], tmp_path: Path
) -> None:
    asked = [{"role": role, "parts": [{"type": "text", "content": f"{role} {i}"}]} for i, role in enumerate(roles)]
    given = json.dumps(asked, separators=separators)
    run = run_of(tmp_path, request(span(1, None, 0, 90, attributes=CHAT | {"gen_ai.input.messages": given})))
    assert run.body.system_prompt == expected
    assert len(run.load(run.spans[0]).input_messages) == len(roles)


# ------------------------------------------------------------------------------------------------- messages

ASKED = Message("user", (Text("Is the fern thirsty?"),))


def test_messages_of_the_current_convention() -> None:
    run = case("genai")[0]
    first, last = (run.load(span) for span in spans_of(run, Operation.CHAT))
    assert first.input_messages == (Message("system", (Text("You tend a greenhouse."),)), ASKED)
    said = Message(
        "assistant",
        (
            Reasoning("Measure first."),
            Text("I measure the soil."),
            ToolCall("call_1", "moisture", {"pot": "fern-3"}),
            ToolCall("call_2", "light", {"pot": "fern-9"}),
        ),
        finish_reason="tool_calls",
    )
    assert first.output_messages == (said,)
    assert last.input_messages[3].parts == (ToolResult("call_1", "12 %"),)
    assert [span.note for span in spans_of(run, Operation.CHAT)] == ["", "length"]


def test_messages_of_the_events_of_before() -> None:
    run = case("genai")[1]
    body = run.load(spans_of(run, Operation.CHAT)[1])
    assert body.input_messages == (
        Message("user", (Text("Open the roof"),)),
        Message("assistant", (ToolCall("call_9", "roof", {"open": True}),)),
        Message("tool", (ToolResult("call_9", "jammed"),)),
    )
    assert [(message.role, message.parts, message.finish_reason) for message in body.output_messages] == [
        ("assistant", (Text("The roof is jammed."),), "stop")
    ]
    assert "events" not in body.attributes


def test_flattened_messages_of_open_inference() -> None:
    (run,) = case("openinference")
    body = run.load(spans_of(run, Operation.INVOKE_WORKFLOW)[0])
    assert body.input_messages[0] == Message("system", (Text("Count with care."),))
    text, image = body.input_messages[1].parts
    assert text == Text("How many apples are ripe?")
    assert isinstance(image, Blob)
    assert "tree.png" in str(image.data)
    assert body.output_messages[0].parts == (
        Reasoning("Seven or eight?"),
        Text("I look."),
        ToolCall("call_a", "count", {"tree": "north"}),
    )
    assert body.attributes["llm.output_messages[0]"] == {"contents[0]": {"id": "rs_1"}}


def test_messages_of_the_other_dialects() -> None:
    prune, rake, sow = case("dialects")
    for run, asked, answered in (
        (prune, "Which branch?", (Text("The lowest one."), ToolCall("call_t", "saw", {"branch": 1}))),
        (rake, "Rake the leaves", (Text("Done."), ToolCall("k2", "rake", {"bed": 2}))),
        (sow, "Sow beans", (Text("Sown."),)),
    ):
        (chat,) = spans_of(run, Operation.CHAT)
        assert run.summary.prompt == asked
        assert run.load(chat).output_messages[0].parts == answered
        assert run.summary.tool_calls == 1
    assert [run.summary.name for run in (prune, rake, sow)] == ["prune", "ai.generateText", "sower"]
    assert [run.summary.agent for run in (prune, rake, sow)] == ["prune", "web", "sower"]


# ------------------------------------------------------------------------------------------------- tokens


def test_usage_summed_by_an_ancestor_counts_once() -> None:
    run = case("genai")[0]
    assert run.spans[0].usage == Usage(1120, 65)
    assert run.summary.usage == Usage(1120, 65, None, 800, 100)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_call_around_a_call_counts_once_whichever_comes_first(tmp_path: Path, order: tuple[int, ...]) -> None:
    spans = [
        span(1, None, 0, 90, attributes={}),
        span(2, 1, 1, 80, attributes=used(50, 5)),
        span(3, 2, 2, 70, attributes=used(50, 5)),
    ]
    run = run_of(tmp_path, *(request(spans[place]) for place in order))
    assert run.summary.usage == Usage(50, 5)
    assert [(span.operation, span.name) for span in run.spans[1:]] == [
        (Operation.INVOKE_WORKFLOW, "span 2"),
        (Operation.CHAT, "leaf"),
    ]
    assert run.summary.llm_calls == 1


@settings(max_examples=examples(20))
@given(order=st.permutations(range(6)))
def test_wrappers_may_be_between_but_tools_and_agents_may_not(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    spans = [
        span(1, None, 0, 90, attributes=used(50, 5)),  # wraps 3
        span(2, 1, 1, 80, attributes={"openinference.span.kind": "CHAIN"}),
        span(3, 2, 2, 70, attributes=used(50, 5)),  # a tool is called below it: that is another call
        span(4, 3, 3, 60, attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "dig"}),
        span(5, 4, 4, 50, attributes=used(7, 1)),
        span(6, 5, 5, 40, attributes=CHAT),  # says nothing of tokens: the one around it counts
    ]
    run = run_of(tmp_path_factory.mktemp("any"), *(request(spans[place]) for place in order))
    assert run.summary.usage == Usage(57, 6)
    assert [span.operation for span in run.spans] == [
        Operation.INVOKE_WORKFLOW,
        Operation.INVOKE_WORKFLOW,
        Operation.CHAT,
        Operation.EXECUTE_TOOL,
        Operation.CHAT,
        Operation.CHAT,
    ]


def test_input_includes_what_is_cached_even_where_it_did_not(tmp_path: Path) -> None:
    within = used(100, 5) | {"gen_ai.usage.cache_read.input_tokens": 60, "gen_ai.usage.details.cache_write_tokens": 40}
    beside = used(3, 5) | {"gen_ai.usage.cache_read_input_tokens": 60, "gen_ai.usage.cache_creation_input_tokens": 40}
    run = run_of(tmp_path, request(span(1, None, 0, 5, attributes=within), span(2, None, 6, 9, attributes=beside)))
    assert [span.usage for span in run.spans] == [Usage(100, 5, None, 60, 40), Usage(103, 5, None, 60, 40)]


# ------------------------------------------------------------------------------------------------- status, errors


@pytest.mark.parametrize(
    ("fields", "status", "source", "error"),
    [
        ({"status": {"code": 1}}, Status.OK, StatusSource.EXPLICIT, None),
        ({"status": {"code": "STATUS_CODE_OK", "message": "fine"}}, Status.OK, StatusSource.EXPLICIT, None),
        ({"status": {"code": 2}}, Status.ERROR, StatusSource.EXPLICIT, None),
        ({"status": {"code": 2, "message": "wilted"}}, Status.ERROR, StatusSource.EXPLICIT, Error("wilted")),
        ({"attributes": {"error.type": "Drought"}}, Status.ERROR, StatusSource.EXPLICIT, Error("", "Drought")),
        ({"status": {}}, Status.OK, StatusSource.DERIVED, None),
        ({"status": {"code": 0}, "endTimeUnixNano": "0"}, Status.UNKNOWN, None, None),
        ({"events": [{"name": "exception"}]}, Status.UNKNOWN, None, None),
    ],
)
def test_unset_is_not_ok_by_itself(
    tmp_path: Path, fields: Record, status: Status, source: StatusSource | None, error: Error | None
) -> None:
    first_span = run_of(tmp_path, request(span(1, None, 0, 9, **fields))).spans[0]
    assert (first_span.status, first_span.status_source, first_span.error) == (status, source, error)


def test_a_failed_run_names_the_span_in_which_its_error_came_up() -> None:
    failed = case("genai")[1]
    assert (failed.summary.status, failed.summary.status_source) == (Status.ERROR, StatusSource.EXPLICIT)
    first = failed.summary.first_error
    assert first is not None
    assert (first.text, first.span, first.operation) == (
        "TimeoutError: the model did not answer",
        "b000000000000002",
        Operation.CHAT,
    )
    traceback = failed.load(failed.spans[1]).traceback
    assert traceback is not None
    assert traceback.startswith("Traceback…")


def test_a_span_whose_parent_never_comes_is_the_top(tmp_path: Path) -> None:
    run = run_of(tmp_path, request(span(2, 1, 0, 5, attributes=used(1, 1))))
    assert (run.summary.status, run.summary.name, run.summary.problems) == (Status.OK, "shed", 0)
    run = run_of(tmp_path, request(span(2, 1, 0, 5)), request(span(3, None, 0, 5)))  # it has ended without that parent
    assert (run.summary.status, run.summary.problems) == (Status.OK, 1)


def test_links_lead_to_spans_and_to_other_traces() -> None:
    run = case("genai")[0]
    assert run.load(run.spans[0]).links == (
        Link("linked trace", run="b2" * 16),
        Link("linked span", span="a000000000000003"),
    )


# ------------------------------------------------------------------------------------------------- files


def test_logs_and_metrics_between_are_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [{"resourceLogs": []}, request(span(1, None, 0, 5)), {"resourceMetrics": [1]}, {"other": 1}, [2]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    runs, problems = listed(path)
    assert [run.name for run in runs] == ["span 1"]
    assert [(problem.where, problem.reason) for problem in problems] == [
        ("line 4", "no spans found"),
        ("line 5", "no spans found"),
        ("logs and metrics", "2 exports of logs or metrics are not read"),
    ]


def test_a_repeated_span_is_shown_once_and_reported_if_it_differs(tmp_path: Path) -> None:
    short, other = span(1, None, 0, 5), span(1, None, 0, 7)
    assert run_of(tmp_path, request(short), request(short)).problems == ()
    run = run_of(tmp_path, request(short), request(other))
    assert [span.duration_ms for span in run.spans] == [7]
    assert [problem.reason for problem in run.problems] == [
        "span 0000000000000001 is recorded twice with different content; the last one is shown"
    ]


def test_lines_of_other_traces_need_not_be_readable(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    mine, other = json.dumps(request(span(1, None, 0, 5))), json.dumps(request(span(2, None, 0, 5, traceId="b" * 32)))
    path.write_text(f"{other[:-3]}\n{mine}\n{mine[:-3]}\n")
    runs, problems = listed(path)
    assert [(run.id, run.problems) for run in runs] == [(TRACE, 0)]
    assert [problem.where for problem in problems] == ["line 1", "line 3"]


def test_a_trace_is_found_on_lines_that_escape_what_need_not_be(tmp_path: Path) -> None:
    text = base64.b64encode(b"\xff" * 16).decode()
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(request(span(1, None, 0, 5, traceId=text))).replace("/", "\\/") + "\n")
    (run,) = listed(path)[0]
    assert run.id == "f" * 32
    assert len(read_run(FORMAT, run.ref).spans) == 1


@pytest.mark.parametrize("data", [b"", b"{}\n", b'{"resourceSpans":', b'{"resourceSpans": []}\n', b"\n\n"])
def test_a_file_without_spans_says_so(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    os.utime(path, (MTIME, MTIME))
    with pytest.raises(FormatError, match="no span could be read"):
        listed(path)


def test_a_run_that_is_followed_while_it_comes_in_bursts_is_as_read_at_once(tmp_path: Path) -> None:
    whole = (CASES / "genai" / "input" / "greenhouse.otlp.jsonl").read_bytes()
    path = tmp_path / "live.jsonl"
    path.write_bytes(b"")
    refs = [RunRef("otlp", str(path), key * 16) for key in ("a1", "b2")]
    readers = [Growing(FORMAT, ref) for ref in refs]
    begin = 0
    for size in (1, 700, 2, 4000, 90, 5000, len(whole)):
        with path.open("ab") as file:
            file.write(whole[begin : begin + size])
        begin += size
        for reader in readers:
            reader.read(whole=False)
    for reader, ref in zip(readers, refs, strict=True):
        assert plain_run(reader.run()) == plain_run(read_run(FORMAT, ref))


def test_a_body_of_a_changed_file_is_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path, request(span(1, None, 0, 5)))
    (tmp_path / "x.jsonl").write_text(json.dumps(request(span(1, None, 0, 6))) + "\n")
    with pytest.raises(FormatError, match="changed"):
        run.load(run.spans[0])


# ------------------------------------------------------------------------------------------------- real files


def samples() -> list[Path]:
    return sorted((SHARED / "samples" / "otel-otlp-json").glob("*.json*")) if SHARED else []


def counted(path: Path) -> dict[str, tuple[int, int, int]]:
    """Spans, input and output tokens of each trace, by the attributes of what called a model and nothing else."""
    usages: dict[str, tuple[int, int, int]] = {}
    text = path.read_text()
    for document in [text] if text.startswith("{\n") else text.splitlines():
        for resource in json.loads(document)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for record in scope["spans"]:
                    kept = {item["key"]: next(iter(item["value"].values())) for item in record.get("attributes", ())}
                    called = kept.get("gen_ai.operation.name") == "chat" or kept.get("openinference.span.kind") == "LLM"
                    read = kept.get("gen_ai.usage.input_tokens", kept.get("llm.token_count.prompt", 0)) if called else 0
                    output = kept.get("gen_ai.usage.output_tokens", kept.get("llm.token_count.completion", 0))
                    spans, given, answered = usages.get(record["traceId"].lower(), (0, 0, 0))
                    output = output if called else 0
                    usages[record["traceId"].lower()] = spans + 1, given + int(read), answered + int(output)
    return usages


@needs_shared
@pytest.mark.parametrize("path", [path for path in samples() if "console" not in path.name], ids=lambda path: path.name)
def test_real_files_count_as_an_independent_reading_does(path: Path) -> None:
    runs, problems = listed(path)
    assert problems == []
    right = counted(path)
    assert {run.id: run.spans for run in runs} == {key: spans for key, (spans, _, _) in right.items()}
    for listed_run in runs:
        usage = listed_run.usage or Usage(0, 0)
        assert (usage.input_tokens, usage.output_tokens) == right[listed_run.id][1:]
        run = read_run(FORMAT, listed_run.ref)
        assert all(run.load(each).raw in path.read_bytes() for each in run.spans)


@needs_shared
def test_two_real_runs_of_one_thing_went_the_same_way() -> None:
    a, b = [run for run in listed(sample("otel-otlp-json", "pydantic-ai-v5.otlp.jsonl"))[0] if run.name == "support"]
    assert compare(read_run(FORMAT, a.ref), read_run(FORMAT, b.ref)).first is None


@needs_shared
def test_output_of_the_console_exporter_is_no_otlp() -> None:
    with LocalSource().open(str(sample("otel-otlp-json", "pydantic-ai-v5.console.json"))) as file:
        assert FORMAT.sniff(file) == 0
