"""Contexts of generated traces of which every token is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.test_context import by_id, check_closes, only_break, read_ledger
from tests.context_build import ClaudeSession, filler, text, tool_use
from tests.formats import opencode_build as opencode
from tests.formats.test_otlp import TRACE, request, span
from tracetui.analysis.context import Ledger
from tracetui.analysis.context_feed import ledger_of
from tracetui.live.load import read_run
from tracetui.model import RunRef
from tracetui.model.context import Cause
from tracetui.redact import Redactor
from tracetui.sources.local import LocalSource
from tracetui.views.context import sentences

Record = dict[str, Any]


def message_of(role: str, *parts: Record) -> Record:
    return {"role": role, "parts": [*parts]}


def otel_text(content: str) -> Record:
    return {"type": "text", "content": content}


def otel_call(ident: int, messages: list[Record], answer: Record, *, size: int, read: int, output: int) -> Record:
    """A model call that records its whole input."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "leaf",
        "gen_ai.response.id": f"r{ident}",
        "gen_ai.usage.input_tokens": size,
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.usage.output_tokens": output,
        "gen_ai.input.messages": json.dumps(messages),
        "gen_ai.output.messages": json.dumps([answer]),
    }
    return span(ident, 1, ident * 1000, ident * 1000 + 500, attributes=attributes)


def otel_ledger(folder: Path, *calls: Record) -> Ledger:
    root = span(1, None, 0, 90_000, attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "tree"})
    path = folder / "x.jsonl"
    path.write_text(json.dumps(request(root, *calls)) + "\n")
    ledger = ledger_of(read_run(LocalSource(), RunRef("otlp", str(path), TRACE)))
    check_closes(ledger)
    return ledger


QUESTION = [message_of("system", otel_text(filler(400))), message_of("user", otel_text(filler(100)))]
READS = message_of(
    "assistant", {"type": "tool_call", "id": "c1", "name": "read_file", "arguments": {"path": "/w/a.py"}}
)
RESULT = message_of("tool", {"type": "tool_call_response", "id": "c1", "response": filler(900)})


def test_opentelemetry_carries_the_messages_that_the_call_before_had(tmp_path: Path) -> None:
    done = message_of("assistant", otel_text("done"))
    first = otel_call(2, QUESTION, READS, size=5_000, read=0, output=40)
    second = otel_call(3, [*QUESTION, READS, RESULT], done, size=6_000, read=4_900, output=20)
    third = otel_call(4, [*QUESTION, READS, RESULT, done], done, size=6_020, read=5_900, output=20)
    ledger = otel_ledger(tmp_path, first, second, third)
    calls = ledger.calls
    assert [call.growth for call in calls[1:]] == [1_000, 20]
    assert {name: calls[1].by[name] for name in ("tool call", "result:read_file")} == {
        "tool call": 40,
        "result:read_file": 960,
    }
    assert calls[2].by["reply"] == 20
    assert [(file.file, file.times, file.entered, file.carried) for file in ledger.files()] == [
        ("/w/a.py", 1, 960, 1_920)
    ]
    assert ledger.breaks == []


def test_opentelemetry_messages_that_left_are_a_changed_prefix(tmp_path: Path) -> None:
    first = otel_call(2, QUESTION, READS, size=5_000, read=0, output=40)
    second = otel_call(3, [*QUESTION, READS, RESULT], READS, size=6_000, read=4_900, output=40)
    other = [QUESTION[0], QUESTION[1], message_of("user", otel_text(filler(50)))]
    third = otel_call(4, other, READS, size=5_060, read=2_000, output=40)
    ledger = otel_ledger(tmp_path, first, second, third)
    assert not {"tool call", "result:read_file"} & ledger.calls[2].by.keys()
    assert only_break(ledger).missed == 2_900  # the reads of the call before are all that is recorded as cached


@pytest.mark.parametrize(("ident", "cause", "basis"), [(400, Cause.IDLE, "inferred"), (200, Cause.UNKNOWN, "unknown")])
def test_a_request_of_opentelemetry_that_came_late_idled(tmp_path: Path, ident: int, cause: str, basis: str) -> None:
    first = otel_call(2, QUESTION, READS, size=10_000, read=9_000, output=70)
    late = otel_call(ident, [*QUESTION, READS, RESULT], READS, size=11_000, read=0, output=20)
    missed = only_break(otel_ledger(tmp_path, first, late))
    assert (missed.cause, missed.basis, missed.idle) == (cause, basis, ident - 2)


