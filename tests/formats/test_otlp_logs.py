"""OTLP JSON: messages in exports of logs, by trace and span."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.test_otlp import CHAT, FORMAT, TRACE, listed, request, run_of, span, used
from tests.shared import examples
from tracetui.formats.base import NO
from tracetui.model import Message, Reasoning, RunRef, Text, ToolCall
from tracetui.sources.local import LocalSource
from tracetui.testing import Growing, read_run
from tracetui.testing.reading import plain_run

Record = dict[str, Any]
EVENTS = (
    ("gen_ai.system.message", {"content": "You tend a greenhouse."}),
    ("gen_ai.user.message", {"content": "Is the fern thirsty?"}),
    (
        "gen_ai.choice",
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "I measure.",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "dig", "arguments": "{}"}}],
            },
        },
    ),
)


def value(of: Any) -> Record:
    if isinstance(of, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": value(item)} for key, item in of.items()]}}
    if isinstance(of, list):
        return {"arrayValue": {"values": [value(item) for item in of]}}
    return {"intValue": str(of)} if isinstance(of, int) else {"stringValue": of}


def log(name: str, body: Any, /, ident: int = 2, *, old: bool = False, **fields: Any) -> Record:
    kept = {"attributes": [{"key": "event.name", "value": {"stringValue": name}}]} if old else {"eventName": name}
    record = {"traceId": TRACE, "spanId": f"{ident:016x}", "timeUnixNano": "1772442900000000000", **kept, **fields}
    return record if body is None else record | {"body": value(body)}


def logs(*records: Record) -> Record:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {"name": "loam"}, "logRecords": list(records)}]}]}


TOP, CALL = (
    span(1, None, 0, 90, attributes={"gen_ai.operation.name": "invoke_agent"}),
    span(2, 1, 1, 80, attributes=CHAT),
)


@settings(max_examples=examples(25))
@given(order=st.permutations(range(3)), old=st.booleans())
def test_messages_in_logs_are_those_of_their_span_whichever_comes_first(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], old: bool
) -> None:
    lines = [request(TOP), request(CALL), logs(*(log(name, body, old=old) for name, body in EVENTS))]
    folder = tmp_path_factory.mktemp("any")
    run = run_of(folder, *(lines[place] for place in order))
    top, call = run.spans
    assert (run.summary.prompt, call.preview, run.problems) == ("Is the fern thirsty?", "I measure.", ())
    body = run.load(call)
    assert body.input_messages == (
        Message("system", (Text("You tend a greenhouse."),)),
        Message("user", (Text("Is the fern thirsty?"),)),
    )
    (said,) = body.output_messages
    assert said.parts == (Text("I measure."), ToolCall("c1", "dig", {}))
    assert run.load(top).input_messages == ()
    assert run.body.system_prompt == "You tend a greenhouse."
    ((summary,), problems) = listed(folder / "x.jsonl")
    assert problems == []
    assert (summary.prompt, summary.spans, summary.unread) == ("Is the fern thirsty?", 2, None)


def test_details_of_a_call_in_one_event(tmp_path: Path) -> None:
    kept = {
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Sow?"}]}]),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm."}], "finish_reason": "stop"}]
        ),
    }
    said = log("gen_ai.client.inference.operation.details", None)
    said["attributes"] = [{"key": key, "value": {"stringValue": text}} for key, text in kept.items()]
    run = run_of(tmp_path, request(TOP, CALL), logs(said))
    body = run.load(run.spans[1])
    assert [message.role for message in body.input_messages] == ["system", "user"]
    assert body.output_messages[0].parts == (Reasoning("Hm."),)
    assert (run.summary.prompt, run.body.system_prompt) == ("Sow?", "Be brief.")


def test_an_event_that_is_no_message_is_shown_with_its_span(tmp_path: Path) -> None:
    said = log("gen_ai.evaluation.result", None, 1, severityText="INFO")
    said["attributes"] = [{"key": "gen_ai.evaluation.name", "value": {"stringValue": "kindness"}}]
    run = run_of(tmp_path, logs(said), request(TOP, CALL))
    (event,) = run.load(run.spans[0]).attributes["events"]
    assert (event["name"], event["gen_ai.evaluation.name"], event["severityText"]) == (
        "gen_ai.evaluation.result",
        "kindness",
        "INFO",
    )


def test_a_repeated_span_keeps_the_events_of_logs(tmp_path: Path) -> None:
    run = run_of(tmp_path, request(TOP, CALL), logs(log(*EVENTS[1])), request(TOP, CALL | {"kind": 3}))
    assert run.load(run.spans[1]).input_messages == (Message("user", (Text("Is the fern thirsty?"),)),)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_a_call_that_wraps_another_one_keeps_its_events(tmp_path: Path, order: tuple[int, ...]) -> None:
    lines = [
        request(span(2, 1, 1, 80, attributes=used(3, 4))),
        logs(log(*EVENTS[1])),
        request(span(3, 2, 2, 70, attributes=used(3, 4))),
    ]
    run = run_of(tmp_path, *(lines[place] for place in order), request(TOP))
    assert run.summary.llm_calls == 1
    assert run.load(run.spans[1]).input_messages == (Message("user", (Text("Is the fern thirsty?"),)),)


def test_other_logs_and_events_of_no_span_are_reported(tmp_path: Path) -> None:
    plain = {"traceId": TRACE, "spanId": f"{2:016x}", "body": {"stringValue": "watered"}}
    run_of(tmp_path, request(TOP, CALL), logs(plain, log(*EVENTS[1])), logs(log(*EVENTS[1], 7)))
    (run,), problems = listed(tmp_path / "x.jsonl")
    assert run.prompt == "Is the fern thirsty?"
    assert [problem.reason for problem in problems if "exports" in problem.reason] == [
        "1 exports of logs or metrics are not read"
    ]
    assert 0 < sum(problem.lost or 0 for problem in problems) < len(json.dumps(logs(plain, log(*EVENTS[1]))))


def test_spans_after_many_logs_are_found(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    many = json.dumps(logs(*({"body": {"stringValue": "x" * 900}} for _ in range(40)))) + "\n"
    for data, claimed, count in ((many, False, 0), (many * 3, True, 0), (many * 3 + json.dumps(request(TOP)), True, 1)):
        path.write_text(data)
        with LocalSource().open(str(path)) as file:
            assert (FORMAT.sniff(file) > NO) is claimed
        if count:
            assert len(listed(path)[0]) == count


def test_one_document_with_spans_and_logs(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(request(TOP, CALL) | logs(log(*EVENTS[1])), indent=1))
    (summary,), problems = listed(path)
    run = read_run(FORMAT, RunRef("otlp", str(path), TRACE))
    assert (summary.prompt, run.summary.prompt, problems) == ("Is the fern thirsty?", "Is the fern thirsty?", [])


def test_followed_line_by_line_is_as_read_at_once(tmp_path: Path) -> None:
    lines = [request(CALL), logs(log(*EVENTS[0]), log(*EVENTS[1])), request(TOP), logs(log(*EVENTS[2]))]
    path = tmp_path / "y.jsonl"
    path.touch()
    growing = Growing(FORMAT, RunRef("otlp", str(path), TRACE))
    for line in lines:
        data = json.dumps(line) + "\n"
        for part in (data[:40], data[40:]):
            with path.open("a") as out:
                out.write(part)
            growing.read(whole=False)
    run, at_once = growing.run(), read_run(FORMAT, RunRef("otlp", str(path), TRACE))
    assert plain_run(run) == plain_run(at_once)
    assert run.load(run.spans[1]).output_messages == at_once.load(at_once.spans[1]).output_messages != ()
