"""The list of a store: what the database counts is what reading all spans gives, or it is left out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from tests.stores import exporter, many
from tests.stores.conftest import Server, Store, make
from tests.stores.test_candidates import emptied, requests
from tests.stores.test_equal import FILES, requests_in
from tests.stores.test_live import span
from tracetui.live.scan import scan
from tracetui.model import RunSummary, Status, Usage
from tracetui.sources.clickhouse.source import ClickHouseSource
from tracetui.sources.clickhouse.url import parse

__all__ = ["emptied"]


def runs(store: Store, *, deep: bool) -> dict[str, RunSummary]:
    """The listed runs by id; without reading their spans, or with them."""
    with ClickHouseSource(parse(store.url)[0], limit=1000) as source:
        found = [run for one in scan(source, [store.url], deep=deep) for run in one.runs]
    assert all(run.deep is deep for run in found)
    return {run.id: run for run in found}


def check(store: Store) -> None:
    """Compare the list with the counts."""
    counted = runs(store, deep=True)
    listed = runs(store, deep=False)
    assert listed.keys() == counted.keys()
    for ident, run in listed.items():
        shown, full = msgspec.structs.asdict(run), msgspec.structs.asdict(counted[ident])
        for name in ("deep", "unread", "problems", "size"):
            del shown[name]
        if run.name == f"trace {ident[:8]}":  # no root, or several
            del shown["name"]
        if run.status is Status.UNKNOWN:
            del shown["status"], shown["status_source"]
        said = {name: value for name, value in shown.items() if value not in (None, (), "", False)}
        assert said == {name: full[name] for name in said}


def test_the_list_of_the_samples_agrees_with_their_spans(store: Store) -> None:
    for path in FILES:
        store.write(requests_in(path))
    check(store)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_the_list_of_any_traces_agrees_with_their_spans(emptied: Store, request_: dict[str, Any]) -> None:
    for table in ("otel_traces", "otel_traces_trace_id_ts"):
        emptied.server.send(f"TRUNCATE TABLE {emptied.name}.{table}")
    emptied.insert(list(exporter.rows(request_, typed=emptied.typed)))
    check(emptied)


@pytest.mark.parametrize("typed", [False, True], ids=["map", "json"])
def test_the_list_is_complete_without_a_span(server: Server, typed: bool) -> None:
    store = make(server, typed=typed)
    server.send(many.insert(store.name, 60, typed=typed))
    server.log()
    listed = runs(store, deep=False)

    asked = [one["sql"] for one in server.log()]
    assert not any("EndNs" in sql for sql in asked)
    assert sum("AS Root" in sql for sql in asked) == 2  # a screenful, and the others
    run = listed[f"{4:032x}"]
    assert (run.name, run.agent, run.model, run.status) == ("coder", "coder", "fern-1", Status.OK)
    assert (run.spans, run.errors, run.duration_ms, run.prompt) == (many.SPANS, 0, 1000, "Book flight 4")
    assert run.usage == Usage(520, 125)
    failed = listed[f"{7:032x}"]
    assert (failed.status, failed.errors) == (Status.ERROR, None)
    check(store)


def test_a_trace_without_a_root_has_a_row(map_store: Store) -> None:
    map_store.write([span(2), span(3, start=1)])
    (run,) = runs(map_store, deep=False).values()
    assert (run.name, run.spans, run.duration_ms) == ("trace abababab", 2, None)
    check(map_store)