def test_messages_of_a_call_without_usage_enter_with_the_next(tmp_path: Path) -> None:
    unused = otel_call(2, QUESTION, READS, size=0, read=0, output=0)
    done = message_of("assistant", otel_text("done"))
    ledger = otel_ledger(
        tmp_path, unused, otel_call(3, [*QUESTION, READS, RESULT], done, size=6_000, read=0, output=20)
    )
    (call,) = ledger.calls
    assert call.by["prompt"] > 50
    assert call.by["result:read_file"] > 800


def atif_ledger(folder: Path, *steps: Record) -> Ledger:
    """A trajectory as Harbor writes it of a session of Claude Code."""
    path = folder / "trajectory.json"
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    agent = {"name": "claude-code", "version": "2.1.89", "model_name": "leaf"}
    path.write_text(json.dumps({"schema_version": "ATIF-v1.2", "session_id": "s", "agent": agent, "steps": numbered}))
    ledger = ledger_of(read_run(LocalSource(), RunRef("atif", str(path))))
    check_closes(ledger)
    return ledger


def test_notes_and_repeated_thinking_of_atif_are_no_contents(tmp_path: Path) -> None:
    thought, text_, note = filler(300), filler(900), '\n\n[metadata] {"file": "' + filler(900) + '"}'
    read = {"tool_call_id": "c1", "function_name": "Read", "arguments": {"file_path": "/w/a.py"}}
    usage = {"prompt_tokens": 5_000, "completion_tokens": 354, "cached_tokens": 0}
    ledger = atif_ledger(
        tmp_path,
        {"source": "user", "message": filler(100)},
        {"source": "agent", "message": "", "reasoning_content": thought, "metrics": usage},
        {"source": "agent", "message": "Executed Read c1", "reasoning_content": thought, "tool_calls": [read],
         "observation": {"results": [{"source_call_id": "c1", "content": text_ + note}]}},
        {"source": "agent", "message": "done", "metrics": {**usage, "prompt_tokens": 6_400}},
    )  # fmt: skip
    entered = {text.content: text.tokens for text in ledger.calls[1].arrivals}
    assert entered.keys() == {"thinking", "tool call", "result:Read"}
    assert entered["thinking"] == 354
    assert 900 < entered["result:Read"] < 1_000
    assert [file.file for file in ledger.files()] == ["/w/a.py"]


def test_a_recorded_output_of_atif_covers_the_tool_calls_of_later_steps(tmp_path: Path) -> None:
    def step(number: int) -> Record:
        call = {"tool_call_id": f"c{number}", "function_name": "Bash", "arguments": {"command": filler(300)}}
        results = [{"source_call_id": f"c{number}", "content": filler(900)}]
        return {"source": "agent", "message": "", "tool_calls": [call], "observation": {"results": results}}

    usage = {"prompt_tokens": 5_000, "completion_tokens": 700, "cached_tokens": 0}
    ledger = atif_ledger(
        tmp_path,
        {"source": "user", "message": filler(100)},
        {"source": "agent", "message": filler(70), "metrics": usage},
        step(1),
        step(2),
        {"source": "agent", "message": "done", "metrics": {**usage, "prompt_tokens": 7_700}},
    )
    arrivals = ledger.calls[1].arrivals
    assert sum(text.tokens for text in arrivals if text.content in ("reply", "tool call")) == 700
    assert [text.content for text in arrivals if text.exact] == ["reply", "tool call", "tool call"]
    assert sum(text.tokens for text in arrivals if text.content == "result:Bash") == 2_000


def opencode_ledger(folder: Path, tokens: list[Record]) -> Ledger:
    """A session that reads a file with each call but the last."""
    path = folder / "opencode.db"
    with opencode.database(path) as db:
        write = opencode.Writer(db)
        opencode.insert(db, "project", id="p1", worktree="/w", vcs="git", time_created=opencode.at(0),
                        time_updated=opencode.at(0), sandboxes=[])  # fmt: skip
        write.session("ses_a", 1, "Read it")
        write.user("msg_1", "ses_a", 2, filler(100))
        for number, used in enumerate(tokens):
            ident, begin = f"msg_{number + 2}", 10.0 * number + 3
            write.answer(ident, "ses_a", begin, "msg_1", end=begin + 5, tokens=used, cost=0, finish="stop")
            write.part(ident, "ses_a", begin, type="step-start")
            last = number == len(tokens) - 1
            read = opencode.call("read", {"filePath": "/w/a.py"}, filler(1_900), begin + 1)
            write.part(ident, "ses_a", begin + 1, **(opencode.text("done") if last else read))
            write.part(ident, "ses_a", begin + 5, type="step-finish", reason="stop", tokens=used, cost=0)
    ledger = ledger_of(read_run(LocalSource(), RunRef("opencode", str(path), "ses_a")))
    check_closes(ledger)
    return ledger


