"""Stores beside their engines alone: first rows of 1,000,000 spans in ClickHouse, one trace, 10,000 objects listed.

Needs ``python3 dev.py stores``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from shutil import rmtree

import obstore
from obstore.store import S3Store

from tests.bench import data, references
from tests.bench.screen import A_RUN, start
from tests.bench.table import Row, median, say
from tests.sources.s3 import S3
from tests.stores import many
from tests.stores.conftest import Server, Store
from tests.stores.conftest import start as start_server
from tracetui.live.load import read_run
from tracetui.model import RunRef
from tracetui.sources.bucket import Bucket
from tracetui.sources.clickhouse import parse
from tracetui.sources.clickhouse.source import ClickHouseSource
from tracetui.sources.objects import ObjectSource

INSERTED = 20_000
"""Traces that are inserted at once."""


def rows(scale: int, rounds: int) -> Iterator[Row]:
    """The promises about stores; sizes are divided by `scale`."""
    for engine, measure in (("moto", _objects), ("chdb", _clickhouse)):
        if find_spec(engine) is None:
            say(f"skipped: {engine} is not installed (python3 dev.py stores)")
        else:
            yield from measure(scale, rounds)


def _objects(scale: int, rounds: int) -> Iterator[Row]:
    server = S3(keys=10_000 // scale)
    try:
        os.environ.update(server.environment)
        bare = S3Store("many", client_options={"allow_http": True})
        ours, alone = list[float](), list[float]()
        for _ in range(rounds + 1):
            began = time.perf_counter()
            listed = sum(1 for _ in ObjectSource(Bucket("s3", "many")).walk("s3://many"))
            middle = time.perf_counter()
            assert listed == sum(map(len, obstore.list(bare, chunk_size=1000)))
            alone.append((time.perf_counter() - middle) * 1000)
            ours.append((middle - began) * 1000)
    finally:
        server.stop()
    mine, theirs = median(ours[1:]), median(alone[1:])
    detail = f"{mine:.0f} ms; bare obstore {theirs:.0f} ms"
    yield Row(f"{listed:,} objects of a bucket listed", mine / theirs, 1.3, "×", detail)


def _clickhouse(scale: int, rounds: int) -> Iterator[Row]:
    traces = 1_000_000 // many.SPANS // scale
    folder = data.CACHE / "clickhouse"
    rmtree(folder, ignore_errors=True)
    server = start_server(folder)
    try:
        store = Store(server, "otel", typed=False)
        for first in range(0, traces, INSERTED):
            server.send(many.insert(store.name, min(INSERTED, traces - first), first=first))
        yield _first_rows(server, store, traces, rounds)
        yield _one_trace(server, store, traces, rounds)
    finally:
        server.stop()
        rmtree(folder, ignore_errors=True)


def _first_rows(server: Server, store: Store, traces: int, rounds: int) -> Row:
    floor, times, engine = references.empty_app().ms, list[float](), list[float]()
    for _ in range(rounds + 1):
        server.log()
        with start("-m", "tracetui", store.url) as terminal:
            times.append((terminal.wait_for(A_RUN, timeout=60) - terminal.started) * 1000)
            terminal.wait_quiet(0.3, at_rest=False)
        asked = server.log()
        until = next((i for i, query in enumerate(asked) if "AS Root" in query["sql"]), len(asked) - 1)
        engine.append(sum(query.get("seconds", 0.0) for query in asked[: until + 1]) * 1000)
    ours, alone = median(times[1:]), median(engine[1:])
    detail = f"{ours:.0f} ms; engine {alone:.0f} ms, empty app {floor:.0f} ms"
    return Row(f"first rows of {traces * many.SPANS:,} spans in ClickHouse", ours / (alone + floor), 1.5, "×", detail)


def _one_trace(server: Server, store: Store, traces: int, rounds: int) -> Row:
    ours, engine = list[float](), list[float]()
    for number in range(rounds + 1):
        with ClickHouseSource(parse(store.url)[0], limit=500) as source:
            source.connect()
            server.log()
            ref = RunRef("otlp", f"{store.url}/{traces // 2 + number:032x}")
            began = time.perf_counter()
            assert len(read_run(source, ref).spans) == many.SPANS
            ours.append((time.perf_counter() - began) * 1000)
            engine.append(sum(query.get("seconds", 0.0) for query in server.log()) * 1000)
    mine, alone = median(ours[1:]), median(engine[1:])
    detail = f"{mine:.0f} ms; engine {alone:.0f} ms; promised 1.5 × engine + 30 ms"
    return Row(f"one trace of {traces * many.SPANS:,} spans in ClickHouse", mine / (1.5 * alone + 30), 1.0, "×", detail)
