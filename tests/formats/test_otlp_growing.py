"""OTLP JSON: a file of many traces that grows is counted on from where the count stopped, and as if from its start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.test_otlp import CHAT, FORMAT, request, span, used
from tests.formats.test_otlp_logs import EVENTS, log, logs
from tracetui.errors import FormatError
from tracetui.formats.jsonl import Line
from tracetui.formats.otlp import files as counting
from tracetui.formats.otlp.files import LineIndex, lines_of_trace
from tracetui.live.load import Reader, read_run
from tracetui.model import RunRef
from tracetui.sources.base import CACHE
from tracetui.sources.local import LocalSource

Record = dict[str, Any]


def in_trace(trace: int, record: Record) -> Record:
    return record | {"traceId": f"{trace:032x}"}


def spans() -> list[Record]:
    records = []
    for trace in (1, 2, 3):
        records += [
            in_trace(trace, span(2, 1, 1, 40, attributes=used(3 * trace, 4))),
            in_trace(trace, span(3, 2, 2, 30, attributes=CHAT, status={"code": 2, "message": f"wilted {trace}"})),
            in_trace(trace, span(1, None, 0, 90, attributes={"gen_ai.operation.name": "invoke_agent"})),
        ]
    return records


def summarize(path: Path, kept: dict[str, Any] | None) -> Any:
    with LocalSource().open(str(path)) as file:
        if kept is not None:
            file.memo[CACHE] = kept
        try:
            return list(FORMAT.summarize(file, deep=True))
        except FormatError as error:
            return str(error)


def grow(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@given(data=st.data())
def test_a_count_that_goes_on_is_one_from_the_start(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("grown") / "x.jsonl"
    path.touch()
    order = data.draw(st.permutations(spans()))
    records: list[Record] = [request(record) for record in order]
    more = [
        logs(log(*EVENTS[1])),
        {"resourceMetrics": []},
        {"other": 1},
        request(order[0]),
        request(order[0] | {"kind": 2}),
    ]
    for extra in data.draw(st.lists(st.sampled_from(more), max_size=3)):
        records.insert(data.draw(st.integers(0, len(records))), extra)
    whole = b"".join(json.dumps(request).encode() + b"\n" for request in records)
    kept: dict[str, Any] = {}
    begin = 0
    while begin < len(whole):
        line_end = whole.index(b"\n", begin) + 1
        end = data.draw(st.sampled_from((line_end, line_end - 1, (begin + line_end) // 2 + 1, len(whole))))
        grow(path, whole[begin : max(begin + 1, end)])
        begin = max(begin + 1, end)
        assert summarize(path, kept) == summarize(path, None)


def test_only_what_came_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(json.dumps(request(record)).encode() + b"\n" for record in spans()))
    kept: dict[str, Any] = {}
    summarize(path, kept)
    read: list[int] = []
    take = counting.Count.take

    def noted(count: counting.Count, export: Any, line: Line) -> None:
        read.append(line.number)
        take(count, export, line)

    monkeypatch.setattr(counting.Count, "take", noted)
    for number, trace in ((10, 4), (11, 5)):
        grow(path, json.dumps(request(in_trace(trace, span(1, None, 0, 90)))).encode() + b"\n")
        read.clear()
        went_on = summarize(path, kept)
        assert read == [number]
        assert went_on == summarize(path, None)
    (reader,) = kept.values()
    assert [trace for trace in reader.session.traces.values() if trace is not None and trace.key < f"{4:032x}"] == []
    late = in_trace(1, span(9, 1, 3, 4, attributes=used(50, 5)))
    grow(path, json.dumps(request(late)).encode() + b"\n")
    assert summarize(path, kept) == summarize(path, None)
    assert summarize(path, kept)[0].usage.input_tokens == 53


def test_a_file_that_was_replaced_is_counted_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    records = [json.dumps(request(record)).encode() + b"\n" for record in spans()]
    path.write_bytes(b"".join(records[:4]))
    kept: dict[str, Any] = {}
    summarize(path, kept)
    path.write_bytes(b"".join(reversed(records)))
    assert summarize(path, kept) == summarize(path, None)


@pytest.mark.parametrize("end", [b"", b"{", b'{"resourceSpans":[{"traceId":"\\u0030"}]}\n', b"\0\n"])
def test_many_traces_of_one_file_are_read_by_their_own_lines(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(json.dumps(request(record)).encode() + b"\n" for record in spans()) + end)
    kept: dict[str, Any] = {}
    for trace in (1, 2, 3):
        ref = RunRef("otlp", str(path), f"{trace:032x}")
        reader = Reader(LocalSource(), ref, cache=kept)
        reader.catch_up()
        alone = read_run(LocalSource(), ref)
        run = reader.build()
        assert (run.spans, run.summary, run.body) == (alone.spans, alone.summary, alone.body)
        assert run.load(run.spans[0]) == alone.load(alone.spans[0])
    (places,) = (cached for cached in kept.values() if isinstance(cached, LineIndex))
    assert (places.lines is None) is bool(end)


def test_a_large_trace_is_read_a_little_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(json.dumps(request(record)).encode() + b"\n" for record in spans()))
    with LocalSource().open(str(path)) as file:
        file.memo[CACHE] = {}
        assert lines_of_trace(file, f"{1:032x}") is not None
        monkeypatch.setattr("tracetui.formats.otlp.files.LINES_AT_ONCE", 10)
        assert lines_of_trace(file, f"{1:032x}") is None


def test_a_file_that_changes_while_many_are_read_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    records = [json.dumps(request(record)).encode() + b"\n" for record in spans()]
    path.write_bytes(b"".join(records[:4]))
    kept: dict[str, Any] = {}
    ref = RunRef("otlp", str(path), f"{2:032x}")
    for count in (4, 9):
        path.write_bytes(b"".join(records[:count]))
        reader = Reader(LocalSource(), ref, cache=kept)
        reader.catch_up()
        assert reader.build().spans == read_run(LocalSource(), ref).spans
    grow(path, records[3].replace(b"span 2", b"span X").replace(f"{2:016x}".encode(), f"{8:016x}".encode()))
    reader.catch_up()
    assert reader.build().spans == read_run(LocalSource(), ref).spans