def test_opencode_results_have_what_the_recorded_answers_leave(tmp_path: Path) -> None:
    def used(plain: int, read: int, written: int, output: int) -> Record:
        return {"input": plain, "output": output, "reasoning": 0, "cache": {"read": read, "write": written}}

    ledger = opencode_ledger(tmp_path, [used(3, 0, 9_997, 60), used(3, 9_997, 2_060, 60), used(3, 9_997, 4_120, 20)])
    assert [call.input for call in ledger.calls] == [10_000, 12_060, 14_120]
    assert ledger.calls[1].by["tool call"] == 60
    assert ledger.calls[2].by["result:read"] == 4_000
    assert [(file.file, file.times, file.entered, file.carried) for file in ledger.files()] == [
        ("/w/a.py", 2, 4_000, 6_000)
    ]
    assert (only_break(ledger).missed, only_break(ledger).where) == (2_060, "the last write")


# ---- kinds of runs


def test_one_call_without_a_cache_has_no_breaks_and_reads_well(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path / "session.jsonl")
    session.prompt("hello")
    session.answer("m1", text("hi"), plain=700)
    ledger = read_ledger(session.write())
    assert (ledger.totals.calls, ledger.totals.input, ledger.breaks) == (1, 700, [])
    assert not [line for line in sentences(ledger, Redactor()) if "break" in line or "Largest" in line]


def test_a_response_in_several_lines_is_one_answer(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path / "session.jsonl")
    session.prompt("read it")
    session.answer("m1", text(filler(30)), written=10_000, output=100)
    session.answer("m1", tool_use("t1", "Read", file_path="/w/a.py"), written=10_000, output=100)
    session.result("t1", filler(1_900))
    session.answer("m2", text("done"), read=10_000, written=2_100)
    ledger = read_ledger(session.write())
    assert [call.id for call in ledger.calls] == ["m1", "m2"]
    by = by_id(ledger)["m2"].by
    assert (by["reply"] + by["tool call"], by["result:Read"]) == (100, 2_000)


def test_hidden_thinking_is_estimated_from_its_signature(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path / "session.jsonl")
    session.prompt("think")
    thought = {"type": "thinking", "thinking": "", "signature": "x" * 4_000}
    session.answer("m1", thought, tool_use("t1", "Bash", command="ls"), written=10_000, output=600)
    session.result("t1", filler(400))
    session.answer("m2", text("done"), read=10_000, written=1_020)
    by = by_id(read_ledger(session.write()))["m2"].by
    assert by["thinking"] + by["tool call"] == 600
    assert by["thinking"] > 500


@pytest.mark.parametrize("tier", [None, "fast"])
def test_the_service_tier_multiplies_the_price(tmp_path: Path, tier: str | None) -> None:
    pytest.importorskip("genai_prices")
    from tracetui.analysis import prices
    from tracetui.analysis.context_costs import rates_of
    from tracetui.model import Usage

    usage = Usage(input_tokens=1_000, output_tokens=10)
    listed = rates_of("claude-opus-4-6", usage, None)
    rates = rates_of("claude-opus-4-6", usage, None, tier)
    price = prices.of_call("claude-opus-4-6", usage, None, tier)
    assert listed is not None
    assert rates is not None
    assert rates.input == pytest.approx(listed.input * (6 if tier == "fast" else 1))
    assert rates.input * 1_000 + rates.output * 10 == pytest.approx(price)


def test_an_hour_cache_outlives_a_short_pause_and_not_a_long_one(tmp_path: Path) -> None:
    session = ClaudeSession(tmp_path / "session.jsonl")
    session.prompt("hello")
    session.answer("m1", text("hello"), written=10_000, hour=10_000)
    session.prompt("again", seconds=400)
    session.answer("m2", text("hello"), read=10_000, written=60, hour=60)
    session.prompt("again", seconds=4_000)
    session.answer("m3", text("hello"), written=10_120, hour=10_120)
    missed = only_break(read_ledger(session.write()))
    assert (missed.cause, missed.cache_seconds, missed.call) == (Cause.IDLE, 3_600, 3)
