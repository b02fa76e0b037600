"""Threads of LangGraph: supersteps, sub-graphs, forks, how threads end, each message once, values as data."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.shared import needs_shared, sample
from tracetui.errors import FormatError
from tracetui.formats.langgraph import LangGraph
from tracetui.formats.langgraph.blobs import MAX_BYTES, packed, value_of
from tracetui.formats.langgraph.records import scheduled_in, usage_of
from tracetui.model import Operation, Problem, Run, RunRef, RunSummary, Span, Status, StatusSource, Usage
from tracetui.sources.local import LocalFile
from tracetui.testing import read_run

FORMAT = LangGraph()
CASES = Path(__file__).parent / "langgraph"
THREADS, AGENTS, GRAPHS = (CASES / name / "input" / "checkpoints.sqlite" for name in ("threads", "agents", "graphs"))
OLD = CASES / "late-2024" / "input" / "checkpoints-2024.sqlite"
BREAKPOINTS = OLD.with_name("breakpoints-2024.sqlite")
PICKLES = CASES / "pickles" / "input" / "checkpoints-pickle.sqlite"


def read(key: str, path: Path = THREADS) -> Run:
    return read_run(FORMAT, RunRef(FORMAT.name, str(path), key))


def listed(path: Path, *, deep: bool = True) -> tuple[dict[str | None, RunSummary], list[Problem]]:
    with LocalFile(str(path)) as file:
        items = list(FORMAT.summarize(file, deep=deep))
    runs = {item.ref.key: item for item in items if isinstance(item, RunSummary)}
    return runs, [item for item in items if isinstance(item, Problem)]


def outline(run: Run) -> list[str]:
    pairs = zip(run.spans, run.depths, strict=True)
    return [f"{'  ' * depth}{span.name}" for span, depth in pairs if span.operation is not Operation.META]


def named(run: Run, name: str, number: int = 0) -> Span:
    return [span for span in run.spans if span.name == name][number]


# ---- the tree


def test_a_turn_has_nodes_with_the_number_of_their_superstep() -> None:
    run = read("t1-two-turns")
    first = ["turn", "  user", "  agent", "    fake-model-1", "    search", "  tools", "  agent", "    fake-model-1"]
    assert outline(run) == [*first, "turn", "  user", "  agent", "    fake-model-1"]
    assert [span.step for span in run.spans if span.is_step] == [1, 2, 3, 6]


def test_a_sub_graph_is_below_the_node_that_runs_it() -> None:
    run = read("a3-multi", AGENTS)
    inner = ["    think", "      fake-1", "    deep", "      deepest", "        user", "        fake-1"]
    math = ["    agent", "      fake-1", "      add", "    tools", "    agent", "      fake-1"]
    assert outline(run) == ["turn", "  user", "  research", *inner, "  math", *math, "  summary", "    fake-1"]
    assert named(run, "research").nested_graph


def test_a_persistent_sub_graph_is_below_the_node_of_each_turn() -> None:
    run = read("d5-persistent", GRAPHS)
    turn = ["turn", "  sub", "    s1", "      fake-1"]
    assert outline(run) == [*turn, *turn]


def test_the_node_of_a_send_is_named() -> None:
    workers = [span for span in read("t6-subgraph").spans if span.name == "worker"]
    assert [(span.step, span.operation) for span in workers] == [(2, Operation.INVOKE_WORKFLOW)] * 2


def test_a_fork_goes_on_in_its_turn_and_the_other_branch_is_marked() -> None:
    run = read("t4-interrupt-fork")
    spans = [(span.name, span.note) for span in run.spans if span.name in ("act", "fork")]
    assert spans == [("act", "other branch"), ("fork", ""), ("act", "")]


def test_tasks_of_a_function_are_numbered() -> None:
    names = [span.name for span in read("d7-func-chat", GRAPHS).spans if span.operation is Operation.NODE]
    assert names == ["chat call 1", "chat"] * 2


def test_without_writes_the_metadata_names_the_nodes() -> None:
    run = read("o1-success", OLD)
    assert [span.name for span in run.spans if span.is_step] == ["agent", "tools", "agent"]


# ---- each message once


def test_messages_that_checkpoints_repeat_count_once() -> None:
    run = read("t1-two-turns")
    assert run.summary.usage == Usage(420, 18, 438, 250)
    assert run.summary.llm_calls == 3


def test_a_message_that_gets_its_id_after_its_write_counts_once() -> None:
    run = read("a1-react", AGENTS)
    assert (run.summary.llm_calls, run.summary.tool_calls, run.summary.errors) == (3, 2, 1)
    assert sum(span.operation is Operation.OTHER for span in run.spans) == 0


def test_messages_without_ids_are_distinguished_by_their_number() -> None:
    assert read("b3-noid", AGENTS).summary.usage == Usage(6, 2, 8)


def test_replies_of_all_branches_and_of_tasks_that_were_not_applied_count() -> None:
    assert read("b2-fork", AGENTS).summary.usage == Usage(66, 6, 72)
    assert read("a8-parallel", AGENTS).summary.usage == Usage(5, 1, 6)


def test_one_checkpoint_at_the_exit_has_all_messages() -> None:
    summary = read("a2-exit", AGENTS).summary
    assert (summary.llm_calls, summary.tool_calls, summary.usage) == (2, 1, Usage(24, 5, 29))


def test_usage_includes_what_was_written_to_the_cache() -> None:
    counts = {
        "input_tokens": 9,
        "input_token_details": {"ephemeral_1h_input_tokens": 3, "ephemeral_5m_input_tokens": 1},
    }
    usage = usage_of(counts)
    assert usage is not None
    assert (usage.input_tokens, usage.cache_creation_tokens, usage.cache_write_1h_tokens) == (9, 4, 3)


# ---- outcomes


@pytest.mark.parametrize(
    ("path", "key", "status", "source"),
    [
        (THREADS, "t1-two-turns", Status.OK, StatusSource.DERIVED),
        (THREADS, "t3-run-failed", Status.ERROR, StatusSource.EXPLICIT),
        (THREADS, "t5-waiting", Status.PAUSED, StatusSource.EXPLICIT),
        (THREADS, "t8-recursion-limit", Status.UNKNOWN, StatusSource.DERIVED),
        (GRAPHS, "d1-join-static", Status.UNKNOWN, StatusSource.DERIVED),
        (GRAPHS, "d3-second-waits", Status.PAUSED, StatusSource.EXPLICIT),
        (GRAPHS, "d9-exit-error", Status.ERROR, StatusSource.EXPLICIT),
        (GRAPHS, "e1-inner-limit", Status.ERROR, StatusSource.EXPLICIT),
        (GRAPHS, "e4-abandoned", Status.OK, StatusSource.DERIVED),
        (OLD, "o1-success", Status.OK, StatusSource.DERIVED),
        (OLD, "o2-failed", Status.ERROR, StatusSource.EXPLICIT),
        (BREAKPOINTS, "s1-breakpoint", Status.UNKNOWN, StatusSource.DERIVED),
        (BREAKPOINTS, "s2-end", Status.UNKNOWN, StatusSource.DERIVED),  # its file says no more than that of s1
        (BREAKPOINTS, "s5-two", Status.OK, StatusSource.DERIVED),  # its first turn shows that the last node is final
        (BREAKPOINTS, "s4-left", Status.UNKNOWN, StatusSource.DERIVED),
        (PICKLES, "p1-pickle", Status.OK, StatusSource.DERIVED),
    ],
)
def test_threads_end_with_the_recorded_status(path: Path, key: str, status: Status, source: StatusSource) -> None:
    for deep in (False, True):
        summary = listed(path, deep=deep)[0][key]
        assert (summary.status, summary.status_source) == (status, source)


@pytest.mark.parametrize(("key", "status"), [("s4-left", Status.UNKNOWN), ("s5-two", Status.OK)])
def test_a_new_input_shows_whether_the_turn_before_it_had_ended(key: str, status: Status) -> None:
    assert named(read(key, BREAKPOINTS), "turn").status is status


def test_the_innermost_node_of_a_failure_is_its_cause() -> None:
    run = read("t7-inner-failed")
    assert run.summary.first_error is not None
    assert (run.summary.first_error.name, run.summary.first_error.type) == ("bad", "ValueError")
    assert named(run, "inner").status is Status.ERROR


def test_an_interrupt_that_a_new_turn_left_behind_does_not_wait() -> None:
    run = read("e4-abandoned", GRAPHS)
    assert (named(run, "two").status, named(run, "two").note) == (Status.UNKNOWN, "interrupted")
    assert named(run, "turn").status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("values", "nodes"),
    [
        ({"branch:to:a": None}, ("a",)),
        ({"join:a+b:c": ["a"]}, ()),
        ({"join:a+b:c": ["a", "b"]}, ("c",)),
        ({"branch:a:condition:b": "a", "start:c": "__start__"}, ("b", "c")),
        ({"messages": [], "a": "a"}, ("b",)),
    ],
)
def test_scheduled_nodes_follow_from_channels(values: dict[str, Any], nodes: tuple[str, ...]) -> None:
    blobs = {name: msgspec.msgpack.encode(value) for name, value in values.items()}
    assert scheduled_in(blobs, {"a": {"start:a": 1}, "b": {"a": 1}}) == nodes


# ---- values


def test_pickles_are_counted_and_not_loaded() -> None:
    _, problems = listed(PICKLES)
    assert [(problem.where, problem.reason) for problem in problems] == [
        ("checkpoints.checkpoint", "1 rows: pickle, not loaded"),
        ("writes.value", "1 rows: pickle, not loaded"),
    ]
    (problem,) = read("p1-pickle", PICKLES).problems
    assert problem.reason == "2 blobs: pickle, not loaded"


def ext(code: int, value: Any) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, msgspec.msgpack.encode(value))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (ext(0, ["uuid", "UUID", "05"]), {"@type": "uuid.UUID", "value": "05"}),
        (ext(2, ["m", "D", {"a": 2}]), {"@type": "m.D", "a": 2}),
        (ext(5, ["m", "P", {"x": ext(3, ["d", "f", "1", "iso"])}, "model"]),
         {"@type": "m.P", "x": {"@type": "d.f", "value": "1"}}),
        (ext(6, ["<f8", [2], "C", b"12"]), {"@type": "numpy.ndarray", "value": ["<f8", [2], "C", "2 bytes"]}),
        (ext(7, [1]), [1]),
        (ext(9, 1), {"@ext": 9, "value": "1 bytes"}),
        ({1: "a", "1": "b"}, {"1": "a", "1 2": "b"}),
    ],
)  # fmt: skip
def test_objects_are_data(value: Any, plain: Any) -> None:
    assert value_of(msgspec.msgpack.encode(value)) == plain


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("pickle", b"\x80\x04N.", "pickle, not loaded"),
        ("msgpack", b"\x91" * 5000 + b"\xc0", "nested too deeply"),
        ("msgpack", b"\xdd\xff\xff\xff\xff", "truncated"),
        ("msgpack", b"\xdd\x00\x50\x00\x00" + b"\x80" * (5 << 20), "too many values"),
        ("msgpack+aes", b"", "is not read"),
        ("msgpack", bytes(MAX_BYTES + 1), "are too many"),
    ],
)
def test_values_are_bounded(kind: str, data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        value_of(packed(kind, data))


def test_a_call_has_its_arguments_and_its_result() -> None:
    run = read("t1-two-turns")
    body = run.load(named(run, "search"))
    assert (body.input, body.output) == ({"query": "Zürich"}, "3 results for Zürich")


def test_a_node_has_what_it_wrote_and_the_state_after_it() -> None:
    run = read("t4-interrupt-fork")
    body = run.load(named(run, "plan"))
    assert body.output is not None
    assert body.output["log"] == ["plan"]
    assert body.state is not None
    assert body.state["log"] == ["in", "plan"]


def test_other_databases_with_these_tables_are_no_threads(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE checkpoints (id); CREATE TABLE writes (id);")
    with LocalFile(str(path)) as file:
        assert FORMAT.sniff(file) == 0


# ---- the framework's own values


@needs_shared
@pytest.mark.shared
@pytest.mark.parametrize("name", ["checkpoints.sqlite", "checkpoints-2024.sqlite", "checkpoints-pickle.sqlite"])
def test_the_samples_have_the_values_of_the_framework(name: str) -> None:
    folder = sample("langgraph")
    statuses = {"ok": Status.OK, "error": Status.ERROR, "waiting": Status.PAUSED, "stopped": Status.UNKNOWN}
    for key, facts in json.loads((folder / "facts.json").read_text())[name].items():
        run = read(key, folder / name)
        assert run.summary.status is statuses[facts["status"]], key
        usage, spans = run.summary.usage or Usage(), run.spans
        assert (usage.input_tokens or 0) == facts.get("input_tokens", 0), key
        assert (usage.output_tokens or 0) == facts.get("output_tokens", 0), key
        assert (usage.cache_read_tokens or 0) == facts.get("cached_input_tokens", usage.cache_read_tokens or 0), key
        kinds = Counter(span.operation for span in spans)
        roles = Counter(facts.get("messages", []))
        assert (kinds[Operation.CHAT], kinds[Operation.MESSAGE]) == (roles["AIMessage"], roles["HumanMessage"]), key
        calls = [span for span in spans if span.operation is Operation.EXECUTE_TOOL]
        assert len(calls) == facts.get("tool_calls", len(calls)), key
        failed = sum(span.status is Status.ERROR for span in calls)
        assert failed == facts.get("tool_errors", failed), key
        errors = [span.error.message for span in spans if span.error and span not in calls]
        assert errors == facts.get("errors", errors), key
        assert sum(span.name == "fork" for span in spans) == facts.get("forks", 0), key
        supersteps = {span.step for span in spans if span.is_step and span.step is not None}
        pairs = zip(facts.get("sources", []), facts.get("steps", []), strict=True)
        turns = [0, *(step + 1 for source, step in pairs if source == "input")]  # supersteps that only take the input
        pairs = zip(facts.get("sources", []), facts.get("steps", []), strict=True)
        assert supersteps >= {step for source, step in pairs if source == "loop" and step not in turns}, key
