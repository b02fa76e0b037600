"""Sessions of Google ADK: what turns, replies and calls become, how sessions end, rewinds, growth, pickles."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.formats.adk_build import CASES, database, text
from tests.shared import needs_shared, sample
from tracetui.formats.google_adk import GoogleAdk
from tracetui.model import (
    Operation,
    Problem,
    Reasoning,
    Run,
    RunRef,
    RunSummary,
    Span,
    Status,
    StatusSource,
    ToolCall,
    Usage,
)
from tracetui.sources.local import LocalFile
from tracetui.testing import read_run

FORMAT = GoogleAdk()
SQLITE = CASES / "sqlite" / "input" / "session.db"
SERVICE = CASES / "service" / "input" / "sessions.db"
PICKLES = CASES / "pickles" / "input" / "sessions.db"


def read(key: str, path: Path = SQLITE) -> Run:
    return read_run(FORMAT, RunRef(FORMAT.name, str(path), key))


def listed(path: Path) -> tuple[dict[str | None, RunSummary], list[Problem]]:
    with LocalFile(str(path)) as file:
        items = list(FORMAT.summarize(file, deep=True))
    runs = {item.ref.key: item for item in items if isinstance(item, RunSummary)}
    return runs, [item for item in items if isinstance(item, Problem)]


def outline(run: Run) -> list[str]:
    return [f"{'  ' * depth}{span.name}" for span, depth in zip(run.spans, run.depths, strict=True)]


def named(run: Run, name: str, number: int = 0) -> Span:
    return [span for span in run.spans if span.name == name][number]


# ---- the tree


def test_a_turn_has_its_prompt_replies_and_calls() -> None:
    run = read("tools")
    assert outline(run) == ["turn", *("  user", "  acorn-2", "  count", "  map", "  acorn-2")]
    summary = run.summary
    facts = (summary.name, summary.agent, summary.model, summary.prompt, summary.source)
    assert facts == ("orchard", "keeper", "acorn-2", "Count the trees in row 4", "ada")
    assert (summary.steps, summary.llm_calls, summary.tool_calls) == (2, 2, 2)


def test_agents_are_below_those_that_their_path_names() -> None:
    run = read("agents")
    crew = ["  crew", "    ladders", "      acorn-2", "    baskets", "      acorn-2"]
    assert outline(run) == ["turn", "  user", "  acorn-2", "  transfer_to_agent", *crew]
    assert named(run, "ladders").note == "gather.ladders"
    assert named(run, "crew").note == ""


def test_a_resumed_turn_goes_on_and_its_call_has_the_last_result() -> None:
    run = read("approved")
    assert [span.name for span in run.spans].count("turn") == 1
    body = run.load(named(run, "ask_owner"))
    assert body.output == {"status": "approved"}
    assert body.attributes["earlier results"] == [{"status": "pending"}]


def test_a_rewind_marks_the_turns_that_it_withdraws() -> None:
    run = read("rewound")
    turns = [(span.preview, span.notes) for span in run.spans if span.operation is Operation.TURN]
    assert turns == [("One", []), ("Two", ["rewound"]), ("Three", [])]
    assert run.summary.usage is not None
    assert run.summary.usage.input_tokens == 300  # withdrawn replies were paid for


def test_a_compaction_is_a_model_call_but_no_step() -> None:
    run = read("compacted")
    assert named(run, "compaction").usage == Usage(99, 9, 108)
    assert (run.summary.steps, run.summary.llm_calls) == (1, 2)
    assert run.summary.status is Status.OK  # that of the reply before


def test_sessions_of_one_id_are_distinguished_by_their_user() -> None:
    runs, _ = listed(SQLITE)
    assert runs["tools"].source == "ada"
    assert runs["tools@bob@orchard"].source == "bob"
    assert runs["tools@bob@orchard"].steps == 1


def test_fields_in_camel_case_are_read() -> None:
    run = read("camel")
    assert run.summary.usage == Usage(7, 3)
    assert named(run, "prune").operation is Operation.EXECUTE_TOOL
    assert run.load(named(run, "prune")).input == {"tree": 5}


# ---- tokens and bodies


def test_thoughts_are_output_and_cached_tokens_input() -> None:
    reply = named(read("tools"), "acorn-2", 1)
    assert reply.usage == Usage(140, 17, 157, 64, None, 8)


def test_a_body_has_the_message_and_all_other_fields() -> None:
    run = read("tools")
    body = run.load(named(run, "acorn-2"))
    (message,) = body.output_messages
    assert message.parts == (
        Reasoning("look first"),
        ToolCall("c1", "count", {"row": 4}),
        ToolCall("c2", "map", {"row": 4}),
    )
    assert body.attributes["usage_metadata"]["total_token_count"] == 110
    assert run.body.attributes["app_states"]["state"] == {"harvests": 3}


# ---- outcomes


@pytest.mark.parametrize(
    ("key", "status", "source", "word"),
    [
        ("tools", Status.OK, StatusSource.DERIVED, "STOP"),
        ("raises", Status.ERROR, StatusSource.EXPLICIT, "ValueError"),
        ("quota", Status.ERROR, StatusSource.EXPLICIT, "RESOURCE_EXHAUSTED"),
        ("silent", Status.UNKNOWN, StatusSource.DERIVED, None),
        ("resumable", Status.OK, StatusSource.EXPLICIT, "end_of_agent"),
        ("cut", Status.ERROR, StatusSource.DERIVED, "MAX_TOKENS"),
        ("workflow", Status.OK, StatusSource.DERIVED, None),
        ("stopped", Status.UNKNOWN, StatusSource.DERIVED, None),  # before the last node of its workflow
        ("asks", Status.PAUSED, StatusSource.DERIVED, "adk_request_confirmation"),
        ("empty", Status.UNKNOWN, StatusSource.DERIVED, None),
        ("live", Status.UNKNOWN, StatusSource.DERIVED, None),
    ],
)
def test_a_session_ends_as_its_last_event(key: str, status: Status, source: StatusSource, word: str | None) -> None:
    summary = listed(SQLITE)[0][key]
    assert (summary.status, summary.status_source, summary.status_word) == (status, source, word)


def test_a_tool_that_raises_has_the_error_of_its_turn() -> None:
    call = named(read("raises"), "read")
    assert (call.status, call.status_source) == (Status.ERROR, StatusSource.EXPLICIT)
    assert call.error is not None
    assert call.error.text == "ValueError: cannot parse ledger.csv"


def test_none_of_several_open_calls_gets_the_error(tmp_path: Path) -> None:
    path = tmp_path / "session.db"
    with database(path) as writer:
        writer.session("both", 0)
        writer.ask("Two at once")
        calls: list[dict[str, Any]] = [
            {"function_call": {"id": ident, "name": ident, "args": {}}} for ident in ("left", "right")
        ]
        writer.reply("keeper", *calls)
        writer.event("keeper", error_code="ValueError", error_message="no")
    run = read("both", path)
    assert [named(run, name).status for name in ("left", "right")] == [Status.UNKNOWN, Status.UNKNOWN]
    assert named(run, "keeper").error is not None


def test_a_result_that_reports_a_failure_in_words_is_a_result() -> None:
    assert named(read("tools"), "map").status is Status.OK


def test_a_reply_of_an_unknown_kind_of_agent_ends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "session.db"
    with database(path) as writer:
        writer.session("new", 0)
        writer.ask("Hi")
        writer.reply("keeper", text("Hello"), node_info=None)
    assert listed(path)[0]["new"].status is Status.UNKNOWN


# ---- other stores


def test_times_of_the_database_service_are_utc() -> None:
    run = read("then-raises", SERVICE)
    assert run.summary.started_at == 1_767_258_000.0
    assert run.spans[0].started_at == 1_767_258_000.5


def test_pickles_are_never_loaded_and_reported() -> None:
    runs, problems = listed(PICKLES)
    assert [(problem.where, problem.reason.split(":")[0]) for problem in problems] == [("events.actions", "7 rows")]
    plain, whole = runs["then-raises"], listed(SERVICE)[0]["then-raises"]
    assert (plain.usage, plain.status, plain.steps) == (whole.usage, whole.status, whole.steps)
    span = read("then-raises", PICKLES).spans[1]
    assert read("then-raises", PICKLES).load(span).attributes["actions"] == "22 bytes: pickle, not loaded"


def test_rows_without_a_session_are_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "session.db"
    path.write_bytes(SQLITE.read_bytes())
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM sessions WHERE id = 'raises'")
        db.commit()
    assert [(problem.where, problem.reason) for problem in listed(path)[1]] == [
        ("events", "3 rows belong to no session")
    ]


def test_one_broken_event_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "session.db"
    path.write_bytes(SQLITE.read_bytes())
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE events SET event_data = '{\"content\"' WHERE session_id = 'raises' AND id = 'ev-006'")
        db.commit()
    run = read("raises", path)
    assert [problem.where for problem in run.problems] == ["event ev-006"]
    assert run.summary.status is Status.ERROR


# ---- the framework's own values


@needs_shared
@pytest.mark.shared
@pytest.mark.parametrize("name", ["session.db", "database-service-v1.db"])
def test_the_samples_have_the_values_of_the_framework(name: str) -> None:
    folder = sample("google-adk")
    path = folder / "project" / ".adk" / name if name == "session.db" else folder / name
    for key, facts in json.loads((folder / "facts.json").read_text())[name].items():
        run = read(key, path)
        usage, kinds = run.summary.usage or Usage(), Counter(span.operation for span in run.spans)
        failed = {span.id for span in run.spans if span.error and span.operation is Operation.CHAT}
        chats = [span for span in run.spans if span.operation is Operation.CHAT and span.id not in failed]
        assert len(chats) == facts["model_replies"], key
        assert kinds[Operation.EXECUTE_TOOL] == facts["tool_calls"], key
        assert (usage.input_tokens or 0) == facts["input_tokens"], key
        assert (usage.output_tokens or 0) - (usage.reasoning_tokens or 0) == facts["output_tokens"], key
        assert (usage.reasoning_tokens or 0) == facts.get("thought_tokens", 0), key
        assert (usage.cache_read_tokens or 0) == facts["cached_input_tokens"], key
        errors = [[span.error.type, span.error.message] for span in run.spans
                  if span.error and span.operation is not Operation.TURN]  # fmt: skip
        assert errors == facts["error_events"], key
        rewound = [span for span in run.spans if "rewound" in span.notes and span.operation is Operation.TURN]
        assert len(rewound) == len(facts.get("rewinds", [])), key
