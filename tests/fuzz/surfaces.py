"""Fuzzers of what is read beside traces: messages of MCP and of served pages, settings, verdicts, answers of stores."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.fuzz import judge
from tracetui.errors import TracetuiError
from tracetui.live.load import read_run
from tracetui.live.scan import scan
from tracetui.processes import own_command
from tracetui.sources.base import Source
from tracetui.store.sidecar import Sidecar
from tracetui.ui import config

ANSWER_SECONDS: Final = 30.0
"""Until a server must have answered."""
_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 1 << 70, 1.5e308, "", "\0", "\ud800", "\x1b[31m", "x" * 5000, [], {}, [[]], {"": {}}),
    *("../../etc/passwd", "NaN", "a\nb", -(1 << 63)),
)


# ---- changes


def mutated(random: Random, value: Any) -> Any:
    """A copy of a JSON value with a few changes."""
    copy = json.loads(json.dumps(value))
    for _ in range(random.randint(1, 3)):
        places = [*_places(copy)]
        if not places:
            return random.choice(_VALUES)
        where, key = random.choice(places)
        match random.randrange(5):
            case 0:
                del where[key]
            case 1:
                where[key] = json.loads(json.dumps(random.choice(places)[0]))
            case 2:
                where[key] = nested(random, random.choice((3, 900, 20_000)))
                return copy
            case 3 if isinstance(where, dict):
                where[random.choice(("id", "\0", "a" * 300, "ü"))] = where[key]
            case _:
                where[key] = deepcopy(random.choice(_VALUES))
    return copy


def nested(random: Random, depth: int) -> str:
    """A text that stands for nested lists, which `dumped` writes: the encoder can't."""
    return f"@nested {depth} {random.choice('[{')}"


def dumped(value: Any) -> bytes:
    """The value as JSON."""
    text = json.dumps(value, ensure_ascii=False)
    while (begin := text.find('"@nested ')) >= 0:
        end = text.index('"', begin + 1)
        _, depth, kind = text[begin + 1 : end].split(" ")
        opened, closed = ("[", "]") if kind == "[" else ('{"a":', "}")
        text = f"{text[:begin]}{opened * int(depth)}1{closed * int(depth)}{text[end + 1 :]}"
    return text.encode("utf-8", "surrogatepass")


def mutated_bytes(random: Random, data: bytes) -> bytes:
    """Bytes with a few changes."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(changed) + 1)
        match random.randrange(6):
            case 0:
                del changed[at : at + random.choice((1, 10, 1000))]
            case 1:
                changed[at:at] = random.choice((b"\0", b"\xff\xfe", b"\r", b"\n", b'"', b"[" * 5000, b"{", b"\x1b]0;"))
            case 2:
                changed[at:at] = changed[at : at + 50] * random.choice((2, 100))
            case 3:
                del changed[at:]
            case _ if at < len(changed):
                changed[at] = random.randrange(256)
            case _:
                changed += b"}"
    return bytes(changed)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys: Any = [*value] if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


# ---- settings and verdicts

_SETTINGS: Final = b"""theme = "light"
traces = "~/runs"
pass = "reward>=0.9"
cache_mb = 5
sort = "tokens"
columns = ["name", "status"]
[keys]
failures = "x"
[limits]
steps = 4
"""
_EVENTS: Final = (
    {"v": 1, "at": "2026-11-02T10:00:00.000000Z", "id": "a1", "do": "verdict", "signature": "0" * 16, "verdict": "bug"},
    {"v": 1, "at": "2026-11-02T10:00:01.000000Z", "id": "a2", "do": "note", "signature": "0" * 16, "text": "look"},
    {"v": 1, "at": "2026-11-02T10:00:02.000000Z", "id": "a3", "do": "undo", "undoes": "a2"},
)


def settings(random: Random, folder: Path) -> Iterator[str]:
    """A settings file and a saved arrangement are read, or refused in one line."""
    path = folder / "tracetui" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(mutated_bytes(random, _SETTINGS))
    saved = folder / "tracetui" / "list.json"
    saved.write_bytes(mutated_bytes(random, b'{"sort":"tokens","reversed":true,"columns":["name"],"group":"task"}'))
    with _environment(XDG_CONFIG_HOME=str(folder), XDG_STATE_HOME=str(folder)):
        try:
            loaded = config.load()
        except TracetuiError as error:
            if "\n" in str(error) or "\x1b" in str(error):
                yield f"the reason has more than one line, or controls: {str(error)!a:.200}"
        else:
            config.load_arrangement(loaded)


def verdicts(random: Random, folder: Path) -> Iterator[str]:
    """A verdict file is read; what isn't an event is a problem, and new events are kept."""
    path = folder / "tracetui" / "verdicts.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [dumped(mutated(random, event)) if random.random() < 0.7 else dumped(event) for event in _EVENTS]
    data = b"\n".join(lines) + b"\n"
    path.write_bytes(data if random.random() < 0.5 else mutated_bytes(random, data))
    with _environment(XDG_CONFIG_HOME=str(folder), XDG_STATE_HOME=str(folder)):
        first = Sidecar()
        first.of_causes("0" * 16)
        with suppress(TracetuiError):
            first.undo()
        second = Sidecar()
        for sidecar in (first, second):
            sidecar.refresh()
        texts = [[str(problem) for problem in sidecar.problems] for sidecar in (first, second)]
        if texts[0][:5] != texts[1][:5]:
            yield f"problems differ when the file is read again: {texts!a:.300}"


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# ---- MCP

