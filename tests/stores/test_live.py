"""Following the store: new traces, late spans, a parent that comes last."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.run import Cli
from tests.stores import many
from tests.stores.conftest import Server, Store, make
from tracetui.live.load import Reader, read_run
from tracetui.live.tail import Tail
from tracetui.model import RunRef, Status
from tracetui.sources.clickhouse import parse, source
from tracetui.sources.clickhouse.source import ClickHouseSource

TRACE = "ab" * 16
BEGIN = 1_767_225_600


@pytest.fixture
def opened(map_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClickHouseSource]:
    """The source of a store, which is asked each time."""
    for name in ("FRESH_SECONDS", "LIST_FRESH_SECONDS", "LIST_REST", "AHEAD_SECONDS"):  # each time only what changed
        monkeypatch.setattr(source, name, 0)
    with ClickHouseSource(parse(map_store.url)[0], limit=5) as opened_source:
        yield opened_source


def span(number: int, *, parent: int | None = 1, start: float = 0, seconds: float = 1, trace: str = TRACE) -> Any:
    """A request with one span."""
    begin = round((BEGIN + start) * 1e9)
    record = {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "parentSpanId": "" if parent is None else f"{parent:016x}",
        "name": f"step {number}",
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(begin + round(seconds * 1e9)),
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [record]}]}]}


def test_a_parent_that_comes_last_is_read(map_store: Store, opened: ClickHouseSource) -> None:
    map_store.write([span(2, start=1), span(3, start=2)])
    ref = RunRef("otlp", f"{map_store.url}/{TRACE}")
    reader = Reader(opened, ref)
    reader.catch_up()
    assert [span.id[-1] for span in reader.build().spans] == ["2", "3"]

    assert not reader.read()
    map_store.write([span(1, parent=None, start=0, seconds=10)])
    assert reader.read()
    assert not reader.reset
    assert [span.id[-1] for span in reader.build().spans] == ["1", "2", "3"]
    assert reader.build().summary.status is Status.OK
    assert reader.build() == read_run(opened, ref) or reader.build().spans == read_run(opened, ref).spans


def test_a_span_written_twice_is_one(map_store: Store, opened: ClickHouseSource) -> None:
    map_store.write([span(1, parent=None)])
    reader = Reader(opened, RunRef("otlp", f"{map_store.url}/{TRACE}"))
    reader.catch_up()
    map_store.write([span(1, parent=None)])  # an exporter tries again
    reader.catch_up()

    assert len(reader.build().spans) == 1
    assert not reader.build().problems


def test_the_list_shows_new_traces_and_late_spans(map_store: Store, opened: ClickHouseSource) -> None:
    map_store.write([span(1, parent=None)])
    (before,) = opened.list(map_store.url).entries
    map_store.write([span(2, start=-50), span(1, parent=None, start=100, trace="cd" * 16)])
    newest, late = opened.list(map_store.url).entries

    assert newest.path == f"{map_store.url}/{'cd' * 16}"
    assert late.path == before.path
    assert late.stat != before.stat


def test_only_traces_that_changed_are_asked_for(map_store: Store, opened: ClickHouseSource) -> None:
    server = map_store.server
    map_store.write([span(1, parent=None), span(2, start=3000, trace="cd" * 16)])
    assert [entry.path[-2:] for entry in opened.list(map_store.url).entries] == ["cd", "ab"]
    server.log()
    map_store.write([span(1, parent=None, start=-600, seconds=3610, trace="cd" * 16)])  # a parent that began long ago
    changed, same = opened.list(map_store.url).entries
    (asked,) = (entry for entry in server.log() if "INSERT" not in entry["sql"])

    assert changed.stat is not None
    assert changed.stat.size == 2 * source.SPAN_BYTES
    assert same.path.endswith("ab")
    assert int(asked["param_ended"]) == (BEGIN + 3001) * 10**9 - source.OVERLAP_NS
    assert "LIMIT" in asked["sql"]


def test_odd_times_neither_stop_the_list_nor_make_it_read_everything(
    map_store: Store, opened: ClickHouseSource
) -> None:
    now = time.time() - BEGIN
    without = span(1, parent=None, trace="ef" * 16)
    without["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["startTimeUnixNano"] = "0"
    map_store.write([span(1, parent=None, start=now + 86_400, trace="cd" * 16), without])
    opened.list(map_store.url)
    map_store.write([span(1, parent=None, start=now - 5)])
    map_store.server.log()
    assert {entry.path[-2:] for entry in opened.list(map_store.url).entries} == {"cd", "ef", "ab"}
    (asked,) = map_store.server.log()
    assert int(asked["param_bound"]) > BEGIN


def test_a_trace_written_long_after_its_end_is_listed_with_the_whole_list(
    map_store: Store, opened: ClickHouseSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    map_store.write([span(1, parent=None, start=3000)])
    opened.list(map_store.url)
    map_store.write([span(1, parent=None, trace="cd" * 16)])  # it ended an hour before
    assert len(opened.list(map_store.url).entries) == 1
    monkeypatch.setattr(source, "WHOLE_LIST_SECONDS", 0)
    assert len(opened.list(map_store.url).entries) == 2


def test_the_list_never_forgets_spans_that_it_has_seen(map_store: Store, opened: ClickHouseSource) -> None:
    day = 86_400
    map_store.write([span(1, parent=None, seconds=3 * day), span(2, start=day), span(3, start=3 * day)])
    (before,) = opened.list(map_store.url).entries
    map_store.write([span(4, start=3 * day + 5)])
    (after,) = opened.list(map_store.url).entries

    assert before.stat is not None
    assert after.stat is not None
    assert (before.stat.size, after.stat.size) == (3 * source.SPAN_BYTES, 4 * source.SPAN_BYTES)


def test_tail_follows_the_store(map_store: Store, opened: ClickHouseSource) -> None:
    map_store.write([span(2, start=1)])
    tail = Tail(opened, [map_store.url], from_start=True)
    try:
        seen = [event for _ in range(3) for event in tail.events(1.0)]
        assert "step 2" in str(seen)
        map_store.write([span(1, parent=None, start=0, seconds=10), span(1, parent=None, trace="cd" * 16)])
        later: list[Any] = []
        for _ in range(20):
            later += tail.events(1.0)
            if "cd" * 16 in str(later) and "step 1" in str(later):
                break
        assert "cd" * 16 in str(later)
        assert "step 1" in str(later)
    finally:
        tail.close()


def test_rows_that_left_the_cache_are_read_again(
    server: Server, map_store: Store, opened: ClickHouseSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.send(many.insert(map_store.name, 4))
    entries = opened.list(map_store.url).entries
    runs = [read_run(opened, RunRef("otlp", entry.path)) for entry in entries]
    monkeypatch.setattr(opened, "_cache", source.RowCache(limit=1))
    for entry, run in zip(entries, runs, strict=True):
        assert read_run(opened, RunRef("otlp", entry.path)).spans == run.spans
        assert run.load(run.spans[1]).input_messages


def test_one_screenful_is_read_first(server: Server) -> None:
    store = make(server)
    server.send(many.insert(store.name, 100))
    with ClickHouseSource(parse(store.url)[0], limit=100) as opened_source:
        entries = opened_source.list(store.url).entries
        server.log()
        for entry in entries:
            with opened_source.open(entry.path) as file:
                assert file.read_all().count(b"\n") == many.SPANS
        asked = [entry for entry in server.log() if "EndNs" in entry["sql"]]
    assert len(asked) == 2
    assert asked[0]["param_traces"].count(",") + 1 == source.FIRST_BATCH


def test_a_frequent_error_hides_no_other(server: Server, map_store: Store, cli: Cli, monkeypatch: Any) -> None:
    server.send(many.insert(map_store.name, 1000))  # 20 fail, in two tools
    map_store.write([_failed()])
    monkeypatch.setattr("tracetui.cli.triage.MOST", 3)
    triage = cli("triage", map_store.url, "--json", "--limit", "7").data

    assert sorted((cause["count"], len(cause["runs"])) for cause in triage["causes"]) == [(1, 1), (10, 3), (10, 3)]
    assert triage["counts"]["failed"] == 21
    result = cli("triage", map_store.url, "--limit", "7")
    assert result.err.startswith(
        "tracetui: 14 more runs failed with the same errors; only the newest 3 of each were read:\n"
    )
    assert [line.split()[2] for line in result.text.splitlines()[1:]] == ["10", "10", "1"]


def test_a_run_that_recovered_is_not_counted_as_failed(map_store: Store, cli: Cli, monkeypatch: Any) -> None:
    monkeypatch.setattr("tracetui.cli.triage.MOST", 1)
    for number in range(3):
        trace = f"{number + 1:032x}"
        failed, root = _failed(trace, 2, parent=1), span(1, parent=None, start=number, seconds=9, trace=trace)
        root["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["status"] = {"code": 1}
        map_store.write([failed, root])
    map_store.write([_failed()])
    triage = cli("triage", map_store.url, "--json").data
    assert [cause["count"] for cause in triage["causes"]] == [1]


def test_triage_finds_wrong_answers_without_a_failed_span(map_store: Store, cli: Cli, monkeypatch: Any) -> None:
    monkeypatch.setattr("tracetui.cli.triage.MOST", 1)
    for number in range(3):
        wrong = span(1, parent=None, trace=f"{number + 1:032x}")
        wrong["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = [
            {"key": f"gen_ai.evaluation.{key}", "value": {"stringValue": value}}
            for key, value in (("name", "judge"), ("score.label", "fail"))
        ]
        map_store.write([wrong])
    map_store.write([_failed()])
    triage = cli("triage", map_store.url, "--json").data
    assert triage["counts"]["failed"] == 4
    assert sorted(cause["count"] for cause in triage["causes"]) == [1, 3]


def _failed(trace: str = TRACE, number: int = 1, parent: int | None = None) -> Any:
    request = span(number, parent=parent, trace=trace)
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["status"] = {"code": 2, "message": "no such bed"}
    return request


def test_grep_says_first_what_it_reads(server: Server, map_store: Store, cli: Cli) -> None:
    server.send(many.insert(map_store.name, 20))
    result = cli("grep", "-l", "Book flight 7", map_store.url)

    assert result.err.startswith("tracetui: reading 20 runs with 200 spans from the database\n")
    assert result.text == f"{map_store.url}/{7:032x}\n"
