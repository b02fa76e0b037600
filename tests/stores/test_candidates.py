"""Push-down: the store sends fewer runs, and the query finds the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from tests.cli.run import Cli
from tests.shared import examples
from tests.stores import exporter
from tests.stores.conftest import Server, Store, make
from tests.stores.test_equal import SAMPLES, requests_in
from tracetui.live.scan import scan
from tracetui.model import RunSummary
from tracetui.sources.base import EVERYTHING, Condition
from tracetui.sources.clickhouse import parse
from tracetui.sources.clickhouse.source import ClickHouseSource
from tracetui.store import query
from tracetui.store.query.plan import candidates

BEGIN = 1_767_225_600
"""The traces start then; the query counts from a day later."""
NAMES = ["fern-1", "Moss 2", "search", "pay", "chat", "trace", "planner", "Ümlaut", "", "a.b/c"]
LIKELY = ["fern-1", "search", "planner", "garden"]
TEXTS = ["timed out after 3 s", "Timed Out", "no such bed: 7", "", "K\u212a", '{"message": "odd \\"quote\\""}']


@some.composite
def span(draw: Any, trace: int, number: int) -> dict[str, Any]:
    """A span of OTLP JSON, with or without a start, end, error, name, model …"""
    start = draw(some.sampled_from([0, 0.1, 60, 3600])) + trace * 100 + number
    began = round((BEGIN + start) * 1e9) if draw(some.integers(0, 9)) else 0
    lasts = draw(some.sampled_from([0, 1_000_000, 5_000_000_000, 5_000_000_001, 90_000_000_000]))
    keys = ["gen_ai.agent.name", "gen_ai.tool.name", "gen_ai.request.model", "gen_ai.operation.name", "error.type",
            "error.message", "input.value", "gen_ai.usage.input_tokens", "gen_ai.evaluation.name",
            "gen_ai.evaluation.score.label"]  # fmt: skip
    values = some.sampled_from(
        [*LIKELY, *LIKELY, *LIKELY, *NAMES, *TEXTS, "invoke_agent", "execute_tool", "fail", "pass", "12"]
    )
    attributes = draw(some.dictionaries(some.sampled_from(keys), values, max_size=4))
    event = {"name": draw(some.sampled_from(["exception", "gen_ai.evaluation.result", "note"])), "attributes": [
        {"key": "exception.message", "value": {"stringValue": draw(some.sampled_from(TEXTS))}},
        {"key": "exception.escaped", "value": {"boolValue": draw(some.booleans())}}]}  # fmt: skip
    return {
        "traceId": f"{trace + 1:032x}",
        "spanId": f"{trace * 10 + number + 1:016x}",
        "parentSpanId": "" if number == 0 else f"{trace * 10 + 1:016x}",
        "name": draw(some.sampled_from(NAMES)),
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(began + lasts if draw(some.integers(0, 9)) else 0),
        "status": {"code": draw(some.sampled_from([0, 0, 1, 2])), "message": draw(some.sampled_from(TEXTS))},
        "events": [event] * draw(some.integers(0, 1)),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }


@some.composite
def requests(draw: Any) -> dict[str, Any]:
    """A request with a few traces."""
    spans = [
        draw(span(trace, number))
        for trace in range(draw(some.integers(1, 8)))
        for number in range(draw(some.integers(1, 3)))
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "garden"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}


VALUES = some.sampled_from(
    [*LIKELY, *LIKELY, *NAMES[:-3], "garden", "tool*", "?ern-1", "none", "timed out", "bed", "k", "error", "ok"]
)
TERMS = some.one_of(
    some.builds(
        lambda key, compare, value: f'{key}{compare}"{value}"' if " " in value else f"{key}{compare}{value}",
        some.sampled_from(["agent", "model", "tool", "name", "error", "cause", "prompt", "id"]),
        some.sampled_from([":", "=", "!="]),
        VALUES.filter(bool),
    ),
    some.builds(
        "{}{}".format,
        some.sampled_from(["dur>", "dur>=", "dur<", "dur:"]),
        some.sampled_from(["0", "1ms", "5s", "90s", "1h"]),
    ),
    some.builds(
        "{}:{}".format,
        some.sampled_from(["since", "before", "until", "on"]),
        some.sampled_from(["24h", "23h", "2026-01-01", "yesterday", "86300s"]),
    ),
    some.sampled_from(
        ["status:error", "status:ok", "status:error,ok", "is:failed", "has:error", "has:errors", "errors>0", "errors>1",
         "errors:0", "outcome:failed", "score:fail", "is:repeat", "tokens>10", "bed", "has:tool"]
    ),
)  # fmt: skip
QUERIES = some.recursive(
    TERMS,
    lambda inner: some.one_of(
        some.builds("({} or {})".format, inner, inner),
        some.builds("{} {}".format, inner, inner),
        some.builds("!({})".format, inner),
    ),
    max_leaves=4,
)


def listed(source: ClickHouseSource, store: Store, condition: Condition) -> list[RunSummary]:
    """The runs that the store sends."""
    source.narrow(condition, beside=False)
    files = list(scan(source, [store.url], deep=True))
    assert not [file.problems for file in files if file.skipped]
    return [run for file in files for run in file.runs]


@pytest.fixture(scope="module", params=["map", "json"])
def emptied(request: pytest.FixtureRequest, server: Server) -> Store:
    """A store that each example fills."""
    return make(server, typed=request.param == "json")


@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(requests(), some.lists(QUERIES, min_size=6, max_size=6))
def test_narrowing_never_loses_a_run(emptied: Store, request_: dict[str, Any], queries: list[str]) -> None:
    server, name, now = emptied.server, emptied.name, BEGIN + 86_400.0
    for table in ("otel_traces", "otel_traces_trace_id_ts"):
        server.send(f"TRUNCATE TABLE {name}.{table}")
    emptied.insert(list(exporter.rows(request_, typed=emptied.typed)))
    with ClickHouseSource(parse(emptied.url)[0], limit=1000) as source:
        everything = listed(source, emptied, EVERYTHING)

        assert everything
        for text in queries:
            wanted = {run.id for run in query.for_runs(text, now=now).select(everything)}
            sent = listed(source, emptied, candidates(text, now=now).condition)
            assert {run.id for run in query.for_runs(text, now=now).select(sent)} == wanted, text
            assert {run.id for run in sent} <= {run.id for run in everything}


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("status:error dur>5s since:2h agent:planner tool:pay model:fern-1 error:timed", ()),
        ("status:ok model:fern-1", ("status:ok",)),
        ("bed status:error", ("bed",)),
        ("status:error relation:repeat", ("status:error relation:repeat",)),
        ("status:error or tokens>10", ("status:error or tokens>10",)),
    ],
)
def test_untestable_parts_of_a_query_are_named(text: str, rest: tuple[str, ...]) -> None:
    assert candidates(text).rest == rest


def test_the_store_is_asked_for_failed_runs_only(map_store: Store, cli: Cli) -> None:
    map_store.write(requests_in(SAMPLES / "genai" / "input" / "greenhouse.otlp.jsonl"))
    result = cli("ls", map_store.url, "-q", "status:error", "--limit", "1", "--json")
    assert [run["id"] for run in result.data["runs"]] == ["b2" * 16]

    assert cli("ls", map_store.url, "-q", "model:no-such", "--limit", "1").status == 0
    message = cli("ls", map_store.url, "-q", "tokens>5 status:error").err
    assert "the database can't filter by tokens>5: only the newest 500 runs were searched" in message
