"""The list of a store: what the database counts is what reading all spans gives, or it is left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from tests.shared import examples
from tests.stores import exporter, many
from tests.stores.conftest import Server, Store, make
from tests.stores.test_candidates import BEGIN, emptied, requests
from tests.stores.test_equal import FILES, requests_in
from tests.stores.test_live import span
from tracetui.live.scan import scan
from tracetui.model import RunSummary, Status, Usage
from tracetui.model.summary import FIELDS
from tracetui.sources.clickhouse import parse
from tracetui.sources.clickhouse.source import ClickHouseSource

__all__ = ["emptied"]


def runs(store: Store, *, deep: bool) -> dict[str, RunSummary]:
    """The listed runs by id; without reading their spans, or with them."""
    with ClickHouseSource(parse(store.url)[0], limit=1000) as source:
        runs = [run for file in scan(source, [store.url], deep=deep) for run in file.runs]
    assert all(run.deep is deep for run in runs)
    return {run.id: run for run in runs}


def clear(store: Store) -> None:
    """Empty the tables."""
    for table in ("otel_traces", "otel_traces_trace_id_ts"):
        store.server.send(f"TRUNCATE TABLE {store.name}.{table}")


def check(store: Store) -> None:
    """Compare the list with the counts."""
    counted = runs(store, deep=True)
    listed = runs(store, deep=False)
    assert listed.keys() == counted.keys()
    for ident, run in listed.items():
        fields, full = ({name: getattr(summary, name) for name in FIELDS} for summary in (run, counted[ident]))
        for name in ("deep", "unread", "problems", "size"):
            del fields[name]
        if run.name == f"trace {ident[:8]}":  # no root, or several
            del fields["name"]
        if run.status is Status.UNKNOWN:
            del fields["status"], fields["status_source"]
        said = {name: value for name, value in fields.items() if value not in (None, (), "", False)}
        assert said == {name: full[name] for name in said}


def test_the_list_of_the_samples_agrees_with_their_spans(store: Store) -> None:
    for path in FILES:
        store.write(requests_in(path))
    check(store)


def test_a_root_without_a_start_does_not_begin_the_trace(emptied: Store) -> None:
    clear(emptied)
    trace, agent = "5" * 32, "gen_ai.agent.name"
    spans = [
        {"spanId": "1" * 16, "parentSpanId": "", "startTimeUnixNano": "0", "attributes": attribute(agent, "root")},
        {
            "spanId": "2" * 16,
            "parentSpanId": "1" * 16,
            "startTimeUnixNano": "1767226201000000000",
            "attributes": attribute(agent, "other"),
        },
    ]
    common = {"traceId": trace, "name": "x", "endTimeUnixNano": "0", "status": {"code": 0}, "events": []}
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [common | span for span in spans]}]}]}
    emptied.insert(list(exporter.rows(request, typed=emptied.typed)))
    assert [run.agent for run in runs(emptied, deep=True).values()] == ["other"]
    check(emptied)


def attribute(name: str, value: str) -> list[dict[str, Any]]:
    """One attribute, as OTLP writes it."""
    return [{"key": name, "value": {"stringValue": value}}]


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_the_list_of_any_traces_agrees_with_their_spans(emptied: Store, request_: dict[str, Any]) -> None:
    clear(emptied)
    emptied.insert(list(exporter.rows(request_, typed=emptied.typed)))
    check(emptied)


CALLS = some.fixed_dictionaries(
    {},
    optional={
        "gen_ai.operation.name": some.sampled_from(
            ["chat", "chat", "chat", "text_completion", "invoke_agent", "execute_tool", "embeddings", "other"]
        ),
        "gen_ai.usage.input_tokens": some.sampled_from([0, 7, 100, "12", "many", -1, 1.5]),
        "gen_ai.usage.output_tokens": some.sampled_from([0, 5, "3"]),
        "gen_ai.response.model": some.sampled_from(["fern-1", "", "Moss 2"]),
        "gen_ai.request.model": some.sampled_from(["fern-1", "moss"]),
    },
)
OTHERS = some.one_of(
    some.just({}),
    some.just({}),
    some.sampled_from(
        [
            {"gen_ai.usage.prompt_tokens": 3},
            {"gen_ai.usage.cache_read.input_tokens": 2},
            {"gen_ai.usage.cost": 0.1},
            {"llm.model_name": "other"},
            {"openinference.span.kind": "LLM", "llm.token_count.prompt": 4},
            {"ai.operationId": "ai.generateText.doGenerate"},
            {"logfire.span_type": "pending_span"},
            {"gen_ai.system": "openai"},
            {"openinference.span.kind": "LLM"},
            {"llm.request.type": "chat"},
        ]
    ),
)


@some.composite
def calls(draw: Any) -> dict[str, Any]:
    """A request with a trace of calls below each other, with the tokens and models of several conventions."""
    spans = []
    for number in range(draw(some.integers(1, 5))):
        attributes = {**draw(CALLS), **draw(OTHERS)}
        above = draw(some.integers(0, number)) if number else 0
        begin = BEGIN * 10**9 + draw(some.integers(0, 3)) * 10**9
        spans.append(
            {
                "traceId": "ab" * 16,
                "spanId": f"{number + 1:016x}",
                "parentSpanId": f"{above:016x}" if above else "",
                "name": "work",
                "startTimeUnixNano": str(begin),
                "endTimeUnixNano": str(begin + 10**9),
                "attributes": [{"key": key, "value": any_value(value)} for key, value in attributes.items()],
            }
        )
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def any_value(value: Any) -> dict[str, Any]:
    """A value of OTLP JSON."""
    return {
        ("stringValue" if isinstance(value, str) else "intValue" if isinstance(value, int) else "doubleValue"): value
    }


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(calls())
def test_tokens_and_models_are_those_of_the_reader(emptied: Store, request_: dict[str, Any]) -> None:
    clear(emptied)
    emptied.insert(list(exporter.rows(request_, typed=emptied.typed)))
    check(emptied)


AGENT, CALL = {"gen_ai.operation.name": "invoke_agent"}, {"gen_ai.operation.name": "chat"}
INPUT, OUTPUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"


@pytest.mark.parametrize(
    ("spans", "is_listed"),
    [
        ([("", AGENT | {INPUT: 7}), ("1", CALL | {INPUT: 7, OUTPUT: 0})], True),
        ([("", AGENT), ("1", CALL | {INPUT: 7})], True),
        ([("", AGENT | {INPUT: 7}), ("1", CALL)], False),
        ([("", CALL | {OUTPUT: 0}), ("", AGENT | {INPUT: 0})], False),
        ([("", AGENT | {INPUT: 7}), ("9", CALL | {INPUT: 7})], False),
        ([("", AGENT | {INPUT: 7}), ("1", AGENT | {INPUT: 3}), ("1", CALL | {INPUT: 4})], False),
    ],
    ids=["root", "no agent", "no call", "beside", "lost parent", "agent below"],
)
def test_tokens_of_agents_are_listed_only_where_calls_below_have_them(
    emptied: Store, spans: list[tuple[str, dict[str, Any]]], is_listed: bool
) -> None:
    clear(emptied)
    rows = [
        {
            "traceId": "cd" * 16,
            "spanId": f"{number:016x}",
            "parentSpanId": above and above.rjust(16, "0"),
            "name": "work",
            "startTimeUnixNano": str((BEGIN + number) * 10**9),
            "endTimeUnixNano": str((BEGIN + 9) * 10**9),
            "attributes": [{"key": key, "value": any_value(value)} for key, value in attributes.items()],
        }
        for number, (above, attributes) in enumerate(spans, 1)
    ]
    emptied.insert(list(exporter.rows({"resourceSpans": [{"scopeSpans": [{"spans": rows}]}]}, typed=emptied.typed)))
    check(emptied)
    (run,) = runs(emptied, deep=False).values()
    assert (run.usage is not None) is is_listed


@pytest.mark.parametrize("typed", [False, True], ids=["map", "json"])
def test_the_list_is_complete_without_a_span(server: Server, typed: bool) -> None:
    store = make(server, typed=typed)
    server.send(many.insert(store.name, 60, typed=typed))
    server.log()
    listed = runs(store, deep=False)

    asked = [entry["sql"] for entry in server.log()]
    assert not any("EndNs" in sql for sql in asked)
    assert sum("AS Root" in sql for sql in asked) == 2  # a screenful, and the others
    run = listed[f"{4:032x}"]
    assert (run.name, run.agent, run.model, run.status) == ("coder", "coder", "fern-1", Status.OK)
    assert (run.spans, run.errors, run.duration_ms, run.prompt) == (many.SPANS, 0, 1000, "Book flight 4")
    assert (run.usage, run.steps, run.llm_calls) == (Usage(520, 125), 5, 5)
    failed = listed[f"{7:032x}"]
    assert (failed.status, failed.errors) == (Status.ERROR, None)
    check(store)


def test_a_trace_without_a_root_has_a_row(map_store: Store) -> None:
    map_store.write([span(2), span(3, start=1)])
    (run,) = runs(map_store, deep=False).values()
    assert (run.name, run.spans, run.duration_ms) == ("trace abababab", 2, None)
    check(map_store)