_REQUESTS: Final[tuple[dict[str, Any], ...]] = (
    {"jsonrpc": "2.0", "id": 5, "method": "ping"},
    {"jsonrpc": "2.0", "id": 6, "method": "tools/list", "params": {}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3, "reason": "x"}},
    {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "nothing", "arguments": {"path": "a"}}},
    {"jsonrpc": "2.0", "id": 8, "method": "resources/read", "params": {"uri": "file:///etc/passwd"}},
    {"jsonrpc": "2.0", "id": 9, "result": {"roots": []}},
    {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}},
    },
)
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}},
}


def mcp(random: Random, folder: Path) -> Iterator[str]:
    """Whatever precedes it, a ping is answered, nothing is written to the error output, and the end is an end."""
    with subprocess.Popen(
        [*own_command(), "mcp", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(dumped(_HELLO) + b"\n")
        line = b""
        for number in range(200):
            request = random.choice(_REQUESTS)
            changed = dumped(mutated(random, request)) if random.random() < 0.7 else dumped(request)
            line = changed if random.random() < 0.7 else mutated_bytes(random, changed)
            ping = dumped({"jsonrpc": "2.0", "id": 10_000 + number, "method": "ping"})
            try:
                process.stdin.write(line.replace(b"\n", b" ") + b"\n" + ping + b"\n")
                process.stdin.flush()
            except BrokenPipeError:
                break
            while answer := process.stdout.readline():
                if json.loads(answer).get("id") == 10_000 + number:
                    break
            else:
                break
        else:
            line = b""
        _, errors = process.communicate(timeout=ANSWER_SECONDS)
        if line:
            yield f"the server of MCP ended after {line!a:.300}"
        if errors:
            written = errors.decode(errors="replace").splitlines()
            yield f"the server of MCP wrote {written[-1:]!a:.300} after {line!a:.200}"
        if process.returncode:
            yield f"the server of MCP ended with status {process.returncode}"


# ---- served pages

_FRAMES: Final[tuple[Any, ...]] = (
    ["stdin", "abc"],
    ["resize", {"width": 80, "height": 24}],
    ["ping", 5],
    ["blur"],
    ["focus"],
)
_APP: Final = "printf '__GANGLION__\\n'; exec sed -n ''"


def serve(random: Random, folder: Path) -> Iterator[str]:
    """Pages send anything: none makes the server log an error or leaves a process."""
    yield from asyncio.run(_pages(random))


async def _pages(random: Random) -> list[str]:
    from aiohttp import ClientSession, web

    from tracetui.cli import serve_guard
    from tracetui.cli.serve_guard import GuardedServer

    serve_guard.END_SECONDS = 0.05  # type: ignore[misc]  # the app in its place doesn't quit when asked
    server = GuardedServer(["sh", "-c", _APP], port=0, sessions=4)
    findings = list[str]()
    frames = [_frame(random) for _ in range(8)]
    asyncio.get_running_loop().set_exception_handler(
        lambda _, about: findings.append(
            f"{about.get('message')}: {about.get('exception')!a:.300} after {frames!a:.300}"
        )
    )
    runner = web.AppRunner(await server._make_app(), access_log=None)
    runner.app.on_startup.clear()

    class _Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            findings.append(f"{record.getMessage():.100}: {error!a:.200} after {frames!a:.300}")

    collect = _Collect(logging.ERROR)
    logging.getLogger("aiohttp").addHandler(collect)
    await runner.setup()
    await web.SockSite(runner, server._socket).start()
    address = f"http://127.0.0.1:{server.port}"
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            headers = {"Cookie": f"{server._cookie}={server.token}", "Origin": address}
            async with ClientSession() as session:
                size = random.choice(("", "?width=0&height=-5", "?width=99999999&height=x", "?width=1e9"))
                async with session.ws_connect(f"{address}/ws{size}", headers=headers) as page:
                    with suppress(ConnectionError):
                        for frame in frames:
                            await (page.send_bytes(frame) if random.random() < 0.1 else page.send_str(_text(frame)))
                    await page.close()
            while server._sessions:
                await asyncio.sleep(0.01)
    except TimeoutError:
        findings.append(f"hang: a page does not end after {frames!a:.300}")
    finally:
        await runner.cleanup()
        logging.getLogger("aiohttp").removeHandler(collect)
    return findings


def _frame(random: Random) -> bytes:
    frame = random.choice(_FRAMES)
    data = dumped(mutated(random, frame)) if random.random() < 0.8 else dumped(frame)
    return data if random.random() < 0.8 else mutated_bytes(random, data)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# ---- answers of stores

_ROW: Final = {
    "TraceId": "a1" * 16, "SpanId": "b1" * 8, "EndNs": "1793613600000000000", "StartNs": "1793613599000000000",
    "Typed": False, "ParentSpanId": "", "TraceState": "", "SpanName": "chat", "SpanKind": "Client",
    "ResourceAttributes": {"service.name": "a"}, "ScopeName": "", "ScopeVersion": "",
    "SpanAttributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "5"},
    "StatusCode": "Error", "StatusMessage": "failed", "EventNs": ["1793613599000000000"], "EventNames": ["exception"],
    "EventAttributes": [{"exception.type": "E"}], "LinkTraces": [], "LinkSpans": [], "LinkStates": [],
    "LinkAttributes": [],
}  # fmt: skip
_TRACE: Final = {
    "TraceId": "a1" * 16, "spans": 1, "first": 1793613599000000000, "last": 1793613599000000000,
    "end": 1793613600000000000, "parts": 1, "begin": 1793613599, "SpanId": "b1" * 8,
}  # fmt: skip
_LISTED: Final = {
    "TraceId": "a1" * 16, "Spans": 1, "Ids": 1, "FirstNs": "1793613599000000000", "MayFail": 1, "MayBeScored": 0,
    "Roots": 1, "RootFirst": True, "Root": [*_ROW.values()], "PlainTokens": True, "Input": 5, "Output": 6,
    "PlainModels": True, "PlainCalls": True, "Calls": 1, "Model": "m",
}  # fmt: skip


def answers(random: Random, folder: Path) -> Iterator[str]:
    """What a database or bucket answers becomes runs, problems or `OSError`."""
    try:
        (_clickhouse if random.random() < 0.95 else _bucket)(random, folder)
    except (OSError, TracetuiError) as error:
        if "\n" in str(error) or "\x1b" in str(error):
            yield f"the reason has more than one line, or controls: {str(error)!a:.200}"


def _clickhouse(random: Random, folder: Path) -> None:
    from tracetui.sources.clickhouse import parse, sql
    from tracetui.sources.clickhouse.source import ClickHouseSource

    database = parse("clickhouse://127.0.0.1:9/otel")[0]
    source = ClickHouseSource(database, limit=10)
    columns = [
        {"table": table, "name": name, "type": "Map(String, String)"}
        for table in (database.table, database.table + "_trace_id_ts")
        for name in sql.COLUMNS
    ]

    def query(statement: sql.Statement) -> bytes:
        text = statement.text
        rows: list[Any] = [_TRACE]
        if "system.columns" in text:
            rows = columns
        elif " AS Ids" in text:
            rows = [_LISTED]
        elif " AS EndNs" in text:
            rows = [_ROW]
        changes = (random.random() < 0.5 and rows is not columns) or random.random() < 0.05
        data = b"".join(dumped(mutated(random, row) if changes else row).replace(b"\n", b" ") + b"\n" for row in rows)
        return mutated_bytes(random, data) if random.random() < 0.1 else data

    source._client.query = query  # type: ignore[method-assign]
    _read_all(source, database.folder)


def _bucket(random: Random, folder: Path) -> None:
    from tests.sources.cloud import Cloud, _Handler
    from tracetui.sources import bucket
    from tracetui.sources.objects import ObjectSource

    cloud = Cloud("s3", objects={"runs/a.json": b'{"a": 1}\n', "runs/b/c.jsonl": b"{}\n"})
    original = _Handler._contents

    def contents(handler: _Handler, asked: dict[str, str]) -> bytes:
        data = original(handler, asked)
        return mutated_bytes(random, data) if random.random() < 0.8 else data

    retries, bucket._RETRIES = bucket._RETRIES, 0  # type: ignore[misc]
    _Handler._contents = contents  # type: ignore[method-assign, assignment]
    try:
        with _environment(**cloud.environment(folder)):
            source = ObjectSource(bucket.Bucket("s3", "traces"))
        try:
            for _ in range(20):
                with suppress(OSError):
                    _read_all(source, "s3://traces/runs")
                with suppress(OSError):
                    source.list_now("s3://traces/runs")
        finally:
            source.close()
    finally:
        bucket._RETRIES = retries  # type: ignore[misc]
        _Handler._contents = original  # type: ignore[method-assign]
        cloud.stop()


def _read_all(source: Source, root: str) -> None:
    for deep in (False, True):
        for entry in scan(source, [root], deep=deep):
            for run in entry.runs:
                read_run(source, run.ref)


# ---- running

SURFACES: Final[dict[str, Callable[[Random, Path], Iterator[str]]]] = {
    "settings": settings,
    "verdicts": verdicts,
    "mcp": mcp,
    "serve": serve,
    "answers": answers,
}


def fuzz(name: str, *, seed: int, seconds: float, number: int | None = None, most: int | None = None) -> list[str]:
    """Try one input after the other for `seconds` of time, or `most`, or only `number`; returns the findings."""
    findings = dict[str, str]()
    end = time.monotonic() + seconds
    tried = 0
    for i in count() if number is None else [number]:
        if (number is None and time.monotonic() > end) or tried == most:
            break
        tried += 1
        with tempfile.TemporaryDirectory(prefix="tracetui-fuzz-") as folder:
            for text in _findings(SURFACES[name], Random(f"{name} {seed} {i}"), Path(folder)):
                kind = judge.same_finding(text[:80])
                if kind not in findings:
                    print(f"{i}: {text}", flush=True)
                    findings[kind] = f"{i}: {text}"
    print(f"{tried} inputs, {len(findings)} findings")
    return [*findings.values()]


def _findings(surface: Callable[[Random, Path], Iterator[str]], random: Random, folder: Path) -> list[str]:
    try:
        with judge._limited():
            return [*surface(random, folder)]
    except judge.Hang as error:
        return [f"hang: over {judge.MOST_SECONDS:g} s at {judge._place(error)}"]
    except Exception as error:
        return [f"{type(error).__name__} at {judge._place(error)}: {str(error)[:300]!a}"]
